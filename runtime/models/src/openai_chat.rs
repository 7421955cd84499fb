//! The Chat Completions API of OpenAI, Azure and every compatible server.
//!
//! Owns the format of its requests, answers and streams. Decides nothing: it sends what is set.

use crate::data_url::DataUrl;
use crate::event_stream::StreamFormat;
use crate::lenient::{parse_object, parse_provider_error, tool_name};
use crate::openai::{
    IterList, Text, UsageFields, add_missing, arguments_text, embedded_error, fill_arguments, model_name,
    sent_arguments, serialize_cache, serialize_some, serialize_tool, short_id, tool_choice_name,
    unknown_error, valid_or_none,
};
use crate::wire::{
    AnswerAssembler, AnswerFormat, ChatRequest, MAX_CALLS, ProviderError, Reasoning, Wire, WireError,
};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use serde::de::IgnoredAny;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

const NAME: &str = "openai-chat";
/// The longest id of a call, in bytes.
const MAX_ID: usize = 40;
/// The only reasoning field that servers of this wire expect back.
const REASONING_FIELD: &str = "reasoning_content";

/// The wire, with the settings of a node, which every request has.
#[derive(Debug, Clone, Default)]
pub struct OpenaiChat {
    /// None if the address names the model.
    pub model: Option<String>,
    /// The most tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Whether the server knows only the old name of `max_tokens`.
    pub legacy_max_tokens: bool,
    /// Higher values give more varied answers.
    pub temperature: Option<f64>,
    /// The share of the most likely tokens to choose from.
    pub top_p: Option<f64>,
    /// Reduces tokens by how often they occurred.
    pub frequency_penalty: Option<f64>,
    /// Reduces tokens that occurred at all.
    pub presence_penalty: Option<f64>,
    /// For reproducible answers.
    pub seed: Option<i64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// How much the model reasons.
    pub reasoning_effort: Option<&'static str>,
    /// Whether a stream ends with its usage.
    pub stream_usage: bool,
    /// Whether the server refuses reasoning in a request. OpenAI does, and sends none.
    pub refuses_reasoning: bool,
    /// Further settings of the server.
    pub extra_body: Map<String, Value>,
}

impl Wire for OpenaiChat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn with_model(&self, model: &str) -> Box<dyn Wire> {
        Box::new(Self { model: Some(model.to_owned()), ..self.clone() })
    }

    fn encode(&self, chat: &ChatRequest<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(&mut *out, &Request { wire: self, chat })?;
        add_missing(out, &self.extra_body)
    }

    fn decode(&self, body: &[u8], reasoning: Reasoning) -> Result<ModelAnswer, WireError> {
        let body: Completion<'_> = parse_object(body)?;
        if body.choices.as_ref().is_none_or(Vec::is_empty)
            && let Some(error) = embedded_error(body.error)
        {
            return Err(WireError::Provider(error));
        }
        let mut assembler = Assembler { reasoning, ..Assembler::default() };
        assembler.add(body)?;
        assembler.into_answer()
    }

    fn stream_format(&self) -> StreamFormat {
        StreamFormat::Sse
    }

    fn assembler(&self, reasoning: Reasoning) -> Box<dyn AnswerAssembler> {
        Box::new(Assembler { reasoning, ..Assembler::default() })
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ProviderError {
        parse_provider_error(status, body)
    }
}

struct Request<'a> {
    wire: &'a OpenaiChat,
    chat: &'a ChatRequest<'a>,
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
        let messages = chat.messages.iter().map(|message| MessageParam { message, reasoning });
        let has_tools = !chat.tools.is_empty();
        let usage = (chat.stream && wire.stream_usage).then_some(StreamOptions { include_usage: true });

        let mut map = serializer.serialize_map(None)?;
        serialize_some(&mut map, "model", wire.model.as_deref())?;
        serialize_some(&mut map, "messages", Some(IterList(messages)))?;
        serialize_some(&mut map, "tools", has_tools.then(|| IterList(chat.tools.iter().map(ToolParam))))?;
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

struct ToolParam<'a>(&'a ToolSpec);

impl Serialize for ToolParam<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct FunctionParam<'a>(&'a ToolSpec);
        impl Serialize for FunctionParam<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                serialize_tool(&mut map, self.0)?;
                serialize_some(&mut map, "strict", self.0.strict)?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &FunctionParam(self.0))?;
        map.end()
    }
}

struct MessageParam<'a> {
    message: &'a ChatMessage,
    reasoning: Reasoning,
}

