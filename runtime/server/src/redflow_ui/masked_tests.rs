use super::{MASK, shown, unmasked};
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
    for key in ["credential:c1", "credentials:c1", "node-credentials:m.1 x", "encrypted:credential:c1"] {
        assert_eq!(shown(key, &stored), expected, "{key}");
    }
    assert_eq!(shown("encrypted:node-credentials:m", &json!("Y2lwaGVy")), json!(MASK));
    assert_eq!(shown("credential:", &json!(["sk-1", [2]])), json!([MASK, [MASK]]));
}

#[test]
fn elsewhere_names_tell_what_is_secret() {
    let stored = json!({"config": {"apiKey": "sk-1", "maxTokens": 800, "token": {"a": ["sk-2"], "name": "t"}},
        "credentials": {"user": "sk-3"}, "note": "open"});
    let expected = json!({"config": {"apiKey": MASK, "maxTokens": 800, "token": {"a": [MASK], "name": "t"}},
        "credentials": {"user": MASK}, "note": "open"});
    assert_eq!(shown("node-config:m", &stored), expected);
    assert_eq!(shown("layout", &json!({"x": 1, "tokens": 3})), json!({"x": 1, "tokens": MASK}));
    for key in ["apiKey", "openai:apiKey", "my-password"] {
        assert_eq!(shown(key, &json!("sk-1")), json!(MASK), "{key}");
    }
    assert_eq!(shown("theme", &json!("dark")), json!("dark"));
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
