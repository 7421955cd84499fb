//! Conversations both OpenAI wires are tested with, and the bodies that are kept of them.

use crate::wire::{Assemble, Chat, Format, ProviderError, Wire, WireError};
use pretty_assertions::assert_eq;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::node_config::OnUnknown;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use redflow_ports::ToolChoice;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// What a test asks.
pub(crate) struct Case {
    pub(crate) messages: Vec<Arc<ChatMessage>>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) tool_choice: ToolChoice,
    pub(crate) schema: Option<Box<RawValue>>,
    pub(crate) json: bool,
    pub(crate) stream: bool,
    pub(crate) reasoning: bool,
}

impl Case {
    pub(crate) fn new(messages: impl IntoIterator<Item = ChatMessage>) -> Self {
        Self {
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: vec![],
            tool_choice: ToolChoice::Auto,
            schema: None,
            json: false,
            stream: false,
            reasoning: false,
        }
    }

    /// An Agent Core's first call.
    pub(crate) fn first() -> Self {
        Self::new([system(), user("What is 12 * 7?")])
    }

    /// An AI Agent's call with tools.
    pub(crate) fn with_tools(messages: impl IntoIterator<Item = ChatMessage>) -> Self {
        let tools = vec![
            tool("calculator", "Calculates.", Some(expression())),
            tool("lookup", "Looks something up.", None),
        ];
        Self { tools, ..Self::new(messages) }
    }

    pub(crate) fn chat(&self) -> Chat<'_> {
        Chat {
            messages: &self.messages,
            tools: &self.tools,
            tool_choice: self.tool_choice,
            format: match &self.schema {
                Some(schema) => Format::JsonSchema(schema),
                None if self.json => Format::JsonObject,
                None => Format::Text,
            },
            stream: self.stream,
            reasoning: self.reasoning,
        }
    }

    pub(crate) fn body(&self, wire: &dyn Wire) -> Value {
        serde_json::from_slice(&self.bytes(wire)).unwrap()
    }

    fn bytes(&self, wire: &dyn Wire) -> Vec<u8> {
        let mut out = Vec::new();
        wire.encode(&self.chat(), &mut out).unwrap();
        out
    }

    /// Compares the body with the kept one, key order included; writes it with `UPDATE_GOLDEN=1`.
    pub(crate) fn golden(&self, wire: &dyn Wire, name: &str) {
        let bytes = self.bytes(wire);
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        // Nothing is lost on the way through a value: neither the order of keys nor one that is there twice.
        assert_eq!(serde_json::to_string(&body).unwrap(), String::from_utf8(bytes).unwrap());
        let shown = format!("{body:#}\n");
        let file = format!("{}/golden/{}-{name}.json", env!("CARGO_MANIFEST_DIR"), wire.name());
        if std::env::var("UPDATE_GOLDEN").is_ok_and(|on| on == "1") {
            std::fs::create_dir_all(Path::new(&file).parent().unwrap()).unwrap();
            std::fs::write(&file, &shown).unwrap();
        }
        assert_eq!(shown, std::fs::read_to_string(&file).unwrap(), "{file}");
    }
}

fn expression() -> Value {
    json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"], "additionalProperties": false})
}

pub(crate) fn tool(name: &str, description: &str, input_schema: Option<Value>) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema,
        node: name.into(),
        effect: None,
        timeout_ms: 1,
        on_unknown: OnUnknown::default(),
    }
}

pub(crate) fn action_schema() -> Option<Box<RawValue>> {
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["tool", "final"]},
            "tool": {"anyOf": [{"type": "string", "enum": ["calculator"]}, {"type": "null"}]},
            "input": {"anyOf": [expression(), {"type": "null"}]},
            "confidence": {"type": "number"},
            "message": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["action", "tool", "input", "confidence", "message"],
        "additionalProperties": false,
    });
    Some(to_raw_value(&schema).unwrap())
}

pub(crate) fn system() -> ChatMessage {
    ChatMessage::new(ChatRole::System, "Answer with one JSON object.")
}

pub(crate) fn user(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::User, text)
}

pub(crate) fn assistant(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::Assistant, text)
}

