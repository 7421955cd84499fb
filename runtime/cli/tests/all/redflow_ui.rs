//! `redflow serve --redflow-ui ORIGIN`: its notes at the start, its access rules, and its refusals.

use crate::kit::{Call, Folder, Running, final_answer, flow, redflow};
use pretty_assertions::assert_eq;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

const UI: &str = "http://localhost:5173";

/// Starts the sidecar and reads its stderr up to the line with `last`.
#[track_caller]
fn start(call: Call, last: &str) -> (Running, String) {
    let mut running = call.spawn();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
    let mut output = String::new();
    while !output.contains(last) {
        assert!(stderr.read_line(&mut output).unwrap() > 0, "it ended without `{last}`: {output}");
    }
    // The pipe must be read on, or the process blocks when it is full.
    std::thread::spawn(move || stderr.read_to_string(&mut String::new()));
    (running, output)
}

/// The address in the output.
fn address(output: &str) -> &str {
    output.split_once("listening on http://").unwrap().1.split([' ', '"', '\n']).next().unwrap()
}

/// The head of the response to a request of a page.
fn request(address: &str, line: &str, origin: &str) -> String {
    let port = address.rsplit(':').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{line} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: 0\r\n{origin}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split("\r\n\r\n").next().unwrap().to_ascii_lowercase()
}

/// An agent as the Redflow UI creates it, without the required properties.
fn incomplete_flow() -> serde_json::Value {
    let mut nodes = flow(final_answer("hi"), vec![]);
    let agent = nodes.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "a").unwrap();
    agent.as_object_mut().unwrap().retain(|key, _| key != "strategy" && key != "maxIterations");
    nodes
}

// SECURITY: redflow-ui
#[test]
fn only_its_origin_needs_no_token() {
    let folder = Folder::with_flow(&incomplete_flow());
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0", "--redflow-ui", UI];
    let (_running, output) = start(folder.redflow(args), "use --listen 127.0.0.1:1880");
    for words in [
        "pages of http://localhost:5173 need no token for the routes of the Redflow UI: ",
        "warning: every page of http://localhost:5173 in a browser on this machine, and every program on this \
         machine, can control the flow and send the keys of its nodes to any address\n",
        "the Redflow UI sends some credentials to http://localhost:1880, which is another port",
        "(1 agent from flow.json)",
    ] {
        assert!(output.contains(words), "no `{words}`: {output}");
    }
    // Its nodes are accepted.
    assert!(!output.contains("refused") && !output.contains("the profile stays"), "{output}");
    let address = address(&output);
    let page = format!("Origin: {UI}\r\n");
    let answer = request(address, "GET /flows", &page);
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    assert!(answer.contains("\r\naccess-control-allow-origin: http://localhost:5173\r\n"), "{answer}");
    for (line, origin, status) in [
        ("GET /flows", "", "401"),
        ("GET /flows", "Origin: http://localhost:5174\r\n", "403"),
        ("GET /api/runs", &page, "403"),
        ("POST /api/sign-in-codes", &page, "403"),
        ("POST /admin/inject/i", &page, "404"),
    ] {
        let answer = request(address, line, origin);
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{line} {origin}: {answer}");
    }
}

/// A wrong origin is visible at the default log level.
// SECURITY: redflow-ui
#[test]
fn a_refused_origin_is_logged() {
    let folder = Folder::with_flow(&incomplete_flow());
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0", "--redflow-ui", UI];
    let mut running = folder.redflow(args).spawn();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
    let mut until = |last: &str| {
        let mut output = String::new();
        while !output.contains(last) {
            assert!(stderr.read_line(&mut output).unwrap() > 0, "it ended without `{last}`: {output}");
        }
        output
    };
    let output = until("use --listen 127.0.0.1:1880");
    let answer = request(address(&output), "GET /flows", "Origin: http://localhost:5174\r\n");
    assert!(answer.starts_with("http/1.1 403"), "{answer}");
    let line = until("http://localhost:5174");
    assert!(line.contains("ORIGIN_REFUSED") && line.contains(UI), "{line}");
}

