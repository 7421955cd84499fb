//! Chat Completions: OpenAI's, Azure's, and what every compatible server speaks.
//!
//! Owns the shape of its requests, answers and streams. Decides nothing: what is set is sent.

use crate::loose::object;
use crate::openai::{
    Each, MAX_CALLS, Text, Tokens, arguments, error, error_within, lenient, model, nameless, put, put_tool,
    settle, tool_choice,
};
use crate::wire::{Assemble, Chat, Format, Framing, ProviderError, Wire, WireError};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

const NAME: &str = "openai-chat";
/// The one reasoning field servers of this wire want back.
const REASONING: &str = "reasoning_content";

/// Chat Completions, with what every request of a node says alike.
#[derive(Debug, Clone, Default)]
pub struct OpenaiChat {
    /// The model; none if the address names it.
    pub model: Option<String>,
    /// How many tokens the answer may have.
    pub max_tokens: Option<u32>,
    /// Whether the server knows only the old name of that.
    pub legacy_max_tokens: bool,
    /// How freely it chooses.
    pub temperature: Option<f64>,
    /// From how much of the likely it chooses.
    pub top_p: Option<f64>,
    /// How much it shuns what it said often.
    pub frequency_penalty: Option<f64>,
    /// How much it shuns what it said at all.
    pub presence_penalty: Option<f64>,
    /// For answers that can be had again.
    pub seed: Option<i64>,
    /// What ends the answer.
    pub stop: Vec<String>,
    /// How much it thinks.
    pub reasoning_effort: Option<&'static str>,
    /// Whether a stream is asked to end with what it used.
    pub stream_usage: bool,
}

impl Wire for OpenaiChat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(&self, chat: &Chat<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, &Request { wire: self, chat })
    }

    fn decode(&self, body: &[u8], reasoning: bool) -> Result<ModelAnswer, WireError> {
        let body: Body<'_> = object(body)?;
        if body.choices.as_ref().is_none_or(Vec::is_empty)
            && let Some(error) = error_within(body.error)
        {
            return Err(WireError::Provider(error));
        }
        let mut assembly = Assembly { reasoning, ..Assembly::default() };
        assembly.take(body)?;
        assembly.answer()
    }

    fn framing(&self) -> Framing {
        Framing::Sse
    }

    fn assemble(&self, reasoning: bool) -> Box<dyn Assemble> {
        Box::new(Assembly { reasoning, ..Assembly::default() })
    }

    fn error(&self, status: u16, body: &[u8]) -> ProviderError {
        error(status, body)
    }
}

struct Request<'a> {
    wire: &'a OpenaiChat,
    chat: &'a Chat<'a>,
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { wire, chat } = *self;
        let (old_limit, limit) =
            if wire.legacy_max_tokens { (wire.max_tokens, None) } else { (None, wire.max_tokens) };
        let format = match chat.format {
            Format::Text => None,
            Format::JsonObject => Some(ResponseFormat::JsonObject),
            Format::JsonSchema(schema) => Some(ResponseFormat::JsonSchema {
                json_schema: Named { name: "action", schema, strict: true },
            }),
        };
        let reasoning = chat.reasoning;
        let messages = chat.messages.iter().map(|message| Sent { message, reasoning });
        let has_tools = !chat.tools.is_empty();
        let usage = (chat.stream && wire.stream_usage).then_some(StreamOptions { include_usage: true });

        let mut map = serializer.serialize_map(None)?;
        put(&mut map, "model", wire.model.as_deref())?;
        put(&mut map, "messages", Some(Each(messages)))?;
        put(&mut map, "tools", has_tools.then(|| Each(chat.tools.iter().map(Offered))))?;
        put(&mut map, "tool_choice", has_tools.then(|| tool_choice(chat.tool_choice)))?;
        put(&mut map, "response_format", format)?;
        put(&mut map, "max_tokens", old_limit)?;
        put(&mut map, "max_completion_tokens", limit)?;
        put(&mut map, "temperature", wire.temperature)?;
        put(&mut map, "top_p", wire.top_p)?;
        put(&mut map, "frequency_penalty", wire.frequency_penalty)?;
        put(&mut map, "presence_penalty", wire.presence_penalty)?;
        put(&mut map, "seed", wire.seed)?;
        put(&mut map, "stop", Some(&wire.stop).filter(|stop| !stop.is_empty()))?;
        put(&mut map, "reasoning_effort", wire.reasoning_effort)?;
        put(&mut map, "stream", chat.stream.then_some(true))?;
        put(&mut map, "stream_options", usage)?;
        map.end()
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: Named<'a> },
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'static str,
    schema: &'a RawValue,
    strict: bool,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct Offered<'a>(&'a ToolSpec);

