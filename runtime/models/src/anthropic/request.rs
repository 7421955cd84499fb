//! The body of a request.
//!
//! Borrows everything and writes it in one go. The API wants turns that alternate and begin with the user's, a
//! result for every call right after it, and ids that occur once. A conversation is brought into that shape:
//! - neighbouring messages of one side become one turn; a turn that says nothing says `(empty)`;
//! - a conversation that begins with the model, or not at all, gets a user's `…` before it;
//! - a call without a result gets one that says so; a result without a call is left out;
//! - an id of another provider's, if it would be refused, is replaced by its place.

use super::{AnthropicMessages, NAME};
use crate::loose::{Arguments, InputSchema};
use crate::wire::{Chat, Format};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_ports::ToolChoice;
use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// What the user said before a conversation that begins with the model.
const OPENING: &str = "…";
/// What a turn says that says nothing: empty text is refused.
const EMPTY: &str = "(empty)";
/// What came of a call that has no result.
const NO_RESULT: &str = "(no result)";

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    messages: Turns<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "OutputConfig::is_empty")]
    output_config: OutputConfig<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
struct Kind {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
    budget_tokens: u32,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'a>>,
}

#[derive(Serialize)]
struct OutputFormat<'a> {
    r#type: &'static str,
    schema: &'a RawValue,
}

impl OutputConfig<'_> {
    fn is_empty(&self) -> bool {
        self.effort.is_none() && self.format.is_none()
    }
}

impl<'a> Body<'a> {
    pub(super) fn new(wire: &'a AnthropicMessages, chat: &Chat<'a>) -> Self {
        let (system, messages) = match chat.messages.split_first() {
            Some((first, rest)) if first.role == ChatRole::System => (said(first), rest),
            _ => (None, chat.messages),
        };
        let choice = match chat.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::Required => "any",
            ToolChoice::None => "none",
        };
        let with_tools = !chat.tools.is_empty();
        let format = match chat.format {
            Format::JsonSchema(schema) => Some(OutputFormat { r#type: "json_schema", schema }),
            // There is no JSON mode; the prompt alone says what is wanted.
            Format::JsonObject | Format::Text => None,
        };
        Self {
            model: &wire.model,
            max_tokens: wire.max_tokens,
            system,
            messages: Turns { all: messages, reasoning: chat.reasoning },
            tools: with_tools.then_some(Tools(chat.tools)),
            tool_choice: with_tools.then_some(Kind { r#type: choice }),
            temperature: wire.temperature,
            top_p: wire.top_p,
            top_k: wire.top_k,
            stop_sequences: &wire.stop,
            thinking: wire.thinking_budget.map(|budget_tokens| Thinking { r#type: "enabled", budget_tokens }),
            output_config: OutputConfig { effort: wire.effort, format },
            stream: chat.stream,
        }
    }
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tool<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            description: &'a str,
            input_schema: InputSchema<'a>,
        }
        serializer.collect_seq(self.0.iter().map(|tool| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema: InputSchema(tool.input_schema.as_ref()),
        }))
    }
}

struct Turns<'a> {
    all: &'a [Arc<ChatMessage>],
    reasoning: bool,
}

impl Serialize for Turns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.all;
        let mut turns = serializer.serialize_seq(None)?;
        if all.first().is_none_or(|first| of_model(first)) {
            turns
                .serialize_element(&Turn { by_model: false, blocks: vec![Block::Text { text: OPENING }] })?;
        }
        let (mut before, mut from) = (0, 0);
        for group in all.chunk_by(|one, next| of_model(one) == of_model(next)) {
            let to = from + group.len();
            let by_model = group.first().is_some_and(|first| of_model(first));
            let blocks = if by_model {
                model_blocks(all, from, to, self.reasoning)
            } else {
                user_blocks(all, before, from, to)
            };
            turns.serialize_element(&Turn { by_model, blocks })?;
            (before, from) = (from, to);
        }
        turns.end()
    }
}

fn of_model(message: &ChatMessage) -> bool {
    message.role == ChatRole::Assistant
}

/// Its text, unless that is empty or blank: both are refused.
fn said(message: &ChatMessage) -> Option<&str> {
    Some(message.content.as_str()).filter(|text| !text.trim().is_empty())
}

struct Turn<'a> {
    by_model: bool,
    blocks: Vec<Block<'a>>,
}

impl Serialize for Turn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut turn = serializer.serialize_struct("Turn", 2)?;
        turn.serialize_field("role", if self.by_model { "assistant" } else { "user" })?;
        match self.blocks.as_slice() {
            [] => turn.serialize_field("content", EMPTY)?,
            [Block::Text { text }] => turn.serialize_field("content", text)?,
            blocks => turn.serialize_field("content", blocks)?,
        }
        turn.end()
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Arguments<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Opaque(&'a Value),
}

/// What the model said in the messages `from..to`.
fn model_blocks(all: &[Arc<ChatMessage>], from: usize, to: usize, reasoning: bool) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    for at in from..to {
        let message = &all[at];
        let opaque = message.reasoning.iter().filter(|opaque| reasoning && opaque.wire == NAME);
        blocks.extend(opaque.flat_map(|opaque| &opaque.parts).map(Block::Opaque));
        blocks.extend(said(message).map(|text| Block::Text { text }));
        blocks.extend(message.tool_calls.iter().enumerate().map(|(nth, call)| Block::ToolUse {
            id: id_of(all, at, nth),
            name: &call.name,
            input: Arguments(&call.arguments),
        }));
    }
    blocks
}

/// What the model is told in the messages `from..to`: first what came of its calls in `before..from`.
fn user_blocks(all: &[Arc<ChatMessage>], before: usize, from: usize, to: usize) -> Vec<Block<'_>> {
    let told = &all[from..to];
    let mut blocks = Vec::new();
    for at in before..from {
        for (nth, call) in all[at].tool_calls.iter().enumerate() {
            let is_its = |message: &&Arc<ChatMessage>| message.tool_call_id.as_ref() == Some(&call.id);
            let (content, is_error) = match told.iter().find(is_its) {
                Some(result) => (result.content.as_str(), is_failure(&result.content)),
                None => (NO_RESULT, true),
            };
            blocks.push(Block::ToolResult { tool_use_id: id_of(all, at, nth), content, is_error });
        }
    }
    let texts = told.iter().filter(|message| message.role != ChatRole::Tool);
    blocks.extend(texts.filter_map(|message| said(message)).map(|text| Block::Text { text }));
    blocks
}

/// A call's id, if the API takes it: a few characters only, and no call before has it. Else its place, which
/// stays the same as the conversation grows.
fn id_of(all: &[Arc<ChatMessage>], at: usize, nth: usize) -> Cow<'_, str> {
    let calls = &all[at].tool_calls;
    let id = calls[nth].id.as_str();
    let clean = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let mut earlier = all[..at].iter().flat_map(|message| &message.tool_calls).chain(&calls[..nth]);
    if clean && !id.is_empty() && !earlier.any(|call| call.id == id) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(format!("call_at_{at}_{nth}"))
    }
}

/// Whether an observation says that the call failed.
fn is_failure(observation: &str) -> bool {
    #[derive(Deserialize)]
    struct Observation {
        success: bool,
    }
    // An array would be read too.
    observation.trim_start().starts_with('{')
        && serde_json::from_str(observation).is_ok_and(|Observation { success }| !success)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
