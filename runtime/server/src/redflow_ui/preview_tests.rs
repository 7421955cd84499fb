#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::{LONG, Limits, SHORT, Secrets, json_bytes, preview_message, preview_text, preview_value};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::is_secret_name;
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn secrets_with(secret: &str) -> Secrets {
    let (mut secrets, mut scrubber) = (Secrets::default(), Scrubber::default());
    scrubber.add(secret);
    secrets.add_flow(Arc::new(scrubber));
    secrets
}

/// The short preview, and whether it was cut.
fn short_preview(value: &Value) -> (Value, bool) {
    let preview = preview_value(value, &SHORT, &Secrets::default());
    (preview.preview, preview.truncated)
}

#[test]
fn shows_a_small_value_with_its_type_and_size() {
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
        let preview = preview_value(&value, &SHORT, &Secrets::default());
        assert_eq!((preview.type_name.as_str(), preview.size), (type_name, size), "{value}");
        assert_eq!((preview.preview, preview.truncated), (value, false));
    }
}

#[test]
fn marks_what_is_cut() {
    let long = "é".repeat(5001);
    assert_eq!(short_preview(&json!(long)), (json!(format!("{}...[truncated]", "é".repeat(5000))), true));
    assert_eq!(short_preview(&json!("é".repeat(5000))), (json!("é".repeat(5000)), false));
    // A character of two UTF-16 units is not cut in half.
    let pairs = "😀".repeat(2501);
    let half = format!("x{pairs}");
    assert_eq!(short_preview(&json!(half)).0, json!(format!("x{}...[truncated]", "😀".repeat(2499))));

    let items: Vec<u32> = (0..23).collect();
    let (preview, truncated) = short_preview(&json!(items));
    assert_eq!(
        (preview[19].clone(), preview[20].clone(), truncated),
        (json!(19), json!("...[3 more items]"), true)
    );

    let keys: Map<String, Value> = (0..52).map(|n| (format!("k{n}"), json!(n))).collect();
    let (preview, truncated) = short_preview(&json!(keys));
    assert_eq!(
        (preview["..."].clone(), preview.as_object().unwrap().len(), truncated),
        (json!("[2 more keys]"), 51, true)
    );

    let deep = json!({"1": {"2": {"3": {"4": {"5": {"o": {}, "a": [1, 2], "n": 6}}}}}});
    let inner = json!({"o": "[Object]", "a": "[Array: 2 items]", "n": 6});
    assert_eq!(short_preview(&deep), (json!({"1": {"2": {"3": {"4": {"5": inner}}}}}), true));

    assert_eq!(
        short_preview(&json!({"type": "Buffer", "data": [1, 2, 3]})),
        (json!("[Binary data: 3 bytes]"), true)
    );
    let no_buffer = json!({"type": "Buffer", "data": ["x"]});
    assert_eq!(short_preview(&no_buffer), (no_buffer.clone(), false));
}

#[test]
fn replaces_a_value_that_is_still_too_large_by_a_notice() {
    let rows: Vec<String> = (0..20).map(|_| "x".repeat(4000)).collect();
    let notice = |size: u64, type_name: &str| json!({"_notice": "The payload is too large to be shown.", "_originalSize": size, "_type": type_name});
    assert_eq!(short_preview(&json!(rows)), (notice(160_000, "array"), true));
    // Names are not cut, and one name alone can be too long.
    assert_eq!(short_preview(&json!({"k".repeat(60_000): 1})), (notice(120_008, "object"), true));
    // Control characters take six bytes in JSON.
    let control: Vec<String> = (0..3).map(|_| "\u{1}".repeat(5000)).collect();
    assert_eq!(short_preview(&json!(control)), (notice(30_000, "array"), true));
    // The limits for agents are larger.
    assert!(!preview_value(&json!(rows), &LONG, &Secrets::default()).truncated);
}

#[test]
fn shows_a_message_without_a_payload_as_a_whole() {
    let message = |value: Value| value.as_object().unwrap().clone();
    let secrets = Secrets::default();
    let with = preview_message(&message(json!({"topic": "t", "payload": null})), &secrets);
    assert_eq!((with.preview, with.type_name.as_str()), (json!(null), "null"));
    let without = preview_message(&message(json!({"topic": "t"})), &secrets);
    assert_eq!((without.preview, without.type_name.as_str()), (json!({"topic": "t"}), "object"));
    assert_eq!(without.size, 12);
}

