//! Repairs messages that the library would read as something else.
//!
//! It reads an integer of more than 64 bits as another number, so such a one becomes a text of its digits. Of a key that an
//! object has twice it reads the last one, so such an answer becomes an error. The library knows a result by its fields. A list with one wrong tool is no list for it, and with `_meta` it becomes
//! the empty result of a call: all tools would be lost. Without `_meta` the list arrives as it was sent.

use redflow_contract::json::{JsonLimits, JsonProblem, MAX_DEPTH, parse_exact, quote_changed_integers};
use rmcp::model::ErrorCode;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The code of an answer that has a key twice. Servers do not use it.
pub(crate) const AMBIGUOUS_ANSWER: ErrorCode = ErrorCode(-32_098);

const AMBIGUOUS: &str = "the answer of the server has the same key twice in an object";

/// A message as it was meant.
pub(crate) fn repair(message: &[u8]) -> Cow<'_, [u8]> {
    let text = std::str::from_utf8(message).ok();
    text.and_then(repaired).map_or(Cow::Borrowed(message), |text| Cow::Owned(text.into_bytes()))
}

/// A message as it was meant.
pub(crate) fn repair_text(message: String) -> String {
    repaired(&message).unwrap_or(message)
}

fn repaired(message: &str) -> Option<String> {
    let quoted = quote_changed_integers(message);
    let exact = quoted.as_deref().unwrap_or(message);
    ambiguity_error(exact).or_else(|| without_meta(exact)).or(quoted)
}

/// The answer to the same request that says that it has a key twice; none if it has not.
fn ambiguity_error(message: &str) -> Option<String> {
    let limits = JsonLimits { max_bytes: message.len(), max_depth: MAX_DEPTH };
    let Err(JsonProblem::DuplicateKeys { .. }) = parse_exact(message.as_bytes(), limits) else { return None };
    let mut sent: Value = serde_json::from_str(message).ok()?;
    // A request of the server is no answer.
    if sent.get("method").is_some() {
        return None;
    }
    let id = sent.get_mut("id")?.take();
    let error = json!({"code": AMBIGUOUS_ANSWER, "message": AMBIGUOUS});
    Some(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
}

/// A message, without the `_meta` of a list of tools.
fn without_meta(message: &str) -> Option<String> {
    if !message.contains("\"tools\"") || !message.contains("\"_meta\"") {
        return None;
    }
    let mut value: Value = serde_json::from_str(message).ok()?;
    let result = value.get_mut("result")?.as_object_mut()?;
    if !result.get("tools").is_some_and(Value::is_array) {
        return None;
    }
    result.remove("_meta")?;
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::{repair, repair_text};
    use serde_json::{Value, json};

    fn repaired(message: &Value) -> Value {
        let bytes = serde_json::from_slice(&repair(message.to_string().as_bytes())).unwrap();
        let text: Value = serde_json::from_str(&repair_text(message.to_string())).unwrap();
        assert_eq!(text, bytes);
        bytes
    }

    #[test]
    fn large_integers_keep_their_digits_and_a_key_twice_is_an_error() {
        let large = "123456789012345678901234567890";
        let sent = format!(
            r#"{{"id":7,"result":{{"a":[{large},-{large}],"b":18446744073709551615,"c":"{large}"}}}}"#
        );
        let kept = format!(
            r#"{{"id":7,"result":{{"a":["{large}","-{large}"],"b":18446744073709551615,"c":"{large}"}}}}"#
        );
        assert_eq!(repair_text(sent.clone()), kept);
        assert_eq!(&*repair(sent.as_bytes()), kept.as_bytes());
        for sent in
            [r#"{"id":7,"result":{"a":{"x":1,"x":2}}}"#, r#"{"id":7,"result":{"a":1},"result":{"a":2}}"#]
        {
            let read: Value = serde_json::from_str(&repair_text(sent.to_owned())).unwrap();
            assert_eq!((&read["id"], &read["error"]["code"]), (&json!(7), &json!(-32_098)));
            assert_eq!(read.get("result"), None);
        }
        let request = r#"{"id":7,"method":"ping","params":{"x":1,"x":2}}"#;
        assert_eq!(repair_text(request.to_owned()), request);
    }

    #[test]
    fn only_the_meta_of_a_list_of_tools_is_dropped() {
        let tools = json!([{"name": "a", "_meta": {"kept": 1}}]);
        let list = json!({"id": 1, "result": {"tools": tools, "_meta": {"x": 1}, "nextCursor": "2"}});
        assert_eq!(repaired(&list), json!({"id": 1, "result": {"tools": tools, "nextCursor": "2"}}));
        for other in [
            json!({"id": 1, "result": {"content": [{"type": "text", "text": "\"tools\""}], "_meta": {"x": 1}}}),
            json!({"id": 1, "result": {"capabilities": {"tools": {}}, "_meta": {"x": 1}}}),
            json!({"method": "tools", "params": {"_meta": {"tools": []}}}),
        ] {
            assert_eq!(repaired(&other), other);
        }
        assert_eq!(&*repair(b"\xff\"tools\"\"_meta\""), b"\xff\"tools\"\"_meta\"");
    }
}
