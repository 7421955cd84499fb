//! The Responses API of OpenAI, which returns reasoning that goes back with the next request.
//!
//! Owns the format of its requests, answers and streams. The provider stores nothing: every request holds the
//! whole conversation. An answer is a list of items. Reasoning must come back at its place, so the items of an answer
//! with reasoning are kept, and a later request has them instead of the text and the calls.

mod content;
mod request;

use crate::event_stream::StreamFormat;
use crate::lenient::{parse_object, parse_provider_error};
use crate::openai::{
    Text, UsageFields, add_missing, arguments_text, embedded_error, fill_arguments, model_name,
    unknown_error, valid_or_none,
};
use crate::own_parts::kept_parts;
use crate::wire::{AnswerAssembler, ChatRequest, MAX_CALLS, ProviderError, Reasoning, Wire, WireError};
use redflow_contract::fact::{ModelAnswer, ModelFinish};
use redflow_contract::transcript::RequestedCall;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use url::Url;

const NAME: &str = "openai-responses";
/// The longest id of a call, in bytes.
const MAX_ID: usize = 64;
/// The most output items of a stream.
const MAX_ITEMS: usize = 512;

/// The wire, with the settings of a node, which every request has.
#[derive(Debug, Clone, Default)]
pub struct OpenaiResponses {
    /// None if the address names the model.
    pub model: Option<String>,
    /// The most tokens of the answer, reasoning included.
    pub max_output_tokens: Option<u32>,
    /// Higher values give more varied answers.
    pub temperature: Option<f64>,
    /// The share of the most likely tokens to choose from.
    pub top_p: Option<f64>,
    /// How much the model reasons.
    pub reasoning_effort: Option<&'static str>,
    /// Whether requests do not ask for encrypted reasoning. OpenAI sends it unasked; models without reasoning refuse to
    /// be asked.
    pub omits_include: bool,
    /// Whether the server takes a combination of schemas as the root of a tool's schema. OpenAI refuses it.
    pub takes_any_root: bool,
    /// Marks what goes back to the same server only, see [`OpenaiResponses::mark`]. Empty for the name of the wire.
    pub mark: String,
    /// Further settings of the server.
    pub extra_body: Map<String, Value>,
}

impl OpenaiResponses {
    /// The mark of the server at an address. No other server can read its encrypted reasoning.
    #[must_use]
    pub fn mark(base: &Url) -> String {
        format!("{NAME}@{}", base.authority())
    }
}

impl Wire for OpenaiResponses {
    fn name(&self) -> &str {
        if self.mark.is_empty() { NAME } else { &self.mark }
    }

    fn takes_parts_of(&self, wire: &str) -> bool {
        // An earlier version did not name the server.
        wire == self.name() || wire == NAME
    }

    fn with_model(&self, model: &str) -> Box<dyn Wire> {
        Box::new(Self { model: Some(model.to_owned()), ..self.clone() })
    }

    fn encode(&self, chat: &ChatRequest<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(&mut *out, &request::Request { wire: self, chat })?;
        add_missing(out, &self.extra_body)
    }

    fn decode(&self, body: &[u8], reasoning: Reasoning) -> Result<ModelAnswer, WireError> {
        let body: Response<'_> = parse_object(body)?;
        let status = match (body.status, &body.output) {
            (Some(status), _) => status,
            (None, Some(_)) => "completed",
            (None, None) => match embedded_error(body.error) {
                Some(error) => return Err(WireError::Provider(error)),
                None => return Err(WireError::Malformed("it has no output")),
            },
        };
        let items = body.items(reasoning);
        body.into_answer(status, items, self.name())
    }

    fn stream_format(&self) -> StreamFormat {
        StreamFormat::Sse
    }

