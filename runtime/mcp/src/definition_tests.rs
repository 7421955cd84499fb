use super::{ServerDefinition, is_included};
use pretty_assertions::assert_eq;
use redflow_contract::mcp::{McpOrigin, McpServer};
use redflow_contract::node::EffectClass;
use redflow_contract::tool::{FilePermission, NetworkPermission};
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

fn define(server: Value) -> ServerDefinition {
    let server: McpServer = serde_json::from_value(server).unwrap();
    let env = |name: &str| (name == "TOKEN").then(|| "a-long-secret".to_owned());
    ServerDefinition::of_manifest("files", &server, McpOrigin::Manifest, &env)
}

#[test]
fn a_name_counts_before_a_pattern_and_the_node_before_the_manifest() {
    let server = define(json!({"command": "x", "effects": {"read_*": "read", "read_once": "at_most_once"}}));
    let class = |node: &[(String, EffectClass)], tool: &str| server.effect(node, tool, None);
    assert_eq!(class(&[], "read_file"), EffectClass::Read);
    assert_eq!(class(&[], "read_once"), EffectClass::AtMostOnce);
    assert_eq!(class(&[], "write_file"), EffectClass::AtMostOnce);
    let node = [("*".to_owned(), EffectClass::Idempotent), ("read_file".to_owned(), EffectClass::AtMostOnce)];
    assert_eq!(class(&node, "read_file"), EffectClass::AtMostOnce);
    assert_eq!(class(&node, "write_file"), EffectClass::Idempotent);
}

#[test]
fn annotations_only_tighten() {
    let server = define(json!({"command": "x", "effects": {"r": "read", "i": "idempotent"}}));
    let hints = |text: Value| serde_json::from_value::<ToolAnnotations>(text).unwrap();
    let rows = [
        ("r", json!({}), EffectClass::Read),
        ("r", json!({"readOnlyHint": true}), EffectClass::Read),
        ("r", json!({"readOnlyHint": false}), EffectClass::AtMostOnce),
        ("r", json!({"destructiveHint": true}), EffectClass::AtMostOnce),
        ("r", json!({"destructiveHint": false}), EffectClass::Read),
        ("r", json!({"readOnlyHint": false, "idempotentHint": true}), EffectClass::Idempotent),
        ("i", json!({"idempotentHint": false}), EffectClass::AtMostOnce),
        ("i", json!({"readOnlyHint": true}), EffectClass::Idempotent),
        ("other", json!({"readOnlyHint": true, "idempotentHint": true}), EffectClass::AtMostOnce),
    ];
    for (tool, text, expected) in rows {
        assert_eq!(server.effect(&[], tool, Some(&hints(text.clone()))), expected, "{tool} {text}");
    }
}

#[test]
fn lists_narrow_the_tools() {
    let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_included(&[], &[], "a"));
    assert!(is_included(&list("read_* x"), &[], "x"));
    assert!(!is_included(&list("read_* x"), &[], "y"));
    assert!(!is_included(&list("read_*"), &list("*_all"), "read_all"));
}

#[test]
fn a_missing_secret_blocks_the_server_and_a_set_one_is_scrubbed() {
    let missing = define(json!({"command": "x", "secrets": ["OTHER"]}));
    assert_eq!(missing.problem.as_deref(), Some("The environment variable `OTHER` is not set."));
    let server = define(json!({"command": "run", "args": ["--key", "a-long-secret"], "secrets": ["TOKEN"]}));
    assert_eq!((server.problem.as_deref(), server.target().contains("a-long-secret")), (None, false));
    let permissions = server.permissions();
    assert_eq!((permissions.process, permissions.files), (true, FilePermission::Write));
    assert_eq!(
        (permissions.network, permissions.secrets),
        (NetworkPermission::Public, vec!["TOKEN".to_owned()])
    );
}

#[test]
fn an_address_is_shown_without_query_and_user() {
    let server = define(json!({"url": "https://u:p@example.org/mcp?key=1#x",
        "auth": {"type": "bearer", "env": "TOKEN"}}));
    assert_eq!(server.target(), "https://example.org/mcp");
    assert_eq!(server.permissions().network, NetworkPermission::Hosts);
    let same = define(
        json!({"url": "https://u:p@example.org/mcp?key=1#x", "auth": {"type": "bearer", "env": "TOKEN"}}),
    );
    assert_eq!(server.fingerprint, same.fingerprint);
    assert_ne!(server.fingerprint, define(json!({"url": "https://example.org/mcp"})).fingerprint);
}
