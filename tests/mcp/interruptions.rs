//! `kill -9` of the server, of the sidecar and of a client in the middle of a call. Nothing hangs, and a call that must
//! not happen twice happens at most once.

use crate::kit::{Home, PATIENCE, agent, folder, json_output, node, output, run, server};
use crate::recorder::Recorder;
use redflow_testkit::{LoggedProcess, kill_at_home, processes_at_home};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the call of the tests takes if nothing interrupts it, in seconds.
const CALL_SECONDS: u64 = 30;

const LONG_CALL: &str = "mcp__all__trigger-long-running-operation";

/// How the sidecar reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// It is a program that the sidecar starts.
    Stdio,
    /// It is a process of its own, with an address.
    Http,
}

const TRANSPORTS: [Transport; 2] = [Transport::Stdio, Transport::Http];

/// A home with the everything server. `peer/sent` in its folder has what the server was sent.
struct Peers {
    home: Home,
    http: Option<HttpPeer>,
}

struct HttpPeer {
    recorder: Recorder,
    process: LoggedProcess,
}

impl Peers {
    fn start(transport: Transport, more: Value) -> Self {
        let calls = [(LONG_CALL, json!({"duration": CALL_SECONDS, "steps": 2}))];
        let home = Home::new(json!({}), &agent("all", &calls, "Done."));
        std::fs::create_dir(home.path("peer")).unwrap();
        let peer = home.path("peer").canonicalize().unwrap();
        let (mut definition, http) = match transport {
            Transport::Stdio => {
                let script = "cd \"$1\"; tee -a sent | \"$2\" \"$3\"";
                let args = json!(["-c", script, "bash", peer, node(), server("everything")]);
                let read = [folder().join("node_modules")];
                (json!({"command": "bash", "args": args, "read": read, "write": [peer]}), None)
            }
            Transport::Http => {
                let recorder = Recorder::start(&home.path("peer/sent"));
                let http = HttpPeer { process: start_server(&recorder), recorder };
                let url = format!("http://{}/mcp", http.recorder.addr);
                (json!({"url": url}), Some(http))
            }
        };
        if let (Some(definition), Value::Object(more)) = (definition.as_object_mut(), more) {
            definition.extend(more);
        }
        std::fs::write(home.path("data/tools.json"), json!({"mcp": {"all": definition}}).to_string())
            .unwrap();
        Self { home, http }
    }

    /// `redflow`, which may use the address of the server.
    fn redflow(&self, args: &[&str]) -> Command {
        let mut command = self.home.redflow(args);
        if let Some(http) = &self.http {
            command.env("REDFLOW_EGRESS_PRIVATE", http.recorder.addr.to_string());
        }
        command
    }

    fn start_run(&self) -> LoggedProcess {
        LoggedProcess::start(self.redflow(&["run", "flow.json", "--json", "--quiet"])).unwrap()
    }

    fn resume(&self) -> Command {
        self.redflow(&["run", "--resume", "all", "flow.json", "--quiet"])
    }

    /// How often the server was asked to call a tool.
    fn calls(&self) -> usize {
        let sent = std::fs::read(self.home.path("peer/sent")).unwrap_or_default();
        String::from_utf8_lossy(&sent).matches("\"tools/call\"").count()
    }

    #[track_caller]
    fn wait_for_call(&self) {
        wait_until(|| self.calls() > 0, "the server is called");
    }

    fn kill_server(&mut self) {
        match &mut self.http {
            Some(http) => http.process.kill().unwrap(),
            None => kill_at_home(&program_home(&self.home)).unwrap(),
        }
    }

    /// Starts a server with an address again. The sidecar starts a program itself.
    fn restart_server(&mut self) {
        if let Some(http) = &mut self.http {
            http.process = start_server(&http.recorder);
        }
    }

