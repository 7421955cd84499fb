use super::{ServerDefinition, find_class, is_included, tightened};
use crate::http::ResolvedAuth;
use pretty_assertions::assert_eq;
use redflow_contract::mcp::{McpOrigin, McpServer, OAuthGrant};
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

/// The dialog of Node-RED checks the same rows.
// SECURITY: mcp-effect
#[test]
fn the_most_specific_pattern_counts_and_of_equal_ones_the_strictest_class() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../tests/effects.json")).unwrap();
    for case in cases {
        let rules: Vec<(String, EffectClass)> = case["effects"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(pattern, class)| (pattern.clone(), serde_json::from_value(class.clone()).unwrap()))
            .collect();
        for (tool, expected) in case["classes"].as_object().unwrap() {
            let expected: Option<EffectClass> = serde_json::from_value(expected.clone()).unwrap();
            assert_eq!(find_class(&rules, tool), expected, "{tool}: {case}");
        }
    }
}

#[test]
fn another_way_to_prove_who_one_is_makes_another_server() {
    let of = |auth: ResolvedAuth| {
        let server: McpServer = serde_json::from_value(json!({"url": "https://example.org/mcp"})).unwrap();
        ServerDefinition::of_node("docs", "docs@example.org", server, auth)
    };
    let header = |name: &'static str| ResolvedAuth::Header {
        name: http::HeaderName::from_static(name),
        value: "a-long-secret".into(),
    };
    let oauth = |grant, client: Option<&str>, scopes: &[&str]| ResolvedAuth::OAuth {
        grant,
        client_id: client.map(str::to_owned),
        client_secret: Some("a-long-secret".into()),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    };
    let (code, robot) = (OAuthGrant::AuthorizationCode, OAuthGrant::ClientCredentials);
    let all = [
        ResolvedAuth::None,
        ResolvedAuth::Bearer("a-long-secret".into()),
        header("x-one"),
        header("x-two"),
        oauth(code, Some("a"), &[]),
        oauth(code, Some("b"), &[]),
        oauth(code, None, &["a"]),
        oauth(code, Some("a"), &["read"]),
        oauth(robot, Some("a"), &[]),
    ];
    let mut known: Vec<_> = all.iter().map(|auth| of(auth.clone()).fingerprint).collect();
    assert!(known.iter().eq(all.into_iter().map(|auth| of(auth).fingerprint).collect::<Vec<_>>().iter()));
    known.sort_by_key(|digest| digest.to_hex());
    known.dedup();
    assert_eq!(known.len(), 9);
    // Another client has other tokens.
    let keys = [oauth(code, Some("a"), &[]), oauth(code, Some("b"), &[]), oauth(code, None, &[])]
        .map(|auth| of(auth).token_key);
    assert!(keys[0].name != keys[1].name && keys[1].name != keys[2].name, "{keys:?}");
    // An earlier version did not tell clients apart.
    let old_names = keys.each_ref().map(|key| key.old_name.as_deref());
    assert_eq!(old_names, [Some("docs@example.org"), Some("docs@example.org"), None]);
    assert_eq!(keys[2].name, "docs@example.org");
}

// SECURITY: mcp-effect
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
        let hints = hints(text.clone());
        assert_eq!(server.effect(&[], tool, Some(&hints)), expected, "{tool} {text}");
        // People see the same for the rules of a node.
        let shown = tightened(Some(&hints));
        let by_rule = match tool {
            "r" => shown.read,
            "i" => shown.idempotent,
            _ => EffectClass::AtMostOnce,
        };
        assert_eq!(by_rule, expected, "{tool} {text}");
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
