use super::{MASK, is_sealed, shown, unmasked};
use pretty_assertions::assert_eq;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use serde_json::{Value, json};

#[test]
fn credentials_show_nothing_but_what_they_are_for() {
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
        assert_eq!(shown(key, &stored), expected, "{key}");
    }
    assert_eq!(shown("encrypted:node-credentials:m", &json!("Y2lwaGVy")), json!(MASK));
    assert_eq!(shown("credential:", &json!(["sk-1", [2]])), json!([MASK, [MASK]]));
}

#[test]
fn elsewhere_names_tell_what_is_secret() {
    let stored = json!({"config": {"apiKey": "sk-1", "maxTokens": 800, "token": {"a": ["sk-2"], "name": "sk-4"}, "name": "open"},
        "credentials": {"user": "sk-3", "id": "sk-5"}, "note": "open"});
    let expected = json!({"config": {"apiKey": MASK, "maxTokens": 800, "token": {"a": [MASK], "name": MASK}, "name": "open"},
        "credentials": {"user": MASK, "id": MASK}, "note": "open"});
    assert_eq!(shown("node-config:m", &stored), expected);
    assert_eq!(shown("layout", &json!({"x": 1, "tokens": 3})), json!({"x": 1, "tokens": MASK}));
    for key in ["apiKey", "openai:apiKey", "my-password"] {
        assert_eq!(shown(key, &json!("sk-1")), json!(MASK), "{key}");
    }
    assert_eq!(shown("theme", &json!("dark")), json!("dark"));
    let names = json!({"key": "s", "connectionString": "s", "connection_string": "s", "DSN": "s", "creds": {"name": "s"}});
    let masked = json!({"key": MASK, "connectionString": MASK, "connection_string": MASK, "DSN": MASK,
                        "creds": {"name": MASK}});
    assert_eq!(shown("layout", &names), masked);
    let open = json!({"keys": ["a"], "keyPrefix": "k", "publicKey": "p", "monkey": 1});
    assert_eq!(shown("layout", &open), open);
    assert_eq!(shown("dsn", &json!("sk-1")), json!(MASK));
}

#[test]
fn what_a_credential_is_for_is_told_at_its_first_level_alone() {
    let stored = json!({"name": "open", "data": {"id": "open", "data": {"name": "s"}, "more": {"type": "s"}},
        "value": {"endpoint": "open"}, "list": [{"name": "s"}], "other": {"name": "s", "data": {"name": "s"}}});
    let expected = json!({"name": "open", "data": {"id": "open", "data": {"name": MASK}, "more": {"type": MASK}},
        "value": {"endpoint": "open"}, "list": [{"name": MASK}], "other": {"name": MASK, "data": {"name": MASK}}});
    assert_eq!(shown("credential:c", &stored), expected);
    assert_eq!(shown("credentials:all", &json!([{"name": "s"}])), json!([{"name": MASK}]));
}

#[test]
fn a_text_that_is_json_with_secrets_is_masked_whole() {
    let within = json!({"a": [{"apiKey": "sk-1"}]}).to_string();
    let mut nested = within.clone();
    for _ in 0..8 {
        nested = json!([nested]).to_string();
    }
    let quoted = Value::from(within.clone()).to_string();
    let deep = format!("{}{}", "[".repeat(4000), "]".repeat(4000));
    for text in [&*within, &nested, &quoted, "\n {\"key\": 1}", r#"{"a": {"dsn": "s"}, "a": 1}"#, &deep] {
        assert_eq!(shown("layout", &json!({"x": text, "y": 1})), json!({"x": MASK, "y": 1}), "{text}");
        assert_eq!(shown("layout", &json!([text])), json!([MASK]), "{text}");
        assert_eq!(shown("credential:c", &json!({"name": text})), json!({"name": MASK}), "{text}");
    }
    for text in
        [r#"{"zoom": 1, "note": "apiKey"}"#, "[1, 2]", "{apiKey} is missing", "\"quoted\"", "[", "apiKey: x"]
    {
        assert_eq!(shown("layout", &json!(text)), json!(text));
    }
}

#[test]
fn what_the_ui_has_sealed_is_known_however_it_is_written() {
    for key in ["encrypted:credential:c", "Encrypted:x", "  ENCRYPTED:", "encrypted:"] {
        assert!(is_sealed(key), "{key}");
    }
    for key in ["encrypted", "credential:encrypted:", "x encrypted:y", ""] {
        assert!(!is_sealed(key), "{key}");
    }
}

#[test]
fn the_mask_means_what_was_there() {
    let stored = json!({"apiKey": "sk-1", "list": ["sk-2", "sk-3"], "deep": {"a": "sk-4"}});
    let sent = json!({"apiKey": MASK, "list": [MASK, "new", MASK], "deep": MASK, "unknown": MASK, "more": 1});
    let expected = json!({"apiKey": "sk-1", "list": ["sk-2", "new", null], "deep": {"a": "sk-4"}, "more": 1});
    assert_eq!(unmasked(sent, Some(&stored)), Some(expected));
    assert_eq!(unmasked(json!(MASK), None), None);
    assert_eq!(unmasked(json!({"apiKey": MASK}), None), Some(json!({})));
    // A value never comes to another place.
    assert_eq!(unmasked(json!({"name": MASK}), Some(&stored)), Some(json!({})));
    assert_eq!(unmasked(json!([MASK]), Some(&stored)), Some(json!([null])));
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

/// A value without the mask in it: nothing that is stored has one.
fn storable(value: Value) -> Value {
    unmasked(value, None).unwrap_or(Value::Null)
}

proptest! {
    #[test]
    fn what_was_shown_changes_nothing(value in values(), is_credential in any::<bool>()) {
        let (key, stored) = (if is_credential { "credential:x" } else { "other" }, storable(value));
        assert_eq!(unmasked(shown(key, &stored), Some(&stored)), Some(stored));
    }

    /// Whatever is sent, what was masked before is not shown after.
    #[test]
    fn no_secret_is_talked_out_of_it(before in values(), sent in values()) {
        let before = storable(before);
        let after = unmasked(sent.clone(), Some(&before)).unwrap_or(Value::Null);
        let count = |value: &Value| value.to_string().matches("sk-secret").count();
        let open = |value: &Value| count(&shown("other", value));
        assert!(open(&after) <= open(&before) + count(&sent));
        assert_eq!(count(&shown("credential:x", &json!({"data": after}))) > 0,
            shown("credential:x", &json!({"data": after})).to_string().contains("\"name\":\"sk-secret\""));
    }
}
