use super::{MAX_ERROR_BYTES, loose_result, result_of};
use pretty_assertions::assert_eq;
use redflow_contract::digest::Digest;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

fn output(sent: Value, most: usize) -> Value {
    let sent: CallToolResult = serde_json::from_value(sent).unwrap();
    result_of(sent, most).output.unwrap()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn structured_content_wins_and_a_single_text_stays_a_text() {
    let sent = json!({"content": [text("x")], "structuredContent": {"a": 1}});
    assert_eq!(output(sent, 1_000), json!({"a": 1}));
    assert_eq!(output(json!({"content": [text("{\"a\":1}")]}), 1_000), json!("{\"a\":1}"));
    assert_eq!(output(json!({"content": []}), 1_000), Value::Null);
    assert_eq!(output(json!({"content": [text("a"), text("b")]}), 1_000), json!([text("a"), text("b")]));
}

#[test]
fn bytes_never_reach_the_model_and_links_are_not_followed() {
    let sent = json!({"content": [
        {"type": "image", "data": "AAEC", "mimeType": "image/png"},
        {"type": "audio", "data": "%%%", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///etc/passwd", "name": "pass\u{202e}wd"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "hello"}},
        {"type": "resource", "resource": {"uri": "a:c", "blob": "AAEC", "mimeType": "x/y"}},
    ]});
    let sha256 = Digest::of(&[0, 1, 2]).to_hex();
    let expected = json!([
        {"type": "image", "mime": "image/png", "bytes": 3, "sha256": sha256},
        {"type": "audio", "mime": "audio/wav", "bytes": 0, "error": "the data is not base64"},
        {"type": "resource_link", "uri": "file:///etc/passwd", "name": "passwd"},
        {"type": "resource", "uri": "a:b", "text": "hello"},
        {"type": "resource", "mime": "x/y", "bytes": 3, "sha256": sha256, "uri": "a:c"},
    ]);
    assert_eq!(output(sent, 10_000), expected);
}

#[test]
fn a_long_text_is_cut_and_says_so() {
    let long = "\u{1}é".repeat(10_000);
    let cut = output(json!({"content": [text(&long)]}), 500);
    let sha256 = Digest::of(long.as_bytes()).to_hex();
    assert_eq!((&cut["truncated"], &cut["bytes"]), (&json!(true), &json!(long.len())));
    assert_eq!(cut["sha256"], json!(sha256));
    let kept = cut["text"].as_str().unwrap();
    assert!(long.starts_with(kept) && !kept.is_empty() && cut["text"].to_string().len() <= 500);
    let value = output(json!({"content": [], "structuredContent": vec!["x"; 1_000]}), 500);
    assert_eq!(value["truncated"], json!(true));
}

#[test]
fn many_blocks_are_bounded() {
    let sent = json!({"content": vec![text(&"x".repeat(90)); 10_000]});
    let blocks = output(sent, 1_000);
    let blocks = blocks.as_array().unwrap();
    assert!(blocks.len() < 12, "{}", blocks.len());
    assert_eq!(blocks.last().unwrap()["blocks"], json!(10_000 - blocks.len() + 1));
    let bytes: usize = blocks.iter().map(|block| block.to_string().len()).sum();
    assert!(bytes < 1_500, "{bytes}");
}

#[test]
fn a_failed_call_gives_its_reason() {
    let failed = |sent: Value| result_of(serde_json::from_value(sent).unwrap(), 100_000).error.unwrap();
    assert_eq!(failed(json!({"content": [text("no file")], "isError": true})), "no file");
    assert_eq!(failed(json!({"content": [], "isError": true})), "The tool failed and gives no reason.");
    assert_eq!(failed(json!({"content": [], "structuredContent": {"e": 1}, "isError": true})), "{\"e\":1}");
    let long = failed(json!({"content": [text(&"x".repeat(100_000))], "isError": true}));
    assert_eq!(long.len(), MAX_ERROR_BYTES + '…'.len_utf8());
}

#[test]
fn a_null_is_no_structured_content() {
    assert_eq!(output(json!({"content": [text("x")], "structuredContent": null}), 1_000), json!("x"));
}

#[test]
fn a_block_that_is_not_known_does_not_hide_the_result() {
    let strange = json!({"type": "hologram", "data": 1});
    let read = |sent: Value| loose_result(sent, 1_000);
    let result = read(json!({"content": [text("done"), strange]})).unwrap();
    assert_eq!((result.success, result.output), (true, Some(json!([text("done"), {"type": "unknown"}]))));
    let failed = read(json!({"content": [strange, text("no")], "isError": true})).unwrap();
    assert_eq!((failed.success, failed.error.as_deref()), (false, Some("no")));
    let structured = read(json!({"content": [strange], "structuredContent": {"a": 1}})).unwrap();
    assert_eq!(structured.output, Some(json!({"a": 1})));
    assert!(read(json!({"task": {"taskId": "1"}})).is_none() && read(json!(5)).is_none());
}
