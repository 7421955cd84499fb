#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{LONG, Limits, SHORT, Secrets, json_bytes, of_message, of_text, of_value};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::is_secret_name;
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn knowing(secret: &str) -> Secrets {
    let (mut secrets, mut scrubber) = (Secrets::default(), Scrubber::default());
    scrubber.add(secret);
    secrets.deployed(Arc::new(scrubber));
    secrets
}

/// What is shown, and whether something is missing.
fn shown(value: &Value) -> (Value, bool) {
    let preview = of_value(value, &SHORT, &Secrets::default());
    (preview.preview, preview.truncated)
}

#[test]
fn what_is_small_is_shown_whole_with_its_type_and_size() {
    for (value, type_name, size) in [
        (json!("hola"), "string", 8),
        (json!("h😀"), "string", 6),
        (json!({"expression": "2+2"}), "object", 26),
        (json!([1, true, null, "ab"]), "array", 8 + 4 + 8 + 4),
        (json!(null), "null", 8),
        (json!(false), "boolean", 4),
        (json!(1.5), "number", 8),
        (json!({}), "object", 0),
    ] {
        let preview = of_value(&value, &SHORT, &Secrets::default());
        assert_eq!((preview.type_name.as_str(), preview.size), (type_name, size), "{value}");
        assert_eq!((preview.preview, preview.truncated), (value, false));
    }
}

#[test]
fn what_is_missing_is_marked() {
    let long = "é".repeat(5001);
    assert_eq!(shown(&json!(long)), (json!(format!("{}...[truncated]", "é".repeat(5000))), true));
    assert_eq!(shown(&json!("é".repeat(5000))), (json!("é".repeat(5000)), false));
    // A character that JavaScript counts as two is not cut in half.
    let pairs = "😀".repeat(2501);
    let half = format!("x{pairs}");
    assert_eq!(shown(&json!(half)).0, json!(format!("x{}...[truncated]", "😀".repeat(2499))));

    let items: Vec<u32> = (0..23).collect();
    let (preview, truncated) = shown(&json!(items));
    assert_eq!(
        (preview[19].clone(), preview[20].clone(), truncated),
        (json!(19), json!("...[3 more items]"), true)
    );

    let keys: Map<String, Value> = (0..52).map(|n| (format!("k{n}"), json!(n))).collect();
    let (preview, truncated) = shown(&json!(keys));
    assert_eq!(
        (preview["..."].clone(), preview.as_object().unwrap().len(), truncated),
        (json!("[2 more keys]"), 51, true)
    );

    let deep = json!({"1": {"2": {"3": {"4": {"5": {"o": {}, "a": [1, 2], "n": 6}}}}}});
    let inner = json!({"o": "[Object]", "a": "[Array: 2 items]", "n": 6});
    assert_eq!(shown(&deep), (json!({"1": {"2": {"3": {"4": {"5": inner}}}}}), true));

    assert_eq!(shown(&json!({"type": "Buffer", "data": [1, 2, 3]})), (json!("[Binary data: 3 bytes]"), true));
    let no_buffer = json!({"type": "Buffer", "data": ["x"]});
    assert_eq!(shown(&no_buffer), (no_buffer.clone(), false));
}

#[test]
fn what_is_too_large_even_so_is_only_told_of() {
    let rows: Vec<String> = (0..20).map(|_| "x".repeat(4000)).collect();
    let notice = |size: u64, type_name: &str| json!({"_notice": "The payload is too large to be shown.", "_originalSize": size, "_type": type_name});
    assert_eq!(shown(&json!(rows)), (notice(160_000, "array"), true));
    // A name is not cut, and one alone can be too much.
    assert_eq!(shown(&json!({"k".repeat(60_000): 1})), (notice(120_008, "object"), true));
    // So is what grows by being written as JSON.
    let control: Vec<String> = (0..3).map(|_| "\u{1}".repeat(5000)).collect();
    assert_eq!(shown(&json!(control)), (notice(30_000, "array"), true));
    // Agents may say more.
    assert!(!of_value(&json!(rows), &LONG, &Secrets::default()).truncated);
}

