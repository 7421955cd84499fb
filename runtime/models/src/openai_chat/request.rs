//! The body of a request.

use super::{MAX_ID, NAME, OpenaiChat};
use crate::answer_text::without_thoughts;
use crate::capability::{Family, ModelName};
use crate::data_url::DataUrl;
use crate::fold_root::{strictness, tool_schema};
use crate::lenient::tool_name;
use crate::openai::{
    IterList, Text, sent_arguments, serialize_cache, serialize_some, serialize_tool, short_id,
    tool_choice_name,
};
use crate::own_parts::parts_of;
use crate::wire::{AnswerFormat, ChatRequest, Reasoning, Wire as _};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, RequestedCall};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The reasoning field that most servers of this wire expect back.
const REASONING_FIELD: &str = "reasoning_content";

/// What the model seems to have said to the results of its calls, for servers that want an answer to them.
static RESULT_ANSWER: LazyLock<ChatMessage> =
    LazyLock::new(|| ChatMessage::new(ChatRole::Assistant, "I have the results."));

pub(super) struct Request<'a> {
    pub(super) wire: &'a OpenaiChat,
    pub(super) chat: &'a ChatRequest<'a>,
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { wire, chat } = *self;
        let (legacy_limit, limit) =
            if wire.legacy_max_tokens { (wire.max_tokens, None) } else { (None, wire.max_tokens) };
        let format = match chat.format {
            AnswerFormat::Text => None,
            AnswerFormat::JsonObject => Some(ResponseFormat::JsonObject),
            AnswerFormat::JsonSchema { name, schema, .. } => Some(ResponseFormat::JsonSchema {
                json_schema: JsonSchemaParam { name, schema, strict: true },
            }),
        };
        let reasoning = if wire.refuses_reasoning { Reasoning::Discard } else { chat.reasoning };
        let has_tools = !chat.tools.is_empty();
        let fills_reasoning = wire.fills_reasoning && has_tools;
        let messages = chat.messages.iter().enumerate().flat_map(|(index, message)| {
            let follows_result = || {
                let before = index.checked_sub(1).and_then(|before| chat.messages.get(before));
                message.role == ChatRole::User && before.is_some_and(|before| before.role == ChatRole::Tool)
            };
            let answer = (follows_result() && must_answer_results(wire)).then_some(&*RESULT_ANSWER);
            answer.into_iter().chain([&**message]).map(|message| MessageParam {
                message,
                kept: kept_fields(message, wire.name(), reasoning),
                fills_reasoning: fills_reasoning && message.role == ChatRole::Assistant,
            })
        });
        let usage = (chat.stream && wire.stream_usage).then_some(StreamOptions { include_usage: true });

        let tools = chat.tools.iter().map(|tool| ToolParam { tool, takes_any_root: wire.takes_any_root });
        let tools = has_tools.then_some(IterList(tools));

        let mut map = serializer.serialize_map(None)?;
        serialize_some(&mut map, "model", wire.model.as_deref())?;
        serialize_some(&mut map, "messages", Some(IterList(messages)))?;
        serialize_some(&mut map, "tools", tools)?;
        serialize_some(&mut map, "tool_choice", has_tools.then(|| tool_choice_name(chat.tool_choice)))?;
        serialize_some(&mut map, "response_format", format)?;
        serialize_some(&mut map, "max_tokens", legacy_limit)?;
        serialize_some(&mut map, "max_completion_tokens", limit)?;
        serialize_some(&mut map, "temperature", wire.temperature)?;
        serialize_some(&mut map, "top_p", wire.top_p)?;
        serialize_some(&mut map, "frequency_penalty", wire.frequency_penalty)?;
        serialize_some(&mut map, "presence_penalty", wire.presence_penalty)?;
        serialize_some(&mut map, "seed", wire.seed)?;
        serialize_some(&mut map, "stop", Some(&wire.stop).filter(|stop| !stop.is_empty()))?;
        serialize_some(&mut map, "reasoning_effort", wire.reasoning_effort)?;
        serialize_cache(&mut map, chat.cache)?;
        serialize_some(&mut map, "stream", chat.stream.then_some(true))?;
        serialize_some(&mut map, "stream_options", usage)?;
        map.end()
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: JsonSchemaParam<'a> },
}

#[derive(Serialize)]
struct JsonSchemaParam<'a> {
    name: &'static str,
    schema: &'a RawValue,
    strict: bool,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct ToolParam<'a> {
    tool: &'a ToolSpec,
    takes_any_root: bool,
}

impl Serialize for ToolParam<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct FunctionParam<'a>(&'a ToolParam<'a>);
        impl Serialize for FunctionParam<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let ToolParam { tool, takes_any_root } = self.0;
                let schema = tool_schema(tool, *takes_any_root);
                let mut map = serializer.serialize_map(None)?;
                serialize_tool(&mut map, tool, schema.as_deref())?;
                serialize_some(&mut map, "strict", strictness(tool, schema.as_ref()))?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &FunctionParam(self))?;
        map.end()
    }
}

/// Whether the model takes no message of the user directly after the result of a call. Mistral's models do not, wherever
/// they run.
fn must_answer_results(wire: &OpenaiChat) -> bool {
    let is_mistral = |model: &str| ModelName::parse(model).is_some_and(|name| name.family == Family::Mistral);
    wire.mark.ends_with("mistral.ai") || wire.model.as_deref().is_some_and(is_mistral)
}

