//! `redflow mcp serve` beside a sidecar, as desktop clients start it: which sidecar it finds, and what happens when that
//! is killed.

use crate::kit::{Folder, Running, final_answer, flow};
use crate::serve::SidecarProcess;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A flow whose agent answers after this time.
fn agent_flow(delay_ms: u64) -> Value {
    let mut nodes = flow(final_answer("done"), vec![]);
    for node in nodes.as_array_mut().unwrap() {
        if node["type"] == "scripted-model" {
            node["delayMs"] = json!(delay_ms);
        }
    }
    nodes
}

/// A client that has started `redflow mcp serve`.
struct Client {
    running: Running,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Client {
    fn start(folder: &Folder, args: &[&str]) -> Self {
        let words = ["mcp", "serve"].into_iter().chain(args.iter().copied());
        let mut running = folder.redflow(words).spawn();
        let (input, output) = (running.0.stdin.take(), running.0.stdout.take().unwrap());
        Self { running, input, lines: read_lines(output) }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, id: u32, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// The next message that `is_wanted`, and what came before it.
    fn wait_for(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if is_wanted(&message) {
                return message;
            }
        }
    }

    fn answer(&self, id: u32) -> Value {
        self.wait_for(|message| message["id"] == id)
    }

    /// Opens a session of the era that has them.
    fn initialize(&mut self) {
        let info = json!({"name": "t", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        self.request(0, "initialize", params);
        assert_eq!(self.answer(0)["result"]["serverInfo"]["name"], "redflow");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn tools(&mut self, id: u32) -> Vec<String> {
        self.request(id, "tools/list", json!({}));
        let answer = self.answer(id);
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn exit_code(&mut self) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.running.0.try_wait().unwrap() {
                return status.code();
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        panic!("the process does not end");
    }
}

fn read_lines(output: ChildStdout) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

fn slow_call() -> Value {
    json!({"name": "agent.a", "arguments": {"input": "x"}, "_meta": {"progressToken": 1}})
}

#[test]
fn it_finds_the_sidecar_of_the_data_directory() {
    let sidecar = SidecarProcess::start(&agent_flow(0));
    let mut first = Client::start(&sidecar.folder, &[]);
    let mut second = Client::start(&sidecar.folder, &[]);
    for client in [&mut first, &mut second] {
        client.initialize();
        assert_eq!(client.tools(1), ["agent__a"]);
        client.request(2, "tools/call", slow_call());
        let answer = client.answer(2);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        client.input = None;
        assert_eq!(client.exit_code(), Some(0));
    }
    // The runs are those of the sidecar.
    assert_eq!(sidecar.folder.runs().len(), 2);
}

#[test]
fn without_a_sidecar_it_is_one_itself() {
    let folder = Folder::with_flow(&agent_flow(0));
    let mut alone = Client::start(&folder, &["--flows", "flow.json"]);
    alone.initialize();
    assert_eq!(alone.tools(1), ["agent__a"]);
    // Nothing listens, so another one cannot join it.
    let second = folder.redflow(["mcp", "serve"]).stdin("").run();
    second.assert_refused("error[DATA_LOCKED]");
    alone.input = None;
    assert_eq!(alone.exit_code(), Some(0));
}

#[test]
fn the_answers_of_a_script_are_written_before_it_ends() {
    let sidecar = SidecarProcess::start(&agent_flow(300));
    // The last name is no text of a header, and arrives nevertheless.
    let call = |name: &str| ("tools/call", json!({"name": name, "arguments": {"input": "x"}}));
    let answers = ask(&sidecar.folder, &[("tools/list", json!({})), call("agent.a"), call("agent.Ümlaut")]);
    assert_eq!(answers[0]["result"]["tools"][0]["name"], "agent__a");
    assert_eq!(answers[1]["result"]["content"][0]["text"], "done");
    assert_eq!(answers[2]["error"]["data"]["code"], "NOT_FOUND", "{}", answers[2]);
}

/// Sends requests of the era without sessions, and gives their answers by their ids.
fn ask(folder: &Folder, requests: &[(&str, Value)]) -> Vec<Value> {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let mut script = String::new();
    for (id, (method, params)) in requests.iter().enumerate() {
        let mut params = params.clone();
        params["_meta"] = meta.clone();
        script += &format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }
    let output = folder.redflow(["mcp", "serve"]).stdin(script).run();
    assert_eq!(output.code, 0, "{output:#?}");
    let mut answers: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.len(), requests.len(), "{output:#?}");
    answers
}

#[test]
fn documents_of_knowledge_bases_are_resources() {
    let folder = Folder::with_flow(&agent_flow(0));
    folder.write("pump.md", "# Pump\n\nThe pump needs oil.\n");
    // Longer than a resource may be.
    let long: String =
        (0..15_000).map(|number| format!("Rule {number}: {}\n\n", "keep it dry. ".repeat(5))).collect();
    folder.write("long book.md", long);
    folder.run_ok(["kb", "add", "manuals", "pump.md", "long book.md", "--embeddings", "hash"]);
    let sidecar = SidecarProcess::start_in(folder);
    let (pump, long) = ("redflow://kb/manuals/pump.md", "redflow://kb/manuals/long%20book.md");
    let read = |uri: &str| ("resources/read", json!({"uri": uri}));
    let complete = |name: &str, context: Value| {
        let template = json!({"type": "ref/resource", "uri": "redflow://kb/{base}/{document}"});
        (
            "completion/complete",
            json!({"ref": template, "argument": {"name": name, "value": ""}, "context": context}),
        )
    };
    let answers = ask(
        &sidecar.folder,
        &[
            ("resources/list", json!({})),
            read(pump),
            read(long),
            read("redflow://kb/manuals/none.md"),
            complete("base", json!({})),
            complete("document", json!({"arguments": {"base": "manuals"}})),
        ],
    );
    let listed = answers[0]["result"]["resources"].as_array().unwrap();
    let mut uris: Vec<&str> = listed.iter().map(|resource| resource["uri"].as_str().unwrap()).collect();
    uris.sort_unstable();
    assert_eq!(uris, [long, pump]);
    let text =
        |answer: &Value| answer["result"]["contents"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text(&answers[1]).contains("The pump needs oil."), "{}", answers[1]);
    let cut = text(&answers[2]);
    assert!(cut.ends_with("[The rest of the document is left out.]"), "{}", cut.len());
    assert!((900_000..1_100_000).contains(&cut.len()), "{}", cut.len());
    assert!(answers[3]["error"]["data"]["code"].is_string(), "{}", answers[3]);
    assert_eq!(answers[4]["result"]["completion"]["values"], json!(["manuals"]));
    assert_eq!(answers[5]["result"]["completion"]["values"].as_array().unwrap().len(), 2, "{}", answers[5]);
}

#[test]
fn a_message_that_is_too_long_is_refused() {
    let sidecar = SidecarProcess::start(&agent_flow(0));
    let mut script = "[\n".to_owned();
    script += &"x".repeat(9 * 1024 * 1024);
    let output = sidecar.folder.redflow(["mcp", "serve"]).stdin(script).run();
    assert_eq!(output.code, 1, "{}", output.stderr);
    let codes: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["error"]["data"]["code"].clone())
        .collect();
    assert_eq!(codes, ["BODY_INVALID", "BODY_TOO_LARGE"]);
}

#[test]
fn a_message_that_is_too_long_is_refused_without_a_sidecar() {
    let folder = Folder::with_flow(&agent_flow(0));
    let mut alone = Client::start(&folder, &["--flows", "flow.json"]);
    alone.initialize();
    // Less than a client may send, so it is answered.
    let long = "x".repeat(3 * 1024 * 1024);
    alone.request(1, "tools/list", json!({"_meta": {"long": long}}));
    assert!(alone.answer(1)["result"]["tools"].is_array());
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "agent.a", "arguments": {"input": long.repeat(2)}}});
    // It does not read the whole message.
    let _ = writeln!(alone.input.as_mut().unwrap(), "{call}");
    let refusal = alone.wait_for(|message| message["error"].is_object());
    assert_eq!(refusal["error"]["data"]["code"], "BODY_TOO_LARGE", "{refusal}");
    assert!(refusal["id"].is_null(), "{refusal}");
    assert_eq!(alone.exit_code(), Some(1), "the client keeps its side open");
}

