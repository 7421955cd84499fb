//! `--url` against `redflow serve`: the same words and exit codes as without it, and runs that outlive who asks.

use crate::interrupt::slow_flow;
use crate::kit::{
    Folder, Output, Running, agent, final_answer, flow, flow_with, inject, model, node, port3, steady,
};
use crate::stage::{dangerous_flow, waiting_run};
use crate::watched::Watched;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

/// A sidecar, its folder, and where it answers.
pub(crate) struct Served {
    running: Running,
    pub(crate) url: String,
    pub(crate) folder: Folder,
}

impl Served {
    pub(crate) fn start(flow: &Value) -> Self {
        Self::over(Folder::with_flow(flow))
    }

    /// Serves the flow of a folder, over its data directory.
    pub(crate) fn over(folder: Folder) -> Self {
        let (running, url) = serve(&folder, "127.0.0.1:0");
        Self { running, url, folder }
    }

    /// The same with more to say, at any free port.
    pub(crate) fn with(folder: Folder, args: &[&str]) -> Self {
        let args: Vec<&str> = ["--listen", "127.0.0.1:0"].iter().chain(args).copied().collect();
        let (running, url) = serve_with(&folder, &args);
        Self { running, url, folder }
    }

    /// Ends it as a crash would, and starts it again where it was.
    pub(crate) fn crash(&mut self) {
        self.running.0.kill().unwrap();
        self.running.0.wait().unwrap();
        let (running, url) = serve(&self.folder, self.url.trim_start_matches("http://"));
        assert_eq!(url, self.url);
        self.running = running;
    }

    /// Asks it something.
    #[track_caller]
    pub(crate) fn ask(&self, args: &[&str]) -> Output {
        self.folder.redflow(args.iter().copied().chain(["--url", &self.url])).run()
    }

    /// Asks the data directory the same.
    fn look(&self, args: &[&str]) -> Output {
        self.folder.redflow(args.iter().copied()).run()
    }

    fn watch(&self, args: &[&str]) -> Watched {
        Watched::start(self.folder.redflow(args.iter().copied().chain(["--url", &self.url])), "")
    }

    /// Asks until the answer is this.
    #[track_caller]
    fn until(&self, args: &[&str], is_it: impl Fn(&Output) -> bool) -> Output {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            let output = self.ask(args);
            if is_it(&output) {
                return output;
            }
            assert!(std::time::Instant::now() < deadline, "{args:?}: {output:#?}");
        }
    }
}

fn serve(folder: &Folder, listen: &str) -> (Running, String) {
    serve_with(folder, &["--listen", listen])
}

fn serve_with(folder: &Folder, args: &[&str]) -> (Running, String) {
    let args = ["serve", "--flows", "flow.json"].iter().chain(args).copied();
    let mut running = folder.redflow(args).spawn();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
    let mut said = String::new();
    loop {
        let begin = said.len();
        assert!(stderr.read_line(&mut said).unwrap() > 0, "it ended without listening: {said}");
        if let Some((_, rest)) = said[begin..].split_once("listening on ") {
            let url = rest.split(['"', ' ', '\n']).next().unwrap().trim_end_matches(':').to_owned();
            // Somebody must read on, or it waits when the pipe is full.
            std::thread::spawn(move || stderr.read_to_string(&mut String::new()));
            return (running, url);
        }
    }
}

/// What two calls printed, without what differs from run to run.
fn same(one: &Output, other: &Output) {
    assert_eq!((one.code, steady(&one.stdout)), (other.code, steady(&other.stdout)), "{one:#?} {other:#?}");
}

