//! Commands that look for the sidecar of the data directory: when it can be found, which token it gets, and what happens
//! if it does not answer.

use crate::kit::{Folder, Output, agent, flow};
use crate::live_command::LiveCommand;
use crate::signals::slow_flow;
use pretty_assertions::assert_eq;
use redflow_store::DriverLock;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// The token of the environment, for another sidecar or for this one.
const CHOSEN: &str = "a-token-of-the-environment";

/// How long `redflow mcp serve` waits for a sidecar that starts.
const START_TIME: Duration = Duration::from_secs(3);

fn until(mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "it does not happen");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A folder with a server that wants a sign-in. A test drives its data directory.
fn driven_folder() -> (Folder, DriverLock) {
    let folder = Folder::new();
    folder.run_ok(["mcp", "add", "tracker", "--address", "http://127.0.0.1:9/mcp", "--oauth"]);
    let lock = DriverLock::take(&folder.data()).unwrap();
    (folder, lock)
}

fn logout(folder: &Folder, env: &[(&str, &str)]) -> Output {
    let data = folder.data();
    let call = folder.redflow(["mcp", "logout", "tracker", "--data", data.to_str().unwrap()]);
    let call = call.env("REDFLOW_EGRESS_PRIVATE", "127.0.0.1:9");
    env.iter().fold(call, |call, (name, value)| call.env(name, value)).run()
}

/// A sidecar that accepts one token, and keeps those that it gets.
fn start_sidecar(accepted: &str) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (accepted, tokens) = (accepted.to_owned(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&tokens);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &accepted, &kept);
        }
    });
    (address, tokens)
}

fn answer(mut stream: TcpStream, accepted: &str, kept: &Mutex<Vec<String>>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    let first = lines.next()?;
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let token = head.iter().find_map(|line| line.strip_prefix("authorization: Bearer "))?;
    kept.lock().unwrap().push(token.to_owned());
    let (status, body) = match first.starts_with("DELETE") {
        _ if token != accepted => ("401", json!({"code": "UNAUTHORIZED", "message": "No."}).to_string()),
        true => ("204", String::new()),
        false => ("200", json!({"servers": []}).to_string()),
    };
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").ok()
}

// SECURITY: sidecar-address
#[test]
fn the_sidecar_of_the_data_directory_gets_its_own_token() {
    let (folder, _lock) = driven_folder();
    let main = folder.run_ok(["token"]).trim().to_owned();
    let elsewhere = ("REDFLOW_URL", "http://127.0.0.1:9");
    let chosen = ("REDFLOW_TOKEN", CHOSEN);
    let run = |accepted: &str, env: &[(&str, &str)]| {
        let (address, tokens) = start_sidecar(accepted);
        std::fs::write(folder.data().join("address"), address.to_string()).unwrap();
        let output = logout(&folder, env);
        let mut tokens = tokens.lock().unwrap().clone();
        tokens.dedup();
        (output, tokens)
    };
    for env in [[].as_slice(), &[chosen], &[elsewhere, chosen]] {
        let (output, tokens) = run(&main, env);
        assert_eq!((output.code, tokens), (0, vec![main.clone()]), "{env:?}: {output:#?}");
    }
    // A sidecar that was started with the token of the environment does not accept that of the file.
    let (output, tokens) = run(CHOSEN, &[chosen]);
    assert_eq!((output.code, tokens), (0, vec![main.clone(), CHOSEN.to_owned()]), "{output:#?}");
    // The token for another address goes nowhere.
    let (output, tokens) = run(CHOSEN, &[elsewhere, chosen]);
    assert_eq!((output.errors(), tokens), (vec!["UNAUTHORIZED"], vec![main]), "{output:#?}");
    std::fs::remove_file(folder.data().join("token")).unwrap();
    let (output, tokens) = run(CHOSEN, &[chosen]);
    assert_eq!((output.code, tokens), (0, vec![CHOSEN.to_owned()]), "{output:#?}");
    let (output, tokens) = run(CHOSEN, &[elsewhere, chosen]);
    output.assert_refused("There is no token for http://127.0.0.1");
    assert!(tokens.is_empty(), "{tokens:?}");
}

#[test]
fn without_an_answer_the_command_makes_the_change() {
    let (folder, _lock) = driven_folder();
    folder.run_ok(["token"]);
    // Nothing listens at the first one. The second one is an address that other machines can reach, and no one has.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    for address in [held.local_addr().unwrap().to_string(), "192.0.2.1:9".to_owned()] {
        std::fs::write(folder.data().join("address"), &address).unwrap();
        let output = logout(&folder, &[]);
        assert_eq!(output.code, 0, "{output:#?}");
        let note = format!("the sidecar at http://{address}/ does not answer; ");
        assert!(output.stderr.contains(&note), "{output:#?}");
        assert!(output.stderr.ends_with("the tokens of tracker are removed\n"), "{output:#?}");
        assert!(!output.stderr.contains("plain text"), "{output:#?}");
    }
}

#[test]
fn a_driver_that_does_not_listen_is_not_waited_for() {
    let (folder, _lock) = driven_folder();
    // The fastest of some, because another program may use the processor.
    let time = |_| {
        let begin = Instant::now();
        let output = logout(&folder, &[]);
        assert_eq!(output.code, 0, "{output:#?}");
        begin.elapsed()
    };
    let fastest = (0..3).map(time).min().unwrap();
    assert!(fastest < START_TIME, "{fastest:?}");
}

/// Otherwise another program could take the port and get the token of a command.
// SECURITY: sidecar-address
#[test]
fn a_sidecar_that_stops_takes_its_address_away_before_its_port_is_free() {
    let folder = Folder::with_flow(&slow_flow());
    let serve = folder.redflow(["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0"]);
    let mut sidecar = LiveCommand::start(serve, "");
    sidecar.wait_for("redflow ");
    let file = folder.data().join("address");
    let address: SocketAddr = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    let mut run = LiveCommand::start(folder.redflow(["run", "--url", &format!("http://{address}")]), "");
    run.wait_for("▶ a ");
    sidecar.signal("-TERM");
    until(|| TcpStream::connect(address).is_err());
    assert!(!file.exists(), "the port is free, and the file names it");
    assert_eq!(sidecar.running.0.try_wait().unwrap(), None, "the run has not ended yet");
}

/// A command would wait for the answer of a sidecar that still starts.
#[test]
fn a_sidecar_writes_its_address_when_it_has_started() {
    // The problems of these agents do not fit into the pipe. So the start takes until a test has read them.
    let agents = (0..1_000).map(|number| agent(&format!("a{number}"), json!([[], [], [], [], []])));
    let folder = Folder::with_flow(&flow(json!([]), agents.collect()));
    let serve = folder.redflow(["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0"]);
    let mut sidecar = LiveCommand::start(serve, "");
    sidecar.wait_for("error[");
    let file = folder.data().join("address");
    assert!(!file.exists(), "it has not started yet");
    sidecar.wait_for("redflow ");
    assert!(file.exists());
}