#[test]
fn a_message_without_a_payload_is_shown_whole() {
    let message = |value: Value| value.as_object().unwrap().clone();
    let secrets = Secrets::default();
    let with = of_message(&message(json!({"topic": "t", "payload": null})), &secrets);
    assert_eq!((with.preview, with.type_name.as_str()), (json!(null), "null"));
    let without = of_message(&message(json!({"topic": "t"})), &secrets);
    assert_eq!((without.preview, without.type_name.as_str()), (json!({"topic": "t"}), "object"));
    assert_eq!(without.size, 12);
}

#[test]
fn secrets_are_hidden_by_name_and_counts_are_not() {
    let value = json!({
        "apiKey": "sk-1", "authorization": {"x": 1}, "password": "p", "accessToken": ["t"], "token": null,
        "headers": {"Cookie": "c", "host": "h"},
        "promptTokens": 1, "completionTokens": 2, "totalTokens": 3, "maxTokens": 4, "author": "Ada",
    });
    let hidden = "[REDACTED]";
    let expected = json!({
        "apiKey": hidden, "authorization": hidden, "password": hidden, "accessToken": hidden, "token": hidden,
        "headers": {"Cookie": hidden, "host": "h"},
        "promptTokens": 1, "completionTokens": 2, "totalTokens": 3, "maxTokens": 4, "author": "Ada",
    });
    assert_eq!(shown(&value), (expected, false));
}

#[test]
fn known_secrets_are_taken_out_wherever_they_stand() {
    let mut secrets = knowing("open-sesame");
    let value = json!({"a": ["say open-sesame twice: open-sesame"], "open-sesame": 1});
    let expected = json!({"a": ["say [redacted] twice: [redacted]"], "[redacted]": 1});
    assert_eq!(of_value(&value, &SHORT, &secrets).preview, expected);
    // One that stands where the text is cut is not shown by half.
    let at_the_cut = format!("{}open-sesame", "x".repeat(4996));
    let preview = of_value(&json!(at_the_cut), &SHORT, &secrets).preview;
    assert!(!preview.as_str().unwrap().contains("open"), "{preview}");
    assert_eq!(of_text("open-sesame!", &LONG, &secrets), "[redacted]!");
    // Flows before may still run.
    for _ in 0..8 {
        secrets.deployed(Arc::default());
        assert_eq!(of_text("open-sesame!", &LONG, &secrets), "[redacted]!");
    }
    secrets.deployed(Arc::default());
    assert_eq!(of_text("open-sesame!", &LONG, &secrets), "open-sesame!");
}

/// A secret that holds one of another flow is found first.
#[test]
fn a_secret_is_found_whole_whichever_flow_it_is_of() {
    let mut secrets = knowing("open-sesame-and-more");
    let mut scrubber = Scrubber::default();
    scrubber.add("open-sesame");
    secrets.deployed(Arc::new(scrubber));
    assert_eq!(of_text("open-sesame-and-more open-sesame", &LONG, &secrets), "[redacted] [redacted]");
}

/// Only what may be shown is looked through, so what is shown does not depend on what is behind it.
#[test]
fn a_long_text_is_cut_before_it_is_looked_through() {
    let secret = "twenty-letters-long!";
    let said = secret.repeat(1000);
    let preview = of_value(&json!(said), &SHORT, &knowing(secret));
    assert_eq!(preview.preview, json!(format!("{}...[truncated]", "[redacted]".repeat(250))));
    assert_eq!((preview.size, preview.truncated), (40_000, true));
    // What stands for a short one takes more room than it.
    let said = "12345678".repeat(625);
    let preview = of_value(&json!(said), &SHORT, &knowing("12345678"));
    assert_eq!(preview.preview, json!(format!("{}...[truncated]", "[redacted]".repeat(500))));
}

