//! The pins and the tokens of MCP servers: bounded, whole, and never taken for empty.

use pretty_assertions::assert_eq;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::digest::Digest;
use redflow_contract::mcp::{McpPin, McpPins};
use redflow_ports::{FileStoreError, McpStore};
use redflow_store::{MAX_PIN_BYTES, MAX_PINNED_SERVERS, McpFiles, MemoryMcpStore};
use serde_json::{Value, json};
use std::path::Path;

fn pins(definition: Value) -> McpPins {
    let pin = McpPin { digest: Digest::of(b"tool"), definition, at: 7, approved: true };
    McpPins { tools: [("tool".to_owned(), pin)].into() }
}

#[track_caller]
fn refused<T>(result: Result<T, FileStoreError>, code: ApiCode) -> String {
    let error = result.map(drop).unwrap_err();
    assert_eq!(error.code, ProblemCode::Api(code), "{error}");
    assert!(!error.message.contains("sk-"), "{error}");
    error.message
}

fn names(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn pins_and_tokens_come_back() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    let stores: [&dyn McpStore; 2] = [&McpFiles::new(&dir), &MemoryMcpStore::default()];
    for store in stores {
        assert_eq!(store.pins("files").unwrap(), McpPins::default());
        assert_eq!(store.tokens("files").unwrap(), None);
        store.set_tokens("files", None).unwrap();
        assert!(!dir.exists() || dir.join("mcp").exists(), "reading creates nothing");
        let server = "files@api.example.com:8443";
        store.set_pins("files", &pins(json!({"name": "one"}))).unwrap();
        store.set_pins(server, &pins(json!({"name": "two"}))).unwrap();
        assert_eq!(store.pins("files").unwrap(), pins(json!({"name": "one"})));
        assert_eq!(store.pins(server).unwrap(), pins(json!({"name": "two"})));
        store.set_pins("files", &McpPins::default()).unwrap();
        assert_eq!(store.pins("files").unwrap(), McpPins::default());
        store.set_tokens("a", Some("sk-1")).unwrap();
        store.set_tokens("b", Some("sk-2")).unwrap();
        store.set_tokens("a", Some("sk-3")).unwrap();
        assert_eq!(store.tokens("a").unwrap().as_deref(), Some("sk-3"));
        store.set_tokens("b", None).unwrap();
        assert_eq!(store.tokens("b").unwrap(), None);
    }
    assert_eq!(names(&dir), ["credentials.key", "mcp", "mcp-tokens.json"]);
    assert_eq!(names(&dir.join("mcp")), ["lock", "pins"]);
    assert_eq!(names(&dir.join("mcp/pins")), ["files.json", "files@api.example.com%3A8443.json"]);
    let sealed = std::fs::read_to_string(dir.join("mcp-tokens.json")).unwrap();
    assert!(!sealed.contains("sk-") && McpFiles::new(&dir).tokens("a").unwrap().is_some());
    #[cfg(unix)]
    for name in ["mcp-tokens.json", "mcp/pins/files.json", "mcp/lock"] {
        let mode = std::os::unix::fs::PermissionsExt::mode(&dir.join(name).metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// Pins that are lost would let a changed definition pass as the first one.
// SECURITY: mcp-pin
#[test]
fn unreadable_pins_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let store = McpFiles::new(dir.path());
    store.set_pins("files", &pins(json!(1))).unwrap();
    let file = dir.path().join("mcp/pins/files.json");
    let whole = std::fs::read(&file).unwrap();
    let other = String::from_utf8(whole.clone()).unwrap().replace("\"files\"", "\"Files\"");
    let rows: [(&[u8], &str); 5] = [
        (b"", "it was changed"),
        (&whole[..whole.len() - 2], "it was changed"),
        (b"{\"server\": \"files\", \"pins\": {}, \"more\": 1}", "it was changed"),
        (other.as_bytes(), "it belongs to another server"),
        (&vec![b' '; MAX_PIN_BYTES + 1], "it is too large"),
    ];
    for (bytes, reason) in rows {
        std::fs::write(&file, bytes).unwrap();
        let error = store.pins("files").unwrap_err();
        assert_eq!(error.code, ProblemCode::Store(StoreCode::DataUnusable));
        assert!(error.message.contains(reason) && error.message.contains("redflow mcp pin"), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(store.pins("files").unwrap_err().message.contains("no regular file"));
}

#[test]
fn a_name_is_no_path() {
    let dir = tempfile::tempdir().unwrap();
    let store = McpFiles::new(&dir.path().join("data"));
    for name in ["", "..", "../x", "a/b", "/tmp/x", "a.b", "a\0", "@host", "a@"] {
        assert!(store.set_pins(name, &McpPins::default()).is_err(), "{name:?}");
        assert!(store.pins(name).is_err(), "{name:?}");
    }
    store.set_pins("a@../../../x", &pins(json!(1))).unwrap();
    assert_eq!(names(dir.path()), ["data"]);
    assert_eq!(names(&dir.path().join("data/mcp/pins")), ["a@..%2F..%2F..%2Fx.json"]);
}

#[test]
fn pins_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let file = McpFiles::new(dir.path());
    let memory = MemoryMcpStore::default();
    let stores: [&dyn McpStore; 2] = [&file, &memory];
    for store in stores {
        let large = |bytes: usize| pins(Value::from("x".repeat(bytes)));
        store.set_pins("s", &large(MAX_PIN_BYTES - 1_000)).unwrap();
        let message = refused(store.set_pins("s", &large(MAX_PIN_BYTES)), ApiCode::StorageFull);
        assert!(message.contains("2097152 bytes"), "{message}");
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        refused(store.set_pins("s", &pins(deep)), ApiCode::StorageFull);
        assert_eq!(store.pins("s").unwrap(), large(MAX_PIN_BYTES - 1_000), "what was there stays");
    }
    for number in 1..MAX_PINNED_SERVERS {
        std::fs::write(dir.path().join(format!("mcp/pins/n{number}.json")), "{}").unwrap();
        memory.set_pins(&format!("n{number}"), &McpPins::default()).unwrap();
    }
    for store in stores {
        let message = refused(store.set_pins("more", &McpPins::default()), ApiCode::StorageFull);
        assert!(message.contains("at most 2000 servers"), "{message}");
        store.set_pins("n1", &McpPins::default()).unwrap();
    }
}

#[test]
fn tokens_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let stores: [&dyn McpStore; 2] = [&McpFiles::new(dir.path()), &MemoryMcpStore::default()];
    for store in stores {
        let token = |bytes: usize| format!("sk-{}", "x".repeat(bytes - 3));
        store.set_tokens("k", Some(&token(64 * 1024))).unwrap();
        refused(store.set_tokens("k", Some(&token(64 * 1024 + 1))), ApiCode::StorageFull);
        refused(store.set_tokens(&"k".repeat(1_025), Some("sk-")), ApiCode::StorageFull);
        store.set_tokens(&"k".repeat(1_024), Some("sk-")).unwrap();
        let add = |number: usize| store.set_tokens(&format!("n{number}"), Some(&token(64 * 1024)));
        let full = (0..100).find_map(|number| add(number).err());
        assert!(full.is_some_and(|error| error.message.contains("4194304 bytes")));
        assert_eq!(store.tokens("k").unwrap().map(|tokens| tokens.len()), Some(64 * 1024));
        // A full store still gives room again.
        store.set_tokens("n0", None).unwrap();
        add(100).unwrap();
    }
    let memory = MemoryMcpStore::default();
    for number in 0..1_000 {
        memory.set_tokens(&number.to_string(), Some("sk-")).unwrap();
    }
    let message = refused(memory.set_tokens("more", Some("sk-")), ApiCode::StorageFull);
    assert!(message.contains("at most 1000 servers"), "{message}");
    memory.set_tokens("7", Some("sk-")).unwrap();
}

// SECURITY: mcp-oauth
#[test]
fn unreadable_tokens_are_reported_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let store = McpFiles::new(dir.path());
    store.set_tokens("a", Some("sk-1")).unwrap();
    let file = dir.path().join("mcp-tokens.json");
    let whole = std::fs::read(&file).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let message = refused(store.tokens("a"), ApiCode::CredentialsUnreadable);
        assert!(message.contains("redflow mcp login"), "{message}");
        refused(store.set_tokens("a", Some("sk-2")), ApiCode::CredentialsUnreadable);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
    // A file that was sealed for another purpose does not open.
    std::fs::write(&file, &whole).unwrap();
    let ui = redflow_store::UiStorageFile::new(dir.path());
    redflow_ports::UiStorage::save(&ui, &[("a".to_owned(), json!("sk-"))].into()).unwrap();
    std::fs::copy(dir.path().join("storage.json"), &file).unwrap();
    refused(store.tokens("a"), ApiCode::CredentialsUnreadable);
}

/// Two stores of one directory behave as two processes do: they share nothing but the files.
#[test]
fn tokens_of_two_processes_do_not_replace_each_other() {
    let dir = tempfile::tempdir().unwrap();
    McpFiles::new(dir.path()).set_tokens("first", Some("sk-")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = McpFiles::new(dir.path());
            scope.spawn(move || {
                for number in 0..10 {
                    store.set_tokens(&format!("{writer}-{number}"), Some("sk-")).unwrap();
                    store.set_pins("shared", &pins(json!(number))).unwrap();
                }
            });
        }
    });
    let store = McpFiles::new(dir.path());
    for writer in 0..4 {
        for number in 0..10 {
            assert!(store.tokens(&format!("{writer}-{number}")).unwrap().is_some(), "{writer} {number}");
        }
    }
    assert_eq!(store.pins("shared").unwrap(), pins(json!(9)));
}

