//! `redflow mcp login` and `logout` with a server that wants tokens, and its issuer.

use crate::kit::{Folder, final_answer, flow};
use crate::live_command::LiveCommand;
use crate::serve::SidecarProcess;
use pretty_assertions::assert_eq;
use redflow_testkit::TokenServer;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// Gets a page, as a browser does.
fn open_page(address: &str) -> String {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn a_person_signs_in_at_a_sidecar() {
    let issuer = TokenServer::start(3_600).unwrap();
    let folder = Folder::with_flow(&flow(final_answer("done"), vec![]));
    folder.run_ok(["mcp", "add", "tracker", "--address", &issuer.url(), "--oauth"]);
    let private = issuer.addr.to_string();
    let sidecar = SidecarProcess::start_with_env(folder, &[("REDFLOW_EGRESS_PRIVATE", &private)]);
    let state =
        || sidecar.run_remote(&["mcp", "show", "tracker", "--json"]).json()["summary"]["state"].clone();
    assert_eq!(state(), json!("login_needed"));
    let call = |text: &str| {
        let input = json!({"text": text}).to_string();
        sidecar.run_remote(&["mcp", "call", "tracker", "echo", &input, "--json"])
    };

    let login = sidecar.run_remote(&["mcp", "login", "tracker"]);
    assert_eq!(login.code, 0, "{login:#?}");
    assert!(login.stderr.contains("open this address in a browser"), "{login:#?}");
    let back = issuer.sign_in(login.stdout.trim()).unwrap_or_else(|| panic!("{login:#?}"));
    assert!(back.starts_with(&format!("{}/oauth/callback?", sidecar.url)), "{back}");
    // Someone else cannot end the sign-in, and the right answer still counts.
    let forged = back.split("&iss=").next().unwrap().to_owned() + "&iss=http%3A%2F%2Fevil.example.org";
    assert!(open_page(&forged).starts_with("HTTP/1.1 502"));
    let page = open_page(&back);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("You are signed in"), "{page}");
    assert!(open_page(&back).starts_with("HTTP/1.1 409"), "an answer counts once");

    assert_eq!(state(), json!("ready"));
    assert_eq!(call("hello").json()["output"], json!("hello"));
    // The token ends, and the sidecar renews it by itself.
    issuer.end_access();
    let renewed = call("SECRET-access-2");
    assert_eq!(renewed.code, 0, "{renewed:#?}");
    assert!(!renewed.stdout.contains("SECRET"), "{renewed:#?}");
    assert_eq!(issuer.grants(), ["authorization_code", "refresh_token"]);

    let logout = sidecar.run_remote(&["mcp", "logout", "tracker"]);
    assert_eq!(logout.code, 0, "{logout:#?}");
    let refused = call("hello");
    assert_ne!(refused.code, 0, "{refused:#?}");
    assert_eq!(state(), json!("login_needed"));
    assert_eq!(issuer.grants().len(), 2, "no token is left that could be renewed");
}

#[test]
fn a_person_signs_in_without_a_sidecar() {
    let issuer = TokenServer::start(3_600).unwrap();
    let folder = Folder::new();
    folder.run_ok(["mcp", "add", "tracker", "--address", &issuer.url(), "--oauth"]);
    let private = issuer.addr.to_string();
    let call = |words: &[&str]| folder.redflow(words.iter().copied()).env("REDFLOW_EGRESS_PRIVATE", &private);
    let mut login = LiveCommand::start(call(&["mcp", "login", "tracker"]), "");
    login.wait_for("open this address");
    let mut address = String::new();
    let mut stdout = BufReader::new(login.running.0.stdout.take().unwrap());
    stdout.read_line(&mut address).unwrap();
    let back = issuer.sign_in(address.trim()).unwrap_or_else(|| panic!("{address}"));
    assert!(open_page(&back).contains("You are signed in"));
    login.wait_for("signed in at tracker");
    assert!(login.running.0.wait().unwrap().success());
    // The next process uses the tokens, which are not readable in the data directory.
    let called = call(&["mcp", "call", "tracker", "echo", r#"{"text": "hello"}"#, "--json"]).run();
    assert_eq!((called.code, &called.json()["output"]), (0, &json!("hello")), "{called:#?}");
    let kept = std::fs::read_to_string(folder.data().join("mcp-tokens.json")).unwrap();
    assert!(!kept.contains("SECRET"), "{kept}");
    assert_eq!(call(&["mcp", "logout", "tracker"]).run().code, 0);
    let shown = call(&["mcp", "show", "tracker", "--json"]).run();
    assert_eq!(shown.json()["summary"]["state"], json!("login_needed"), "{shown:#?}");
}