impl MessageParam<'_> {
    /// The reasoning of the message, if this wire made it.
    fn reasoning_text(&self) -> Option<&str> {
        let opaque = self
            .message
            .reasoning
            .as_ref()
            .filter(|opaque| self.reasoning.is_kept() && opaque.wire == NAME)?;
        opaque.parts.iter().find_map(|part| part.get(REASONING_FIELD)?.as_str())
    }
}

impl Serialize for MessageParam<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ChatMessage { role, content, tool_calls, tool_call_id, images, .. } = self.message;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role)?;
        serialize_some(
            &mut map,
            "tool_call_id",
            tool_call_id.as_deref().filter(|_| *role == ChatRole::Tool).map(|id| short_id(id, MAX_ID)),
        )?;
        if images.is_empty() {
            let text = Some(content).filter(|_| !content.is_empty() || tool_calls.is_empty());
            map.serialize_entry("content", &text)?;
        } else {
            let pictures = images
                .iter()
                .map(|image| ContentPart::ImageUrl { image_url: ImageUrl { url: DataUrl(image) } });
            map.serialize_entry("content", &IterList(text_part(content).into_iter().chain(pictures)))?;
        }
        serialize_some(&mut map, REASONING_FIELD, self.reasoning_text())?;
        let calls = tool_calls.iter().map(|RequestedCall { id, name, arguments }| ToolCallParam {
            id: short_id(id, MAX_ID),
            kind: "function",
            function: CalledFunction { name: tool_name(name), arguments: sent_arguments(arguments) },
        });
        serialize_some(&mut map, "tool_calls", (!tool_calls.is_empty()).then_some(IterList(calls)))?;
        map.end()
    }
}

/// A part of a message with pictures.
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

#[derive(Serialize)]
struct ToolCallParam<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

/// A whole completion, or one chunk of a stream. They differ in the name of one field.
#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(default, deserialize_with = "valid_or_none")]
    model: Option<String>,
    #[serde(default, borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default, deserialize_with = "valid_or_none")]
    usage: Option<UsageFields>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, borrow)]
    message: Option<MessageDelta<'a>>,
    #[serde(default, borrow)]
    delta: Option<MessageDelta<'a>>,
    #[serde(default, deserialize_with = "valid_or_none")]
    finish_reason: Option<String>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// A whole message, or a part of one.
#[derive(Deserialize)]
struct MessageDelta<'a> {
    #[serde(default)]
    content: Text,
    #[serde(default)]
    refusal: Text,
    #[serde(default)]
    reasoning_content: Text,
    #[serde(default, borrow)]
    tool_calls: Option<Vec<ToolCallDelta<'a>>>,
}

/// A whole tool call, or a part of one.
#[derive(Deserialize)]
struct ToolCallDelta<'a> {
    #[serde(default, deserialize_with = "valid_or_none")]
    index: Option<usize>,
    #[serde(default, deserialize_with = "valid_or_none")]
    id: Option<String>,
    #[serde(default, borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Default, Deserialize)]
struct FunctionDelta<'a> {
    #[serde(default, deserialize_with = "valid_or_none")]
    name: Option<String>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Default)]
struct Assembler {
    reasoning: Reasoning,
    has_choice: bool,
    done: bool,
    text: String,
    refused: bool,
    reasoning_text: String,
    calls: Vec<(Option<usize>, RequestedCall)>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
}

impl Assembler {
    fn add(&mut self, body: Completion<'_>) -> Result<(), WireError> {
        self.model = self.model.take().or(model_name(body.model));
        self.usage = body.usage.and_then(UsageFields::into_usage).or(self.usage);
        let Some(choice) = body.choices.into_iter().flatten().next() else { return Ok(()) };
        self.has_choice = true;
        if choice.finish_reason.as_deref() == Some("error") {
            let error = embedded_error(choice.error).or_else(|| embedded_error(body.error));
            return Err(WireError::Provider(error.unwrap_or_else(unknown_error)));
        }
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        if let Some(message) = choice.message {
            self.add_text(&message);
            for call in message.tool_calls.into_iter().flatten() {
                self.add_call(None, call)?;
            }
        }
        if let Some(delta) = choice.delta {
            self.add_text(&delta);
            for call in delta.tool_calls.into_iter().flatten() {
                let index = self.find_call(&call);
                self.add_call(index, call)?;
            }
        }
        Ok(())
    }

    fn add_text(&mut self, delta: &MessageDelta<'_>) {
        self.text.push_str(&delta.content.0);
        self.refused |= !delta.refusal.0.is_empty();
        if self.reasoning.is_kept() {
            self.reasoning_text.push_str(&delta.reasoning_content.0);
        }
    }