#[test]
fn hides_secrets_by_name_but_not_token_counts() {
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
    assert_eq!(short_preview(&value), (expected, false));
}

#[test]
fn removes_known_secrets_everywhere() {
    let mut secrets = secrets_with("open-sesame");
    let value = json!({"a": ["say open-sesame twice: open-sesame"], "open-sesame": 1});
    let expected = json!({"a": ["say [redacted] twice: [redacted]"], "[redacted]": 1});
    assert_eq!(preview_value(&value, &SHORT, &secrets).preview, expected);
    // A secret at the cut is not shown in part.
    let at_the_cut = format!("{}open-sesame", "x".repeat(4996));
    let preview = preview_value(&json!(at_the_cut), &SHORT, &secrets).preview;
    assert!(!preview.as_str().unwrap().contains("open"), "{preview}");
    assert_eq!(preview_text("open-sesame!", &LONG, &secrets), "[redacted]!");
    // Runs of earlier flows may still go on.
    for _ in 0..8 {
        secrets.add_flow(Arc::default());
        assert_eq!(preview_text("open-sesame!", &LONG, &secrets), "[redacted]!");
    }
    secrets.add_flow(Arc::default());
    assert_eq!(preview_text("open-sesame!", &LONG, &secrets), "open-sesame!");
}

#[test]
fn finds_the_longer_secret_first_across_flows() {
    let mut secrets = secrets_with("open-sesame-and-more");
    let mut scrubber = Scrubber::default();
    scrubber.add("open-sesame");
    secrets.add_flow(Arc::new(scrubber));
    assert_eq!(preview_text("open-sesame-and-more open-sesame", &LONG, &secrets), "[redacted] [redacted]");
}

/// So the preview does not depend on the text after the cut.
#[test]
fn cuts_a_long_text_before_it_searches_for_secrets() {
    let secret = "twenty-letters-long!";
    let text = secret.repeat(1000);
    let preview = preview_value(&json!(text), &SHORT, &secrets_with(secret));
    assert_eq!(preview.preview, json!(format!("{}...[truncated]", "[redacted]".repeat(250))));
    assert_eq!((preview.size, preview.truncated), (40_000, true));
    // The replacement of a short secret is longer than the secret.
    let text = "12345678".repeat(625);
    let preview = preview_value(&json!(text), &SHORT, &secrets_with("12345678"));
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
    fn keeps_the_limits_and_hides_named_secrets_for_any_value(value in json_value(), limits in limits()) {
        let preview = preview_value(&value, &limits, &Secrets::default());
        if preview.preview.get("_notice").is_some() {
            prop_assert!(preview.truncated);
        } else {
            prop_assert!(json_bytes(&preview.preview) <= limits.bytes);
            prop_assert!(within(&preview.preview, &limits, 0), "{}", preview.preview);
            // Without a mark nothing is missing.
            prop_assert!(preview.truncated || without_secrets(&value) == preview.preview);
        }
    }

    // SECURITY: ui-preview
    #[test]
    fn never_shows_a_known_secret(value in json_value(), limits in limits(), offset in 0..5usize) {
        let secret = "swordfish-and-more";
        let text = format!("{}{secret}{secret}", "x".repeat(offset));
        let value = json!({"a": value, "text": text, (text.clone()): [text]});
        let preview = preview_value(&value, &limits, &secrets_with(secret)).preview.to_string();
        prop_assert!(!preview.contains("sword"), "{preview}");
    }
}

proptest! {
    /// A secret across the cut is not shown, not even its first letter.
    // SECURITY: ui-preview
    #[test]
    fn leaves_no_part_of_a_secret_at_the_cut(
        before in "[xé😀]{0,30}",
        secret in "[a-dü]{8,20}",
        after in "[xé😀]{0,30}",
        chars in 0..60usize,
    ) {
        let limits = Limits { chars, ..SHORT };
        let shown = preview_text(&format!("{before}{secret}{after}"), &limits, &secrets_with(&secret));
        let length = |text: &str| text.encode_utf16().count();
        let text = shown.strip_suffix("...[truncated]").unwrap_or(&shown);
        prop_assert!(length(text) <= chars);
        if chars < length(&before) + length(&secret) {
            prop_assert!(before.starts_with(text), "{shown}");
            prop_assert!(text == before || length(text) + 1 >= chars, "{shown}");
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
                let value = if is_secret_name(name) { json!("[REDACTED]") } else { without_secrets(value) };
                (name.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}
