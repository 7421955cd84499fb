use super::{MAX_ERROR_BYTES, loose_result, result_of};
use crate::schema::OutputSchema;
use pretty_assertions::assert_eq;
use redflow_contract::code::ToolCode;
use redflow_contract::digest::Digest;
use redflow_contract::transcript::{Image, ImageType};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

fn output(sent: Value, most: usize) -> Value {
    let sent: CallToolResult = serde_json::from_value(sent).unwrap();
    result_of(sent, most, None).output.unwrap()
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

// SECURITY: mcp-declined
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
    let failed = |sent: Value| result_of(serde_json::from_value(sent).unwrap(), 100_000, None).error.unwrap();
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
    let read = |sent: Value| loose_result(sent, 1_000, None);
    let result = read(json!({"content": [text("done"), strange]})).unwrap();
    assert_eq!((result.success, result.output), (true, Some(json!([text("done"), {"type": "unknown"}]))));
    let failed = read(json!({"content": [strange, text("no")], "isError": true})).unwrap();
    assert_eq!((failed.success, failed.error.as_deref()), (false, Some("no")));
    let structured = read(json!({"content": [strange], "structuredContent": {"a": 1}})).unwrap();
    assert_eq!(structured.output, Some(json!({"a": 1})));
    assert!(read(json!({"task": {"taskId": "1"}})).is_none() && read(json!(5)).is_none());
}

#[test]
fn a_promised_output_is_checked_before_it_is_cut() {
    let schema =
        json!({"type": "object", "required": ["content"], "properties": {"content": {"type": "string"}}});
    let schema = OutputSchema::compile(&schema).unwrap();
    let both = |sent: Value, most: usize| {
        let known: CallToolResult = serde_json::from_value(sent.clone()).unwrap();
        let result = result_of(known, most, Some(&schema));
        assert_eq!(loose_result(sent, most, Some(&schema)).unwrap(), result);
        result
    };
    let long = json!({"content": "x".repeat(10_000)});
    let follows = json!({"content": [text("for people")], "structuredContent": long});
    assert_eq!(both(follows.clone(), 20_000).output, Some(long.clone()));
    let cut = both(follows, 500);
    let value = cut.output.unwrap();
    assert_eq!((cut.success, cut.code, &value["truncated"]), (true, None, &json!(true)));
    assert!(value["text"].as_str().unwrap().starts_with("{\"content\":\"xxx"), "{value}");
    // An older server sends the same as a text.
    let as_text = json!({"content": [text(&long.to_string())]});
    assert_eq!(both(as_text.clone(), 20_000).output, Some(long));
    assert_eq!(both(as_text, 500).output.unwrap()["truncated"], json!(true));

    let rows = [
        (
            json!({"content": [text("x")], "structuredContent": {"content": 1}}),
            "The value at `/content` breaks",
        ),
        (
            json!({"content": [text("x")], "structuredContent": {"other": "x".repeat(10_000)}}),
            "breaks the rule `required`",
        ),
        (json!({"content": [text("[1]")]}), "breaks the rule `type`"),
        (json!({"content": [text("the file")]}), "no structured content"),
        (json!({"content": [text("{\"content\":"), text("\"x\"}")]}), "no structured content"),
        (json!({"content": []}), "no structured content"),
        (json!({"content": [], "structuredContent": null}), "no structured content"),
    ];
    for (sent, expected) in rows {
        let result = both(sent.clone(), 500);
        let error = result.error.unwrap();
        assert_eq!(
            (result.success, result.code, result.output),
            (false, Some(ToolCode::ToolOutputInvalid), None)
        );
        assert!(error.starts_with("The call was made, but") && error.contains(expected), "{sent}: {error}");
        assert!(error.len() < 400, "{error}");
    }
    // A failed call owes no output.
    let failed = both(json!({"content": [text("no file")], "isError": true}), 500);
    assert_eq!((failed.code, failed.error.as_deref()), (None, Some("no file")));
}

/// An image of one pixel.
const GIF: &str = "R0lGODlhAQABAIAAAA==";

#[test]
fn images_come_beside_the_output_with_the_format_of_their_bytes() {
    let image = |data: &str, mime: &str| json!({"type": "image", "data": data, "mimeType": mime});
    let gif = || Image { mime: ImageType::Gif, data: GIF.into() };
    let sent = json!({"content": [text("Look."), image(GIF, "image/png"), image("AAEC", "image/bmp"), image(GIF, "")]});
    let of_library = result_of(serde_json::from_value(sent.clone()).unwrap(), 1_000, None);
    let mut unknown = sent;
    unknown["content"].as_array_mut().unwrap().push(json!({"type": "hologram"}));
    for result in [of_library, loose_result(unknown, 1_000, None).unwrap()] {
        assert_eq!(result.images, [gif(), gif()]);
        assert_eq!(
            result.note.as_deref(),
            Some(
                "Image 2 of the output was left out: it is no PNG, JPEG, GIF or WebP file; convert it to one of these \
                 formats."
            )
        );
        let output = result.output.unwrap();
        assert_eq!((&output[1]["bytes"], output.to_string().contains(GIF)), (&json!(13), false));
    }
    // Also beside structured content, but not in a failure.
    let structured = json!({"content": [image(GIF, "image/gif")], "structuredContent": {"a": 1}});
    let result = result_of(serde_json::from_value(structured).unwrap(), 1_000, None);
    assert_eq!((result.output, result.images), (Some(json!({"a": 1})), vec![gif()]));
    let failed = json!({"content": [image(GIF, "image/gif")], "isError": true});
    let result = result_of(serde_json::from_value(failed).unwrap(), 1_000, None);
    assert_eq!((result.images, result.note), (Vec::new(), None));
    // The note is bounded.
    let many = json!({"content": vec![image("AAEC", "x/y"); 100]});
    let note = result_of(serde_json::from_value(many).unwrap(), 1_000, None).note.unwrap();
    assert!(note.ends_with("Further unusable images were left out: 96.") && note.len() < 1_000, "{note}");
}
