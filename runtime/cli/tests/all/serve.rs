//! `--url` against `redflow serve`: the same output and exit codes as without it, and runs that continue
//! without the client.

use crate::kit::{
    Folder, Output, Running, agent, final_answer, flow, flow_with, inject, model, node, normalize, port3,
};
use crate::live_command::LiveCommand;
use crate::prepared_runs::{at_most_once_flow, waiting_run};
use crate::signals::slow_flow;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

/// A sidecar process, its folder and its address.
pub(crate) struct SidecarProcess {
    running: Running,
    pub(crate) url: String,
    pub(crate) folder: Folder,
}

impl SidecarProcess {
    pub(crate) fn start(flow: &Value) -> Self {
        Self::start_in(Folder::with_flow(flow))
    }

    /// Serves the flow of a folder, with its data directory.
    pub(crate) fn start_in(folder: Folder) -> Self {
        let (running, url) = serve(&folder, "127.0.0.1:0");
        Self { running, url, folder }
    }

    /// The same with more arguments, at any free port.
    pub(crate) fn start_with(folder: Folder, args: &[&str]) -> Self {
        let args: Vec<&str> = ["--listen", "127.0.0.1:0"].iter().chain(args).copied().collect();
        let (running, url) = serve_with(&folder, &args, &[]);
        Self { running, url, folder }
    }

    /// The same with environment variables.
    pub(crate) fn start_with_env(folder: Folder, env: &[(&str, &str)]) -> Self {
        let (running, url) = serve_with(&folder, &["--listen", "127.0.0.1:0"], env);
        Self { running, url, folder }
    }

    /// Kills the process, as a crash would, and starts it again at the same address.
    pub(crate) fn crash(&mut self) {
        self.running.0.kill().unwrap();
        self.running.0.wait().unwrap();
        let (running, url) = serve(&self.folder, self.url.trim_start_matches("http://"));
        assert_eq!(url, self.url);
        self.running = running;
    }

    /// Stops the process as a service manager does, and waits for its end.
    pub(crate) fn stop(&mut self) {
        let id = self.running.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert_eq!(self.running.0.wait().unwrap().code(), Some(0));
    }

    /// Runs a command with `--url`.
    #[track_caller]
    pub(crate) fn run_remote(&self, args: &[&str]) -> Output {
        self.folder.redflow(args.iter().copied().chain(["--url", &self.url])).run()
    }

    /// Runs a command on the data directory.
    fn run_local(&self, args: &[&str]) -> Output {
        self.folder.redflow(args.iter().copied()).run()
    }

    fn start_live(&self, args: &[&str]) -> LiveCommand {
        LiveCommand::start(self.folder.redflow(args.iter().copied().chain(["--url", &self.url])), "")
    }

    /// Repeats a command until its output matches.
    #[track_caller]
    pub(crate) fn until(&self, args: &[&str], is_it: impl Fn(&Output) -> bool) -> Output {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            let output = self.run_remote(args);
            if is_it(&output) {
                return output;
            }
            assert!(std::time::Instant::now() < deadline, "{args:?}: {output:#?}");
        }
    }
}

fn serve(folder: &Folder, listen: &str) -> (Running, String) {
    serve_with(folder, &["--listen", listen], &[])
}

fn serve_with(folder: &Folder, args: &[&str], env: &[(&str, &str)]) -> (Running, String) {
    let args = ["serve", "--flows", "flow.json"].iter().chain(args).copied();
    let call = env.iter().fold(folder.redflow(args), |call, (name, value)| call.env(name, value));
    let mut running = call.spawn();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
    let mut output = String::new();
    loop {
        let begin = output.len();
        assert!(stderr.read_line(&mut output).unwrap() > 0, "it ended without listening: {output}");
        if let Some((_, rest)) = output[begin..].split_once("listening on ") {
            let url = rest.split(['"', ' ', '\n']).next().unwrap().trim_end_matches(':').to_owned();
            // The pipe must be read on, or the process blocks when it is full.
            std::thread::spawn(move || stderr.read_to_string(&mut String::new()));
            return (running, url);
        }
    }
}

