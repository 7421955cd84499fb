//! The MCP servers that commands add: a file each in `mcp.d/`.

use pretty_assertions::assert_eq;
use redflow_contract::code::ApiCode;
use redflow_contract::mcp::MAX_MCP_SERVERS;
use redflow_ports::{ManifestStamp, ManifestStore as _};
use redflow_store::{MAX_TOOL_BYTES, ManifestFiles};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
    std::fs::write(dir.join(name), text).unwrap();
}

fn listed(files: &ManifestFiles) -> Vec<(String, Value)> {
    files.servers().into_iter().map(|server| (server.name, server.server.unwrap())).collect()
}

#[test]
fn servers_are_added_replaced_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let files = ManifestFiles::new(data.clone());
    assert_eq!((listed(&files), files.remove_server("a")), (Vec::new(), Ok(false)));
    files.put_server("git-hub", &json!({"command": "a"})).unwrap();
    files.put_server("Files_2", &json!({"command": "b"})).unwrap();
    files.put_server("git-hub", &json!({"url": "https://example.org"})).unwrap();
    let expected = [("Files_2", json!({"command": "b"})), ("git-hub", json!({"url": "https://example.org"}))];
    assert_eq!(listed(&files), expected.map(|(name, server)| (name.to_owned(), server)));
    // Tools are others.
    assert_eq!((files.registered(), files.read()), (Vec::new(), Ok(Value::Null)));
    assert_eq!((files.remove_server("Files_2"), files.remove_server("Files_2")), (Ok(true), Ok(false)));
    let names: Vec<_> =
        std::fs::read_dir(data.join("mcp.d")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["git-hub.json"], "no other file stays");
}

#[test]
fn a_name_is_no_path() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().join("data"));
    write(dir.path(), "data/tools.json", "{}");
    for name in ["../tools", "..", ".", "", "a.b", "a/b", "/tmp/a", "a\\b", "a\0", "é", &"x".repeat(41)] {
        assert!(files.put_server(name, &json!({})).is_err(), "{name:?}");
        assert!(files.remove_server(name).is_err(), "{name:?}");
    }
    assert_eq!(files.read(), Ok(json!({})));
}

#[test]
fn a_damaged_file_does_not_hide_other_servers() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().to_owned());
    files.put_server("good", &json!({"command": "a"})).unwrap();
    write(dir.path(), "mcp.d/broken.json", "{");
    write(dir.path(), "mcp.d/large.json", &format!("\"{}\"", "x".repeat(MAX_TOOL_BYTES)));
    write(dir.path(), "mcp.d/no.name.json", "{}");
    write(dir.path(), "mcp.d/notes.txt", "not a server");
    let texts: Vec<(String, String)> = files
        .servers()
        .into_iter()
        .map(|server| {
            let text =
                server.server.map_or_else(|problems| problems[0].message.clone(), |one| one.to_string());
            (server.name, text)
        })
        .collect();
    let expected = [
        ("broken", "line 1"),
        ("good", "{\"command\":\"a\"}"),
        ("large", "more than 262144 bytes"),
        ("no.name", "no name of an MCP server"),
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:?}");
    for ((name, text), (expected_name, part)) in texts.iter().zip(expected) {
        assert!(name == expected_name && text.contains(part), "{name}: {text}");
    }
}

#[test]
fn servers_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().to_owned());
    let full = |result: Result<(), redflow_ports::FileStoreError>| {
        let error = result.unwrap_err();
        assert_eq!(error.code.as_str(), ApiCode::StorageFull.as_str());
        error.message
    };
    let large = json!({"command": "x".repeat(MAX_TOOL_BYTES)});
    assert!(full(files.put_server("a", &large)).contains("262144 bytes"));
    for number in 0..=MAX_MCP_SERVERS {
        write(dir.path(), &format!("mcp.d/n{number}.json"), "{}");
    }
    assert!(full(files.put_server("a", &json!({}))).contains("at most 500 added MCP servers"));
    assert_eq!(files.put_server("n1", &json!({"command": "a"})), Ok(()), "one that exists can be replaced");
    assert_eq!(files.servers().len(), MAX_MCP_SERVERS);
}

#[test]
fn the_stamp_changes_with_each_server() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().to_owned());
    let mut stamps: Vec<ManifestStamp> = vec![files.stamp()];
    let mut next = |what: &str| {
        let stamp = files.stamp();
        assert_eq!(stamp, files.stamp(), "{what}: it stays while nothing changes");
        assert!(!stamps.contains(&stamp), "{what}: {stamp:?}");
        stamps.push(stamp);
    };
    files.put_server("a", &json!({"command": "a"})).unwrap();
    next("added");
    files.put_server("a", &json!({"command": "b"})).unwrap();
    next("replaced by one of the same length");
    let file = dir.path().join("mcp.d/a.json");
    std::fs::OpenOptions::new().append(true).open(file).unwrap().write_all(b" ").unwrap();
    next("edited in place");
    files.put_server("b", &json!({"command": "b"})).unwrap();
    next("another one");
    files.remove_server("b").unwrap();
    next("removed");
}
