//! What is kept for the Redflow UI, over real processes: it survives a crash, and `--ephemeral` keeps none of it.

use crate::kit::{Folder, flow};
use crate::served::Served;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const PATH: &str = "/redflow/persistent-storage";

fn ask(served: &Served, method: &str, path: &str, body: &str) -> Value {
    let token = served.folder.redflow(["token"]).run().stdout;
    let address = served.url.trim_start_matches("http://");
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
fn what_was_stored_is_there_after_a_crash() {
    let mut served = Served::over(Folder::with_flow(&flow(json!([]), vec![])));
    let items = json!({"theme": "dark", "node-credentials:m": {"apiKey": "sk-hidden"}});
    ask(&served, "POST", PATH, &items.to_string());
    served.crash();
    let shown = json!({"theme": "dark", "node-credentials:m": {"apiKey": "__PWRD__"}});
    assert_eq!(ask(&served, "GET", PATH, ""), shown);
    for entry in std::fs::read_dir(served.folder.data()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(9).any(|part| part == b"sk-hidden"));
    }
}

#[test]
fn who_keeps_nothing_stores_nothing() {
    let folder = Folder::with_flow(&flow(json!([]), vec![]));
    let served = Served::with(folder, &["--ephemeral"]);
    ask(&served, "POST", PATH, r#"{"theme": "dark"}"#);
    assert_eq!(ask(&served, "GET", PATH, ""), json!({"theme": "dark"}));
    assert!(!served.folder.data().join("storage.json").exists());
}