/// Every request gets an answer, and the client goes on when the sidecar is back.
#[test]
fn a_killed_sidecar_is_answered_and_comes_back() {
    let mut sidecar = SidecarProcess::start(&agent_flow(20_000));
    let mut client = Client::start(&sidecar.folder, &[]);
    client.initialize();
    client.request(5, "tools/call", slow_call());
    client.wait_for(|message| message["method"] == "notifications/progress");
    sidecar.crash();
    let answer = client.answer(5);
    assert_eq!(answer["error"]["data"]["code"], "SIDECAR_UNREACHABLE", "{answer}");
    // The session is opened again, and the client does not notice.
    assert_eq!(client.tools(6), ["agent__a"]);
    assert_eq!(client.tools(7), ["agent__a"]);
    // Its notifications go on: a tool of the manifest changes the list.
    std::thread::park_timeout(Duration::from_secs(3));
    let tool = json!({"id": "test.shown", "kind": "http", "description": "Reads.", "method": "GET",
        "url": "https://example.org/x", "effect": "read", "mcp": true, "inputSchema": {"type": "object"}});
    std::fs::write(sidecar.folder.data().join("tools.json"), json!({"tools": [tool]}).to_string()).unwrap();
    client.wait_for(|message| message["method"] == "notifications/tools/list_changed");
    assert_eq!(client.tools(8), ["agent__a", "test__shown"]);
}