impl Serialize for Offered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Function<'a>(&'a ToolSpec);
        impl Serialize for Function<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                put_tool(&mut map, self.0)?;
                map.end()
            }
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function(self.0))?;
        map.end()
    }
}

struct Sent<'a> {
    message: &'a ChatMessage,
    reasoning: bool,
}

impl Sent<'_> {
    /// What the server wants back, if it was this wire it came by.
    fn thoughts(&self) -> Option<&str> {
        let opaque =
            self.message.reasoning.as_ref().filter(|opaque| self.reasoning && opaque.wire == NAME)?;
        opaque.parts.iter().find_map(|part| part.get(REASONING)?.as_str())
    }
}

impl Serialize for Sent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ChatMessage { role, content, tool_calls, tool_call_id, .. } = self.message;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role)?;
        put(&mut map, "tool_call_id", tool_call_id.as_deref().filter(|_| *role == ChatRole::Tool))?;
        map.serialize_entry(
            "content",
            &Some(content).filter(|_| !content.is_empty() || tool_calls.is_empty()),
        )?;
        put(&mut map, REASONING, self.thoughts())?;
        let calls = tool_calls.iter().map(|RequestedCall { id, name, arguments }| Asked {
            id,
            kind: "function",
            function: Function { name, arguments },
        });
        put(&mut map, "tool_calls", (!tool_calls.is_empty()).then_some(Each(calls)))?;
        map.end()
    }
}

#[derive(Serialize)]
struct Asked<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// An answer, or one chunk of it: they differ in the name of one field.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
    #[serde(default, borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Tokens>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, borrow)]
    message: Option<Said<'a>>,
    #[serde(default, borrow)]
    delta: Option<Said<'a>>,
    #[serde(default, deserialize_with = "lenient")]
    finish_reason: Option<String>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(default)]
    content: Text,
    #[serde(default)]
    refusal: Text,
    #[serde(default)]
    reasoning_content: Text,
    #[serde(default, borrow)]
    tool_calls: Option<Vec<Piece<'a>>>,
}

/// A call, or a piece of one.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(default, deserialize_with = "lenient")]
    index: Option<usize>,
    #[serde(default, deserialize_with = "lenient")]
    id: Option<String>,
    #[serde(default, borrow)]
    function: Option<PieceOf<'a>>,
}

#[derive(Default, Deserialize)]
struct PieceOf<'a> {
    #[serde(default, deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Default)]
struct Assembly {
    reasoning: bool,
    /// Whether it said anything, if only nothing.
    spoke: bool,
    done: bool,
    text: String,
    refused: bool,
    thoughts: String,
    calls: Vec<(Option<usize>, RequestedCall)>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
}

impl Assembly {
    fn take(&mut self, body: Body<'_>) -> Result<(), WireError> {
        self.model = self.model.take().or(model(body.model));
        self.usage = body.usage.and_then(Tokens::usage).or(self.usage);
        let Some(choice) = body.choices.into_iter().flatten().next() else { return Ok(()) };
        self.spoke = true;
        if choice.finish_reason.as_deref() == Some("error") {
            let error = error_within(choice.error).or_else(|| error_within(body.error));
            return Err(WireError::Provider(error.unwrap_or_else(nameless)));
        }
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        if let Some(said) = choice.message {
            self.hear(&said);
            for piece in said.tool_calls.into_iter().flatten() {
                self.put(None, piece)?;
            }
        }
        if let Some(said) = choice.delta {
            self.hear(&said);
            for piece in said.tool_calls.into_iter().flatten() {
                let place = self.place(&piece)?;
                self.put(place, piece)?;
            }
        }
        Ok(())
    }