/// Compares two outputs without the parts that differ in each run.
fn assert_same(one: &Output, other: &Output) {
    assert_eq!(
        (one.code, normalize(&one.stdout)),
        (other.code, normalize(&other.stdout)),
        "{one:#?} {other:#?}"
    );
}

#[test]
fn a_run_at_a_sidecar_prints_the_same_as_a_local_run() {
    let calls = json!([
        {"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 0.5},
        {"action": "final", "message": "It is 42.", "confidence": 1},
    ]);
    let sidecar = SidecarProcess::start(&flow(calls, vec![]));
    let there = sidecar.run_remote(&["run", "--node", "a"]);
    let here = sidecar.folder.redflow(["run", "flow.json", "--node", "a", "--ephemeral"]).run();
    assert_eq!((there.code, there.stdout.as_str()), (0, "It is 42.\n"), "{there:#?}");
    // The client follows only the runs, not the other nodes.
    let of_run: String = normalize(&here.stderr)
        .lines()
        .filter(|line| !line.starts_with("[debug"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(normalize(&there.stderr), of_run);
    let message = port3(&sidecar.run_remote(&["run", "--json", "--input", "\"x\""]));
    assert_eq!((&message["payload"], &message["envelope"]["input"]), (&json!("It is 42."), &json!("x")));
    let quiet = sidecar.run_remote(&["run", "--quiet"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""), "{quiet:#?}");
    sidecar.run_remote(&["run", "--node", "gone"]).assert_refused("error[NOT_FOUND]");
    sidecar.run_remote(&["run", "--node", "d"]).assert_refused("error[NODE_NOT_STARTABLE]");
}

#[test]
fn a_sidecar_starts_the_same_node_as_a_local_run() {
    let second = || {
        vec![
            inject("i2", "for the second", json!([["a2"]])),
            agent("a2", json!([["m2"], ["c"], [], [], []])),
            model("m2", final_answer("second")),
        ]
    };
    let mut alone = flow(final_answer("first"), vec![]);
    alone.as_array_mut().unwrap().remove(0);
    let mut chained = second();
    chained.remove(0);
    let flows = [
        flow(final_answer("first"), vec![]),
        flow(final_answer("first"), second()),
        // Only the first of two agents has an inject node.
        flow(final_answer("first"), chained),
        flow(final_answer("first"), vec![inject("i2", "again", json!([["a"]]))]),
        alone,
        json!([inject("i", "x", json!([["d"]])), node("d", "debug", json!([]))]),
    ];
    let orders: [&[&str]; 8] = [
        &[],
        &["--input", "1"],
        &["--node", "a"],
        &["--node", "a2"],
        &["--node", "i"],
        &["--node", "i2", "--input", "1"],
        &["--node", "d"],
        &["--node", "gone"],
    ];
    for flow in flows {
        let sidecar = SidecarProcess::start(&flow);
        for order in orders {
            let there = sidecar.run_remote(&[&["run", "--json"], order].concat());
            let here = sidecar
                .folder
                .redflow([&["run", "flow.json", "--json", "--ephemeral"], order].concat())
                .run();
            let result = |output: &Output| {
                let message: Option<Value> = serde_json::from_str(&output.stdout).ok();
                message.map(|message| (message["payload"].clone(), message["envelope"]["input"].clone()))
            };
            assert_eq!(
                (there.code, result(&there)),
                (here.code, result(&here)),
                "{order:?} {there:#?} {here:#?} {flow:#}"
            );
        }
    }
}

#[test]
fn failures_and_refusals_have_their_exit_codes() {
    let sidecar = SidecarProcess::start(&flow(
        json!(["prose"]),
        vec![agent("refused", json!([[], ["c"], [], [], []])), model("m2", final_answer("x"))],
    ));
    let failed = sidecar.run_remote(&["run", "--node", "a"]);
    assert_eq!((failed.code, failed.errors()), (1, vec!["INVALID_JSON"]), "{failed:#?}");
    let refused = sidecar.run_remote(&["run", "--node", "refused", "--input", "1", "--json"]);
    assert_eq!((refused.code, refused.json()["payload"]["code"].is_string()), (2, true), "{refused:#?}");
}

#[test]
fn local_and_remote_runs_print_the_same() {
    let sidecar = SidecarProcess::start(&flow(final_answer("hello"), vec![]));
    for _ in 0..3 {
        assert_eq!(sidecar.run_remote(&["run", "--quiet"]).code, 0);
    }
    let id = sidecar.folder.runs()[1]["runId"].as_str().unwrap().to_owned();
    let rows: [&[&str]; 12] = [
        &["runs"],
        &["runs", "--json"],
        &["runs", "--limit", "2"],
        &["runs", "--status", "waiting"],
        &["runs", "list", "--status", "completed", "--status", "failed", "--json"],
        &["runs", "show", &id],
        &["runs", "show", &id, "--json"],
        &["runs", "events", &id],
        &["runs", "events", &id, "--json"],
        &["runs", "export", &id],
        &["replay", &id],
        &["replay", &id, "--json"],
    ];
    for args in rows {
        let (there, here) = (sidecar.run_remote(args), sidecar.run_local(args));
        assert_eq!((there.code, &there.stdout), (here.code, &here.stdout), "{args:?}");
        assert_eq!(there.code, 0, "{there:#?}");
    }
    assert_same(
        &sidecar.run_remote(&["runs", "events", &id, "--follow"]),
        &sidecar.run_local(&["runs", "events", &id]),
    );
    for args in [
        ["runs", "show", "gone"].as_slice(),
        &["runs", "events", "gone"],
        &["runs", "events", "gone", "--follow"],
        &["runs", "export", "gone"],
        &["runs", "cancel", "gone"],
        &["runs", "resolve", "gone", "--done"],
        &["replay", "gone"],
    ] {
        sidecar.run_remote(args).assert_refused("error[RUN_UNKNOWN]");
    }
    sidecar.run_remote(&["runs", "cancel", &id]).assert_refused("error[RUN_OVER]");
    sidecar.run_remote(&["runs", "resolve", &id, "--done"]).assert_refused("error[RUN_OVER]");
}

#[test]
fn a_flow_is_checked_by_the_sidecar() {
    let sidecar = SidecarProcess::start(&flow(final_answer("hello"), vec![]));
    let folder = &sidecar.folder;
    folder.write(
        "bad.json",
        flow(final_answer("x"), vec![agent("a2", json!([[], [], [], [], []]))]).to_string(),
    );
    folder.write("fresh.json", flow_with(final_answer("x"), "a", json!({"strategy": ""})).to_string());
    folder.write("nojson", "[1, 2");
    folder.write("twice.json", r#"[{"id": "a", "id": "b", "type": "debug"}]"#);
    let rows: [&[&str]; 8] = [
        &["flow.json"],
        &["flow.json", "--json"],
        &["bad.json"],
        &["bad.json", "flow.json", "--json"],
        &["fresh.json", "--profile", "redflow"],
        &["nojson"],
        &["twice.json"],
        &["none.json"],
    ];
    for args in rows {
        let args: Vec<&str> = ["check"].into_iter().chain(args.iter().copied()).collect();
        assert_eq!(sidecar.run_remote(&args), sidecar.run_local(&args), "{args:?}");
    }
    assert_eq!(sidecar.run_remote(&["check", "bad.json"]).code, 1);
}

#[test]
fn a_waiting_run_is_answered_through_the_api() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = waiting_run(&folder);
    let sidecar = SidecarProcess::start_in(folder);
    let detail = sidecar.run_remote(&["runs", "show", &id]);
    for words in [
        "waits for",
        &format!("redflow runs resolve {id} --done --url {}/", sidecar.url),
        "then:        the run continues by itself",
    ] {
        assert!(detail.stdout.contains(words), "{words}: {detail:#?}");
    }
    sidecar
        .run_remote(&["runs", "resolve", &id, "--done", "--result", "{"])
        .assert_refused("error[RESULT_INVALID]");
    let answered = sidecar.run_remote(&["runs", "resolve", &id, "--done", "--result", "42", "--json"]);
    assert_eq!(
        (answered.code, answered.json()),
        (0, json!({"runId": id, "outcome": "recorded"})),
        "{answered:#?}"
    );
    let followed = sidecar.run_remote(&["runs", "events", &id, "--follow"]);
    assert!(followed.stdout.contains("✔ completed"), "{followed:#?}");
    sidecar.run_remote(&["runs", "resolve", &id, "--done"]).assert_refused("error[RUN_OVER]");
}

#[test]
fn ctrl_c_cancels_the_run_at_the_sidecar() {
    let sidecar = SidecarProcess::start(&slow_flow());
    let mut run = sidecar.start_live(&["run", "--json"]);
    run.wait_for("▶ a ");
    run.signal("-INT");
    let output = run.end();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
    assert_eq!(port3(&output)["payload"]["code"], "CANCELLED");
    let runs = sidecar.folder.runs();
    assert_eq!((&runs[0]["status"], &runs[0]["code"]), (&json!("failed"), &json!("CANCELLED")), "{runs:#?}");
}

#[test]
fn sigterm_stops_following_and_leaves_the_run() {
    let sidecar = SidecarProcess::start(&slow_flow());
    let mut run = sidecar.start_live(&["run"]);
    run.wait_for("▶ a ");
    run.signal("-TERM");
    let output = run.end();
    assert_eq!((output.code, output.stdout.as_str()), (3, ""), "{output:#?}");
    let id = sidecar.folder.only_run();
    let words =
        format!("run {id} has not ended; show it with: redflow runs show {id} --url {}/\n", sidecar.url);
    assert!(output.stderr.ends_with(&words), "{output:#?}");
    let runs = sidecar.folder.runs();
    assert_eq!(runs[0]["status"], "running", "{runs:#?}");
    let cancelled = sidecar.run_remote(&["runs", "cancel", &id, "--reason", "enough", "--json"]);
    assert_eq!(
        (cancelled.code, cancelled.json()),
        (0, json!({"runId": id, "outcome": "cancelled"})),
        "{cancelled:#?}"
    );
    let failed = sidecar
        .until(&["runs", "show", &id, "--json"], |output| output.json()["summary"]["status"] == "failed");
    assert!(failed.stdout.contains("enough"), "{failed:#?}");
}

#[test]
fn the_client_waits_for_a_killed_sidecar() {
    // The kill happens during the second model call, which is repeated.
    let calls = json!([
        {"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 0.5},
        {"action": "final", "message": "It is 42.", "confidence": 1},
    ]);
    let mut sidecar = SidecarProcess::start(&flow_with(calls, "m", json!({"delayMs": 1000})));
    let mut run = sidecar.start_live(&["run"]);
    run.wait_for("   1 tool ");
    sidecar.crash();
    let output = run.end();
    assert_eq!((output.code, output.stdout.as_str()), (0, "It is 42.\n"), "{output:#?}");
    for words in ["▶ a ", "\n   1 tool ", "└ calculator ok", "\n   2 final ", "✔ completed"] {
        assert_eq!(output.stderr.matches(words).count(), 1, "{words}: {output:#?}");
    }
}

#[test]
fn a_token_allows_only_its_scopes() {
    let sidecar = SidecarProcess::start(&flow(final_answer("hello"), vec![node("x", "debug", json!([]))]));
    let folder = &sidecar.folder;
    let read = folder.run_ok(["token", "add", "reader", "--scope", "read"]);
    let ask = |token: &str, args: &[&str]| {
        let args = args.iter().copied().chain(["--url", &sidecar.url]);
        folder.redflow(args).env("REDFLOW_TOKEN", token.trim_end()).run()
    };
    // First, because the reason is not told after too many wrong tokens.
    ask("an-unknown-token-x", &["runs"]).assert_refused("error[UNAUTHORIZED]");
    // The sidecar notices a new token within a second or two.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while ask(&read, &["runs"]).code != 0 {
        assert!(std::time::Instant::now() < deadline, "{:#?}", ask(&read, &["runs"]));
    }
    ask(&read, &["run"]).assert_refused("error[FORBIDDEN]");
    ask(&read, &["token", "--browser"]).assert_refused("error[FORBIDDEN]");
    let old = folder.run_ok(["token"]);
    folder.run_ok(["token", "--rotate"]);
    while ask(&old, &["runs"]).errors() != ["UNAUTHORIZED"] {
        assert!(std::time::Instant::now() < deadline);
    }
    assert_eq!(sidecar.run_remote(&["runs"]).code, 0);
}

#[test]
fn a_browser_signs_in_once() {
    let sidecar = SidecarProcess::start(&flow(final_answer("hello"), vec![]));
    let output = sidecar.run_remote(&["token", "--browser"]);
    assert!(output.stderr.starts_with("open this in a browser before "), "{output:#?}");
    let address = output.stdout.trim_end();
    let path = address.strip_prefix(&sidecar.url).unwrap();
    let open = || {
        let host = sidecar.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let first = open().to_lowercase();
    assert!(first.starts_with("http/1.1 303") && first.contains("\r\nset-cookie: "), "{first}");
    let again = open();
    assert!(again.contains("SIGN_IN_REFUSED"), "{again}");
    let json = sidecar.run_remote(&["token", "--browser", "--json"]).json();
    assert!(json["url"].as_str().unwrap().starts_with(&sidecar.url) && json["expiresAt"].is_u64(), "{json}");
}

#[test]
fn sigterm_stops_the_sidecar() {
    let mut sidecar = SidecarProcess::start(&flow(final_answer("hello"), vec![]));
    sidecar.stop();
}

#[test]
fn the_end_of_stdin_stops_the_sidecar() {
    let folder = Folder::with_flow(&flow(final_answer("hello"), vec![]));
    let mut sidecar = SidecarProcess::start_with(folder, &["--stop-with-stdin"]);
    let mut stdin = sidecar.running.0.stdin.take().unwrap();
    stdin.write_all(b"words of a parent\n").unwrap();
    assert_eq!(sidecar.run_remote(&["run"]).code, 0, "words are no end");
    drop(stdin);
    assert_eq!(sidecar.running.0.wait().unwrap().code(), Some(0));
}

#[test]
fn an_ephemeral_sidecar_leaves_only_its_token() {
    let folder = Folder::new();
    let written = flow(json!([{"action": "final", "message": "hi"}]), vec![]).to_string();
    folder.write("flow.json", &written);
    let (_running, url) =
        serve_with(&folder, &["--ephemeral", "--listen", "127.0.0.1:0", "--data", "brand/new"], &[]);
    let ran = folder.redflow(["run", "--url", &url, "--data", "brand/new"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hi\n"), "{ran:#?}");
    let mut left: Vec<String> = std::fs::read_dir(folder.path("brand/new"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["token", "tokens.lock"]);
    assert_eq!(folder.read("flow.json"), written);
}

#[test]
fn start_failures_have_a_code() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let folder = Folder::with_flow(&flow(final_answer("hello"), vec![]));
    let start = |args: &[&str]| {
        let args = ["serve", "--flows", "flow.json"].into_iter().chain(args.iter().copied());
        folder.redflow(args).run()
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    start(&["--listen", &taken.local_addr().unwrap().to_string()]).assert_refused("error[LISTEN_FAILED]");
    start(&["--listen", "nowhere"]).assert_refused("error[CONFIG_FILE_INVALID]: the flag --listen is wrong");
    let token = folder.data().join("token");
    mode(&token, 0o644);
    start(&["--listen", "127.0.0.1:0"]).assert_refused("error[SECRET_FILE_UNSAFE]");
    mode(&token, 0o600);
    folder.write("flow.json", "[1, 2");
    start(&["--listen", "127.0.0.1:0"]).assert_refused("error[FLOW_NOT_JSON]");
    folder.write("flow.json", flow(final_answer("hello"), vec![]).to_string());
    let sidecar = SidecarProcess::start_in(folder);
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0"];
    sidecar.folder.redflow(args).run().assert_refused("error[DATA_LOCKED]");
    assert_eq!(sidecar.run_remote(&["run", "--quiet"]).stdout, "hello\n", "the first one does not mind");

    // A read-only directory, for a user without root rights.
    let folder = Folder::with_flow(&flow(final_answer("hello"), vec![]));
    std::fs::create_dir(folder.data()).unwrap();
    mode(&folder.data(), 0o555);
    let output = folder.redflow_without_root(args).run();
    output.assert_refused("error[DATA_READ_ONLY]");
    mode(&folder.data(), 0o755);
}
