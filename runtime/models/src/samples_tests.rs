//! Conversations for the tests of all wires, and the golden files of their requests.
//!
//! `UPDATE_GOLDEN=1` writes the files again.

use crate::wire::{AnswerFormat, CacheLifetime, CacheRequest, ChatRequest, Reasoning, SchemaKind, Wire};
use pretty_assertions::assert_eq;
use proptest::prelude::{Strategy, prop};
use redflow_contract::id::{InstanceId, NodeRef};
use redflow_contract::node::OnUnknown;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use redflow_ports::{CacheKey, ToolChoice};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// A [`ChatRequest`] that owns its parts.
#[derive(Clone, Default)]
pub(crate) struct Sample {
    pub(crate) messages: Vec<Arc<ChatMessage>>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) tool_choice: ToolChoice,
    pub(crate) json: bool,
    pub(crate) schema: Option<Box<RawValue>>,
    pub(crate) stream: bool,
    pub(crate) reasoning: Reasoning,
    pub(crate) cache: Option<CacheLifetime>,
}

/// The key of every sample with a cache.
fn cache_key() -> CacheKey<'static> {
    static AGENT: LazyLock<NodeRef> =
        LazyLock::new(|| NodeRef { instance: InstanceId::local(), node_id: "agent".into() });
    CacheKey { agent: &AGENT, session: Some("flow:ada") }
}

impl Sample {
    pub(crate) fn request(&self) -> ChatRequest<'_> {
        ChatRequest {
            messages: &self.messages,
            tools: &self.tools,
            tool_choice: self.tool_choice,
            format: match &self.schema {
                Some(schema) => AnswerFormat::JsonSchema { name: "action", schema, kind: SchemaKind::Strict },
                None if self.json => AnswerFormat::JsonObject,
                None => AnswerFormat::Text,
            },
            stream: self.stream,
            reasoning: self.reasoning,
            cache: self.cache.map(|lifetime| CacheRequest { key: Some(cache_key()), lifetime }),
        }
    }

    fn encode(&self, wire: &dyn Wire) -> Vec<u8> {
        let mut bytes = Vec::new();
        wire.encode(&self.request(), &mut bytes).unwrap();
        bytes
    }

    pub(crate) fn body(&self, wire: &dyn Wire) -> Value {
        serde_json::from_slice(&self.encode(wire)).unwrap()
    }

    /// Compares the body with the golden file of this name.
    pub(crate) fn check_golden(&self, wire: &dyn Wire, name: &str) {
        let bytes = self.encode(wire);
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        // The value shows every byte: it keeps the order of keys, and no key is there twice.
        assert_eq!(serde_json::to_string(&body).unwrap(), String::from_utf8(bytes).unwrap());
        let text = format!("{body:#}\n");
        let file = format!("{}/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(&file).unwrap_or_default(), "{file}");
    }
}

pub(crate) fn conversation(messages: impl IntoIterator<Item = ChatMessage>) -> Sample {
    Sample { messages: messages.into_iter().map(Arc::new).collect(), ..Sample::default() }
}

pub(crate) fn system(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::System, text)
}

pub(crate) fn user(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::User, text)
}

pub(crate) fn assistant(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::Assistant, text)
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> RequestedCall {
    RequestedCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

pub(crate) fn assistant_calls(text: &str, calls: &[RequestedCall]) -> ChatMessage {
    ChatMessage { tool_calls: calls.to_vec(), ..assistant(text) }
}

pub(crate) fn tool_result(id: &str, text: &str) -> ChatMessage {
    ChatMessage { tool_call_id: Some(id.to_owned()), ..ChatMessage::new(ChatRole::Tool, text) }
}

pub(crate) fn opaque(wire: &str, parts: &[Value]) -> Option<OpaqueParts> {
    Some(OpaqueParts::new(wire, parts.to_vec()))
}

pub(crate) fn with_reasoning(wire: &str, parts: &[Value], message: ChatMessage) -> ChatMessage {
    ChatMessage { reasoning: opaque(wire, parts), ..message }
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
        id: None,
        operation: None,
        digest: None,
        output_schema: None,
        retry: None,
        strict: None,
    }
}

pub(crate) fn two_tools() -> Vec<ToolSpec> {
    let schema = json!({
        "type": "object",
        "properties": {"expression": {"type": "string", "description": "Such as 2+2."}},
        "required": ["expression"],
        "additionalProperties": false,
    });
    vec![tool("calculator", "Evaluates an expression.", Some(schema)), tool("clock", "", None)]
}

