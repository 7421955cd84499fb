//! Anthropic's Messages API, and what speaks it.
//!
//! Owns the shape of its requests, answers, streams and errors. Never decides what a model may be sent: the
//! settings come resolved. No prompt caching is asked for.

mod request;

use crate::loose::{count, object, part, provider_error, provider_error_in};
use crate::wire::{Assemble, Chat, Framing, ProviderError, Wire, WireError};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::{OpaqueParts, RequestedCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

const NAME: &str = "anthropic-messages";
/// More blocks than any answer has.
const MAX_BLOCKS: u64 = 256;

/// The wire, with what every request of a model says.
#[derive(Debug, Clone, Default)]
pub struct AnthropicMessages {
    /// The model.
    pub model: String,
    /// The most tokens it may write.
    pub max_tokens: u32,
    /// How freely it picks words.
    pub temperature: Option<f64>,
    /// From which share of the likely words.
    pub top_p: Option<f64>,
    /// From how many of the likely words.
    pub top_k: Option<u32>,
    /// Texts it stops at.
    pub stop: Vec<String>,
    /// How hard it tries, from `low` to `max`.
    pub effort: Option<&'static str>,
    /// The tokens it may think; the API wants at least 1024 and less than `max_tokens`.
    pub thinking_budget: Option<u32>,
}

impl Wire for AnthropicMessages {
    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(&self, chat: &Chat<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, &request::Body::new(self, chat))
    }

    fn decode(&self, body: &[u8], reasoning: bool) -> Result<ModelAnswer, WireError> {
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(rename = "type", borrow)]
            kind: Option<Cow<'a, str>>,
            model: Option<String>,
            #[serde(borrow)]
            content: Option<Vec<&'a RawValue>>,
            stop_reason: Option<String>,
            usage: Option<&'a RawValue>,
            error: Option<&'a RawValue>,
        }
        let message: Message<'_> = object(body)?;
        let failed = message.kind.as_deref() == Some("error") || message.error.is_some();
        let content = match message.content {
            Some(content) => content,
            None if failed => return Err(reported(&object(body)?)),
            None => return Err(WireError::Garbled("the answer has no content")),
        };
        let mut answer = Assembly::new(reasoning);
        answer.model = message.model;
        answer.stop_reason = message.stop_reason;
        answer.count(message.usage);
        for (index, block) in (0..).zip(content) {
            answer.begin(index, block)?;
        }
        Ok(answer.whole())
    }

    fn framing(&self) -> Framing {
        Framing::Sse
    }

    fn assemble(&self, reasoning: bool) -> Box<dyn Assemble> {
        Box::new(Assembly::new(reasoning))
    }

    fn error(&self, status: u16, body: &[u8]) -> ProviderError {
        provider_error_in(status, body)
    }
}

/// An error that came with a status of success gets the status it has elsewhere.
fn reported(body: &Value) -> WireError {
    let error = provider_error(500, body);
    let status = match error.kind.as_str() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "conflict_error" => 409,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    };
    WireError::Provider(ProviderError { status, ..error })
}

/// What something is; empty if it does not say.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type", borrow, default)]
    name: Cow<'a, str>,
}

/// One block of an answer, as far as it is known.
enum Block {
    Text(String),
    Call {
        id: String,
        name: String,
        /// What it began with, which counts if nothing follows.
        input: String,
        pieces: String,
    },
    /// Whole, to be sent back.
    Thinking(Map<String, Value>),
    /// Nothing of ours.
    Other,
}

