//! The Chat Completions API of OpenAI, Azure and every compatible server.
//!
//! Owns the format of its requests, answers and streams. Decides nothing: it sends what is set. Servers add fields to
//! the message of an answer, and some require them back. So the fields that this wire does not know are kept, and go
//! back to the same server.

mod kept_fields;
mod request;

use crate::answer_text::AnswerText;
use crate::event_stream::StreamFormat;
use crate::lenient::{parse_object, parse_part, parse_provider_error};
use crate::openai::{
    Text, UsageFields, add_missing, arguments_text, embedded_error, fill_arguments, listed_error, model_name,
    unknown_error, valid_or_none,
};
use crate::own_parts::kept_parts;
use crate::wire::{AnswerAssembler, ChatRequest, MAX_CALLS, ProviderError, Reasoning, Wire, WireError};
use kept_fields::{Fields, KeptFields};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::RequestedCall;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use url::Url;

const NAME: &str = "openai-chat";
/// The longest id of a call, in bytes.
const MAX_ID: usize = 40;

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
    /// Whether the server requires `reasoning_content` of every message of the model, at least an empty one, in a
    /// request with tools.
    pub fills_reasoning: bool,
    /// Whether a text may begin with thoughts between `<think>` and `</think>`.
    pub may_think_in_text: bool,
    /// Whether the server takes a combination of schemas as the root of a tool's schema. OpenAI refuses it.
    pub takes_any_root: bool,
    /// Marks what goes back to the same server only, see [`OpenaiChat::mark`]. Empty for the name of the wire.
    pub mark: String,
    /// Further settings of the server.
    pub extra_body: Map<String, Value>,
}

impl OpenaiChat {
    /// The mark of the server at an address. Servers with this interface do not know each other's fields.
    #[must_use]
    pub fn mark(base: &Url) -> String {
        format!("{NAME}@{}", base.authority())
    }

    fn new_assembler(&self, reasoning: Reasoning) -> Assembler {
        Assembler {
            keeps_fields: reasoning.is_kept() && !self.refuses_reasoning,
            mark: self.name().to_owned(),
            has_choice: false,
            done: false,
            text: AnswerText::new(self.may_think_in_text),
            refused: false,
            kept: KeptFields::default(),
            calls: Vec::new(),
            finish_reason: None,
            usage: None,
            model: None,
        }
    }
}

impl Wire for OpenaiChat {
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
        if let Some(error) = listed_error(body) {
            return Err(WireError::Provider(error));
        }
        let body: Completion<'_> = parse_object(body)?;
        if body.choices.as_ref().is_none_or(Vec::is_empty)
            && let Some(error) = embedded_error(body.error)
        {
            return Err(WireError::Provider(error));
        }
        let mut assembler = self.new_assembler(reasoning);
        assembler.add(body)?;
        assembler.into_answer()
    }

    fn stream_format(&self) -> StreamFormat {
        StreamFormat::Sse
    }

    fn assembler(&self, reasoning: Reasoning) -> Box<dyn AnswerAssembler> {
        Box::new(self.new_assembler(reasoning))
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ProviderError {
        parse_provider_error(status, body)
    }
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
    /// Where Groq also has the usage of a stream.
    #[serde(default, deserialize_with = "valid_or_none")]
    x_groq: Option<GroqFields>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct GroqFields {
    #[serde(default, deserialize_with = "valid_or_none")]
    usage: Option<UsageFields>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, borrow)]
    message: Option<Fields<'a>>,
    #[serde(default, borrow)]
    delta: Option<Fields<'a>>,
    #[serde(default, deserialize_with = "valid_or_none")]
    finish_reason: Option<String>,
    /// Where Kimi has the usage of a stream.
    #[serde(default, deserialize_with = "valid_or_none")]
    usage: Option<UsageFields>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// A whole tool call, or a part of one.
#[derive(Default)]
struct ToolCallDelta<'a> {
    index: Option<usize>,
    id: Option<String>,
    name: Option<String>,
    arguments: String,
    /// The fields that this wire does not know, and whether they are those of the function.
    others: Vec<(bool, Cow<'a, str>, &'a RawValue)>,
}

impl<'a> ToolCallDelta<'a> {
    fn parse(raw: &'a RawValue) -> Result<Self, WireError> {
        let mut delta = Self::default();
        for (name, raw) in parse_part::<Fields<'_>>(raw.get())?.0 {
            match &*name {
                "index" => delta.index = serde_json::from_str(raw.get()).ok(),
                "id" => delta.id = serde_json::from_str(raw.get()).ok(),
                "type" => {}
                "function" => delta.read_function(raw)?,
                _ => delta.others.push((false, name, raw)),
            }
        }
        Ok(delta)
    }

    fn read_function(&mut self, raw: &'a RawValue) -> Result<(), WireError> {
        let fields: Option<Fields<'_>> = parse_part(raw.get())?;
        for (name, raw) in fields.unwrap_or_default().0 {
            match &*name {
                "name" => self.name = serde_json::from_str(raw.get()).ok(),
                "arguments" if raw.get() == "null" => {}
                "arguments" => self.arguments = arguments_text(Some(raw))?,
                _ => self.others.push((true, name, raw)),
            }
        }
        Ok(())
    }
}

