//! Responses: OpenAI's newer wire, with reasoning that is sent back.
//!
//! Owns the shape of its requests, answers and streams. The provider is asked to keep nothing: the whole
//! conversation goes with every request.

use crate::loose::object;
use crate::openai::{
    Each, Text, Tokens, arguments, error, error_within, lenient, model, nameless, put, put_tool, settle,
    tool_choice,
};
use crate::wire::{Assemble, Chat, Format, Framing, ProviderError, Wire, WireError};
use redflow_contract::fact::{ModelAnswer, ModelFinish};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

const NAME: &str = "openai-responses";
/// How many items an answer that is put together may have.
const MAX_ITEMS: usize = 512;

/// Responses, with what every request of a node says alike.
#[derive(Debug, Clone, Default)]
pub struct OpenaiResponses {
    /// The model.
    pub model: Option<String>,
    /// How many tokens the answer may have, reasoning included.
    pub max_output_tokens: Option<u32>,
    /// How freely it chooses.
    pub temperature: Option<f64>,
    /// From how much of the likely it chooses.
    pub top_p: Option<f64>,
    /// How much it thinks.
    pub reasoning_effort: Option<&'static str>,
}

impl Wire for OpenaiResponses {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(&self, chat: &Chat<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, &Request { wire: self, chat })
    }

    fn decode(&self, body: &[u8], reasoning: bool) -> Result<ModelAnswer, WireError> {
        let body: Response<'_> = object(body)?;
        let status = match (body.status, &body.output) {
            (Some(status), _) => status,
            (None, Some(_)) => "completed",
            (None, None) => match error_within(body.error) {
                Some(error) => return Err(WireError::Provider(error)),
                None => return Err(WireError::Garbled("it has no output")),
            },
        };
        let items = body.items(reasoning);
        body.answer(status, items)
    }

    fn framing(&self) -> Framing {
        Framing::Sse
    }

    fn assemble(&self, reasoning: bool) -> Box<dyn Assemble> {
        Box::new(Assembly { reasoning, items: Vec::new(), answer: None })
    }

    fn error(&self, status: u16, body: &[u8]) -> ProviderError {
        error(status, body)
    }
}

struct Request<'a> {
    wire: &'a OpenaiResponses,
    chat: &'a Chat<'a>,
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { wire, chat } = *self;
        let format = match chat.format {
            Format::Text => None,
            Format::JsonObject => Some(TextFormat::JsonObject),
            Format::JsonSchema(schema) => {
                Some(TextFormat::JsonSchema { name: "action", schema, strict: true })
            }
        };
        // JSON mode is refused unless the input speaks of JSON, and instructions are no input.
        let system = chat
            .messages
            .first()
            .filter(|first| first.role == ChatRole::System && !matches!(chat.format, Format::JsonObject));
        let input = chat.messages.iter().skip(usize::from(system.is_some()));
        let input = input.flat_map(|message| items(message, chat.reasoning));
        let has_tools = !chat.tools.is_empty();

        let mut map = serializer.serialize_map(None)?;
        put(&mut map, "model", wire.model.as_deref())?;
        put(&mut map, "instructions", system.map(|system| &system.content))?;
        put(&mut map, "input", Some(Each(input)))?;
        put(&mut map, "tools", has_tools.then(|| Each(chat.tools.iter().map(Offered))))?;
        put(&mut map, "tool_choice", has_tools.then(|| tool_choice(chat.tool_choice)))?;
        put(&mut map, "text", format.map(|format| TextOptions { format }))?;
        put(&mut map, "max_output_tokens", wire.max_output_tokens)?;
        put(&mut map, "temperature", wire.temperature)?;
        put(&mut map, "top_p", wire.top_p)?;
        put(&mut map, "reasoning", wire.reasoning_effort.map(|effort| Effort { effort }))?;
        put(&mut map, "include", chat.reasoning.then_some(["reasoning.encrypted_content"]))?;
        put(&mut map, "store", Some(false))?;
        put(&mut map, "stream", chat.stream.then_some(true))?;
        map.end()
    }
}

#[derive(Serialize)]
struct TextOptions<'a> {
    format: TextFormat<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TextFormat<'a> {
    JsonObject,
    JsonSchema { name: &'static str, schema: &'a RawValue, strict: bool },
}

#[derive(Serialize)]
struct Effort {
    effort: &'static str,
}

struct Offered<'a>(&'a ToolSpec);

impl Serialize for Offered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        put_tool(&mut map, self.0)?;
        // Unsaid it would be true, and few schemas are made for that.
        map.serialize_entry("strict", &false)?;
        map.end()
    }
}

#[derive(Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Sent<'a> {
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a str,
    },
    #[serde(untagged)]
    Message {
        role: ChatRole,
        content: &'a str,
    },
    #[serde(untagged)]
    Opaque(&'a Value),
}