impl Block {
    fn read(json: &RawValue, reasoning: bool) -> Result<Self, WireError> {
        #[derive(Deserialize)]
        struct Text {
            #[serde(default)]
            text: String,
        }
        #[derive(Deserialize)]
        struct Call<'a> {
            #[serde(default)]
            id: String,
            name: String,
            #[serde(borrow)]
            input: Option<&'a RawValue>,
        }
        let json = json.get();
        Ok(match &*part::<Kind<'_>>(json)?.name {
            "text" => Self::Text(part::<Text>(json)?.text),
            "tool_use" => {
                let Call { id, name, input } = part(json)?;
                let input = input.map_or("{}", RawValue::get).to_owned();
                Self::Call { id, name, input, pieces: String::new() }
            }
            "thinking" | "redacted_thinking" if reasoning => Self::Thinking(part(json)?),
            _ => Self::Other,
        })
    }

    /// Pieces of a kind that the block does not have are none of ours.
    fn add(&mut self, piece: &Piece<'_>) {
        match (self, &*piece.kind) {
            (Self::Text(text), "text_delta") => text.push_str(&piece.text),
            (Self::Call { pieces, .. }, "input_json_delta") => pieces.push_str(&piece.partial_json),
            (Self::Thinking(whole), "thinking_delta") => match whole.get_mut("thinking") {
                Some(Value::String(text)) => text.push_str(&piece.thinking),
                _ => drop(whole.insert("thinking".to_owned(), piece.thinking.as_ref().into())),
            },
            // It comes in one piece.
            (Self::Thinking(whole), "signature_delta") => {
                whole.insert("signature".to_owned(), piece.signature.as_ref().into());
            }
            _ => {}
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    partial_json: Cow<'a, str>,
    #[serde(borrow)]
    thinking: Cow<'a, str>,
    #[serde(borrow)]
    signature: Cow<'a, str>,
}

/// An answer being put together, from a body or from a stream. Whoever reads the bytes bounds its size.
struct Assembly {
    reasoning: bool,
    blocks: BTreeMap<u64, Block>,
    model: Option<String>,
    stop_reason: Option<String>,
    counts: Counts,
    stopped: bool,
}

/// The last that was said of each: a stream counts on.
#[derive(Default)]
struct Counts {
    input: Option<u64>,
    cache_write: Option<u64>,
    cache_read: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl Assembly {
    fn new(reasoning: bool) -> Self {
        Self {
            reasoning,
            blocks: BTreeMap::new(),
            model: None,
            stop_reason: None,
            counts: Counts::default(),
            stopped: false,
        }
    }

    fn begin(&mut self, index: u64, block: &RawValue) -> Result<(), WireError> {
        if index >= MAX_BLOCKS {
            return Err(WireError::Garbled("the answer has too many blocks"));
        }
        match self.blocks.insert(index, Block::read(block, self.reasoning)?) {
            None => Ok(()),
            Some(_) => Err(WireError::Garbled("a block of the answer began twice")),
        }
    }

    /// Odd numbers are no reason to lose an answer: they are not counted.
    fn count(&mut self, usage: Option<&RawValue>) {
        let usage: Value =
            usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or(Value::Null);
        let read = |pointer| usage.pointer(pointer).and_then(count);
        let counts = &mut self.counts;
        counts.input = read("/input_tokens").or(counts.input);
        counts.cache_write = read("/cache_creation_input_tokens").or(counts.cache_write);
        counts.cache_read = read("/cache_read_input_tokens").or(counts.cache_read);
        counts.output = read("/output_tokens").or(counts.output);
        counts.thinking = read("/output_tokens_details/thinking_tokens").or(counts.thinking);
    }

    fn whole(self) -> ModelAnswer {
        let mut answer =
            ModelAnswer { model: self.model, usage: self.counts.usage(), ..ModelAnswer::default() };
        let mut parts = Vec::new();
        for block in self.blocks.into_values() {
            match block {
                Block::Text(text) if answer.text.is_empty() => answer.text = text,
                Block::Text(text) => answer.text.push_str(&text),
                Block::Call { id, name, input, pieces } => {
                    // Gateways leave ids out.
                    let id = if id.is_empty() { format!("call_{}", answer.tool_calls.len()) } else { id };
                    let arguments = if pieces.is_empty() { input } else { pieces };
                    answer.tool_calls.push(RequestedCall { id, name, arguments });
                }
                Block::Thinking(part) => parts.push(Value::Object(part)),
                Block::Other => {}
            }
        }
        answer.reasoning = (!parts.is_empty()).then(|| OpaqueParts { wire: NAME.to_owned(), parts });
        answer.finish = match self.stop_reason.as_deref() {
            Some("tool_use") => ModelFinish::ToolCalls,
            Some("refusal") => ModelFinish::Refused,
            // Only a tool of the provider's pauses a turn, and it is offered none.
            Some("max_tokens" | "model_context_window_exceeded" | "pause_turn") => ModelFinish::Truncated,
            _ if !answer.tool_calls.is_empty() => ModelFinish::ToolCalls,
            _ => ModelFinish::Stop,
        };
        answer
    }
}

impl Counts {
    fn usage(self) -> Option<Usage> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        let read = [self.input, self.cache_write, self.cache_read];
        Some(Usage {
            input_tokens: read.into_iter().flatten().fold(0, u64::saturating_add),
            output_tokens: self.output.unwrap_or(0),
            cached_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: self.thinking,
            cost: None,
        })
    }
}

impl Assemble for Assembly {
    fn event(&mut self, name: Option<&str>, data: &[u8]) -> Result<bool, WireError> {
        // The data says the same as the name, which a gateway may have lost.
        let kind = match name {
            Some(name) if name != "message" => Cow::Borrowed(name),
            _ => object::<Kind<'_>>(data)?.name,
        };
        match &*kind {
            "message_start" => self.message_start(data)?,
            "content_block_start" => {
                #[derive(Deserialize)]
                struct Start<'a> {
                    index: u64,
                    #[serde(borrow)]
                    content_block: &'a RawValue,
                }
                let Start { index, content_block } = object(data)?;
                self.begin(index, content_block)?;
            }
            "content_block_delta" => {
                #[derive(Deserialize)]
                struct Delta<'a> {
                    index: u64,
                    #[serde(borrow)]
                    delta: Piece<'a>,
                }
                let Delta { index, delta } = object(data)?;
                let block = self.blocks.get_mut(&index);
                block.ok_or(WireError::Garbled("a block of the answer never began"))?.add(&delta);
            }
            "message_delta" => self.message_delta(data)?,
            "message_stop" => self.stopped = true,
            "error" => return Err(reported(&object(data)?)),
            // Nothing but an error: this is how other providers, and gateways, report one.
            "" => {
                let body: Value = object(data)?;
                if body.get("error").is_some_and(|error| !error.is_null()) {
                    return Err(reported(&body));
                }
            }
            _ => {}
        }
        Ok(self.stopped)
    }

    fn text(&self, tell: &mut dyn FnMut(&str)) {
        for block in self.blocks.values() {
            if let Block::Text(text) = block {
                tell(text);
            }
        }
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError> {
        if self.stopped { Ok(self.whole()) } else { Err(WireError::Cut) }
    }
}

impl Assembly {
    fn message_start(&mut self, data: &[u8]) -> Result<(), WireError> {
        #[derive(Deserialize)]
        struct Start<'a> {
            #[serde(borrow)]
            message: Message<'a>,
        }
        #[derive(Deserialize)]
        struct Message<'a> {
            model: Option<String>,
            #[serde(borrow)]
            usage: Option<&'a RawValue>,
        }
        let Start { message } = object(data)?;
        self.model = message.model;
        self.count(message.usage);
        Ok(())
    }

    fn message_delta(&mut self, data: &[u8]) -> Result<(), WireError> {
        #[derive(Deserialize)]
        struct Delta<'a> {
            delta: Ending,
            #[serde(borrow)]
            usage: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Ending {
            stop_reason: Option<String>,
        }
        let Delta { delta, usage } = object(data)?;
        self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
        self.count(usage);
        Ok(())
    }
}

#[cfg(test)]
#[path = "anthropic_tests.rs"]
mod tests;
