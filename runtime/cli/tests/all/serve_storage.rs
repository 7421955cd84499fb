//! The storage of the Redflow UI in real processes: it survives a crash, and `--ephemeral` stores none of it.

use crate::kit::{Folder, flow};
use crate::serve::SidecarProcess;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const PATH: &str = "/redflow/persistent-storage";

fn request(sidecar: &SidecarProcess, method: &str, path: &str, body: &str) -> Value {
    let token = sidecar.folder.redflow(["token"]).run().stdout;
    let address = sidecar.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        token.trim(),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn ui_storage_survives_a_crash() {
    let mut sidecar = SidecarProcess::start_in(Folder::with_flow(&flow(json!([]), vec![])));
    let items = json!({"theme": "dark", "node-credentials:m": {"apiKey": "sk-hidden"}});
    request(&sidecar, "POST", PATH, &items.to_string());
    sidecar.crash();
    let masked = json!({"theme": "dark", "node-credentials:m": {"apiKey": "__PWRD__"}});
    assert_eq!(request(&sidecar, "GET", PATH, ""), masked);
    for entry in std::fs::read_dir(sidecar.folder.data()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(9).any(|part| part == b"sk-hidden"));
    }
}

#[test]
fn an_ephemeral_sidecar_stores_nothing() {
    let folder = Folder::with_flow(&flow(json!([]), vec![]));
    let sidecar = SidecarProcess::start_with(folder, &["--ephemeral"]);
    request(&sidecar, "POST", PATH, r#"{"theme": "dark"}"#);
    assert_eq!(request(&sidecar, "GET", PATH, ""), json!({"theme": "dark"}));
    assert!(!sidecar.folder.data().join("storage.json").exists());
}