struct Assembler {
    /// Whether the unknown fields of the answer go back.
    keeps_fields: bool,
    mark: String,
    has_choice: bool,
    done: bool,
    text: AnswerText,
    refused: bool,
    kept: KeptFields,
    calls: Vec<(Option<usize>, RequestedCall)>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
}

impl Assembler {
    fn add(&mut self, body: Completion<'_>) -> Result<(), WireError> {
        self.model = self.model.take().or(model_name(body.model));
        let mut choice = body.choices.into_iter().flatten().next();
        let of_choice = choice.as_mut().and_then(|choice| choice.usage.take());
        let usage = body.usage.or(body.x_groq.and_then(|groq| groq.usage)).or(of_choice);
        self.usage = usage.and_then(UsageFields::into_usage).or(self.usage);
        let Some(choice) = choice else { return Ok(()) };
        self.has_choice = true;
        if choice.finish_reason.as_deref() == Some("error") {
            let error = embedded_error(choice.error).or_else(|| embedded_error(body.error));
            return Err(WireError::Provider(error.unwrap_or_else(unknown_error)));
        }
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        if let Some(message) = choice.message {
            self.add_fields(message, |_, _| None)?;
        }
        if let Some(delta) = choice.delta {
            self.add_fields(delta, Self::find_call)?;
        }
        Ok(())
    }

    fn add_fields(
        &mut self,
        fields: Fields<'_>,
        find_call: impl Fn(&Self, &ToolCallDelta<'_>) -> Option<usize>,
    ) -> Result<(), WireError> {
        for (name, raw) in fields.0 {
            match &*name {
                "content" => self.add_content(raw)?,
                "refusal" => self.refused |= !parse_part::<Text>(raw.get())?.0.is_empty(),
                "tool_calls" => {
                    let calls: Option<Vec<&RawValue>> = parse_part(raw.get())?;
                    for call in calls.into_iter().flatten() {
                        let call = ToolCallDelta::parse(call)?;
                        let index = find_call(self, &call);
                        self.add_call(index, call);
                    }
                }
                name if self.keeps_fields => self.kept.add(name, raw),
                _ => {}
            }
        }
        Ok(())
    }

    fn add_content(&mut self, raw: &RawValue) -> Result<(), WireError> {
        let Text(text) = parse_part(raw.get())?;
        if self.keeps_fields {
            if raw.get().starts_with('[') {
                self.kept.add_content(self.text.all(), raw);
            } else {
                self.kept.add_text_after(&text);
            }
        }
        self.text.push(&text);
        Ok(())
    }

    /// Which call a delta belongs to. None if it starts a new one. The index decides. Some servers leave it
    /// out, or use the same for every call. Then a new id together with a name starts a new call.
    fn find_call(&self, delta: &ToolCallDelta<'_>) -> Option<usize> {
        let id = delta.id.as_deref().unwrap_or_default();
        let is_named = delta.name.as_ref().is_some_and(|name| !name.is_empty());
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
    fn add_call(&mut self, index: Option<usize>, delta: ToolCallDelta<'_>) {
        let index = index.unwrap_or(self.calls.len());
        if index == self.calls.len() {
            if index == MAX_CALLS {
                return;
            }
            let call = RequestedCall { id: String::new(), name: String::new(), arguments: String::new() };
            self.calls.push((delta.index, call));
        }
        for (of_function, name, raw) in delta.others.iter().filter(|_| self.keeps_fields) {
            self.kept.add_to_call(index, *of_function, name, raw);
        }
        let call = &mut self.calls[index].1;
        // Some servers invent a new id for every delta: the first one counts.
        if call.id.is_empty() {
            call.id = delta.id.unwrap_or_default();
        }
        if let Some(name) = delta.name.filter(|name| !name.is_empty()) {
            call.name = name;
        }
        call.arguments.push_str(&delta.arguments);
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
        let (text, all) = self.text.finish();
        let names: Vec<&str> = tool_calls.iter().map(|call| call.name.as_str()).collect();
        let part = self.kept.into_part(all.filter(|_| self.keeps_fields), &names);
        Ok(ModelAnswer {
            text: if self.refused { String::new() } else { text },
            finish,
            usage: self.usage,
            tool_calls,
            reasoning: kept_parts(&self.mark, part.into_iter().collect()),
            model: self.model,
            ..ModelAnswer::default()
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
        if let Some(error) = listed_error(data) {
            return Err(WireError::Provider(error));
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
        visit(self.text.visible());
    }

    fn held_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|(_, call)| call.name.len() + call.arguments.len());
        self.text.all().len() + self.kept.bytes() + calls.sum::<usize>()
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