/// Any JSON, with secrets among its names.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        (0..40usize, prop_oneof![Just("x"), Just("\u{1}"), Just("😀")])
            .prop_map(|(n, c)| Value::from(c.repeat(n))),
    ];
    let name = prop_oneof![
        4 => "[a-z]{1,6}".boxed(),
        1 => Just("apiKey".to_owned()).boxed(),
        1 => Just("client_secret".to_owned()).boxed(),
        1 => Just("...".to_owned()).boxed(),
        1 => Just("type".to_owned()).boxed(),
    ];
    leaf.prop_recursive(8, 96, 12, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..12)
                .prop_map(|parts| Value::Object(parts.into_iter().collect())),
        ]
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    (0..2000usize, 0..6usize, 0..8usize, 0..8usize, 0..20usize)
        .prop_map(|(bytes, depth, keys, items, chars)| Limits { bytes, depth, keys, items, chars })
}

/// Whether a value keeps to the limits, markers aside.
fn within(value: &Value, limits: &Limits, depth: usize) -> bool {
    match value {
        Value::String(text) => {
            let text = text.strip_suffix("...[truncated]").unwrap_or(text);
            text.encode_utf16().count() <= limits.chars || is_marker(text)
        }
        Value::Array(items) => {
            depth < limits.depth
                && items.len() <= limits.items + 1
                && items.iter().all(|item| within(item, limits, depth + 1))
        }
        Value::Object(map) => {
            depth < limits.depth
                && map.len() <= limits.keys + 1
                && map.iter().all(|(name, value)| {
                    let hidden = value == "[REDACTED]";
                    is_secret_name(name) == hidden && (hidden || within(value, limits, depth + 1))
                })
        }
        _ => true,
    }
}

fn is_marker(text: &str) -> bool {
    text == "[Object]"
        || text.starts_with("[Array: ")
        || text.ends_with(" more items]")
        || text.ends_with(" more keys]")
        || text.starts_with("[Binary data: ")
}

proptest! {
    #[test]
    fn the_limits_hold_for_any_value_and_no_named_secret_is_shown(value in json_value(), limits in limits()) {
        let preview = of_value(&value, &limits, &Secrets::default());
        if preview.preview.get("_notice").is_some() {
            prop_assert!(preview.truncated);
        } else {
            prop_assert!(json_bytes(&preview.preview) <= limits.bytes);
            prop_assert!(within(&preview.preview, &limits, 0), "{}", preview.preview);
            // Nothing is missing unless it is said so.
            prop_assert!(preview.truncated || without_secrets(&value) == preview.preview);
        }
    }

    #[test]
    fn a_known_secret_is_shown_nowhere(value in json_value(), limits in limits(), place in 0..5usize) {
        let secret = "swordfish-and-more";
        let said = format!("{}{secret}{secret}", "x".repeat(place));
        let value = json!({"a": value, "said": said, (said.clone()): [said]});
        let preview = of_value(&value, &limits, &knowing(secret)).preview.to_string();
        prop_assert!(!preview.contains("sword"), "{preview}");
    }
}

proptest! {
    /// One that begins before the cut and ends behind it is not shown, not even its first letter.
    #[test]
    fn no_part_of_a_secret_is_left_at_the_cut(
        before in "[xé😀]{0,30}",
        secret in "[a-dü]{8,20}",
        after in "[xé😀]{0,30}",
        chars in 0..60usize,
    ) {
        let limits = Limits { chars, ..SHORT };
        let shown = of_text(&format!("{before}{secret}{after}"), &limits, &knowing(&secret));
        let long = |text: &str| text.encode_utf16().count();
        let text = shown.strip_suffix("...[truncated]").unwrap_or(&shown);
        prop_assert!(long(text) <= chars);
        if chars < long(&before) + long(&secret) {
            prop_assert!(before.starts_with(text), "{shown}");
            prop_assert!(text == before || long(text) + 1 >= chars, "{shown}");
        } else {
            prop_assert!(format!("{before}[redacted]{after}").starts_with(text), "{shown}");
        }
    }
}

fn without_secrets(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_secrets).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| {
                let shown = if is_secret_name(name) { json!("[REDACTED]") } else { without_secrets(value) };
                (name.clone(), shown)
            })
            .collect(),
        other => other.clone(),
    }
}
