//! Parts of the build for fault tests. Run with `--features faults`.

use crate::kit::{Folder, code_of, final_answer, flow, flow_with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// Receives one call and sends this answer.
fn witness(answer: &'static str) -> (String, JoinHandle<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let received = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        (&stream).write_all(answer.as_bytes()).unwrap();
        serde_json::from_str(&line).unwrap()
    });
    (address, received)
}

fn paying_flow() -> Value {
    let call = json!({"action": "tool", "tool": "calculator", "input": {}, "confidence": 0.5});
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    let extra = json!({"type": "tool.witness", "toolName": "calculator", "effect": "at_most_once",
                       "description": "pays", "inputSchema": {"type": "object"}});
    flow_with(json!([call, end]), "c", extra)
}

#[test]
fn the_witness_decides_the_outcome_of_a_call() {
    for (answer, code, words) in [
        ("ok 7\n", 0, "\"output\":{\"n\":7}"),
        ("fail\n", 0, "\"success\":false"),
        ("", 3, "\"type\":\"tool_outcome_unknown\""),
    ] {
        let folder = Folder::with_flow(&paying_flow());
        let (address, received) = witness(answer);
        let output = folder.redflow(["run", "flow.json"]).env("REDFLOW_WITNESS", &address).run();
        assert_eq!(output.code, code, "{output:#?}");
        let (received, run) = (received.join().unwrap(), folder.only_run());
        assert_eq!(
            [&received["run"], &received["tool"], &received["class"]],
            [run.as_str(), "calculator", "at_most_once"]
        );
        assert_eq!((&received["call"], &received["iteration"]), (&json!(format!("{run}:1")), &json!(1)));
        assert_eq!(received["key"].as_str().unwrap().len(), 64);
        assert!(folder.run_ok(["runs", "export", &run]).contains(words), "{answer}");
    }
}

#[test]
fn the_clock_can_be_shifted() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    let offset = "-3600000000";
    let output = folder.redflow(["run", "flow.json"]).env("REDFLOW_CLOCK_OFFSET_MS", offset).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(folder.run_ok(["runs", "prune", "--older-than", "30d"]).starts_with("1 run removed"));
}

/// Reads lines up to one with this text.
fn find_line(lines: &mut impl BufRead, text: &str) -> String {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "no line has `{text}`");
    }
    line
}

/// Starts a run of the agent `a`. Gives the connection, because the sidecar may hang before it answers.
#[cfg(unix)]
fn start_run(stderr: &mut impl BufRead) -> TcpStream {
    let line = find_line(stderr, "listening on http://");
    let address = line.split("http://").nth(1).unwrap().split(' ').next().unwrap();
    let body = json!({"node": "a", "payload": "x"}).to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /api/runs HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

#[cfg(unix)]
const TOKEN: &str = "a-token-of-a-hanging-sidecar";

#[cfg(unix)]
const SERVE: [&str; 5] = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0"];

#[cfg(unix)]
fn send_sigterm(process: &std::process::Child) {
    let id = process.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
}

/// A replay that never ends holds a thread of its own.
// SECURITY: hung-run
#[cfg(unix)]
#[test]
fn a_sidecar_stops_while_a_replay_hangs() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    folder.write("redflow.toml", "[server]\ndrain_ms = 100\n");
    let args = || SERVE.into_iter().chain(["--config", "redflow.toml"]);
    let serve = || folder.redflow(args()).env("REDFLOW_TOKEN", TOKEN);
    let mut killed = serve().env("REDFLOW_FAILPOINT", "step.compute=2").spawn();
    let mut stderr = BufReader::new(killed.0.stderr.take().unwrap());
    let _client = start_run(&mut stderr);
    find_line(&mut stderr, "FAILPOINT");
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();

    let mut hanging = serve().env("REDFLOW_FAILPOINT", "step.compute").spawn();
    find_line(&mut BufReader::new(hanging.0.stderr.take().unwrap()), "FAILPOINT");
    send_sigterm(&hanging.0);
    assert_eq!(code_of(hanging.0.wait().unwrap()), 0);
    let listed = folder.run_ok(["runs"]);
    assert!(listed.contains("interrupted") && !listed.contains("RUN_HUNG"), "{listed}");
    let resumed = folder.redflow(["run", "--resume", "all"]).run();
    assert_eq!(resumed.code, 0, "{resumed:#?}");
}

/// A step that never ends holds the only thread of the sidecar.
// SECURITY: hung-run
#[cfg(unix)]
#[test]
fn a_run_that_hung_a_sidecar_is_not_resumed_by_the_next_one() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    let serve = || folder.redflow(SERVE).env("REDFLOW_TOKEN", TOKEN);
    // The first step begins the run, the second one takes the answer of the model.
    let mut hanging = serve().env("REDFLOW_FAILPOINT", "step.compute=2").spawn();
    let mut stderr = BufReader::new(hanging.0.stderr.take().unwrap());
    let _client = start_run(&mut stderr);
    find_line(&mut stderr, "RUN_HUNG");
    // The note is written a moment after the log.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !folder.run_ok(["runs"]).contains("RUN_HUNG") {
        assert!(std::time::Instant::now() < end, "the note is never written");
    }
    hanging.0.kill().unwrap();
    hanging.0.wait().unwrap();
    let listed = folder.run_ok(["runs"]);
    assert!(listed.contains("interrupted") && listed.contains("RUN_HUNG"), "{listed}");

    let mut next = serve().spawn();
    find_line(&mut BufReader::new(next.0.stderr.take().unwrap()), "RUN_HUNG");
    send_sigterm(&next.0);
    assert_eq!(code_of(next.0.wait().unwrap()), 0);
    assert!(folder.run_ok(["runs"]).contains("RUN_HUNG"));
    let all = folder.redflow(["run", "--resume", "all"]).run();
    assert!(all.stderr.contains("RUN_HUNG"), "{all:#?}");
    // A person decides to try it again.
    let run = folder.only_run();
    let resumed = folder.redflow(["run", "--resume", &run]).run();
    assert_eq!(resumed.code, 0, "{resumed:#?}");
    let listed = folder.run_ok(["runs"]);
    assert!(listed.contains("completed") && !listed.contains("RUN_HUNG"), "{listed}");
}
