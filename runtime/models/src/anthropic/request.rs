//! The body of a request.
//!
//! Borrows everything and writes it at once. The API requires turns that alternate, the user's first. A
//! result must follow each call, and ids must be unique. So this module changes a conversation:
//! - Adjacent messages of one role become one turn. An empty turn becomes `(empty)`.
//! - A conversation that is empty or starts with the model gets a user turn `…` first.
//! - A call without a result gets one that says so. A result without a call is left out.
//! - An answer of this API goes back with its blocks as they came, if the message still says the same.
//! - An id that the API would refuse is replaced by the position of the call.
//! - A conversation with calls needs tools. A request without tools names those that were called, and forbids
//!   to call them.

use super::{AnthropicMessages, NAME, Thinking, ThinkingDisplay};
use crate::fold_root::{strictness, tool_schema};
use crate::lenient::{Arguments, InputSchema, tool_name};
use crate::own_parts::{MessageRest, WithField, parts_of, text_at};
use crate::wire::{AnswerFormat, CacheLifetime, ChatRequest, Reasoning};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, Image, ImageType};
use redflow_ports::ToolChoice;
use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

const USER: &str = "user";
const ASSISTANT: &str = "assistant";
/// The user turn before a conversation that starts with the model.
const OPENING: &str = "…";
/// The text of an empty turn, because the API refuses empty text.
const EMPTY: &str = "(empty)";
/// The result of a call that has none.
const NO_RESULT: &str = "(no result)";

#[derive(Serialize)]
pub(super) struct RequestBody<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    messages: Turns<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoiceParam>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingParam>,
    #[serde(skip_serializing_if = "OutputConfig::is_empty")]
    output_config: OutputConfig<'a>,
    /// The API applies it to the last block, and finds the longest beginning that it has kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
    ttl: &'static str,
}

#[derive(Serialize)]
struct ToolChoiceParam {
    r#type: &'static str,
}

#[derive(Serialize)]
struct ThinkingParam {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display: Option<ThinkingDisplay>,
}

