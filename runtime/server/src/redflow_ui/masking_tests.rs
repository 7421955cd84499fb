use super::{mask_item, restore_masked};
use pretty_assertions::assert_eq;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use redflow_contract::secret::{PASSWORD_MASK as MASK, is_encrypted_key};
use serde_json::{Value, json};

#[test]
fn shows_only_the_public_properties_of_credentials() {
    let stored = json!({"id": "c1", "name": "Mine", "type": "azure-openai", "createdAt": 7, "usedBy": ["m"], "empty": "",
        "data": {"endpoint": "https://x.openai.azure.com", "deployment": "d", "apiVersion": "v1", "apiKey": "sk-1",
                 "value": "sk-2", "pin": 1234, "ok": true, "name": {"odd": "sk-3"}}});
    let expected = json!({"id": "c1", "name": "Mine", "type": "azure-openai", "createdAt": 7, "usedBy": [MASK], "empty": "",
        "data": {"endpoint": "https://x.openai.azure.com", "deployment": "d", "apiVersion": "v1", "apiKey": MASK,
                 "value": MASK, "pin": MASK, "ok": true, "name": {"odd": MASK}}});
    for key in [
        "credential:c1",
        "credentials:c1",
        "node-credentials:m.1 x",
        "encrypted:credential:c1",
        " Credential:c1",
        "CREDENTIALS:",
        "Node_Credentials:m",
        "node_credentials:m",
        "\tEncrypted: credential:c1",
    ] {
        assert_eq!(mask_item(key, &stored), expected, "{key}");
    }
    assert_eq!(mask_item("encrypted:node-credentials:m", &json!("Y2lwaGVy")), json!(MASK));
    assert_eq!(mask_item("credential:", &json!(["sk-1", [2]])), json!([MASK, [MASK]]));
}

#[test]
fn masks_other_items_by_the_names_of_properties() {
    let stored = json!({"config": {"apiKey": "sk-1", "maxTokens": 800, "token": {"a": ["sk-2"], "name": "sk-4"}, "name": "open"},
        "credentials": {"user": "sk-3", "id": "sk-5"}, "note": "open"});
    let expected = json!({"config": {"apiKey": MASK, "maxTokens": 800, "token": {"a": [MASK], "name": MASK}, "name": "open"},
        "credentials": {"user": MASK, "id": MASK}, "note": "open"});
    assert_eq!(mask_item("node-config:m", &stored), expected);
    assert_eq!(mask_item("layout", &json!({"x": 1, "tokens": 3})), json!({"x": 1, "tokens": MASK}));
    for key in ["apiKey", "openai:apiKey", "my-password"] {
        assert_eq!(mask_item(key, &json!("sk-1")), json!(MASK), "{key}");
    }
    assert_eq!(mask_item("theme", &json!("dark")), json!("dark"));
    let names = json!({"key": "s", "connectionString": "s", "connection_string": "s", "DSN": "s", "creds": {"name": "s"}});
    let masked = json!({"key": MASK, "connectionString": MASK, "connection_string": MASK, "DSN": MASK,
                        "creds": {"name": MASK}});
    assert_eq!(mask_item("layout", &names), masked);
    let open = json!({"keys": ["a"], "keyPrefix": "k", "publicKey": "p", "monkey": 1});
    assert_eq!(mask_item("layout", &open), open);
    assert_eq!(mask_item("dsn", &json!("sk-1")), json!(MASK));
}

// SECURITY: ui-masked
#[test]
fn shows_public_properties_at_the_first_level_only() {
    let stored = json!({"name": "open", "data": {"id": "open", "data": {"name": "s"}, "more": {"type": "s"}},
        "value": {"endpoint": "open"}, "list": [{"name": "s"}], "other": {"name": "s", "data": {"name": "s"}}});
    let expected = json!({"name": "open", "data": {"id": "open", "data": {"name": MASK}, "more": {"type": MASK}},
        "value": {"endpoint": "open"}, "list": [{"name": MASK}], "other": {"name": MASK, "data": {"name": MASK}}});
    assert_eq!(mask_item("credential:c", &stored), expected);
    assert_eq!(mask_item("credentials:all", &json!([{"name": "s"}])), json!([{"name": MASK}]));
}