pub(crate) fn result(id: &str, text: &str) -> ChatMessage {
    ChatMessage { tool_call_id: Some(id.to_owned()), ..ChatMessage::new(ChatRole::Tool, text) }
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> RequestedCall {
    RequestedCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

pub(crate) fn calls(text: &str, calls: &[RequestedCall]) -> ChatMessage {
    ChatMessage { tool_calls: calls.to_vec(), ..assistant(text) }
}

pub(crate) fn opaque(wire: &str, parts: &[Value]) -> Option<OpaqueParts> {
    Some(OpaqueParts { wire: wire.to_owned(), parts: parts.to_vec() })
}

/// A whole turn: two calls at once, and what came of them.
pub(crate) fn tool_turn() -> Vec<ChatMessage> {
    let asked = [
        call("call_a", "calculator", r#"{"expression":"12 * 7"}"#),
        call("call_b", "lookup", r#"{"word":"seven"}"#),
    ];
    vec![
        system(),
        user("What is 12 * 7, and what is seven?"),
        calls("", &asked),
        result("call_a", r#"{"success":true,"output":84}"#),
        result("call_b", r#"{"success":false,"error":"\"seven\" is not there"}"#),
    ]
}

/// The bodies both wires keep.
pub(crate) fn goldens(wire: &dyn Wire) {
    let later = [
        assistant(
            r#"{"action":"tool","tool":"calculator","input":{"expression":"12 * 7"},"confidence":0.9}"#,
        ),
        user(r#"{"success":true,"output":84}"#),
    ];
    let recalled = [system(), user("Hi"), assistant("Hello."), user("Who am I?"), assistant("Nobody said.")];
    Case { schema: action_schema(), ..Case::first() }.golden(wire, "first-strict");
    Case { json: true, ..Case::first() }.golden(wire, "first-json");
    Case::first().golden(wire, "first-text");
    Case {
        schema: action_schema(),
        ..Case::new([system(), user("What is 12 * 7?")].into_iter().chain(later))
    }
    .golden(wire, "later");
    Case::new(recalled.into_iter().chain([user("And now?")])).golden(wire, "recalled");
    Case::with_tools([system(), user("What is 12 * 7?")]).golden(wire, "tools");
    Case::with_tools(tool_turn()).golden(wire, "tool-turn");
}

/// A stream of these events, named as said or not at all.
pub(crate) fn stream(wire: &dyn Wire, events: &[Value], reasoning: bool) -> Result<ModelAnswer, WireError> {
    let mut assembly = wire.assemble(reasoning);
    feed(&mut *assembly, events)?;
    assembly.finish()
}

/// Whether the last one was the end.
pub(crate) fn feed(assembly: &mut dyn Assemble, events: &[Value]) -> Result<bool, WireError> {
    let mut is_last = false;
    for event in events {
        assert!(!is_last, "an event after the last one: {event}");
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        is_last = assembly.event(event.get("type").and_then(Value::as_str), data.as_bytes())?;
    }
    Ok(is_last)
}

/// How bodies of failure are told: the same on both wires.
pub(crate) fn errors(wire: &dyn Wire) {
    let table = [
        (
            json!({"error": {"message": "No.", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}}),
            ("invalid_request_error", "model_not_found", "No."),
        ),
        (json!({"error": {"message": "No.", "type": null, "code": null}}), ("", "", "No.")),
        (json!({"error": {"message": "No.", "code": 400}}), ("", "400", "No.")),
        (json!({"error": "No."}), ("", "", "No.")),
        (json!({"message": "No."}), ("", "", "No.")),
        (
            json!({"object": "error", "message": "No.", "type": "BadRequestError", "code": 400}),
            ("BadRequestError", "400", "No."),
        ),
        (json!({"detail": "No."}), ("", "", "No.")),
        (json!({"detail": [{"loc": ["body"], "msg": "No.", "type": "missing"}]}), ("", "", "No.")),
        (json!([{"error": {"message": "No.", "code": 429}}]), ("", "429", "No.")),
        (
            json!({"error": {"code": "content_filter", "message": "No.", "status": 400, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
            ("", "content_filter", "No."),
        ),
        (json!({"error": {"message": "No.", "innererror": {"code": "Inner"}}}), ("", "Inner", "No.")),
        (json!({"error": {}}), ("", "", "")),
        (json!({"error": null}), ("", "", "")),
        (json!({"error": {"message": {"a": 1}, "code": [], "type": true}}), ("", "", "")),
        (json!([]), ("", "", "")),
        (json!(7), ("", "", "")),
    ];
    for (body, expected) in table {
        let error = wire.error(418, body.to_string().as_bytes());
        let told = (error.kind.as_str(), error.code.as_str(), error.message.as_str());
        assert_eq!((error.status, told), (418, expected), "{body}");
    }
    for body in [&b"<html>Bad Gateway</html>"[..], b"", b"\xff\xfe", b"{\"error\": {\"message\": \"x"] {
        assert_eq!(wire.error(502, body), ProviderError { status: 502, ..Default::default() });
    }
    let long =
        json!({"error": {"message": "é".repeat(9000), "type": "t".repeat(9000), "code": "c".repeat(9000)}});
    let error = wire.error(400, long.to_string().as_bytes());
    let sizes = [&error.message, &error.kind, &error.code].map(|text| text.chars().count());
    assert_eq!(sizes, [500, 100, 100]);
}

/// Cuts a text into pieces: after so many characters, again and again.
pub(crate) fn cut(text: &str, sizes: &[u8]) -> Vec<String> {
    let mut rest: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    for size in sizes {
        let size = usize::from(*size).min(rest.len());
        pieces.push(rest.drain(..size).collect());
    }
    pieces.push(rest.into_iter().collect());
    pieces
}

/// An error as a provider tells it.
pub(crate) fn provider(status: u16, kind: &str, code: &str, message: &str) -> WireError {
    let [kind, code, message] = [kind, code, message].map(str::to_owned);
    WireError::Provider(ProviderError { status, kind, code, message })
}