/// A call with a key happens once, whenever the sidecar is killed.
#[test]
fn a_repeated_key_begins_no_second_run_after_a_kill() {
    let mut sidecar = SidecarProcess::start(&agent_flow(3_000));
    let mut client = Client::start(&sidecar.folder, &[]);
    client.initialize();
    let call = |key: &str| {
        let mut call = slow_call();
        call["_meta"]["redflow/key"] = json!(key);
        call
    };
    client.request(1, "tools/call", call("k1"));
    client.wait_for(|message| message["method"] == "notifications/progress");
    sidecar.crash();
    assert_eq!(client.answer(1)["error"]["data"]["code"], "SIDECAR_UNREACHABLE");
    let run = sidecar.folder.only_run();
    let mut repeat = |id: u32, key: &str| {
        client.request(id, "tools/call", call(key));
        let answer = client.answer(id);
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
        answer["result"]["_meta"]["redflow/run"].as_str().unwrap().to_owned()
    };
    // While the run goes on, after its end, and after another kill.
    assert_eq!(repeat(2, "k1"), run);
    assert_eq!(repeat(3, "k1"), run);
    sidecar.crash();
    assert_eq!(repeat(4, "k1"), run);
    assert_eq!(sidecar.folder.only_run(), run);
    assert_ne!(repeat(5, "k2"), run);
    assert_eq!(sidecar.folder.runs().len(), 2);
}

/// The client keeps its side open.
#[test]
fn a_signal_ends_it_at_once() {
    let sidecar = SidecarProcess::start(&agent_flow(0));
    for signal in ["-TERM", "-INT"] {
        let mut client = Client::start(&sidecar.folder, &[]);
        client.initialize();
        let began = Instant::now();
        let id = client.running.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(client.exit_code(), Some(1), "{signal}");
        assert!(began.elapsed() < Duration::from_secs(20), "{signal}");
    }
}