    fn assembler(&self, reasoning: Reasoning) -> Box<dyn AnswerAssembler> {
        Box::new(Assembler { reasoning, mark: self.name().to_owned(), items: Vec::new(), answer: None })
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ProviderError {
        parse_provider_error(status, body)
    }
}

#[derive(Default, Deserialize)]
struct Response<'a> {
    #[serde(default, borrow, deserialize_with = "valid_or_none")]
    status: Option<&'a str>,
    #[serde(default, borrow)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "valid_or_none")]
    incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(default, deserialize_with = "valid_or_none")]
    usage: Option<UsageFields>,
    #[serde(default, deserialize_with = "valid_or_none")]
    model: Option<String>,
}

#[derive(Deserialize)]
struct IncompleteDetails<'a> {
    #[serde(default, borrow, deserialize_with = "valid_or_none")]
    reason: Option<&'a str>,
}

impl Response<'_> {
    fn items(&self, reasoning: Reasoning) -> Vec<OutputItem> {
        self.output.iter().flatten().filter_map(|raw| OutputItem::parse(raw, reasoning)).collect()
    }

    fn into_answer(self, status: &str, items: Vec<OutputItem>, mark: &str) -> Result<ModelAnswer, WireError> {
        let reason = self.incomplete_details.and_then(|details| details.reason);
        let early_finish = match status {
            "completed" => None,
            "incomplete" if reason == Some("content_filter") => Some(ModelFinish::Refused),
            "incomplete" => Some(ModelFinish::Truncated),
            "failed" => {
                return Err(WireError::Provider(embedded_error(self.error).unwrap_or_else(unknown_error)));
            }
            _ => return Err(WireError::Malformed("it is not a finished answer")),
        };
        let (mut text, mut commentary, mut refused) = (String::new(), String::new(), false);
        let (mut calls, mut parts) = (Vec::new(), Vec::new());
        // If an item did not come whole, only the reasoning goes back.
        let has_all = items.iter().all(|item| item.is_done);
        let needs_parts = needs_parts(&items);
        for item in items {
            let is_kept = needs_parts && (has_all || matches!(item.kind, ItemKind::Reasoning));
            parts.extend(item.part.filter(|_| is_kept));
            match item.kind {
                ItemKind::Text { phase: Some(MessagePhase::Commentary) } => commentary.push_str(&item.text),
                ItemKind::Text { .. } => text.push_str(&item.text),
                ItemKind::Call => {
                    calls.push(RequestedCall { id: item.call_id, name: item.name, arguments: item.text });
                }
                ItemKind::Reasoning | ItemKind::Other => {}
            }
            refused |= item.refused;
        }
        // Commentary is not part of the answer, unless there is no other text.
        if text.is_empty() {
            text = commentary;
        }
        calls.truncate(MAX_CALLS);
        fill_arguments(&mut calls);
        let tool_calls = calls;
        let normal_finish = if tool_calls.is_empty() { ModelFinish::Stop } else { ModelFinish::ToolCalls };
        Ok(ModelAnswer {
            text: if refused { String::new() } else { text },
            finish: if refused { ModelFinish::Refused } else { early_finish.unwrap_or(normal_finish) },
            usage: self.usage.and_then(UsageFields::into_usage),
            tool_calls,
            reasoning: kept_parts(mark, parts),
            model: model_name(self.model),
            ..ModelAnswer::default()
        })
    }
}

/// Whether text and calls alone would not give the same items again.
fn needs_parts(items: &[OutputItem]) -> bool {
    let (mut has_text, mut has_call) = (false, false);
    items.iter().any(|item| match item.kind {
        ItemKind::Text { phase: Some(_) } | ItemKind::Reasoning => true,
        ItemKind::Text { phase: None } => std::mem::replace(&mut has_text, true) || has_call,
        // The id of the item is another one than that of the call.
        ItemKind::Call => {
            has_call = true;
            !item.id.is_empty()
        }
        ItemKind::Other => item.part.is_some(),
    })
}

/// Whether a message with this phase is not part of the answer.
fn is_commentary(phase: Option<&str>) -> bool {
    phase == Some("commentary")
}

