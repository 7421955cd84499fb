//! `kill -9` of the server, of the sidecar and of a client in the middle of a call. Nothing hangs, and a call that must
//! not happen twice happens at most once.

use crate::kit::{Home, PATIENCE, agent, folder, json_output, node, output, run, server};
use redflow_testkit::LoggedProcess;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the call of the tests takes if nothing interrupts it, in seconds.
const CALL_SECONDS: u64 = 30;

const LONG_CALL: &str = "mcp__all__trigger-long-running-operation";

/// A home with the everything server. `sent` in its folder has what the server was sent, line by line; `pid` the id of
/// the server's process.
fn home_with_recorded_server(more: Value) -> Home {
    let calls = [(LONG_CALL, json!({"duration": CALL_SECONDS, "steps": 2}))];
    let home = Home::new(json!({}), &agent("all", &calls, "Done."));
    let folder_of_home = home.dir.path().canonicalize().unwrap();
    let script = "cd \"$1\"; tee -a sent | { echo $BASHPID >> pid; exec \"$2\" \"$3\"; }";
    let mut definition = json!({"command": "bash", "args": ["-c", script, "bash", folder_of_home, node(), server("everything")],
        "read": [folder().join("node_modules")], "write": [folder_of_home]});
    if let (Some(definition), Value::Object(more)) = (definition.as_object_mut(), more) {
        definition.extend(more);
    }
    std::fs::write(home.path("data/tools.json"), json!({"mcp": {"all": definition}}).to_string()).unwrap();
    home
}

/// How often the server was asked to call a tool.
fn calls(home: &Home) -> usize {
    let sent = std::fs::read_to_string(home.path("sent")).unwrap_or_default();
    sent.lines().filter(|line| line.contains("\"tools/call\"")).count()
}

#[allow(clippy::disallowed_methods, reason = "waits for a file that another process writes")]
#[track_caller]
fn wait_for_call(home: &Home) {
    let end = Instant::now() + PATIENCE;
    while calls(home) == 0 {
        assert!(Instant::now() < end, "the server was never called");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn kill_server(home: &Home) {
    let pids = std::fs::read_to_string(home.path("pid")).unwrap();
    let pid = pids.lines().last().unwrap();
    assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
}

fn start_run(home: &Home) -> LoggedProcess {
    LoggedProcess::start(home.redflow(&["run", "flow.json", "--json", "--quiet"])).unwrap()
}

#[test]
fn a_killed_server_leaves_a_question_and_no_second_call() {
    let home = home_with_recorded_server(json!({}));
    let began = Instant::now();
    let process = start_run(&home);
    wait_for_call(&home);
    kill_server(&home);
    let exit = process.wait(PATIENCE).unwrap();
    assert!(began.elapsed() < Duration::from_secs(CALL_SECONDS), "the run waited for a dead server");
    // The run waits for a person: whether the call happened is unknown.
    assert_eq!(exit.code, Some(3), "{}{}", exit.stdout, exit.stderr);
    let waiting = &home.runs()[0];
    assert_eq!(waiting["status"], "waiting", "{waiting:#}");
    let (id, call) = (waiting["runId"].as_str().unwrap(), waiting["waiting"]["callId"].as_str().unwrap());
    output(home.redflow(&["runs", "resolve", id, "--call", call, "--done", "--result", "\"done\""]));
    output(home.redflow(&["run", "--resume", "all", "flow.json", "--quiet"]));
    assert_eq!(home.runs()[0]["status"], "completed");
    assert_eq!(calls(&home), 1, "the call was made twice");
}

#[test]
fn a_read_fails_at_once_when_the_server_is_killed_and_the_run_goes_on() {
    let home = home_with_recorded_server(json!({"effects": {"trigger-*": "read"}}));
    let began = Instant::now();
    let process = start_run(&home);
    wait_for_call(&home);
    kill_server(&home);
    let exit = process.wait(PATIENCE).unwrap();
    assert!(began.elapsed() < Duration::from_secs(CALL_SECONDS), "the run waited for a dead server");
    let message: Value = serde_json::from_str(&exit.stdout).unwrap_or_else(|_| panic!("{exit:?}"));
    let call = &message["payload"]["metadata"]["toolCalls"][0];
    assert_eq!(call["result"]["success"], false, "{message:#}");
    assert!(call["result"]["error"].as_str().unwrap().contains("connection"), "{message:#}");
    assert_eq!(message["payload"]["response"], "Done.", "{message:#}");
}

#[test]
fn a_killed_sidecar_leaves_a_question_and_no_second_call() {
    let home = home_with_recorded_server(json!({}));
    let mut process = start_run(&home);
    wait_for_call(&home);
    process.kill().unwrap();
    let exit = run(home.redflow(&["run", "--resume", "all", "flow.json", "--quiet"]));
    assert_eq!(exit.code, Some(3), "{}{}", exit.stdout, exit.stderr);
    let waiting = &home.runs()[0];
    let (id, call) = (waiting["runId"].as_str().unwrap(), waiting["waiting"]["callId"].as_str().unwrap());
    output(home.redflow(&["runs", "resolve", id, "--call", call, "--not-done"]));
    output(home.redflow(&["run", "--resume", "all", "flow.json", "--quiet"]));
    assert_eq!(calls(&home), 1, "the call was made twice");
    output(home.redflow(&["replay", "--all"]));
    assert_eq!(programs_of(&home), 0, "the program of a dead sidecar is still there");
}

/// The programs that still hold the folder of a home: none may outlive its sidecar for long.
#[allow(clippy::disallowed_methods, reason = "waits for processes that are not its children")]
fn programs_of(home: &Home) -> usize {
    let end = Instant::now() + PATIENCE;
    loop {
        let pids = std::fs::read_to_string(home.path("pid")).unwrap();
        let alive = pids.lines().filter(|pid| Path::new("/proc").join(pid).join("exe").exists()).count();
        if alive == 0 || Instant::now() > end {
            return alive;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A client that is killed in the middle of its call cancels the run in the modern era, and not in the legacy one. The
/// sidecar serves others meanwhile.
#[test]
fn a_killed_client_does_not_hold_the_sidecar() {
    let flow = json!([
        {"id": "tab", "type": "tab", "label": "Slow"},
        {"id": "slow", "type": "ai-agent", "z": "tab", "name": "slow", "x": 1, "y": 1, "wires": [[], []], "model": "model"},
        {"id": "model", "type": "scripted-model", "z": "tab", "x": 1, "y": 1, "wires": [], "replies": ["Late."],
         "delayMs": 3000},
    ]);
    for (era, ended) in [("legacy", "completed"), ("modern", "failed")] {
        let home = Home::new(json!({}), &flow);
        let sidecar = home.serve();
        let client = |era: &str| {
            let mut command = Command::new(node());
            command.arg(folder().join("clients/typescript.mjs"));
            command.args([era, "agent.slow", "{\"input\": \"x\"}", "http", &sidecar.mcp()]);
            command.env("REDFLOW_TOKEN", &sidecar.token);
            command
        };
        let mut killed = LoggedProcess::start(client(era)).unwrap();
        wait_until(|| home.runs().iter().any(|run| run["status"] == "running"), "the run begins");
        killed.kill().unwrap();
        wait_until(
            || home.runs().iter().any(|run| run["status"] == ended),
            &format!("{era}: the run has {ended}"),
        );
        let seen = json_output(client(era));
        assert!(seen["result"].to_string().contains("Late."), "{seen:#}");
    }
}

#[allow(clippy::disallowed_methods, reason = "asks another process until it holds")]
#[track_caller]
fn wait_until(holds: impl Fn() -> bool, what: &str) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
