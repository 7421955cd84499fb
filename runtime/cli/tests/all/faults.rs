//! What only the build for fault tests has. Run with `--features faults`.

use crate::kit::{Folder, final_answer, flow, flow_with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

/// Sees one call, and says this to it.
fn witness(answer: &'static str) -> (String, JoinHandle<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        (&stream).write_all(answer.as_bytes()).unwrap();
        serde_json::from_str(&line).unwrap()
    });
    (address, seen)
}

fn paying_flow() -> Value {
    let call = json!({"action": "tool", "tool": "calculator", "input": {}, "confidence": 0.5});
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    let extra = json!({"type": "tool.witness", "toolName": "calculator", "effect": "at_most_once",
                       "description": "pays", "inputSchema": {"type": "object"}});
    flow_with(json!([call, end]), "c", extra)
}

#[test]
fn the_witness_sees_a_call_and_decides_what_came_of_it() {
    for (answer, code, words) in [
        ("ok 7\n", 0, "\"output\":{\"n\":7}"),
        ("fail\n", 0, "\"success\":false"),
        ("", 3, "\"type\":\"tool_outcome_unknown\""),
    ] {
        let folder = Folder::with_flow(&paying_flow());
        let (address, seen) = witness(answer);
        let output = folder.redflow(["run", "flow.json"]).env("REDFLOW_WITNESS", &address).run();
        assert_eq!(output.code, code, "{output:#?}");
        let (seen, run) = (seen.join().unwrap(), folder.only_run());
        assert_eq!(
            [&seen["run"], &seen["tool"], &seen["class"]],
            [run.as_str(), "calculator", "at_most_once"]
        );
        assert_eq!((&seen["call"], &seen["iteration"]), (&json!(format!("{run}:1")), &json!(1)));
        assert_eq!(seen["key"].as_str().unwrap().len(), 64);
        assert!(folder.well(["runs", "export", &run]).contains(words), "{answer}");
    }
}

#[test]
fn the_clock_may_be_wrong() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    let offset = "-3600000000";
    let output = folder.redflow(["run", "flow.json"]).env("REDFLOW_CLOCK_OFFSET_MS", offset).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(folder.well(["runs", "prune", "--older-than", "30d"]).starts_with("1 run removed"));
}
