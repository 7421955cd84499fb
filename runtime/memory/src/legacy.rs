//! The legacy format of a conversation in Redis: one JSON array of messages in a string, without turns.

use crate::repair;
use redflow_contract::transcript::{ChatMessage, ChatRole, RequestedCall};
use serde::Deserialize;
use serde_json::Value;

/// A message in that format. Its other fields, such as its time, are not needed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LegacyMessage {
    role: ChatRole,
    /// Null in a message with calls.
    content: Option<String>,
    tool_call_id: Option<String>,
    tool_calls: Option<Vec<LegacyCall>>,
}

#[derive(Deserialize)]
struct LegacyCall {
    id: String,
    name: String,
    /// An object, or its JSON text.
    #[serde(default)]
    arguments: Value,
}

/// Parses the turns; none if the bytes have another format.
pub(crate) fn parse_turns(bytes: &[u8]) -> Option<Vec<Vec<ChatMessage>>> {
    let messages: Vec<LegacyMessage> = serde_json::from_slice(bytes).ok()?;
    let messages: Vec<ChatMessage> = messages.into_iter().map(LegacyMessage::into_chat_message).collect();
    Some(repair::split_turns(&messages))
}

impl LegacyMessage {
    fn into_chat_message(self) -> ChatMessage {
        ChatMessage {
            tool_calls: self
                .tool_calls
                .unwrap_or_default()
                .into_iter()
                .map(LegacyCall::into_requested_call)
                .collect(),
            tool_call_id: self.tool_call_id,
            ..ChatMessage::new(self.role, self.content.unwrap_or_default())
        }
    }
}

impl LegacyCall {
    fn into_requested_call(self) -> RequestedCall {
        let arguments = match self.arguments {
            Value::String(text) => text,
            Value::Null => "{}".to_owned(),
            other => other.to_string(),
        };
        RequestedCall { id: self.id, name: self.name, arguments }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_turns;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    fn turns(bytes: &str) -> Option<Value> {
        parse_turns(bytes.as_bytes()).map(|turns| serde_json::to_value(turns).unwrap())
    }

    #[test]
    fn an_array_of_messages_is_split_at_user_messages() {
        let array = json!([
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "2+2?", "timestamp": 5},
            {"role": "assistant", "content": null,
             "toolCalls": [{"id": "a", "name": "calculator", "arguments": {"expression": "2+2"}},
                           {"id": "b", "name": "calculator", "arguments": "{}"}, {"id": "c", "name": "x"}]},
            {"role": "tool", "content": "4", "toolCallId": "a"},
            {"role": "user", "content": "thanks"},
        ]);
        let expected = json!([
            [
                {"role": "user", "content": "2+2?"},
                {"role": "assistant", "content": "", "toolCalls": [
                    {"id": "a", "name": "calculator", "arguments": "{\"expression\":\"2+2\"}"},
                    {"id": "b", "name": "calculator", "arguments": "{}"},
                    {"id": "c", "name": "x", "arguments": "{}"}]},
                {"role": "tool", "content": "4", "toolCallId": "a"},
            ],
            [{"role": "user", "content": "thanks"}],
        ]);
        assert_eq!(turns(&array.to_string()), Some(expected));
    }

    #[test]
    fn answers_without_a_user_message_are_a_turn() {
        let answers = r#"[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]"#;
        let expected =
            json!([[{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]]);
        assert_eq!(turns(answers), Some(expected));
        assert_eq!(turns("[]"), Some(json!([])));
    }

    #[test]
    fn other_formats_are_refused() {
        let odd = ["", "{}", "5", "[", "[5]", r#"[{"content":"x"}]"#, r#"[{"role":"robot","content":"x"}]"#];
        for bytes in odd {
            assert_eq!(turns(bytes), None, "{bytes}");
        }
    }
}