    fn hear(&mut self, said: &Said<'_>) {
        self.text.push_str(&said.content.0);
        self.refused |= !said.refusal.0.is_empty();
        if self.reasoning {
            self.thoughts.push_str(&said.reasoning_content.0);
        }
    }

    /// Which call a piece belongs to; none if it begins one. Its index says so, and where a server leaves that
    /// out or gives every call the same, a new id together with a name does.
    fn place(&self, piece: &Piece<'_>) -> Result<Option<usize>, WireError> {
        if piece.index.is_some_and(|index| index >= MAX_CALLS) {
            return Err(WireError::Garbled("it asks for too many calls"));
        }
        let id = piece.id.as_deref().unwrap_or_default();
        let names = piece.function.as_ref().and_then(|function| function.name.as_deref());
        let is_named = names.is_some_and(|name| !name.is_empty());
        let place = if piece.index.is_some() {
            self.calls.iter().rposition(|(index, _)| *index == piece.index)
        } else {
            let same = self.calls.iter().rposition(|(_, call)| !id.is_empty() && call.id == id);
            let last = self.calls.len().checked_sub(1);
            same.or(last.filter(|last| !is_named || self.calls[*last].1.name.is_empty()))
        };
        Ok(place.filter(|place| {
            let call = &self.calls[*place].1;
            let is_other = !id.is_empty() && !call.id.is_empty() && call.id != id;
            !(is_other && is_named && !call.name.is_empty())
        }))
    }

    fn put(&mut self, place: Option<usize>, piece: Piece<'_>) -> Result<(), WireError> {
        let PieceOf { name, arguments: more } = piece.function.unwrap_or_default();
        let more = arguments(more)?;
        let place = place.unwrap_or(self.calls.len());
        if place == self.calls.len() {
            if place == MAX_CALLS {
                return Err(WireError::Garbled("it asks for too many calls"));
            }
            let call = RequestedCall { id: String::new(), name: String::new(), arguments: String::new() };
            self.calls.push((piece.index, call));
        }
        let call = &mut self.calls[place].1;
        // Some servers make up a new id for every piece: the first one counts.
        if call.id.is_empty() {
            call.id = piece.id.unwrap_or_default();
        }
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            call.name = name;
        }
        call.arguments.push_str(&more);
        Ok(())
    }

    fn answer(self) -> Result<ModelAnswer, WireError> {
        if !self.spoke {
            return Err(WireError::Garbled("it has no choices"));
        }
        let tool_calls = settle(self.calls.into_iter().map(|(_, call)| call).collect())?;
        let finish = match self.finish_reason.as_deref() {
            _ if self.refused => ModelFinish::Refused,
            Some("content_filter") => ModelFinish::Refused,
            Some("length") => ModelFinish::Truncated,
            _ if !tool_calls.is_empty() => ModelFinish::ToolCalls,
            _ => ModelFinish::Stop,
        };
        let parts = || vec![json!({ REASONING: self.thoughts })];
        Ok(ModelAnswer {
            text: if self.refused { String::new() } else { self.text },
            finish,
            usage: self.usage,
            tool_calls,
            reasoning: (!self.thoughts.is_empty())
                .then(|| OpaqueParts { wire: NAME.to_owned(), parts: parts() }),
            model: self.model,
            request_id: None,
        })
    }
}

impl Assemble for Assembly {
    fn event(&mut self, name: Option<&str>, data: &[u8]) -> Result<bool, WireError> {
        let data = data.trim_ascii();
        if data.is_empty() {
            return Ok(false);
        }
        if data == b"[DONE]" {
            self.done = true;
            return Ok(true);
        }
        let body: Body<'_> = object(data)?;
        if let Some(error) = error_within(body.error) {
            return Err(WireError::Provider(error));
        }
        if name == Some("error") {
            return Err(WireError::Provider(error_within(Some(object(data)?)).unwrap_or_else(nameless)));
        }
        self.take(body)?;
        Ok(false)
    }

    fn text(&self, tell: &mut dyn FnMut(&str)) {
        tell(&self.text);
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError> {
        if !self.done && self.finish_reason.is_none() {
            return Err(WireError::Cut);
        }
        self.answer()
    }
}

#[cfg(test)]
#[path = "openai_chat_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "openai_chat_stream_tests.rs"]
mod stream_tests;
