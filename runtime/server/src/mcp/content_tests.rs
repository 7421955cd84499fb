//! Tests of the results that MCP clients get.

use super::{MAX_BLOCKS, content_blocks, value_result};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn of_output(output: &Value) -> Value {
    let result = content_blocks(output).unwrap_or_else(|| value_result(output));
    let mut json = serde_json::to_value(result).unwrap();
    json.as_object_mut().unwrap().remove("resultType");
    json
}

#[test]
fn a_value_is_text_and_an_object_structured_content_too() {
    assert_eq!(
        of_output(&json!("hi")),
        json!({"content": [{"type": "text", "text": "hi"}], "isError": false})
    );
    let object = of_output(&json!({"a": 1}));
    assert_eq!(
        (&object["content"][0]["text"], &object["structuredContent"]),
        (&json!("{\"a\":1}"), &json!({"a": 1}))
    );
    assert_eq!(of_output(&json!([1, 2]))["content"][0]["text"], "[1,2]");
    assert_eq!(of_output(&Value::Null)["content"][0]["text"], "null");
}

#[test]
fn content_blocks_of_a_flow_tool_are_passed_on() {
    let blocks = json!([
        {"type": "text", "text": "an image"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "test://a", "mimeType": "text/plain", "text": "t"}},
        {"type": "resource_link", "uri": "test://b", "name": "b"},
    ]);
    assert_eq!(of_output(&blocks)["content"], blocks);
    let whole = json!({"content": blocks, "structuredContent": {"a": 1}, "isError": true});
    assert_eq!(of_output(&whole), whole);
}

#[test]
fn what_is_no_valid_block_is_a_value() {
    for block in [
        json!({"type": "text"}),
        json!({"type": "image", "data": "not base64!", "mimeType": "image/png"}),
        json!({"type": "image", "data": "aGk=", "mimeType": "x"}),
        json!({"type": "image", "data": "aGk="}),
        json!({"type": "audio", "data": "a=Gk", "mimeType": "audio/wav"}),
        json!({"type": "resource", "resource": {"uri": "test://a"}}),
        json!({"type": "other", "text": "t"}),
        json!({"text": "t"}),
    ] {
        let list = json!([block]);
        assert_eq!(
            of_output(&list)["content"],
            json!([{"type": "text", "text": list.to_string()}]),
            "{block}"
        );
    }
    let many = Value::Array(vec![json!({"type": "text", "text": "t"}); MAX_BLOCKS + 1]);
    assert_eq!(of_output(&many)["content"].as_array().unwrap().len(), 1);
    // A record of another system that happens to have `content`.
    let record = json!({"content": [{"type": "text", "text": "t"}], "author": "me"});
    assert_eq!(of_output(&record)["structuredContent"], record);
}
