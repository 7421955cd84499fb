//! The body of a request.
//!
//! Borrows everything and writes it at once. The API requires turns of the user and of the model, the user's first, and
//! as many results as the turn before has calls. So this module changes a conversation:
//! - Adjacent messages of one role become one turn. An empty turn becomes `(empty)`.
//! - Results have a turn of their own: Gemini 3 refuses a text or a picture beside them.
//! - A conversation that is empty or starts with the model gets a user turn `…` first.
//! - A call without a result gets one that says so. A result without a call is left out.
//! - An answer of this API goes back with its parts as they came. The first call of any other answer gets a text
//!   instead of a signature, with which the API does not check it.

use super::{Gemini, NAME, is_thought};
use crate::lenient::{Arguments, InputSchema, tool_name};
use crate::own_parts::{MessageRest, parts_of, text_at};
use crate::wire::{AnswerFormat, ChatRequest, Reasoning};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, Image, RequestedCall};
use redflow_ports::ToolChoice;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

const USER: &str = "user";
const MODEL: &str = "model";
/// The user turn before a conversation that starts with the model.
const OPENING: &str = "…";
/// The text of an empty turn, because the API refuses a turn without parts.
const EMPTY: &str = "(empty)";
/// The result of a call that has none.
const NO_RESULT: &str = "(no result)";
/// What the API takes instead of the signature of a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    contents: Turns<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Declarations<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    #[serde(skip_serializing_if = "GenerationConfig::is_empty")]
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: CallingConfig,
}

#[derive(Serialize)]
struct CallingConfig {
    mode: &'static str,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Schema<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

impl GenerationConfig<'_> {
    fn is_empty(&self) -> bool {
        *self == GenerationConfig::default()
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Schema<'a>(&'a RawValue);

impl PartialEq for Schema<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    thinking_level: &'static str,
}

impl<'a> RequestBody<'a> {
    pub(super) fn new(wire: &'a Gemini, chat: &ChatRequest<'a>) -> Self {
        let (system, messages) = match chat.messages.split_first() {
            Some((first, rest)) if first.role == ChatRole::System => (text_of(first), rest),
            _ => (None, chat.messages),
        };
        let mode = match chat.tool_choice {
            ToolChoice::Auto => "AUTO",
            ToolChoice::Required => "ANY",
            ToolChoice::None => "NONE",
        };
        let has_tools = !chat.tools.is_empty();
        let (response_mime_type, response_json_schema) = match chat.format {
            AnswerFormat::Text => (None, None),
            AnswerFormat::JsonObject => (Some("application/json"), None),
            AnswerFormat::JsonSchema { schema, .. } => (Some("application/json"), Some(Schema(schema))),
        };
        Self {
            system_instruction: system.map(|text| Instruction { parts: [Part::Text { text }] }),
            contents: Turns { messages, reasoning: chat.reasoning, needs_signatures: wire.needs_signatures },
            tools: has_tools.then_some([Declarations { function_declarations: Tools(chat.tools) }]),
            tool_config: has_tools.then_some(ToolConfig { function_calling_config: CallingConfig { mode } }),
            generation_config: GenerationConfig {
                temperature: wire.temperature,
                top_p: wire.top_p,
                top_k: wire.top_k,
                max_output_tokens: wire.max_output_tokens,
                seed: wire.seed,
                stop_sequences: &wire.stop,
                response_mime_type,
                response_json_schema,
                thinking_config: wire.thinking_level.map(|thinking_level| ThinkingConfig { thinking_level }),
            },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declarations<'a> {
    function_declarations: Tools<'a>,
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Declaration<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            description: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            parameters_json_schema: Option<InputSchema<'a>>,
        }
        serializer.collect_seq(self.0.iter().map(|tool| Declaration {
            name: &tool.name,
            description: &tool.description,
            parameters_json_schema: tool.input_schema.as_ref().map(|schema| InputSchema(Some(schema))),
        }))
    }
}

struct Turns<'a> {
    messages: &'a [Arc<ChatMessage>],
    reasoning: Reasoning,
    needs_signatures: bool,
}