impl ThinkingParam {
    fn new(thinking: Thinking) -> Option<Self> {
        let (r#type, budget_tokens, display) = match thinking {
            Thinking::Unset => return None,
            Thinking::Adaptive { display } => ("adaptive", None, display),
            Thinking::Enabled { budget } => ("enabled", Some(budget), None),
            Thinking::Disabled => ("disabled", None, None),
        };
        Some(Self { r#type, budget_tokens, display })
    }
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

impl<'a> RequestBody<'a> {
    pub(super) fn new(wire: &'a AnthropicMessages, chat: &ChatRequest<'a>) -> Self {
        let (system, messages) = match chat.messages.split_first() {
            Some((first, rest)) if first.role == ChatRole::System => (text_of(first), rest),
            _ => (None, chat.messages),
        };
        let choice = match chat.tool_choice {
            ToolChoice::Auto => "auto",
            // With a budget for thinking, the API refuses requests that require a call.
            ToolChoice::Required if matches!(wire.thinking, Thinking::Enabled { .. }) => "auto",
            ToolChoice::Required => "any",
            ToolChoice::None => "none",
        };
        let tools = Tools::new(chat, wire.takes_any_root);
        let choice = if chat.tools.is_empty() { "none" } else { choice };
        let format = match chat.format {
            AnswerFormat::JsonSchema { schema, .. } => Some(OutputFormat { r#type: "json_schema", schema }),
            // The API has no JSON mode, so only the prompt requests JSON.
            AnswerFormat::JsonObject | AnswerFormat::Text => None,
        };
        Self {
            model: &wire.model,
            max_tokens: wire.max_tokens,
            system,
            messages: Turns { messages, reasoning: chat.reasoning },
            tool_choice: tools.is_some().then_some(ToolChoiceParam { r#type: choice }),
            tools,
            temperature: wire.temperature,
            top_p: wire.top_p,
            top_k: wire.top_k,
            stop_sequences: &wire.stop,
            thinking: ThinkingParam::new(wire.thinking),
            output_config: OutputConfig { effort: wire.effort, format },
            cache_control: chat.cache.map(|cache| CacheControl {
                r#type: "ephemeral",
                ttl: match cache.lifetime {
                    CacheLifetime::FiveMinutes => "5m",
                    CacheLifetime::OneHour => "1h",
                },
            }),
            stream: chat.stream,
        }
    }
}

struct Tools<'a> {
    declared: &'a [ToolSpec],
    /// The tools that were called, if none is declared.
    called: BTreeSet<Cow<'a, str>>,
    takes_any_root: bool,
}

impl<'a> Tools<'a> {
    fn new(chat: &ChatRequest<'a>, takes_any_root: bool) -> Option<Self> {
        let calls = chat.messages.iter().flat_map(|message| &message.tool_calls);
        let called = calls.filter(|_| chat.tools.is_empty()).map(|call| tool_name(&call.name)).collect();
        let tools = Self { declared: chat.tools, called, takes_any_root };
        (!tools.declared.is_empty() || !tools.called.is_empty()).then_some(tools)
    }
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tool<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            description: &'a str,
            input_schema: InputSchema<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            strict: Option<bool>,
        }
        let mut tools = serializer.serialize_seq(None)?;
        for tool in self.declared {
            let schema = tool_schema(tool, self.takes_any_root);
            tools.serialize_element(&Tool {
                name: &tool.name,
                description: &tool.description,
                strict: strictness(tool, schema.as_ref()),
                input_schema: InputSchema(schema.as_deref()),
            })?;
        }
        for name in &self.called {
            let input_schema = InputSchema(None);
            tools.serialize_element(&Tool { name, description: "", input_schema, strict: None })?;
        }
        tools.end()
    }
}

struct Turns<'a> {
    messages: &'a [Arc<ChatMessage>],
    reasoning: Reasoning,
}

impl Serialize for Turns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.messages;
        let mut turns = serializer.serialize_seq(None)?;
        if all.first().is_none_or(|first| is_assistant(first)) {
            turns.serialize_element(&Turn { role: USER, blocks: vec![Block::Text { text: OPENING }] })?;
        }
        let (mut previous, mut start) = (0, 0);
        for group in all.chunk_by(|one, next| is_assistant(one) == is_assistant(next)) {
            let end = start + group.len();
            let turn = if group.first().is_some_and(|first| is_assistant(first)) {
                Turn { role: ASSISTANT, blocks: assistant_blocks(all, start..end, self.reasoning) }
            } else {
                Turn { role: USER, blocks: user_blocks(all, previous..start, start..end) }
            };
            turns.serialize_element(&turn)?;
            (previous, start) = (start, end);
        }
        turns.end()
    }
}

fn is_assistant(message: &ChatMessage) -> bool {
    message.role == ChatRole::Assistant
}

/// The text, unless it is blank, which the API refuses.
fn text_of(message: &ChatMessage) -> Option<&str> {
    Some(message.content.as_str()).filter(|text| !text.trim().is_empty())
}

struct Turn<'a> {
    role: &'static str,
    blocks: Vec<Block<'a>>,
}

impl Serialize for Turn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut turn = serializer.serialize_struct("Turn", 2)?;
        turn.serialize_field("role", self.role)?;
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
    Image {
        source: ImageSource<'a>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Arguments<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A call as the provider sent it, with the input as the model wrote it.
    #[serde(untagged)]
    OwnCall(WithField<'a, Arguments<'a>>),
    /// Any other block as the provider sent it.
    #[serde(untagged)]
    Opaque(&'a Value),
}

#[derive(Serialize)]
struct ImageSource<'a> {
    r#type: &'static str,
    media_type: ImageType,
    data: &'a str,
}