/// The fields that the server wants back with a message.
fn kept_fields<'a>(message: &'a ChatMessage, mark: &str, reasoning: Reasoning) -> KeptMessage<'a> {
    let fields = |wire| parts_of(message, wire, reasoning)?.first()?.as_object();
    match fields(mark) {
        Some(fields) => KeptMessage { fields: Some(fields), is_marked: true },
        // A journal or a memory of an earlier version does not name the server.
        None => KeptMessage { fields: fields(NAME), is_marked: mark == NAME },
    }
}

#[derive(Clone, Copy)]
struct KeptMessage<'a> {
    fields: Option<&'a Map<String, Value>>,
    /// Whether the same server sent them. Of another one, only [`REASONING_FIELD`] goes back.
    is_marked: bool,
}

impl<'a> KeptMessage<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.filter(|_| self.is_marked || name == REASONING_FIELD)?.get(name)
    }

    /// The content, if it still says the same as the message.
    fn content(&self, message: &ChatMessage) -> Option<&'a Value> {
        self.get("content").filter(|content| match content {
            Value::String(text) => without_thoughts(text) == message.content,
            content => {
                Text::deserialize(*content).is_ok_and(|text| without_thoughts(&text.0) == message.content)
            }
        })
    }

    /// The fields of each call, if the message still has the same calls.
    fn calls(&self, message: &ChatMessage) -> Option<&'a [Value]> {
        let calls = self.get("tool_calls")?.as_array()?;
        let names = calls.iter().map(|call| call.pointer("/function/name").and_then(Value::as_str));
        names.eq(message.tool_calls.iter().map(|call| Some(call.name.as_str()))).then_some(calls)
    }

    /// The other fields of the message.
    fn others(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let fields = self.fields.into_iter().flatten();
        let is_other = |name: &str| name != "content" && name != "tool_calls";
        fields.filter(move |(name, _)| is_other(name) && self.get(name).is_some())
    }
}

#[derive(Clone)]
struct MessageParam<'a> {
    message: &'a ChatMessage,
    kept: KeptMessage<'a>,
    fills_reasoning: bool,
}

impl Serialize for MessageParam<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { message, kept, fills_reasoning } = self;
        let ChatMessage { role, content, tool_calls, tool_call_id, images, .. } = message;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role)?;
        serialize_some(
            &mut map,
            "tool_call_id",
            tool_call_id.as_deref().filter(|_| *role == ChatRole::Tool).map(|id| short_id(id, MAX_ID)),
        )?;
        if let Some(content) = kept.content(message) {
            map.serialize_entry("content", content)?;
        } else if images.is_empty() {
            let text = Some(content).filter(|_| !content.is_empty() || tool_calls.is_empty());
            map.serialize_entry("content", &text)?;
        } else {
            let images = images
                .iter()
                .map(|image| ContentPart::ImageUrl { image_url: ImageUrl { url: DataUrl(image) } });
            map.serialize_entry("content", &IterList(text_part(content).into_iter().chain(images)))?;
        }
        for (name, value) in kept.others() {
            map.serialize_entry(name, value)?;
        }
        if *fills_reasoning && kept.get(REASONING_FIELD).is_none() {
            map.serialize_entry(REASONING_FIELD, "")?;
        }
        let fields = kept.calls(message).unwrap_or_default();
        let calls = tool_calls.iter().enumerate();
        let calls = calls.map(|(index, call)| ToolCallParam { call, kept: fields.get(index) });
        serialize_some(&mut map, "tool_calls", (!tool_calls.is_empty()).then_some(IterList(calls)))?;
        map.end()
    }
}

/// A part of a message with images.
#[derive(Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Clone, Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

/// The text, unless it is blank, which the API refuses.
fn text_part(text: &str) -> Option<ContentPart<'_>> {
    (!text.trim().is_empty()).then_some(ContentPart::Text { text })
}

struct ToolCallParam<'a> {
    call: &'a RequestedCall,
    /// The fields that the server wants back with it.
    kept: Option<&'a Value>,
}

impl Serialize for ToolCallParam<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct CalledFunction<'a>(&'a RequestedCall, Option<&'a Value>);
        impl Serialize for CalledFunction<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("name", &tool_name(&self.0.name))?;
                map.serialize_entry("arguments", sent_arguments(&self.0.arguments))?;
                serialize_fields(&mut map, self.1, "name")?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", short_id(&self.call.id, MAX_ID))?;
        map.serialize_entry("type", "function")?;
        let function = self.kept.and_then(|kept| kept.get("function"));
        map.serialize_entry("function", &CalledFunction(self.call, function))?;
        serialize_fields(&mut map, self.kept, "function")?;
        map.end()
    }
}

/// Writes the kept fields, apart from one that is already written.
fn serialize_fields<M: SerializeMap>(
    map: &mut M,
    kept: Option<&Value>,
    written: &str,
) -> Result<(), M::Error> {
    let fields = kept.and_then(Value::as_object).into_iter().flatten();
    fields.filter(|(name, _)| *name != written).try_for_each(|(name, value)| map.serialize_entry(name, value))
}