impl Serialize for Turns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.messages;
        let mut turns = serializer.serialize_seq(None)?;
        if all.first().is_none_or(|first| is_assistant(first)) {
            turns.serialize_element(&Turn::new(USER, vec![Part::Text { text: OPENING }]))?;
        }
        let (mut previous, mut start) = (0, 0);
        for group in all.chunk_by(|one, next| is_assistant(one) == is_assistant(next)) {
            let end = start + group.len();
            if group.first().is_some_and(|first| is_assistant(first)) {
                turns.serialize_element(&Turn::new(MODEL, self.model_parts(start..end)))?;
            } else {
                let results = self.result_parts(previous..start, group);
                let others = user_parts(group);
                if !results.is_empty() {
                    turns.serialize_element(&Turn::new(USER, results))?;
                } else if others.is_empty() {
                    turns.serialize_element(&Turn::new(USER, Vec::new()))?;
                }
                if !others.is_empty() {
                    turns.serialize_element(&Turn::new(USER, others))?;
                }
            }
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

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

impl<'a> Turn<'a> {
    fn new(role: &'static str, mut parts: Vec<Part<'a>>) -> Self {
        if parts.is_empty() {
            parts.push(Part::Text { text: EMPTY });
        }
        Self { role, parts }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        inline_data: InlineData<'a>,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    #[serde(rename_all = "camelCase")]
    Result {
        function_response: CallResult<'a>,
    },
    /// As the provider sent it.
    Opaque(&'a Value),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'static str,
    data: &'a str,
}

impl<'a> From<&'a Image> for Part<'a> {
    fn from(image: &'a Image) -> Self {
        Self::Image { inline_data: InlineData { mime_type: image.mime.as_str(), data: &image.data } }
    }
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: Arguments<'a>,
}

#[derive(Serialize)]
struct CallResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: ResultObject<'a>,
}

/// The API takes only objects. It knows the keys `output` and `error`.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultObject<'a> {
    Object(&'a RawValue),
    Text { output: &'a str },
    Error { error: &'static str },
}

impl<'a> ResultObject<'a> {
    fn of(text: &'a str) -> Self {
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) if raw.get().starts_with('{') => Self::Object(raw),
            _ => Self::Text { output: text },
        }
    }
}

impl<'a> Turns<'a> {
    /// The parts of these messages of the model.
    fn model_parts(&self, turn: Range<usize>) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        for message in self.messages.get(turn).unwrap_or_default() {
            if let Some(own) = own_parts(message, self.reasoning) {
                parts.extend(own.iter().map(Part::Opaque));
                continue;
            }
            parts.extend(text_of(message).map(|text| Part::Text { text }));
            parts.extend(message.tool_calls.iter().enumerate().map(|(nth, call)| Part::Call {
                function_call: Call {
                    id: given_id(call),
                    name: tool_name(&call.name),
                    args: Arguments(&call.arguments),
                },
                // Of several calls at once, only the first one has a signature.
                thought_signature: (self.needs_signatures && nth == 0).then_some(NO_SIGNATURE),
            }));
        }
        parts
    }

    /// The results that these messages have for the calls of the previous turn.
    fn result_parts(&self, previous: Range<usize>, messages: &'a [Arc<ChatMessage>]) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        for message in self.messages.get(previous).unwrap_or_default() {
            let own = own_parts(message, self.reasoning);
            let mut own_calls = own.into_iter().flatten().filter_map(|part| part.get("functionCall"));
            for call in &message.tool_calls {
                let is_result = |message: &&Arc<ChatMessage>| message.tool_call_id.as_ref() == Some(&call.id);
                let response = match messages.iter().find(is_result) {
                    Some(result) => ResultObject::of(&result.content),
                    None => ResultObject::Error { error: NO_RESULT },
                };
                // The id and the name that this request has at the call.
                let (id, name) = match own_calls.next() {
                    Some(sent) => (text_at(sent, "id"), text_at(sent, "name").unwrap_or_default().into()),
                    None => (given_id(call), tool_name(&call.name)),
                };
                parts.push(Part::Result { function_response: CallResult { id, name, response } });
            }
        }
        parts
    }
}

/// What the user says in these messages.
fn user_parts(messages: &[Arc<ChatMessage>]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for message in messages.iter().filter(|message| message.role != ChatRole::Tool) {
        // Models read an image better before the text about it.
        parts.extend(message.images.iter().map(Part::from));
        parts.extend(text_of(message).map(|text| Part::Text { text }));
    }
    parts
}

fn given_id(call: &RequestedCall) -> Option<&str> {
    Some(call.id.as_str()).filter(|id| !id.is_empty())
}

/// The parts of an answer of this API, if the message still says the same.
fn own_parts(message: &ChatMessage, reasoning: Reasoning) -> Option<&[Value]> {
    let parts = parts_of(message, NAME, reasoning)?;
    let mut rest = MessageRest::of(message);
    for part in parts {
        if part.as_object().is_none_or(is_thought) {
            continue;
        }
        rest.take_text(text_at(part, "text").unwrap_or_default())?;
        if let Some(sent) = part.get("functionCall") {
            rest.take_call(text_at(sent, "name").unwrap_or_default(), sent.get("args"))?;
        }
    }
    (rest.is_empty() && !parts.is_empty()).then_some(parts)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
