//! `redflow serve --redflow-ui ORIGIN`: what it says at the start, who it lets in, and where it does not start.

use crate::kit::{Call, Folder, Running, final_answer, flow, redflow};
use pretty_assertions::assert_eq;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

const UI: &str = "http://localhost:5173";

/// Starts it and reads what it says, up to the line with the last of these words.
#[track_caller]
fn start(call: Call, last: &str) -> (Running, String) {
    let mut running = call.spawn();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains(last) {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "it ended without `{last}`: {said}");
    }
    // Somebody must read on, or it waits when the pipe is full.
    std::thread::spawn(move || stderr.read_to_string(&mut String::new()));
    (running, said)
}

/// Where it says that it listens.
fn address(said: &str) -> &str {
    said.split_once("listening on http://").unwrap().1.split([' ', '"', '\n']).next().unwrap()
}

/// The head of the answer to a request of a page.
fn ask(address: &str, line: &str, origin: &str) -> String {
    let port = address.rsplit(':').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{line} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: 0\r\n{origin}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split("\r\n\r\n").next().unwrap().to_ascii_lowercase()
}

/// An agent as the Redflow UI makes it: with nothing that the schema asks for.
fn fresh() -> serde_json::Value {
    let mut nodes = flow(final_answer("hi"), vec![]);
    let agent = nodes.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "a").unwrap();
    agent.as_object_mut().unwrap().retain(|key, _| key != "strategy" && key != "maxIterations");
    nodes
}

#[test]
fn it_says_who_comes_in_and_lets_nobody_else() {
    let folder = Folder::with_flow(&fresh());
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0", "--redflow-ui", UI];
    let (_running, said) = start(folder.redflow(args), "use --listen 127.0.0.1:1880");
    for words in [
        "pages of http://localhost:5173 come in without a token, to the routes that the Redflow UI uses: ",
        "warning: whoever can open a page of http://localhost:5173 in a browser on this machine, and every program \
         that runs here, controls the flow, and can have the keys of its nodes sent to any address\n",
        "the Redflow UI sends some credentials to http://localhost:1880, which is not here",
        "(1 agent from flow.json)",
    ] {
        assert!(said.contains(words), "no `{words}`: {said}");
    }
    // Its nodes are taken as they are.
    assert!(!said.contains("refused") && !said.contains("the profile stays"), "{said}");
    let address = address(&said);
    let page = format!("Origin: {UI}\r\n");
    let answer = ask(address, "GET /flows", &page);
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    assert!(answer.contains("\r\naccess-control-allow-origin: http://localhost:5173\r\n"), "{answer}");
    for (line, origin, status) in [
        ("GET /flows", "", "401"),
        ("GET /flows", "Origin: http://localhost:5174\r\n", "403"),
        ("GET /api/runs", &page, "403"),
        ("POST /api/sign-in-codes", &page, "403"),
        ("POST /admin/inject/i", &page, "404"),
    ] {
        let answer = ask(address, line, origin);
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{line} {origin}: {answer}");
    }
}

/// A UI at another address than was said: the screen says so without being asked for more.
#[test]
fn a_refused_origin_is_seen_on_the_screen() {
    let folder = Folder::with_flow(&fresh());
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0", "--redflow-ui", UI];
    let mut running = folder.redflow(args).spawn();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
    let mut until = |last: &str| {
        let mut said = String::new();
        while !said.contains(last) {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "it ended without `{last}`: {said}");
        }
        said
    };
    let said = until("use --listen 127.0.0.1:1880");
    let answer = ask(address(&said), "GET /flows", "Origin: http://localhost:5174\r\n");
    assert!(answer.starts_with("http/1.1 403"), "{answer}");
    let line = until("http://localhost:5174");
    assert!(line.contains("ORIGIN_REFUSED") && line.contains(UI), "{line}");
}

#[test]
fn a_profile_that_was_said_stays() {
    let folder = Folder::with_flow(&fresh());
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0"];
    let call = || folder.redflow(args).env("REDFLOW_UI", UI).env("REDFLOW_PROFILE", "strict");
    let (_running, said) = start(call(), "use --listen 127.0.0.1:1880");
    let stays =
        "the profile stays strict, as REDFLOW_PROFILE says: nodes as the Redflow UI makes them are refused\n";
    assert!(said.contains(stays) && said.contains("\n1 agent refused: "), "{said}");
}

#[test]
fn at_the_port_of_node_red_there_is_nothing_to_warn_of() {
    // Somebody else may be there; then there is nothing to see here.
    if TcpListener::bind("127.0.0.1:1880").is_err() {
        return;
    }
    let folder = Folder::with_flow(&fresh());
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:1880", "--redflow-ui", UI];
    let (running, said) = start(folder.redflow(args), "sent to any address\n");
    assert_eq!(address(&said), "127.0.0.1:1880");
    // It is let in also at the name that the UI has for it.
    let answer = ask("127.0.0.1:1880", "GET /redflow/persistent-storage", &format!("Origin: {UI}\r\n"));
    assert!(!answer.starts_with("http/1.1 401") && !answer.starts_with("http/1.1 403"), "{answer}");
    drop(running);
    assert!(!said.contains("use --listen"), "{said}");
}

#[test]
fn it_does_not_start_where_other_machines_could_come() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let output = redflow(["serve", "--redflow-ui", UI, "--listen", listen]).run();
        output.refused("error[CONFIG_FILE_INVALID]: the flag --redflow-ui is wrong: pages of the Redflow UI need no token");
        output.refused("listen at this machine alone, with --listen 127.0.0.1:1880\n");
        output.refused("redflow explain CONFIG_FILE_INVALID");
    }
    let output = redflow(["serve", "--listen", "0.0.0.0:0"]).env("REDFLOW_UI", UI).run();
    output.refused("error[CONFIG_FILE_INVALID]: the variable REDFLOW_UI is wrong: ");
    for origin in
        ["*", "null", "localhost:5173", "http://localhost:5173/", "http://a,http://b", "ws://localhost"]
    {
        let output = redflow(["serve", "--redflow-ui", origin, "--listen", "127.0.0.1:0"]).run();
        output.refused("the flag --redflow-ui is wrong: it must be one origin such as http://localhost:5173, without a path");
    }
    // Nor as its own page: that is a mistake.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let own = format!("http://localhost:{}", free.port());
    let output = redflow(["serve", "--redflow-ui", &own, "--listen", &free.to_string()]).run();
    output.refused("error[CONFIG_FILE_INVALID]: ");
    output.refused("is where the sidecar itself is");
}

#[test]
fn the_configuration_shows_it_and_what_follows_from_it() {
    let folder = Folder::new();
    folder.write("redflow.toml", "[server]\nredflow_ui = \"http://localhost:5173\"\n");
    let output = folder.redflow(["config", "show", "--json", "--config", "redflow.toml"]).run();
    let shown = output.json();
    let setting = |key: &str| {
        let rows = shown["settings"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}: {shown:#}")).clone()
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
    let text = folder.well(["config", "show", "--redflow-ui", "http://b", "--profile", "strict"]);
    let line = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("server.redflow_ui"), "server.redflow_ui http://b --redflow-ui");
    assert_eq!(line("server.profile"), "server.profile strict --profile");
}