/// What a message is as items: its reasoning, its text, its calls.
fn items(message: &ChatMessage, reasoning: bool) -> impl Iterator<Item = Sent<'_>> + Clone {
    let ChatMessage { role, content, tool_calls, tool_call_id, reasoning: opaque } = message;
    let ours = opaque.iter().filter(move |opaque| reasoning && opaque.wire == NAME);
    let text = match role {
        ChatRole::Tool => {
            let call_id = tool_call_id.as_deref().unwrap_or_default();
            Some(Sent::FunctionCallOutput { call_id, output: content })
        }
        _ if content.is_empty() && !tool_calls.is_empty() => None,
        _ => Some(Sent::Message { role: *role, content }),
    };
    let calls = tool_calls.iter().map(|call| Sent::FunctionCall {
        call_id: &call.id,
        name: &call.name,
        arguments: &call.arguments,
    });
    ours.flat_map(|opaque| opaque.parts.iter().map(Sent::Opaque)).chain(text).chain(calls)
}

#[derive(Default, Deserialize)]
struct Response<'a> {
    #[serde(default, borrow, deserialize_with = "lenient")]
    status: Option<&'a str>,
    #[serde(default, borrow)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "lenient")]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Tokens>,
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(default, borrow, deserialize_with = "lenient")]
    reason: Option<&'a str>,
}

impl Response<'_> {
    fn items(&self, reasoning: bool) -> Vec<Item> {
        self.output.iter().flatten().filter_map(|raw| Item::read(raw, reasoning)).collect()
    }

    fn answer(self, status: &str, items: Vec<Item>) -> Result<ModelAnswer, WireError> {
        let reason = self.incomplete_details.and_then(|details| details.reason);
        let cut = match status {
            "completed" => None,
            "incomplete" if reason == Some("content_filter") => Some(ModelFinish::Refused),
            "incomplete" => Some(ModelFinish::Truncated),
            "failed" => return Err(WireError::Provider(error_within(self.error).unwrap_or_else(nameless))),
            _ => return Err(WireError::Garbled("it is no finished answer")),
        };
        let (mut text, mut commentary, mut refused) = (String::new(), String::new(), false);
        let (mut calls, mut parts) = (Vec::new(), Vec::new());
        for item in items {
            match item.what {
                What::Text { is_commentary: true } => commentary.push_str(&item.text),
                What::Text { is_commentary: false } => text.push_str(&item.text),
                What::Call => {
                    calls.push(RequestedCall { id: item.call_id, name: item.name, arguments: item.text });
                }
                What::Reasoning(part) => parts.push(part),
                What::Other => {}
            }
            refused |= item.refused;
        }
        // Words on the way are no part of what is said in the end, unless nothing else is said.
        if text.is_empty() {
            text = commentary;
        }
        let tool_calls = settle(calls)?;
        let by_itself = if tool_calls.is_empty() { ModelFinish::Stop } else { ModelFinish::ToolCalls };
        Ok(ModelAnswer {
            text: if refused { String::new() } else { text },
            finish: if refused { ModelFinish::Refused } else { cut.unwrap_or(by_itself) },
            usage: self.usage.and_then(Tokens::usage),
            tool_calls,
            reasoning: (!parts.is_empty()).then(|| OpaqueParts { wire: NAME.to_owned(), parts }),
            model: model(self.model),
            request_id: None,
        })
    }
}

/// An output item, as far as it is known.
#[derive(Default)]
struct Item {
    /// Where it stands in a stream, and what it is called there.
    index: Option<u64>,
    id: String,
    what: What,
    /// A message's text, or a call's arguments.
    text: String,
    refused: bool,
    call_id: String,
    name: String,
}

#[derive(Default)]
enum What {
    /// Something this wire has no word for.
    #[default]
    Other,
    Text {
        is_commentary: bool,
    },
    Call,
    Reasoning(Value),
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "type", default, borrow, deserialize_with = "lenient")]
    kind: Option<&'a str>,
    #[serde(default, deserialize_with = "lenient")]
    id: Option<String>,
    #[serde(default, borrow, deserialize_with = "lenient")]
    phase: Option<&'a str>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    call_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    refusal: Text,
}

impl Item {
    /// None if it is no item at all: what is not known is not a fault.
    fn read(raw: &RawValue, reasoning: bool) -> Option<Self> {
        let fields: Fields<'_> = serde_json::from_str(raw.get()).ok()?;
        let mut item = Self { id: fields.id.unwrap_or_default(), ..Self::default() };
        match fields.kind {
            Some("message") => {
                item.what = What::Text { is_commentary: fields.phase == Some("commentary") };
                let content = fields.content.map_or("null", RawValue::get);
                item.text = serde_json::from_str::<Text>(content).unwrap_or_default().0;
                let parts: Vec<Refusal> = serde_json::from_str(content).unwrap_or_default();
                item.refused = parts.iter().any(|part| !part.refusal.0.is_empty());
            }
            Some("function_call") => {
                item.what = What::Call;
                item.text = arguments(fields.arguments).ok()?;
                item.call_id = fields.call_id.unwrap_or_default();
                item.name = fields.name.unwrap_or_default();
            }
            Some("reasoning") if reasoning => {
                item.what = What::Reasoning(serde_json::from_str(raw.get()).ok()?);
            }
            _ => {}
        }
        Some(item)
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default, borrow, deserialize_with = "lenient")]
    kind: Option<&'a str>,
    #[serde(default, deserialize_with = "lenient")]
    output_index: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    item_id: Option<String>,
    #[serde(default, borrow)]
    delta: Option<&'a RawValue>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(default, borrow)]
    item: Option<&'a RawValue>,
    #[serde(default, borrow)]
    response: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