    /// The id of the run that waits, and of its call.
    #[track_caller]
    fn question(&self) -> (String, String) {
        let waiting = &self.home.runs()[0];
        assert_eq!(waiting["status"], "waiting", "{waiting:#}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&waiting["runId"]), text(&waiting["waiting"]["callId"]))
    }
}

/// Starts the everything server at a free port, and lets the recorder pass requests on to it.
fn start_server(recorder: &Recorder) -> LoggedProcess {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(node());
    command.args([&server("everything"), "streamableHttp"]).env("PORT", port.to_string());
    let mut process = LoggedProcess::start(command).unwrap();
    assert!(process.wait_for("listening on port", PATIENCE).is_some(), "{}", process.stderr());
    recorder.pass_to(([127, 0, 0, 1], port).into());
    process
}

#[test]
fn a_killed_server_leaves_a_question_and_no_second_call() {
    for transport in TRANSPORTS {
        let mut peers = Peers::start(transport, json!({}));
        let began = Instant::now();
        let process = peers.start_run();
        peers.wait_for_call();
        peers.kill_server();
        let exit = process.wait(PATIENCE).unwrap();
        assert!(began.elapsed() < Duration::from_secs(CALL_SECONDS), "the run waited for a dead server");
        // The run waits for a person: whether the call happened is unknown.
        assert_eq!(exit.code, Some(3), "{transport:?}: {}{}", exit.stdout, exit.stderr);
        let (id, call) = peers.question();
        peers.restart_server();
        output(peers.redflow(&["runs", "resolve", &id, "--call", &call, "--done", "--result", "\"done\""]));
        output(peers.resume());
        assert_eq!(peers.home.runs()[0]["status"], "completed", "{transport:?}");
        assert_eq!(peers.calls(), 1, "{transport:?}: the call was made twice");
    }
}

#[test]
fn a_read_fails_at_once_when_the_server_is_killed_and_the_run_goes_on() {
    for transport in TRANSPORTS {
        let mut peers = Peers::start(transport, json!({"effects": {"trigger-*": "read"}}));
        let began = Instant::now();
        let process = peers.start_run();
        peers.wait_for_call();
        peers.kill_server();
        let exit = process.wait(PATIENCE).unwrap();
        assert!(began.elapsed() < Duration::from_secs(CALL_SECONDS), "the run waited for a dead server");
        let message: Value = serde_json::from_str(&exit.stdout).unwrap_or_else(|_| panic!("{exit:?}"));
        let result = &message["payload"]["metadata"]["toolCalls"][0]["result"];
        assert_eq!(result["success"], false, "{transport:?}: {message:#}");
        if transport == Transport::Stdio {
            assert!(result["error"].as_str().unwrap().contains("connection"), "{message:#}");
        }
        assert_eq!(message["payload"]["response"], "Done.", "{message:#}");
    }
}

#[test]
fn a_killed_sidecar_leaves_a_question_and_no_second_call() {
    for transport in TRANSPORTS {
        let peers = Peers::start(transport, json!({}));
        let mut process = peers.start_run();
        peers.wait_for_call();
        process.kill().unwrap();
        let exit = run(peers.resume());
        assert_eq!(exit.code, Some(3), "{transport:?}: {}{}", exit.stdout, exit.stderr);
        let (id, call) = peers.question();
        output(peers.redflow(&["runs", "resolve", &id, "--call", &call, "--not-done"]));
        output(peers.resume());
        assert_eq!(peers.calls(), 1, "{transport:?}: the call was made twice");
        output(peers.redflow(&["replay", "--all"]));
        if transport == Transport::Stdio {
            assert_eq!(programs_left(&peers.home), 0, "the program of a dead sidecar is still there");
        }
    }
}

/// The folder that is the home of the program.
fn program_home(home: &Home) -> PathBuf {
    home.path("data/mcp/folders/all")
}

/// The processes of the program: none may outlive its sidecar for long.
#[allow(clippy::disallowed_methods, reason = "waits for processes that are not its children")]
fn programs_left(home: &Home) -> usize {
    let end = Instant::now() + PATIENCE;
    loop {
        let alive = processes_at_home(&program_home(home)).len();
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
