//! `redflow tools list`, `show`, `call` and `calls`: of a data directory, and of a sidecar.

use crate::kit::{Folder, Output, flow};
use crate::serve::SidecarProcess;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};

/// A service that answers every request with the weather. Gives its port.
fn weather_service() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let body = r#"{"degrees": 4}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
        }
    });
    port
}

/// The manifest with one tool, which asks a service on this machine.
fn manifest(port: u16) -> String {
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = json!({
        "id": "weather.current", "kind": "http", "title": "Weather", "description": "The weather now",
        "inputSchema": city, "url": format!("http://127.0.0.1:{port}/{{{{input.city}}}}"), "timeoutMs": 5000,
        "retry": {"max": 1, "backoffMs": 10},
    });
    json!({"tools": [tool]}).to_string()
}

fn folder(port: u16) -> Folder {
    let call =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 1});
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    let folder = Folder::with_flow(&flow(json!([call, end]), vec![]));
    std::fs::create_dir_all(folder.data()).unwrap();
    std::fs::write(folder.data().join("tools.json"), manifest(port)).unwrap();
    folder
}

fn lines(output: &Output) -> Vec<Value> {
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Replaces what differs between two runs.
fn normalize(text: &str, port: u16) -> String {
    let words = text.replace(&port.to_string(), "PORT");
    let is_moment = |word: &str| word.len() == 20 && word.ends_with('Z');
    let is_digest = |word: &str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let word = |(place, word): (usize, &&str)| match *word {
            word if is_moment(word) => "TIME".to_owned(),
            word if is_digest(word) => "DIGEST".to_owned(),
            word if word.parse::<f64>().is_ok() && matches!(words.get(place + 1), Some(&"ms" | &"s")) => {
                "N".to_owned()
            }
            "s" if place > 0 && words[place - 1].parse::<f64>().is_ok() => "ms".to_owned(),
            word => word.to_owned(),
        };
        words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
    };
    words.lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn the_tools_of_a_data_directory_are_listed_shown_and_called() {
    let port = weather_service();
    let folder = folder(port);
    let list = folder.run_ok(["tools", "list"]);
    insta::assert_snapshot!("tools-list", normalize(&list, port));
    let shown = folder.run_ok(["tools", "show", "weather.current"]);
    insta::assert_snapshot!("tools-show", normalize(&shown, port));
    assert_eq!(folder.run_ok(["tools", "show", "weather__current"]), shown);
    let entry = folder.redflow(["tools", "show", "weather.current", "--json"]).run().json();
    assert_eq!(lines(&folder.redflow(["tools", "list", "--json"]).run()), [entry]);

    let call = |input: &str, json: bool| {
        let host = format!("127.0.0.1:{port}");
        let args =
            ["tools", "call", "weather.current", "--input", input, "--allow-private", &host].into_iter();
        folder.redflow(args.chain(json.then_some("--json"))).run()
    };
    let text = call(r#"{"city": "Bern"}"#, false);
    assert_eq!(text.code, 0, "{text:#?}");
    insta::assert_snapshot!("tools-call", normalize(&text.stdout, port));
    let done = call(r#"{"city": "Bern"}"#, true).json();
    assert_eq!((&done["by"], &done["output"]["degrees"]), (&json!("cli"), &json!(4)), "{done}");
    // Without the operator's word nothing is dialled, and the call fails.
    let refused =
        folder.redflow(["tools", "call", "weather.current", "--input", r#"{"city": "x"}"#, "--json"]).run();
    assert_eq!((refused.code, &refused.json()["code"]), (1, &json!("EGRESS_REFUSED")), "{refused:#?}");
    call("{}", false).assert_refused("error[TOOL_INPUT_INVALID]");
    call("[]", false).assert_refused("the input must be a JSON object");
    call("{", false).assert_refused("the input is not JSON");
    for command in [["tools", "show", "no.such"], ["tools", "call", "no.such"]] {
        folder.redflow(command).run().assert_refused("error[NOT_FOUND]");
    }
    folder.redflow(["tools", "calls", "weather.current", "--follow"]).run().assert_refused("--url URL");
}

#[test]
fn a_manifest_with_problems_stops_commands_and_the_sidecar() {
    let folder = folder(1);
    std::fs::write(folder.data().join("tools.json"), r#"{"tools": [{"id": "x"}], "more": 1}"#).unwrap();
    for args in [["tools", "list"].as_slice(), &["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0"]]
    {
        folder.redflow(args.iter().copied()).run().assert_refused("MANIFEST_INVALID");
    }
    let empty = Folder::new();
    let output = empty.redflow(["tools", "list"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    assert!(output.stderr.starts_with("no tools in "), "{output:#?}");
}

#[test]
fn the_tools_of_a_sidecar_are_listed_called_and_followed() {
    let port = weather_service();
    let allow = format!("127.0.0.1:{port}");
    let sidecar = SidecarProcess::start_with(folder(port), &["--allow-private", &allow]);
    let ids: Vec<Value> = lines(&sidecar.run_remote(&["tools", "list", "--json"]))
        .iter()
        .map(|tool| tool["id"].clone())
        .collect();
    assert_eq!(ids, ["builtin.calculator", "weather.current"]);
    let shown = sidecar.run_remote(&["tools", "show", "weather.current"]);
    assert_eq!(shown.stdout, sidecar.folder.run_ok(["tools", "show", "weather.current"]));
    let follow = ["tools", "calls", "weather.current", "--follow", "--json", "--url", &sidecar.url];
    let mut following = sidecar.folder.redflow(follow).spawn();
    let mut followed = BufReader::new(following.0.stdout.take().unwrap());
    // The stream begins a moment later, so calls are made until one arrives.
    let (heard, first) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = followed.read_line(&mut line);
        let _ = heard.send(line);
    });
    let arrived = (0..100).find_map(|_| {
        let called =
            sidecar.run_remote(&["tools", "call", "weather.current", "--input", r#"{"city": "Bern"}"#]);
        assert_eq!(called.code, 0, "{called:#?}");
        first.recv_timeout(std::time::Duration::from_millis(300)).ok()
    });
    let arrived: Value = serde_json::from_str(&arrived.unwrap()).unwrap();
    assert_eq!((&arrived["id"], &arrived["by"]), (&json!("weather.current"), &json!("token:main")));
    following.0.kill().unwrap();
    assert!(lines(&sidecar.run_remote(&["tools", "calls", "weather.current", "--json"])).contains(&arrived));

    // Calls of runs have the input and the output, at the sidecar and in its data directory.
    sidecar.run_remote(&["run", "--node", "a"]);
    let there = sidecar.run_remote(&["tools", "calls", "builtin.calculator", "--json"]);
    let calls = lines(&there);
    assert_eq!((calls.len(), &calls[0]["output"]["result"]), (1, &json!(42)), "{there:#?}");
    let here = sidecar.folder.redflow(["tools", "calls", "builtin.calculator", "--json"]).run();
    assert_eq!(here.stdout, there.stdout);
    let text = sidecar.run_remote(&["tools", "calls", "builtin.calculator"]);
    let run = calls[0]["runId"].as_str().unwrap();
    insta::assert_snapshot!("tools-calls", normalize(&text.stdout.replace(run, "RUN"), port));
    sidecar.run_remote(&["tools", "calls", "no.such"]).assert_refused("error[NOT_FOUND]");
    sidecar.run_remote(&["tools", "calls", ".."]).assert_refused("error[NOT_FOUND]");
}

/// A run in this process stores its calls where `tools calls` finds them.
#[test]
fn the_calls_of_a_run_without_a_sidecar_are_listed() {
    let folder = folder(1);
    folder.run_ok(["run", "flow.json", "--node", "a"]);
    let output = folder.redflow(["tools", "calls", "builtin.calculator", "--json"]).run();
    let calls = lines(&output);
    assert_eq!(calls.len(), 1, "{output:#?}");
    assert_eq!((&calls[0]["output"]["result"], &calls[0]["by"]), (&json!(42), &json!("cli")));
}