    /// Which call a delta belongs to. None if it starts a new one. The index decides. Some servers leave it
    /// out, or use the same for every call. Then a new id together with a name starts a new call.
    fn find_call(&self, delta: &ToolCallDelta<'_>) -> Option<usize> {
        let id = delta.id.as_deref().unwrap_or_default();
        let name = delta.function.as_ref().and_then(|function| function.name.as_deref());
        let is_named = name.is_some_and(|name| !name.is_empty());
        let found = if delta.index.is_some() {
            self.calls.iter().rposition(|(index, _)| *index == delta.index)
        } else {
            let same = self.calls.iter().rposition(|(_, call)| !id.is_empty() && call.id == id);
            let last = self.calls.len().checked_sub(1);
            same.or(last.filter(|last| !is_named || self.calls[*last].1.name.is_empty()))
        };
        found.filter(|found| {
            let call = &self.calls[*found].1;
            let is_other = !id.is_empty() && !call.id.is_empty() && call.id != id;
            !(is_other && is_named && !call.name.is_empty())
        })
    }

    /// Adds a delta to the call at this index, or to a new one. Drops calls beyond the limit.
    fn add_call(&mut self, index: Option<usize>, delta: ToolCallDelta<'_>) -> Result<(), WireError> {
        let FunctionDelta { name, arguments } = delta.function.unwrap_or_default();
        let arguments = arguments_text(arguments)?;
        let index = index.unwrap_or(self.calls.len());
        if index == self.calls.len() {
            if index == MAX_CALLS {
                return Ok(());
            }
            let call = RequestedCall { id: String::new(), name: String::new(), arguments: String::new() };
            self.calls.push((delta.index, call));
        }
        let call = &mut self.calls[index].1;
        // Some servers invent a new id for every delta: the first one counts.
        if call.id.is_empty() {
            call.id = delta.id.unwrap_or_default();
        }
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            call.name = name;
        }
        call.arguments.push_str(&arguments);
        Ok(())
    }

    fn into_answer(self) -> Result<ModelAnswer, WireError> {
        if !self.has_choice {
            return Err(WireError::Malformed("it has no choices"));
        }
        let mut tool_calls: Vec<_> = self.calls.into_iter().map(|(_, call)| call).collect();
        fill_arguments(&mut tool_calls);
        let finish = match self.finish_reason.as_deref() {
            _ if self.refused => ModelFinish::Refused,
            Some("content_filter") => ModelFinish::Refused,
            Some("length") => ModelFinish::Truncated,
            _ if !tool_calls.is_empty() => ModelFinish::ToolCalls,
            _ => ModelFinish::Stop,
        };
        let parts = || vec![json!({ REASONING_FIELD: self.reasoning_text })];
        Ok(ModelAnswer {
            text: if self.refused { String::new() } else { self.text },
            finish,
            usage: self.usage,
            tool_calls,
            reasoning: (!self.reasoning_text.is_empty())
                .then(|| OpaqueParts { wire: NAME.to_owned(), parts: parts() }),
            model: self.model,
            request_id: None,
            fell_over: Vec::new(),
            raw: None,
        })
    }
}

impl AnswerAssembler for Assembler {
    fn add_event(&mut self, name: Option<&str>, data: &[u8]) -> Result<bool, WireError> {
        let data = data.trim_ascii();
        if data.is_empty() {
            return Ok(false);
        }
        if data == b"[DONE]" {
            self.done = true;
            return Ok(true);
        }
        let body: Completion<'_> = parse_object(data)?;
        if let Some(error) = embedded_error(body.error) {
            return Err(WireError::Provider(error));
        }
        if name == Some("error") {
            return Err(WireError::Provider(
                embedded_error(Some(parse_object(data)?)).unwrap_or_else(unknown_error),
            ));
        }
        self.add(body)?;
        Ok(false)
    }

    fn visit_text(&self, visit: &mut dyn FnMut(&str)) {
        visit(&self.text);
    }

    fn held_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|(_, call)| call.name.len() + call.arguments.len());
        self.text.len() + self.reasoning_text.len() + calls.sum::<usize>()
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError> {
        // Some servers end every stream with `[DONE]`, also one that broke off within a call.
        let is_whole = |(_, call): &(_, RequestedCall)| {
            call.arguments.is_empty() || serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok()
        };
        if self.finish_reason.is_none() && !(self.done && self.calls.iter().all(is_whole)) {
            return Err(WireError::Interrupted);
        }
        self.into_answer()
    }
}

#[cfg(test)]
#[path = "openai_chat_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "openai_chat_stream_tests.rs"]
mod stream_tests;
