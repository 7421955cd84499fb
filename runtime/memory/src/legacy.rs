//! The form before the list: one JSON array of messages in a string, without turns.

use crate::repair;
use redflow_contract::transcript::{ChatMessage, ChatRole, RequestedCall};
use serde::Deserialize;
use serde_json::Value;

/// A message there. What else stands in it, such as its time, is of no use here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    role: ChatRole,
    /// Null beside calls.
    content: Option<String>,
    tool_call_id: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    name: String,
    /// An object, or its text.
    #[serde(default)]
    arguments: Value,
}

/// The turns of it; none if it is no such array.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<Vec<ChatMessage>>> {
    let messages: Vec<Message> = serde_json::from_slice(bytes).ok()?;
    let messages: Vec<ChatMessage> = messages.into_iter().map(Message::into_chat).collect();
    Some(repair::cut(&messages))
}

impl Message {
    fn into_chat(self) -> ChatMessage {
        ChatMessage {
            tool_calls: self.tool_calls.unwrap_or_default().into_iter().map(Call::into_requested).collect(),
            tool_call_id: self.tool_call_id,
            ..ChatMessage::new(self.role, self.content.unwrap_or_default())
        }
    }
}

impl Call {
    fn into_requested(self) -> RequestedCall {
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
    use super::read;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    fn turns(bytes: &str) -> Option<Value> {
        read(bytes.as_bytes()).map(|turns| serde_json::to_value(turns).unwrap())
    }

    #[test]
    fn an_array_of_messages_is_cut_at_user_messages() {
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
    fn answers_alone_are_a_turn() {
        let answers = r#"[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]"#;
        let expected =
            json!([[{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]]);
        assert_eq!(turns(answers), Some(expected));
        assert_eq!(turns("[]"), Some(json!([])));
    }

    #[test]
    fn anything_else_is_none() {
        let odd = ["", "{}", "5", "[", "[5]", r#"[{"content":"x"}]"#, r#"[{"role":"robot","content":"x"}]"#];
        for bytes in odd {
            assert_eq!(turns(bytes), None, "{bytes}");
        }
    }
}