struct Assembly {
    reasoning: bool,
    items: Vec<Item>,
    answer: Option<ModelAnswer>,
}

impl Assembly {
    /// The item an event is about; a new one if it is the first to speak of it.
    fn item(&mut self, index: Option<u64>, id: &str, what: What) -> Result<&mut Item, WireError> {
        let known = if index.is_some() {
            self.items.iter().rposition(|item| item.index == index)
        } else if !id.is_empty() {
            self.items.iter().rposition(|item| item.id == id)
        } else {
            self.items.len().checked_sub(1)
        };
        let place = known.unwrap_or(self.items.len());
        if known.is_none() {
            self.push(Item { index, id: id.to_owned(), what, ..Item::default() })?;
        }
        Ok(&mut self.items[place])
    }

    fn push(&mut self, item: Item) -> Result<(), WireError> {
        if self.items.len() == MAX_ITEMS {
            return Err(WireError::Garbled("it has too many items"));
        }
        self.items.push(item);
        Ok(())
    }

    fn end(&mut self, status: &str, raw: Option<&RawValue>) -> Result<(), WireError> {
        let response: Response<'_> =
            raw.map(|raw| object(raw.get().as_bytes())).transpose()?.unwrap_or_default();
        // The event says how it ended; only a worse word of the answer itself counts for more.
        let status = response.status.filter(|own| matches!(*own, "incomplete" | "failed")).unwrap_or(status);
        let is_whole = response.output.as_ref().is_some_and(|output| !output.is_empty());
        let items = if is_whole { response.items(self.reasoning) } else { std::mem::take(&mut self.items) };
        self.answer = Some(response.answer(status, items)?);
        Ok(())
    }
}

impl Assemble for Assembly {
    fn event(&mut self, name: Option<&str>, data: &[u8]) -> Result<bool, WireError> {
        let data = data.trim_ascii();
        if data.is_empty() {
            return Ok(false);
        }
        if data == b"[DONE]" {
            return Ok(true);
        }
        let event: Event<'_> = object(data)?;
        if let Some(error) = error_within(event.error) {
            return Err(WireError::Provider(error));
        }
        let id = event.item_id.as_deref().unwrap_or_default();
        let index = event.output_index;
        let kind = event.kind.or(name).unwrap_or_default();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                let Some(item) = event.item.and_then(|raw| Item::read(raw, self.reasoning)) else {
                    return Ok(false);
                };
                if index.is_none() && item.id.is_empty() && kind.ends_with("added") {
                    self.push(item)?;
                } else {
                    let id = item.id.clone();
                    *self.item(index, &id, What::Other)? = Item { index, ..item };
                }
            }
            "response.output_text.delta" => {
                let item = self.item(index, id, What::Text { is_commentary: false })?;
                item.text.push_str(&arguments(event.delta)?);
            }
            "response.refusal.delta" => {
                let item = self.item(index, id, What::Text { is_commentary: false })?;
                item.refused |= !arguments(event.delta)?.is_empty();
            }
            "response.function_call_arguments.delta" => {
                self.item(index, id, What::Call)?.text.push_str(&arguments(event.delta)?);
            }
            "response.function_call_arguments.done" => {
                let whole = arguments(event.arguments)?;
                if !whole.is_empty() {
                    self.item(index, id, What::Call)?.text = whole;
                }
            }
            "response.completed" => return self.end("completed", event.response).map(|()| true),
            "response.incomplete" => return self.end("incomplete", event.response).map(|()| true),
            "response.failed" => return self.end("failed", event.response).map(|()| true),
            "error" => {
                let error = error_within(object(data).ok()).unwrap_or_else(nameless);
                return Err(WireError::Provider(error));
            }
            _ => {}
        }
        Ok(false)
    }

    fn text(&self, tell: &mut dyn FnMut(&str)) {
        if let Some(answer) = &self.answer {
            return tell(&answer.text);
        }
        for item in &self.items {
            if let What::Text { is_commentary: false } = item.what {
                tell(&item.text);
            }
        }
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError> {
        self.answer.ok_or(WireError::Cut)
    }
}

#[cfg(test)]
#[path = "openai_responses_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "openai_responses_stream_tests.rs"]
mod stream_tests;
