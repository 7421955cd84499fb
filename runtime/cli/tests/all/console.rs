//! What `redflow serve` gives to a browser: its sessions, its configuration and its page.

use crate::kit::{Folder, final_answer, flow};
use crate::serve::SidecarProcess;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn folder() -> Folder {
    Folder::with_flow(&flow(final_answer("ok"), vec![]))
}

/// Sends a request and gives the head and the body of the answer.
fn send(sidecar: &SidecarProcess, line: &str, headers: &[(&str, &str)], body: &str) -> (String, String) {
    let host = sidecar.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn token(sidecar: &SidecarProcess) -> String {
    sidecar.folder.run_ok(["token"]).trim().to_owned()
}

// SECURITY: session-file
#[test]
fn a_browser_stays_signed_in_when_the_sidecar_is_killed() {
    let mut sidecar = SidecarProcess::start_in(folder());
    let body = json!({"token": token(&sidecar)}).to_string();
    let page = [("origin", sidecar.url.as_str()), ("content-type", "application/json")];
    let (head, _) = send(&sidecar, "POST /sign-in", &page, &body);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    sidecar.crash();
    let (head, session) = send(&sidecar, "GET /api/session", &[("cookie", &cookie)], "");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(&session).unwrap()["name"], "main");
    // It stays signed out too.
    let page = [("origin", sidecar.url.as_str()), ("cookie", cookie.as_str())];
    assert!(send(&sidecar, "POST /api/sign-out", &page, "").0.starts_with("HTTP/1.1 303"));
    sidecar.crash();
    let (head, _) = send(&sidecar, "GET /api/session", &[("cookie", &cookie)], "");
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
}

#[test]
fn an_ephemeral_sidecar_writes_no_session() {
    let mut sidecar = SidecarProcess::start_with(folder(), &["--ephemeral"]);
    let body = json!({"token": token(&sidecar)}).to_string();
    let page = [("origin", sidecar.url.as_str()), ("content-type", "application/json")];
    assert!(send(&sidecar, "POST /sign-in", &page, &body).0.starts_with("HTTP/1.1 200"));
    sidecar.stop();
    assert!(!sidecar.folder.data().join("sessions.json").exists());
}

// SECURITY: config-masked
#[test]
fn the_configuration_over_http_has_every_key_and_no_secret() {
    let folder = folder();
    let file = "[http]\nproxy = \"http://me:s3cret-0123456789@127.0.0.1:9\"\n\n[server]\nrate_burst = 7\n";
    folder.write("redflow.toml", file);
    let sidecar = SidecarProcess::start_with(folder, &["--config", "redflow.toml"]);
    let bearer = format!("Bearer {}", token(&sidecar));
    let (_, text) = send(&sidecar, "GET /api/config", &[("authorization", &bearer)], "");
    assert!(!text.contains("s3cret") && !text.contains(&bearer[7..]), "{text}");
    let config: Value = serde_json::from_str(&text).unwrap();
    let rows = config["settings"].as_array().unwrap();
    for (key, value, is_set) in [
        ("http.proxy", "http://••••@127.0.0.1:9/", true),
        ("server.rate_burst", "7", true),
        ("server.https", "false", false),
        ("token", "-", false),
    ] {
        let wanted = json!({"key": key, "value": value, "isSet": is_set});
        assert!(rows.contains(&wanted), "{wanted}: {config:#}");
    }
    let shown = sidecar.folder.redflow(["config", "show", "--json"]).run().json();
    let keys = |rows: &Value| -> Vec<Value> {
        rows.as_array().unwrap().iter().map(|row| row["key"].clone()).collect()
    };
    assert_eq!(keys(&config["settings"]), keys(&shown["settings"]));
}

// SECURITY: console-page
#[test]
fn a_debug_build_serves_the_console_of_a_folder() {
    let folder = folder();
    std::fs::create_dir(folder.path("dist")).unwrap();
    for name in ["index.html", "console.js", "console.css", "icon.svg", "words.es.json", "words.de.json"] {
        folder.write(&format!("dist/{name}"), format!("the file {name}"));
    }
    let path = folder.path("dist").display().to_string();
    let sidecar = SidecarProcess::start_with_env(folder, &[("REDFLOW_CONSOLE", &path)]);
    let (_, page) = send(&sidecar, "GET /", &[], "");
    assert_eq!(page == "the file index.html", cfg!(debug_assertions), "{page}");
}