/// An output item, as far as the stream has sent it.
#[derive(Default)]
struct OutputItem {
    /// Its position in a stream.
    index: Option<u64>,
    id: String,
    kind: ItemKind,
    /// The text of a message, or the arguments of a call.
    text: String,
    refused: bool,
    call_id: String,
    name: String,
    /// The item as the provider sent it, to be sent back. None if that is not wanted.
    part: Option<Value>,
    /// Whether the part is the whole item.
    is_done: bool,
    /// About the bytes of the part.
    part_bytes: usize,
}

#[derive(Clone, Copy, Default)]
enum ItemKind {
    /// A kind that this wire does not know.
    #[default]
    Other,
    Text {
        phase: Option<MessagePhase>,
    },
    Call,
    Reasoning,
}

#[derive(Clone, Copy)]
enum MessagePhase {
    Commentary,
    Other,
}

#[derive(Deserialize)]
struct ItemFields<'a> {
    #[serde(rename = "type", default, borrow, deserialize_with = "valid_or_none")]
    kind: Option<&'a str>,
    #[serde(default, deserialize_with = "valid_or_none")]
    id: Option<String>,
    #[serde(default, borrow, deserialize_with = "valid_or_none")]
    phase: Option<&'a str>,
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "valid_or_none")]
    call_id: Option<String>,
    #[serde(default, deserialize_with = "valid_or_none")]
    name: Option<String>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RefusalPart {
    #[serde(default)]
    refusal: Text,
}

impl OutputItem {
    /// None for a value that is not an item. An unknown kind is not an error.
    fn parse(raw: &RawValue, reasoning: Reasoning) -> Option<Self> {
        let fields: ItemFields<'_> = serde_json::from_str(raw.get()).ok()?;
        let part = reasoning.is_kept().then(|| serde_json::from_str(raw.get())).transpose().ok()?;
        let part_bytes = if part.is_some() { raw.get().len() } else { 0 };
        let id = fields.id.unwrap_or_default();
        let mut item = Self { id, part, part_bytes, is_done: true, ..Self::default() };
        match fields.kind {
            Some("message") => {
                let phase_of = |phase| {
                    if is_commentary(Some(phase)) { MessagePhase::Commentary } else { MessagePhase::Other }
                };
                item.kind = ItemKind::Text { phase: fields.phase.map(phase_of) };
                let content = fields.content.map_or("null", RawValue::get);
                item.text = serde_json::from_str::<Text>(content).unwrap_or_default().0;
                let parts: Vec<RefusalPart> = serde_json::from_str(content).unwrap_or_default();
                item.refused = parts.iter().any(|part| !part.refusal.0.is_empty());
            }
            Some("function_call") => {
                item.kind = ItemKind::Call;
                item.text = arguments_text(fields.arguments).ok()?;
                item.call_id = fields.call_id.unwrap_or_default();
                item.name = fields.name.unwrap_or_default();
            }
            Some("reasoning") => item.kind = ItemKind::Reasoning,
            _ => {}
        }
        Some(item)
    }
}

#[derive(Deserialize)]
struct StreamEvent<'a> {
    #[serde(rename = "type", default, borrow, deserialize_with = "valid_or_none")]
    kind: Option<&'a str>,
    #[serde(default, deserialize_with = "valid_or_none")]
    output_index: Option<u64>,
    #[serde(default, deserialize_with = "valid_or_none")]
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

struct Assembler {
    reasoning: Reasoning,
    mark: String,
    items: Vec<OutputItem>,
    answer: Option<ModelAnswer>,
}

impl Assembler {
    /// The item of an event, or a new one of this kind.
    fn item(&mut self, index: Option<u64>, id: &str, kind: ItemKind) -> Result<&mut OutputItem, WireError> {
        let found = if index.is_some() {
            self.items.iter().rposition(|item| item.index == index)
        } else if !id.is_empty() {
            self.items.iter().rposition(|item| item.id == id)
        } else {
            self.items.len().checked_sub(1)
        };
        let position = found.unwrap_or(self.items.len());
        if found.is_none() {
            self.push(OutputItem { index, id: id.to_owned(), kind, ..OutputItem::default() })?;
        }
        Ok(&mut self.items[position])
    }