/// At whatever step the process dies, the files hold the old values or the new ones.
#[cfg(unix)]
#[test]
fn a_change_is_complete_or_has_no_effect_when_the_process_is_killed() {
    use crate::processes::kill_at;
    for (point, is_new) in [("whole_file.written=1", false), ("whole_file.placed=1", true)] {
        for role in ["set pins", "set tokens"] {
            let dir = tempfile::tempdir().unwrap();
            let store = McpFiles::new(dir.path());
            store.set_pins("s", &pins(json!("old"))).unwrap();
            store.set_tokens("s", Some("old")).unwrap();
            kill_at(point, role, dir.path());
            let changed = |this: &str| if is_new && role == this { "new" } else { "old" };
            assert_eq!(store.pins("s").unwrap(), pins(json!(changed("set pins"))), "{point}");
            assert_eq!(store.tokens("s").unwrap().as_deref(), Some(changed("set tokens")), "{point}");
            // A process that died holds no lock.
            store.set_pins("s", &pins(json!("old"))).unwrap();
            assert_eq!(names(&dir.path().join("mcp/pins")), ["s.json"], "{point}");
        }
    }
}

/// The roles of the second process; see `processes::role`.
#[cfg(unix)]
pub(crate) fn play_role(role: &str, dir: &Path) {
    let store = McpFiles::new(dir);
    match role {
        "set pins" => store.set_pins("s", &pins(json!("new"))).unwrap(),
        _ => store.set_tokens("s", Some("new")).unwrap(),
    }
}
