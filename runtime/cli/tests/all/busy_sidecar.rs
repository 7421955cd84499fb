//! A sidecar that works on large input still answers `/health` and stops when it is asked to.

use crate::kit::{Folder, Running, code_of, flow};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const TOKEN: &str = "a-token-for-a-busy-sidecar";

/// How long any answer may take, so that nothing hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How long `/health` may take on a machine that runs many tests at once.
const MAX_DELAY: Duration = Duration::from_secs(5);

fn serve(folder: &Folder) -> (Running, SocketAddr) {
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0", "--config", "redflow.toml"];
    let mut running = folder.redflow(args).env("REDFLOW_TOKEN", TOKEN).env("REDFLOW_LOG", "error").spawn();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening on http://") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended without listening");
    }
    let address = line.split("http://").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    // The pipe must be read on, or the process blocks when it is full.
    std::thread::spawn(move || stderr.read_to_string(&mut String::new()));
    (running, address)
}

fn send(address: SocketAddr, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// Sends a request and gives the status and the body.
fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut answer = String::new();
    send(address, method, path, body).read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// A flow of some megabytes, with many agents and with many crontabs, half of which never come.
fn large_flow() -> Value {
    let Value::Array(mut nodes) =
        flow(json!([{"action": "final", "message": "ok", "confidence": 1}]), vec![])
    else {
        panic!("a flow is an array")
    };
    for number in 0..2_200 {
        let (minute, hour) = (number % 60, number / 60 % 24);
        let day = if number % 2 == 0 { "31 2,4,6,9,11 *" } else { "29 2 +MON" };
        let crontab = format!("{minute} {hour} {day}");
        nodes.push(json!({"id": format!("i{number}"), "type": "inject", "z": "t", "crontab": crontab,
            "wires": [[]]}));
    }
    for number in 0..1_500 {
        nodes.push(json!({"id": format!("a{number}"), "type": "agent-core", "z": "t", "name": "refused",
            "systemPrompt": "x".repeat(1_000), "wires": [[], [], [], []]}));
    }
    let text: Vec<u32> = (0..200_000).collect();
    nodes.push(json!({"id": "big", "type": "comment", "z": "t", "info": text}));
    Value::Array(nodes)
}

// SECURITY: loop-free
#[test]
fn a_busy_sidecar_answers_and_stops() {
    let folder =
        Folder::with_flow(&flow(json!([{"action": "final", "message": "ok", "confidence": 1}]), vec![]));
    folder.write("redflow.toml", "[server]\nrate_per_second = 1000000\nrate_burst = 1000000\n");
    let (mut sidecar, address) = serve(&folder);
    let large = large_flow().to_string();
    let message =
        json!({"node": "a", "payload": (0..300_000).collect::<Vec<u32>>(), "wait": true}).to_string();
    let worst = std::thread::scope(|scope| {
        // Dropping `stop` ends the prober, also when an assertion fails.
        let (stop, stopped) = channel::<()>();
        let prober = scope.spawn(move || {
            let mut worst = Duration::ZERO;
            while stopped.recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {
                let began = Instant::now();
                assert_eq!(request(address, "GET", "/health", "").0, 200);
                worst = worst.max(began.elapsed());
            }
            worst
        });
        let steps: [(&str, &str, &str, u16); 8] = [
            ("POST", "/api/runs", &message, 200),
            ("POST", "/api/flows/check", &format!("{{\"flows\":{large}}}"), 200),
            ("POST", "/flows", &large, 204),
            ("POST", "/flows", &large, 204),
            ("GET", "/flows", "", 200),
            ("GET", "/api/flows", "", 200),
            ("GET", "/flow/t", "", 200),
            ("POST", "/flow", &large, 400),
        ];
        for (method, path, body, expected) in steps {
            let (status, answer) = request(address, method, path, body);
            assert_eq!(status, expected, "{method} {path}: {}", answer.chars().take(500).collect::<String>());
        }
        let runs: Value = serde_json::from_str(&request(address, "GET", "/api/runs", "").1).unwrap();
        let run = runs["runs"][0]["runId"].as_str().unwrap();
        for (method, path) in [("GET", ""), ("GET", "/events"), ("GET", "/journal"), ("POST", "/replay")] {
            assert_eq!(request(address, method, &format!("/api/runs/{run}{path}"), "").0, 200, "{path}");
        }
        let (_, metrics) = request(address, "GET", "/metrics", "");
        let delay = metrics.lines().find(|line| line.starts_with("redflow_loop_delay_seconds ")).unwrap();
        eprintln!("{delay}");
        drop(stop);
        prober.join().unwrap()
    });
    eprintln!("the slowest answer of /health took {worst:?}");
    assert!(worst < MAX_DELAY, "{worst:?}");
    // It stops while it still works on these.
    let _open: Vec<TcpStream> = (0..3).map(|_| send(address, "POST", "/flows", &large)).collect();
    let id = sidecar.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let began = Instant::now();
    assert_eq!(code_of(sidecar.0.wait().unwrap()), 0);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
