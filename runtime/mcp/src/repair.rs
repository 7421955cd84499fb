//! Repairs messages that the library would read as something else.
//!
//! The library knows a result by its fields. A list with one wrong tool is no list for it, and with `_meta` it becomes
//! the empty result of a call: all tools would be lost. Without `_meta` the list arrives as it was sent.

use serde_json::Value;
use std::borrow::Cow;

/// A message, without the `_meta` of a list of tools.
pub(crate) fn repair(message: &[u8]) -> Cow<'_, [u8]> {
    let text = std::str::from_utf8(message).ok();
    text.and_then(repaired).map_or(Cow::Borrowed(message), |text| Cow::Owned(text.into_bytes()))
}

/// A message, without the `_meta` of a list of tools.
pub(crate) fn repair_text(message: String) -> String {
    repaired(&message).unwrap_or(message)
}

fn repaired(message: &str) -> Option<String> {
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