#[test]
fn a_document_behind_many_others_is_completed() {
    let folder = Folder::with_flow(&agent_flow(0));
    std::fs::create_dir(folder.path("docs")).unwrap();
    for number in 0..205 {
        folder.write(&format!("docs/a{number:03}.md"), "# A\n\nOil.\n");
    }
    for name in ["pump", "pump two", "pumq", "pumo\u{10fffd}"] {
        folder.write(&format!("docs/{name}.md"), "# Pump\n\nThe pump needs oil.\n");
    }
    folder.run_ok(["kb", "add", "manuals", "docs", "--embeddings", "hash"]);
    let sidecar = SidecarProcess::start_in(folder);
    let complete = |value: &str| {
        let template = json!({"type": "ref/resource", "uri": "redflow://kb/{base}/{document}"});
        let argument = json!({"name": "document", "value": value});
        let context = json!({"arguments": {"base": "manuals"}});
        ("completion/complete", json!({"ref": template, "argument": argument, "context": context}))
    };
    let answers =
        ask(&sidecar.folder, &[complete("pump"), complete("pump.md"), complete("a"), complete("pumz")]);
    let values = |answer: &Value| answer["result"]["completion"]["values"].clone();
    assert_eq!(values(&answers[0]), json!(["pump two.md", "pump.md"]), "{}", answers[0]);
    assert_eq!(values(&answers[1]), json!(["pump.md"]), "{}", answers[1]);
    assert_eq!(values(&answers[2]).as_array().unwrap().len(), 100, "{}", answers[2]);
    assert_eq!(values(&answers[3]), json!([]), "{}", answers[3]);
}

/// One run and one document more than are listed, so the limits and the pages show.
#[test]
fn lists_of_resources_have_limits_and_pages() {
    const RUNS: usize = 50;
    const DOCUMENTS: usize = 200;
    const PAGE: usize = 200;
    let folder = Folder::with_flow(&agent_flow(0));
    for base in ["first", "second"] {
        std::fs::create_dir(folder.path(base)).unwrap();
        let documents = if base == "first" { DOCUMENTS - 10 } else { 11 };
        for number in 0..documents {
            folder.write(&format!("{base}/{number:03}.md"), "# A\n\nOil.\n");
        }
        folder.run_ok(["kb", "add", base, base, "--embeddings", "hash"]);
    }
    let sidecar = SidecarProcess::start_in(folder);
    let call = || ("tools/call", json!({"name": "agent.a", "arguments": {"input": "x"}}));
    let calls: Vec<_> = std::iter::repeat_with(call).take(RUNS + 1).collect();
    let called = ask(&sidecar.folder, &calls);
    let runs: HashSet<String> =
        called.iter().map(|answer| answer["result"]["_meta"]["redflow/run"].to_string()).collect();
    assert_eq!(runs.len(), RUNS + 1, "{}", called[0]);
    let page = |params: Value| ask(&sidecar.folder, &[("resources/list", params)]).remove(0)["result"].take();
    let uris = |page: &Value| -> Vec<String> {
        page["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|resource| resource["uri"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = page(json!({}));
    assert_eq!(uris(&first).len(), PAGE);
    let second = page(json!({"cursor": first["nextCursor"]}));
    assert_eq!((uris(&second).len(), &second["nextCursor"]), (RUNS + DOCUMENTS - PAGE, &Value::Null));
    let all: HashSet<String> = uris(&first).into_iter().chain(uris(&second)).collect();
    let count = |beginning: &str| all.iter().filter(|uri| uri.starts_with(beginning)).count();
    let counts = [count("redflow://runs/"), count("redflow://kb/first/"), count("redflow://kb/second/")];
    assert_eq!((all.len(), counts), (RUNS + DOCUMENTS, [RUNS, DOCUMENTS - 10, 10]));
}