// SECURITY: ui-masked
#[test]
fn masks_a_json_text_with_secrets_as_a_whole() {
    let within = json!({"a": [{"apiKey": "sk-1"}]}).to_string();
    let mut nested = within.clone();
    for _ in 0..8 {
        nested = json!([nested]).to_string();
    }
    let quoted = Value::from(within.clone()).to_string();
    let deep = format!("{}{}", "[".repeat(4000), "]".repeat(4000));
    for text in [&*within, &nested, &quoted, "\n {\"key\": 1}", r#"{"a": {"dsn": "s"}, "a": 1}"#, &deep] {
        assert_eq!(mask_item("layout", &json!({"x": text, "y": 1})), json!({"x": MASK, "y": 1}), "{text}");
        assert_eq!(mask_item("layout", &json!([text])), json!([MASK]), "{text}");
        assert_eq!(mask_item("credential:c", &json!({"name": text})), json!({"name": MASK}), "{text}");
    }
    for text in
        [r#"{"zoom": 1, "note": "apiKey"}"#, "[1, 2]", "{apiKey} is missing", "\"quoted\"", "[", "apiKey: x"]
    {
        assert_eq!(mask_item("layout", &json!(text)), json!(text));
    }
}

#[test]
fn recognises_values_that_the_ui_encrypted() {
    for key in ["encrypted:credential:c", "Encrypted:x", "  ENCRYPTED:", "encrypted:"] {
        assert!(is_encrypted_key(key), "{key}");
    }
    for key in ["encrypted", "credential:encrypted:", "x encrypted:y", ""] {
        assert!(!is_encrypted_key(key), "{key}");
    }
}

#[test]
fn restores_the_stored_value_of_a_mask() {
    let stored = json!({"apiKey": "sk-1", "list": ["sk-2", "sk-3"], "deep": {"a": "sk-4"}});
    let sent = json!({"apiKey": MASK, "list": [MASK, "new", MASK], "deep": MASK, "unknown": MASK, "more": 1});
    let expected = json!({"apiKey": "sk-1", "list": ["sk-2", "new", null], "deep": {"a": "sk-4"}, "more": 1});
    assert_eq!(restore_masked(sent, Some(&stored)), Some(expected));
    assert_eq!(restore_masked(json!(MASK), None), None);
    assert_eq!(restore_masked(json!({"apiKey": MASK}), None), Some(json!({})));
    // A value never moves to another path.
    assert_eq!(restore_masked(json!({"name": MASK}), Some(&stored)), Some(json!({})));
    assert_eq!(restore_masked(json!([MASK]), Some(&stored)), Some(json!([null])));
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![Just("sk-secret"), Just(""), Just("x"), Just(MASK)].prop_map(Value::from),
    ];
    let names = prop_oneof![Just("apiKey"), Just("name"), Just("data"), Just("note"), Just("__proto__")];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((names.clone().prop_map(str::to_owned), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// A value without masks, because stored values have none.
fn storable(value: Value) -> Value {
    restore_masked(value, None).unwrap_or(Value::Null)
}

proptest! {
    #[test]
    fn a_masked_value_that_comes_back_changes_nothing(value in values(), is_credential in any::<bool>()) {
        let (key, stored) = (if is_credential { "credential:x" } else { "other" }, storable(value));
        assert_eq!(restore_masked(mask_item(key, &stored), Some(&stored)), Some(stored));
    }

    /// A client cannot reveal a masked value by what it sends.
    // SECURITY: ui-masked
    #[test]
    fn no_request_reveals_a_masked_value(before in values(), sent in values()) {
        let before = storable(before);
        let after = restore_masked(sent.clone(), Some(&before)).unwrap_or(Value::Null);
        let count = |value: &Value| value.to_string().matches("sk-secret").count();
        let shown_secrets = |value: &Value| count(&mask_item("other", value));
        assert!(shown_secrets(&after) <= shown_secrets(&before) + count(&sent));
        assert_eq!(count(&mask_item("credential:x", &json!({"data": after}))) > 0,
            mask_item("credential:x", &json!({"data": after})).to_string().contains("\"name\":\"sk-secret\""));
    }
}
