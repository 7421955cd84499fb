//! `keyNode`: a config node has the key of several models.

use crate::kit::{check, checked, good, node, process_env, report, with};
use redflow_contract::flow::Profile;
use redflow_flow::ProcessSecrets;
use serde_json::{Value, json};

/// An agent with an OpenAI model of these properties, next to these config nodes.
fn with_model(extra: Value, more: Vec<Value>) -> Value {
    let mut flow = good(json!([["m"], ["c"], [], ["d"]]), more);
    flow[2] = with(node("m", "openai-model", json!([[]])), extra);
    flow
}

fn key_node(id: &str, type_name: &str, credentials: Value) -> Value {
    json!({"id": id, "type": type_name, "name": "", "credentials": credentials})
}

#[test]
fn a_key_node_must_exist_and_be_of_the_provider() {
    let keys = || {
        vec![
            key_node("k", "openai-key", json!({"apiKey": "sk-1"})),
            key_node("other", "anthropic-key", json!({})),
            with(key_node("off", "openai-key", json!({})), json!({"d": true})),
            key_node("plain", "openai-key", json!({})),
        ]
    };
    let rows: [(Value, &[&str]); 7] = [
        (json!({"keyNode": "k"}), &[]),
        (json!({"keyNode": ""}), &[]),
        (json!({"options": {"keyNode": "k"}}), &[]),
        (json!({"keyNode": "gone"}), &["EDGE_TARGET_MISSING m /keyNode"]),
        (json!({"options": {"keyNode": "gone"}}), &["EDGE_TARGET_MISSING m /options/keyNode"]),
        (json!({"keyNode": "other"}), &["EDGE_KIND_MISMATCH m -> other /keyNode"]),
        (json!({"keyNode": "off"}), &["EDGE_TARGET_MISSING m /keyNode"]),
    ];
    for (extra, expected) in rows {
        check(with_model(extra, keys()), expected);
    }
    let mut plain = with_model(json!({}), keys());
    plain[8]["apiKey"] = json!("sk-in-the-flow");
    check(plain, &["SECRET_IN_FLOW plain /apiKey"]);
    let wrong = report(&with_model(json!({"keyNode": "other"}), keys()), Profile::Strict);
    let found = wrong.diagnostics.iter().find(|found| found.code.as_str() == "EDGE_KIND_MISMATCH").unwrap();
    assert_eq!(found.message, "`keyNode` names `other`, a `anthropic-key` node");
    assert_eq!(found.help, "Name an `openai-key` node by its id, or remove the property.");
}

#[test]
fn a_model_gets_the_key_of_its_key_node_unless_it_has_one() {
    let reference = json!({"apiKey": "${SERVICE_API_KEY}"});
    let rows = [
        (json!({}), json!({"apiKey": "sk-1"}), None),
        (json!({"keyNode": "k"}), json!({"apiKey": "sk-1"}), Some("sk-1")),
        (json!({"options": {"keyNode": "k"}}), json!({"apiKey": "sk-1"}), Some("sk-1")),
        // A variable of the process, also one with a secret name.
        (json!({"keyNode": "k"}), reference, Some("sk-secret")),
        (json!({"keyNode": "k"}), json!({"apiKey": "${NOT_SET}"}), None),
        (json!({"keyNode": "k"}), json!({}), None),
        (json!({"keyNode": "k", "credentials": {"apiKey": "own"}}), json!({"apiKey": "sk-1"}), Some("own")),
        (json!({"keyNode": "k", "credentials": {"apiKey": " "}}), json!({"apiKey": "sk-1"}), Some("sk-1")),
        (json!({"keyNode": "k", "apiKey": "${NOT_SET}"}), json!({"apiKey": "sk-1"}), Some("sk-1")),
        (json!({"keyNode": "k", "apiKey": "own"}), json!({"apiKey": "sk-1"}), None),
    ];
    for (extra, shared, expected) in rows {
        let flow = with_model(extra.clone(), vec![key_node("k", "openai-key", shared)]);
        let checked = checked(&flow);
        let ix = checked.flow.find("m").unwrap();
        let mut props = checked.flow.resolved_props(ix, &process_env, ProcessSecrets::InSecretProperties);
        checked.flow.add_shared_key(ix, "openai-model", &mut props, &process_env);
        let key = props.get("credentials").and_then(|own| own.get("apiKey")).and_then(Value::as_str);
        assert_eq!(key, expected, "{extra}");
    }
}