/// The first request of Agent Core.
pub(crate) fn first_request() -> Sample {
    let prompt = "You are an execution agent.\n\nAlways respond in valid JSON";
    Sample { json: true, ..conversation([system(prompt), user("What is 2+2? \"Quoted\", Grüße.\n")]) }
}

pub(crate) fn first_request_with_schema() -> Sample {
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["tool", "final"]},
            "message": {"type": ["string", "null"]},
        },
        "required": ["action", "message"],
        "additionalProperties": false,
    });
    Sample { schema: Some(serde_json::value::to_raw_value(&schema).unwrap()), ..first_request() }
}

/// The second request of Agent Core, with the outcome of a tool call as a user message.
pub(crate) fn second_request() -> Sample {
    let action = r#"{"action":"tool","tool":"calculator","input":{"expression":"2+2"},"confidence":0.4}"#;
    let mut sample = first_request();
    sample.messages.push(Arc::new(assistant(action)));
    sample.messages.push(Arc::new(user(r#"{"success":true,"output":4}"#)));
    sample
}

/// A turn of a memory before the input, and before it the end of a turn whose start was trimmed.
pub(crate) fn request_with_memory() -> Sample {
    conversation([
        system("Answer in short."),
        assistant("You are welcome."),
        user("My name is Ada."),
        assistant("Noted."),
        user("And who am I?"),
    ])
}

pub(crate) fn request_with_tools() -> Sample {
    let messages = conversation([system("Use the tools."), user("What is 2+2?")]);
    Sample { tools: two_tools(), tool_choice: ToolChoice::Required, ..messages }
}

/// The first tool is strict, and the others are not.
pub(crate) fn with_strict(sample: Sample) -> Sample {
    let tools = sample.tools.iter().enumerate();
    let tools = tools.map(|(index, tool)| ToolSpec { strict: Some(index == 0), ..tool.clone() }).collect();
    Sample { tools, ..sample }
}

/// Two calls at once, of which one fails.
pub(crate) fn tool_turn() -> Sample {
    let calls =
        [call("toolu_1", "calculator", r#"{"expression":"1/0"}"#), call("toolu_2", "clock", "not JSON")];
    let mut sample = Sample { tool_choice: ToolChoice::Auto, ..request_with_tools() };
    let failure = r#"{"success":false,"error":"Division by zero."}"#;
    sample.messages.push(Arc::new(assistant_calls("I will look.", &calls)));
    sample.messages.push(Arc::new(tool_result("toolu_1", failure)));
    sample.messages.push(Arc::new(tool_result("toolu_2", r#"{"success":true,"output":"12:00"}"#)));
    sample
}

/// The same with the reasoning of the model before its calls.
pub(crate) fn tool_turn_with_reasoning(wire: &str, parts: &[Value]) -> Sample {
    let mut sample = Sample { reasoning: Reasoning::Keep, ..tool_turn() };
    let index = sample.messages.iter().position(|message| !message.tool_calls.is_empty()).unwrap();
    let message = ChatMessage::clone(&sample.messages[index]);
    sample.messages[index] = Arc::new(with_reasoning(wire, parts, message));
    sample
}

/// Two turns of an AI Agent: text with two calls and reasoning, a failed and a good result, an answer, and the
/// next message of the user.
pub(crate) fn two_turns(reasoning: Option<&OpaqueParts>) -> Sample {
    let mut sample = Sample { reasoning: Reasoning::Keep, ..tool_turn() };
    for message in &mut sample.messages {
        let message = Arc::make_mut(message);
        if !message.tool_calls.is_empty() {
            message.reasoning = reasoning.cloned();
            // The other golden bodies have invalid arguments.
            message.tool_calls[1].arguments = "{}".to_owned();
        }
    }
    sample.messages.push(Arc::new(assistant("It is noon, and 1/0 has no value.")));
    sample.messages.push(Arc::new(user("Thank you. And 2+2?")));
    sample
}

/// The parts of a streamed text.
pub(crate) fn text_parts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ -~äß€😀\n\"\\\\]{0,6}", 0..6)
}

pub(crate) fn as_strs(parts: &[String]) -> Vec<&str> {
    parts.iter().map(String::as_str).collect()
}
