//! Conversations for the tests of wires, and the golden files their requests are kept in.
//!
//! `UPDATE_GOLDEN=1` writes the files again.

use crate::wire::{Chat, Format, Wire};
use pretty_assertions::assert_eq;
use redflow_contract::node_config::OnUnknown;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use redflow_ports::ToolChoice;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// What is asked, owned.
#[derive(Clone, Default)]
pub(crate) struct Sample {
    pub(crate) messages: Vec<Arc<ChatMessage>>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) choice: ToolChoice,
    pub(crate) json: bool,
    pub(crate) schema: Option<Box<RawValue>>,
    pub(crate) stream: bool,
    pub(crate) reasoning: bool,
}

impl Sample {
    pub(crate) fn chat(&self) -> Chat<'_> {
        Chat {
            messages: &self.messages,
            tools: &self.tools,
            tool_choice: self.choice,
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
        let mut out = Vec::new();
        wire.encode(&self.chat(), &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }
}

/// A conversation and nothing else.
pub(crate) fn of(messages: impl IntoIterator<Item = ChatMessage>) -> Sample {
    Sample { messages: messages.into_iter().map(Arc::new).collect(), ..Sample::default() }
}

pub(crate) fn system(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::System, text)
}

pub(crate) fn user(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::User, text)
}

pub(crate) fn model(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::Assistant, text)
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> RequestedCall {
    RequestedCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

pub(crate) fn calling(text: &str, calls: &[RequestedCall]) -> ChatMessage {
    ChatMessage { tool_calls: calls.to_vec(), ..model(text) }
}

pub(crate) fn result(id: &str, text: &str) -> ChatMessage {
    ChatMessage { tool_call_id: Some(id.to_owned()), ..ChatMessage::new(ChatRole::Tool, text) }
}

pub(crate) fn thinking(wire: &str, parts: &[Value], message: ChatMessage) -> ChatMessage {
    ChatMessage { reasoning: Some(OpaqueParts { wire: wire.to_owned(), parts: parts.to_vec() }), ..message }
}

pub(crate) fn tool(name: &str, description: &str, input_schema: Option<Value>) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema,
        node: name.into(),
        effect: None,
        timeout_ms: 1000,
        on_unknown: OnUnknown::default(),
    }
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    let schema = json!({
        "type": "object",
        "properties": {"expression": {"type": "string", "description": "Such as 2+2."}},
        "required": ["expression"],
        "additionalProperties": false,
    });
    vec![tool("calculator", "Evaluates an expression.", Some(schema)), tool("clock", "", None)]
}

/// Agent Core's first call.
pub(crate) fn first() -> Sample {
    let prompt = "You are an execution agent.\n\nAlways respond in valid JSON";
    Sample { json: true, ..of([system(prompt), user("What is 2+2? \"Quoted\", Grüße.\n")]) }
}

pub(crate) fn first_by_schema() -> Sample {
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["tool", "final"]},
            "message": {"type": ["string", "null"]},
        },
        "required": ["action", "message"],
        "additionalProperties": false,
    });
    Sample { schema: Some(serde_json::value::to_raw_value(&schema).unwrap()), ..first() }
}

/// Agent Core's second call: what came of the first is a user's message.
pub(crate) fn later() -> Sample {
    let action = r#"{"action":"tool","tool":"calculator","input":{"expression":"2+2"},"confidence":0.4}"#;
    let mut sample = first();
    sample.messages.push(Arc::new(model(action)));
    sample.messages.push(Arc::new(user(r#"{"success":true,"output":4}"#)));
    sample
}

/// A turn from a memory before the input, and before it the end of one whose beginning was forgotten.
pub(crate) fn recalled() -> Sample {
    of([
        system("Answer in short."),
        model("You are welcome."),
        user("My name is Ada."),
        model("Noted."),
        user("And who am I?"),
    ])
}

pub(crate) fn offered() -> Sample {
    let asked = of([system("Use the tools."), user("What is 2+2?")]);
    Sample { tools: tools(), choice: ToolChoice::Required, ..asked }
}

/// Two calls at once, of which one fails.
pub(crate) fn tool_turn() -> Sample {
    let calls =
        [call("toolu_1", "calculator", r#"{"expression":"1/0"}"#), call("toolu_2", "clock", "not JSON")];
    let mut sample = offered();
    sample.choice = ToolChoice::Auto;
    sample.messages.push(Arc::new(calling("I will look.", &calls)));
    sample.messages.push(Arc::new(result("toolu_1", r#"{"success":false,"error":"Division by zero."}"#)));
    sample.messages.push(Arc::new(result("toolu_2", r#"{"success":true,"output":"12:00"}"#)));
    sample
}

/// The same with what the model thought before.
pub(crate) fn thoughtful_turn(wire: &str, parts: &[Value]) -> Sample {
    let mut sample = Sample { reasoning: true, ..tool_turn() };
    let place = sample.messages.iter().position(|message| !message.tool_calls.is_empty()).unwrap();
    let message = ChatMessage::clone(&sample.messages[place]);
    sample.messages[place] = Arc::new(thinking(wire, parts, message));
    sample
}

pub(crate) fn check_golden(name: &str, wire: &dyn Wire, sample: &Sample) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(format!("{name}.json"));
    let body = sample.body(wire);
    let written = format!("{}\n", serde_json::to_string_pretty(&body).unwrap());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &written).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(body, serde_json::from_str::<Value>(&golden).unwrap_or_default(), "{name}");
    assert_eq!(written, golden, "{name}");
}