#[test]
fn a_run_at_a_sidecar_looks_like_one_here() {
    let calls = json!([
        {"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 0.5},
        {"action": "final", "message": "It is 42.", "confidence": 1},
    ]);
    let served = Served::start(&flow(calls, vec![]));
    let there = served.ask(&["run", "--node", "a"]);
    let here = served.folder.redflow(["run", "flow.json", "--node", "a", "--ephemeral"]).run();
    assert_eq!((there.code, there.stdout.as_str()), (0, "It is 42.\n"), "{there:#?}");
    // Only what happens in the flow around the run is not followed.
    let of_run: String = steady(&here.stderr)
        .lines()
        .filter(|line| !line.starts_with("[debug"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(steady(&there.stderr), of_run);
    let message = port3(&served.ask(&["run", "--json", "--input", "\"x\""]));
    assert_eq!((&message["payload"], &message["envelope"]["input"]), (&json!("It is 42."), &json!("x")));
    let quiet = served.ask(&["run", "--quiet"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""), "{quiet:#?}");
    served.ask(&["run", "--node", "gone"]).refused("error[NOT_FOUND]");
    served.ask(&["run", "--node", "d"]).refused("error[NODE_NOT_STARTABLE]");
}

#[test]
fn the_same_node_is_started_as_here() {
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
        let served = Served::start(&flow);
        for order in orders {
            let there = served.ask(&[&["run", "--json"], order].concat());
            let here =
                served.folder.redflow([&["run", "flow.json", "--json", "--ephemeral"], order].concat()).run();
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
    let served = Served::start(&flow(
        json!(["prose"]),
        vec![agent("refused", json!([[], ["c"], [], [], []])), model("m2", final_answer("x"))],
    ));
    let failed = served.ask(&["run", "--node", "a"]);
    assert_eq!((failed.code, failed.errors()), (1, vec!["INVALID_JSON"]), "{failed:#?}");
    let refused = served.ask(&["run", "--node", "refused", "--input", "1", "--json"]);
    assert_eq!((refused.code, refused.json()["payload"]["code"].is_string()), (2, true), "{refused:#?}");
}

#[test]
fn what_is_kept_is_told_the_same_from_both_sides() {
    let served = Served::start(&flow(final_answer("hello"), vec![]));
    for _ in 0..3 {
        assert_eq!(served.ask(&["run", "--quiet"]).code, 0);
    }
    let id = served.folder.runs()[1]["runId"].as_str().unwrap().to_owned();
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
        let (there, here) = (served.ask(args), served.look(args));
        assert_eq!((there.code, &there.stdout), (here.code, &here.stdout), "{args:?}");
        assert_eq!(there.code, 0, "{there:#?}");
    }
    same(&served.ask(&["runs", "events", &id, "--follow"]), &served.look(&["runs", "events", &id]));
    for args in [
        ["runs", "show", "gone"].as_slice(),
        &["runs", "events", "gone"],
        &["runs", "events", "gone", "--follow"],
        &["runs", "export", "gone"],
        &["runs", "cancel", "gone"],
        &["runs", "resolve", "gone", "--done"],
        &["replay", "gone"],
    ] {
        served.ask(args).refused("error[RUN_UNKNOWN]");
    }
    served.ask(&["runs", "cancel", &id]).refused("error[RUN_OVER]");
    served.ask(&["runs", "resolve", &id, "--done"]).refused("error[RUN_OVER]");
}

#[test]
fn a_flow_is_checked_by_the_sidecar() {
    let served = Served::start(&flow(final_answer("hello"), vec![]));
    let folder = &served.folder;
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
        assert_eq!(served.ask(&args), served.look(&args), "{args:?}");
    }
    assert_eq!(served.ask(&["check", "bad.json"]).code, 1);
}

#[test]
fn a_run_that_waits_is_answered_over_the_interface_and_goes_on() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = waiting_run(&folder);
    let served = Served::over(folder);
    let shown = served.ask(&["runs", "show", &id]);
    for words in [
        "waits for",
        &format!("redflow runs resolve {id} --done --url {}/", served.url),
        "then:        it goes on by itself",
    ] {
        assert!(shown.stdout.contains(words), "{words}: {shown:#?}");
    }
    served.ask(&["runs", "resolve", &id, "--done", "--result", "{"]).refused("error[RESULT_INVALID]");
    let answered = served.ask(&["runs", "resolve", &id, "--done", "--result", "42", "--json"]);
    assert_eq!(
        (answered.code, answered.json()),
        (0, json!({"runId": id, "outcome": "recorded"})),
        "{answered:#?}"
    );
    let followed = served.ask(&["runs", "events", &id, "--follow"]);
    assert!(followed.stdout.contains("✔ completed"), "{followed:#?}");
    served.ask(&["runs", "resolve", &id, "--done"]).refused("error[RUN_OVER]");
}

#[test]
fn ctrl_c_ends_the_run_at_the_sidecar() {
    let served = Served::start(&slow_flow());
    let mut run = served.watch(&["run", "--json"]);
    run.wait_for("▶ a ");
    run.signal("-INT");
    let output = run.end();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
    assert_eq!(port3(&output)["payload"]["code"], "CANCELLED");
    let runs = served.folder.runs();
    assert_eq!((&runs[0]["status"], &runs[0]["code"]), (&json!("failed"), &json!("CANCELLED")), "{runs:#?}");
}

#[test]
fn who_is_told_to_terminate_leaves_the_run_alone() {
    let served = Served::start(&slow_flow());
    let mut run = served.watch(&["run"]);
    run.wait_for("▶ a ");
    run.signal("-TERM");
    let output = run.end();
    assert_eq!((output.code, output.stdout.as_str()), (3, ""), "{output:#?}");
    let id = served.folder.only_run();
    let words =
        format!("run {id} is not over; look at it with: redflow runs show {id} --url {}/\n", served.url);
    assert!(output.stderr.ends_with(&words), "{output:#?}");
    let runs = served.folder.runs();
    assert_eq!(runs[0]["status"], "running", "{runs:#?}");
    let cancelled = served.ask(&["runs", "cancel", &id, "--reason", "enough", "--json"]);
    assert_eq!(
        (cancelled.code, cancelled.json()),
        (0, json!({"runId": id, "outcome": "cancelled"})),
        "{cancelled:#?}"
    );
    let failed = served
        .until(&["runs", "show", &id, "--json"], |output| output.json()["summary"]["status"] == "failed");
    assert!(failed.stdout.contains("enough"), "{failed:#?}");
}

#[test]
fn a_sidecar_that_is_killed_under_a_run_is_waited_for() {
    // The second answer takes long enough to be in the way of the kill, and is asked for again.
    let calls = json!([
        {"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 0.5},
        {"action": "final", "message": "It is 42.", "confidence": 1},
    ]);
    let mut served = Served::start(&flow_with(calls, "m", json!({"delayMs": 1000})));
    let mut run = served.watch(&["run"]);
    run.wait_for("   1 tool ");
    served.crash();
    let output = run.end();
    assert_eq!((output.code, output.stdout.as_str()), (0, "It is 42.\n"), "{output:#?}");
    for words in ["▶ a ", "\n   1 tool ", "└ calculator ok", "\n   2 final ", "✔ completed"] {
        assert_eq!(output.stderr.matches(words).count(), 1, "{words}: {output:#?}");
    }
}

#[test]
fn a_token_opens_what_it_may() {
    let served = Served::start(&flow(final_answer("hello"), vec![node("x", "debug", json!([]))]));
    let folder = &served.folder;
    let read = folder.well(["token", "add", "reader", "--scope", "read"]);
    let ask = |token: &str, args: &[&str]| {
        let args = args.iter().copied().chain(["--url", &served.url]);
        folder.redflow(args).env("REDFLOW_TOKEN", token.trim_end()).run()
    };
    // A token that was added is taken up within a second or two.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while ask(&read, &["runs"]).code != 0 {
        assert!(std::time::Instant::now() < deadline, "{:#?}", ask(&read, &["runs"]));
    }
    ask(&read, &["run"]).refused("error[FORBIDDEN]");
    ask(&read, &["token", "--browser"]).refused("error[FORBIDDEN]");
    ask("a-token-nobody-made", &["runs"]).refused("error[UNAUTHORIZED]");
    let old = folder.well(["token"]);
    folder.well(["token", "--rotate"]);
    while ask(&old, &["runs"]).errors() != ["UNAUTHORIZED"] {
        assert!(std::time::Instant::now() < deadline);
    }
    assert_eq!(served.ask(&["runs"]).code, 0);
}

#[test]
fn a_browser_is_let_in_once() {
    let served = Served::start(&flow(final_answer("hello"), vec![]));
    let output = served.ask(&["token", "--browser"]);
    assert!(output.stderr.starts_with("open this in a browser before "), "{output:#?}");
    let address = output.stdout.trim_end();
    let path = address.strip_prefix(&served.url).unwrap();
    let open = || {
        let host = served.url.trim_start_matches("http://");
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
    let json = served.ask(&["token", "--browser", "--json"]).json();
    assert!(json["url"].as_str().unwrap().starts_with(&served.url) && json["expiresAt"].is_u64(), "{json}");
}

#[test]
fn it_stops_when_it_is_told_to() {
    let mut served = Served::start(&flow(final_answer("hello"), vec![]));
    let id = served.running.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(served.running.0.wait().unwrap().code(), Some(0));
}

#[test]
fn it_stops_with_its_input_where_that_was_asked_for() {
    let folder = Folder::with_flow(&flow(final_answer("hello"), vec![]));
    let mut served = Served::with(folder, &["--stop-with-stdin"]);
    let mut stdin = served.running.0.stdin.take().unwrap();
    stdin.write_all(b"words of a parent\n").unwrap();
    assert_eq!(served.ask(&["run"]).code, 0, "words are no end");
    drop(stdin);
    assert_eq!(served.running.0.wait().unwrap().code(), Some(0));
}

#[test]
fn one_that_keeps_nothing_starts_where_nothing_is_and_leaves_only_its_token() {
    let folder = Folder::new();
    let written = flow(json!([{"action": "final", "message": "hi"}]), vec![]).to_string();
    folder.write("flow.json", &written);
    let (_running, url) =
        serve_with(&folder, &["--ephemeral", "--listen", "127.0.0.1:0", "--data", "brand/new"]);
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
fn what_keeps_it_from_starting_has_a_code() {
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
    start(&["--listen", &taken.local_addr().unwrap().to_string()]).refused("error[LISTEN_FAILED]");
    start(&["--listen", "nowhere"]).refused("error[CONFIG_FILE_INVALID]: the flag --listen is wrong");
    let token = folder.data().join("token");
    mode(&token, 0o644);
    start(&["--listen", "127.0.0.1:0"]).refused("error[SECRET_FILE_UNSAFE]");
    mode(&token, 0o600);
    folder.write("flow.json", "[1, 2");
    start(&["--listen", "127.0.0.1:0"]).refused("error[FLOW_NOT_JSON]");
    folder.write("flow.json", flow(final_answer("hello"), vec![]).to_string());
    let served = Served::over(folder);
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0"];
    served.folder.redflow(args).run().refused("error[DATA_LOCKED]");
    assert_eq!(served.ask(&["run", "--quiet"]).stdout, "hello\n", "the first one does not mind");

    // A directory that others own, for a user whom modes bind.
    let folder = Folder::with_flow(&flow(final_answer("hello"), vec![]));
    std::fs::create_dir(folder.data()).unwrap();
    mode(&folder.data(), 0o555);
    let output = folder.redflow_as_nobody(args).run();
    output.refused("error[DATA_READ_ONLY]");
    mode(&folder.data(), 0o755);
}