// SECURITY: redflow-ui
#[test]
fn an_explicit_profile_is_kept() {
    let folder = Folder::with_flow(&incomplete_flow());
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0"];
    let call = || folder.redflow(args).env("REDFLOW_UI", UI).env("REDFLOW_PROFILE", "strict");
    let (_running, output) = start(call(), "use --listen 127.0.0.1:1880");
    let stays = "the profile stays strict because of REDFLOW_PROFILE: nodes that the Redflow UI creates are refused\n";
    assert!(output.contains(stays) && output.contains("\n1 agent refused: "), "{output}");
}

// SECURITY: redflow-ui
#[test]
fn there_is_no_port_warning_on_port_1880() {
    // Another process may use the port; then there is nothing to test.
    if TcpListener::bind("127.0.0.1:1880").is_err() {
        return;
    }
    let folder = Folder::with_flow(&incomplete_flow());
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:1880", "--redflow-ui", UI];
    let (running, output) = start(folder.redflow(args), "nodes to any address\n");
    assert_eq!(address(&output), "127.0.0.1:1880");
    // It is also accepted under the host name that the UI uses.
    let answer = request("127.0.0.1:1880", "GET /redflow/persistent-storage", &format!("Origin: {UI}\r\n"));
    assert!(!answer.starts_with("http/1.1 401") && !answer.starts_with("http/1.1 403"), "{answer}");
    drop(running);
    assert!(!output.contains("use --listen"), "{output}");
}

// SECURITY: redflow-ui
#[test]
fn it_refuses_addresses_that_other_machines_can_reach() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let output = redflow(["serve", "--redflow-ui", UI, "--listen", listen]).run();
        output.assert_refused("error[CONFIG_FILE_INVALID]: the flag --redflow-ui is wrong: pages of the Redflow UI need no token");
        output.assert_refused("listen on this machine only, with --listen 127.0.0.1:1880\n");
        output.assert_refused("redflow explain CONFIG_FILE_INVALID");
    }
    let output = redflow(["serve", "--listen", "0.0.0.0:0"]).env("REDFLOW_UI", UI).run();
    output.assert_refused("error[CONFIG_FILE_INVALID]: the variable REDFLOW_UI is wrong: ");
    for origin in
        ["*", "null", "localhost:5173", "http://localhost:5173/", "http://a,http://b", "ws://localhost"]
    {
        let output = redflow(["serve", "--redflow-ui", origin, "--listen", "127.0.0.1:0"]).run();
        output.assert_refused("the flag --redflow-ui is wrong: it must be one origin such as http://localhost:5173, without a path");
    }
    // Its own address is refused, because it is a mistake.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let own = format!("http://localhost:{}", free.port());
    let output = redflow(["serve", "--redflow-ui", &own, "--listen", &free.to_string()]).run();
    output.assert_refused("error[CONFIG_FILE_INVALID]: ");
    output.assert_refused("is where the sidecar itself is");
}

// SECURITY: redflow-ui
#[test]
fn config_show_prints_the_origin_and_the_implied_profile() {
    let folder = Folder::new();
    folder.write("redflow.toml", "[server]\nredflow_ui = \"http://localhost:5173\"\n");
    let output = folder.redflow(["config", "show", "--json", "--config", "redflow.toml"]).run();
    let config = output.json();
    let setting = |key: &str| {
        let rows = config["settings"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}: {config:#}")).clone()
    };
    let file = json!({"from": "file", "file": "redflow.toml", "line": 2});
    assert_eq!(
        setting("server.redflow_ui"),
        json!({"key": "server.redflow_ui", "value": UI, "origin": file})
    );
    let implied = json!({"from": "implied", "by": "server.redflow_ui"});
    assert_eq!(
        setting("server.profile"),
        json!({"key": "server.profile", "value": "redflow", "origin": implied})
    );
    let text = folder.run_ok(["config", "show", "--redflow-ui", "http://b", "--profile", "strict"]);
    let line = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("server.redflow_ui"), "server.redflow_ui http://b --redflow-ui");
    assert_eq!(line("server.profile"), "server.profile strict --profile");
}