    fn push(&mut self, item: OutputItem) -> Result<(), WireError> {
        if self.items.len() == MAX_ITEMS {
            return Err(WireError::Malformed("it has too many items"));
        }
        self.items.push(item);
        Ok(())
    }

    fn finish_response(&mut self, status: &str, raw: Option<&RawValue>) -> Result<(), WireError> {
        let response: Response<'_> =
            raw.map(|raw| parse_object(raw.get().as_bytes())).transpose()?.unwrap_or_default();
        // The event names the status. The response overrides it only with a worse one.
        let status = response.status.filter(|own| matches!(*own, "incomplete" | "failed")).unwrap_or(status);
        let count = response.output.as_ref().map_or(0, Vec::len);
        let mut items = std::mem::take(&mut self.items);
        if count > items.len() || (count > 0 && !items.iter().all(|item| item.is_done)) {
            items = response.items(self.reasoning);
        } else {
            items.sort_by_key(|item| item.index);
        }
        self.answer = Some(response.into_answer(status, items, &self.mark)?);
        Ok(())
    }
}

impl AnswerAssembler for Assembler {
    fn add_event(&mut self, name: Option<&str>, data: &[u8]) -> Result<bool, WireError> {
        let data = data.trim_ascii();
        if data.is_empty() {
            return Ok(false);
        }
        if data == b"[DONE]" {
            return Ok(true);
        }
        let event: StreamEvent<'_> = parse_object(data)?;
        if let Some(error) = embedded_error(event.error) {
            return Err(WireError::Provider(error));
        }
        let id = event.item_id.as_deref().unwrap_or_default();
        let index = event.output_index;
        let kind = event.kind.or(name).unwrap_or_default();
        match kind {
            "response.output_item.added" | "response.output_item.done" => {
                let Some(item) = event.item.and_then(|raw| OutputItem::parse(raw, self.reasoning)) else {
                    return Ok(false);
                };
                let is_done = kind.ends_with("done");
                let item = OutputItem { is_done, ..item };
                if index.is_none() && item.id.is_empty() && !is_done {
                    self.push(item)?;
                } else {
                    let id = item.id.clone();
                    *self.item(index, &id, ItemKind::Other)? = OutputItem { index, ..item };
                }
            }
            "response.output_text.delta" => {
                let item = self.item(index, id, ItemKind::Text { phase: None })?;
                item.text.push_str(&arguments_text(event.delta)?);
            }
            "response.refusal.delta" => {
                let item = self.item(index, id, ItemKind::Text { phase: None })?;
                item.refused |= !arguments_text(event.delta)?.is_empty();
            }
            "response.function_call_arguments.delta" => {
                self.item(index, id, ItemKind::Call)?.text.push_str(&arguments_text(event.delta)?);
            }
            "response.function_call_arguments.done" => {
                let arguments = arguments_text(event.arguments)?;
                if !arguments.is_empty() {
                    self.item(index, id, ItemKind::Call)?.text = arguments;
                }
            }
            "response.completed" => return self.finish_response("completed", event.response).map(|()| true),
            "response.incomplete" => {
                return self.finish_response("incomplete", event.response).map(|()| true);
            }
            "response.failed" => return self.finish_response("failed", event.response).map(|()| true),
            "error" => {
                let error = embedded_error(parse_object(data).ok()).unwrap_or_else(unknown_error);
                return Err(WireError::Provider(error));
            }
            _ => {}
        }
        Ok(false)
    }

    fn visit_text(&self, visit: &mut dyn FnMut(&str)) {
        if let Some(answer) = &self.answer {
            return visit(&answer.text);
        }
        for item in &self.items {
            if let ItemKind::Text { phase: None | Some(MessagePhase::Other) } = item.kind {
                visit(&item.text);
            }
        }
    }

    fn held_bytes(&self) -> usize {
        self.items.iter().map(|item| item.text.len() + item.part_bytes).sum()
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError> {
        self.answer.ok_or(WireError::Interrupted)
    }
}

#[cfg(test)]
#[path = "openai_responses_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "openai_responses_stream_tests.rs"]
mod stream_tests;