/// The blocks of these messages of the model.
fn assistant_blocks(all: &[Arc<ChatMessage>], turn: Range<usize>, reasoning: Reasoning) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    for index in turn {
        let message = &all[index];
        if let Some(parts) = parts_of(message, NAME, reasoning) {
            // A journal of an earlier version has only the thoughts, which came first.
            if parts.iter().all(is_thought) {
                blocks.extend(parts.iter().map(Block::Opaque));
            } else if let Some(own) = own_blocks(all, index, parts) {
                blocks.extend(own);
                continue;
            }
        }
        blocks.extend(text_of(message).map(|text| Block::Text { text }));
        blocks.extend(message.tool_calls.iter().enumerate().map(|(nth, call)| Block::ToolUse {
            id: call_id(all, index, nth),
            name: tool_name(&call.name),
            input: Arguments(&call.arguments),
        }));
    }
    blocks
}

fn is_thought(part: &Value) -> bool {
    !matches!(text_at(part, "type"), Some("text" | "tool_use"))
}

/// The blocks of an answer of this API, if the message still says the same.
fn own_blocks<'a>(all: &'a [Arc<ChatMessage>], index: usize, parts: &'a [Value]) -> Option<Vec<Block<'a>>> {
    let mut rest = MessageRest::of(&all[index]);
    let (mut blocks, mut calls) = (Vec::with_capacity(parts.len()), 0);
    for part in parts {
        match text_at(part, "type") {
            Some("text") => {
                let text = text_at(part, "text").unwrap_or_default();
                rest.take_text(text)?;
                // The API sends blank texts, but refuses them.
                if text.trim().is_empty() {
                    continue;
                }
            }
            Some("tool_use") => {
                let call = rest.take_call(text_at(part, "name").unwrap_or_default(), part.get("input"))?;
                text_at(part, "id").filter(|id| *id == call_id(all, index, calls))?;
                calls += 1;
                let value = Arguments(&call.arguments);
                blocks.push(Block::OwnCall(WithField { part: part.as_object()?, key: "input", value }));
                continue;
            }
            _ => {}
        }
        blocks.push(Block::Opaque(part));
    }
    rest.is_empty().then_some(blocks)
}

/// The blocks of these messages of the user. The results for the calls of the previous turn come first.
fn user_blocks(all: &[Arc<ChatMessage>], previous: Range<usize>, turn: Range<usize>) -> Vec<Block<'_>> {
    let messages = &all[turn];
    let mut blocks = Vec::new();
    for index in previous {
        for (nth, call) in all[index].tool_calls.iter().enumerate() {
            let is_result = |message: &&Arc<ChatMessage>| message.tool_call_id.as_ref() == Some(&call.id);
            let (content, is_error) = match messages.iter().find(is_result) {
                Some(result) => (result.content.as_str(), is_failure(&result.content)),
                None => (NO_RESULT, true),
            };
            blocks.push(Block::ToolResult { tool_use_id: call_id(all, index, nth), content, is_error });
        }
    }
    for message in messages.iter().filter(|message| message.role != ChatRole::Tool) {
        // The provider advises to send images before their text.
        blocks.extend(message.images.iter().map(|Image { mime, data }| Block::Image {
            source: ImageSource { r#type: "base64", media_type: *mime, data },
        }));
        blocks.extend(text_of(message).map(|text| Block::Text { text }));
    }
    blocks
}

/// The id of a call, if the API accepts its characters and no earlier call has it. Else its position, which
/// stays the same when the conversation grows.
fn call_id(all: &[Arc<ChatMessage>], index: usize, nth: usize) -> Cow<'_, str> {
    let calls = &all[index].tool_calls;
    let id = calls[nth].id.as_str();
    let is_valid = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let mut earlier = all[..index].iter().flat_map(|message| &message.tool_calls).chain(&calls[..nth]);
    if is_valid && !id.is_empty() && !earlier.any(|call| call.id == id) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(format!("call_at_{index}_{nth}"))
    }
}

/// Whether the result of a tool reports a failure.
fn is_failure(result: &str) -> bool {
    #[derive(Deserialize)]
    struct ToolOutput {
        success: bool,
    }
    // serde would also accept an array.
    result.trim_start().starts_with('{')
        && serde_json::from_str(result).is_ok_and(|ToolOutput { success }| !success)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
