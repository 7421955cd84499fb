//! The Messages API of Anthropic and of compatible gateways.
//!
//! Owns the format of its requests, answers, streams and errors. Never decides which settings a model gets.
//! An answer is a list of blocks. The API checks that its thoughts come back at their places, so the blocks of an
//! answer with thoughts are kept, and a later request has them instead of the text and the calls.

mod request;

use crate::error_kind::WINDOW_IS_FULL;
use crate::event_stream::StreamFormat;
use crate::lenient::{parse_object, parse_part, parse_provider_error, provider_error, token_count};
use crate::own_parts::{arguments_value, kept_parts};
use crate::wire::{AnswerAssembler, ChatRequest, MAX_CALLS, ProviderError, Reasoning, Wire, WireError};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::RequestedCall;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

const NAME: &str = "anthropic-messages";
/// The most content blocks of one answer.
const MAX_BLOCKS: u64 = 256;
/// The most bytes of the start of a usual block, which has only names.
const USUAL_START_BYTES: usize = 1_024;

/// The wire, with the settings of a node, which every request has.
#[derive(Debug, Clone, Default)]
pub struct AnthropicMessages {
    /// The id or alias of the model.
    pub model: String,
    /// The most output tokens, thinking included.
    pub max_tokens: u32,
    /// Higher values give more varied answers.
    pub temperature: Option<f64>,
    /// The share of the most likely tokens to choose from.
    pub top_p: Option<f64>,
    /// The number of most likely tokens to choose from.
    pub top_k: Option<u32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// The effort of the model, from `low` to `max`.
    pub effort: Option<&'static str>,
    /// Whether and how the model thinks.
    pub thinking: Thinking,
    /// Whether the server takes a combination of schemas as the root of a tool's schema. The provider refuses it.
    pub takes_any_root: bool,
}

/// What a request says about thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Thinking {
    /// Nothing, so that the model does as it does by default.
    #[default]
    Unset,
    /// The model decides how much it thinks.
    Adaptive {
        /// What the answer shows of it. None for the model's default.
        display: Option<ThinkingDisplay>,
    },
    /// It thinks within a budget.
    Enabled {
        /// The tokens for thinking. The API requires at least 1024, and less than `max_tokens`.
        budget: u32,
    },
    /// It does not think.
    Disabled,
}

/// What an answer shows of the model's thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingDisplay {
    /// A summary.
    Summarized,
    /// Nothing.
    Omitted,
}

impl Wire for AnthropicMessages {
    fn name(&self) -> &str {
        NAME
    }

    fn with_model(&self, model: &str) -> Box<dyn Wire> {
        Box::new(Self { model: model.to_owned(), ..self.clone() })
    }

    fn encode(&self, chat: &ChatRequest<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, &request::RequestBody::new(self, chat))
    }

    fn decode(&self, body: &[u8], reasoning: Reasoning) -> Result<ModelAnswer, WireError> {
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
        let message: Message<'_> = parse_object(body)?;
        let is_error = message.kind.as_deref() == Some("error") || message.error.is_some();
        let content = match message.content {
            Some(content) => content,
            None if is_error => return Err(embedded_error(&parse_object(body)?)),
            None => return Err(WireError::Malformed("the answer has no content")),
        };
        let mut assembler = Assembler::new(reasoning);
        assembler.model = message.model;
        assembler.stop_reason = message.stop_reason;
        assembler.add_usage(message.usage);
        for (index, block) in (0..).zip(content) {
            assembler.start_block(index, block)?;
        }
        assembler.into_answer()
    }

    fn stream_format(&self) -> StreamFormat {
        StreamFormat::Sse
    }

    fn assembler(&self, reasoning: Reasoning) -> Box<dyn AnswerAssembler> {
        Box::new(Assembler::new(reasoning))
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ProviderError {
        parse_provider_error(status, body)
    }
}

/// An error in a response with a success status. Gets the status that it has elsewhere.
fn embedded_error(body: &Value) -> WireError {
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

/// The type of a block or event. Empty if it has none.
#[derive(Deserialize)]
struct TypeTag<'a> {
    #[serde(rename = "type", borrow, default)]
    name: Cow<'a, str>,
}

/// One content block of an answer, as far as the stream has sent it.
struct Block {
    content: Content,
    /// The block as it started, to be sent back. None if that is not wanted, or the block is not fully known.
    part: Option<Map<String, Value>>,
    /// The bytes of the part beyond those of every block.
    start_bytes: usize,
}

enum Content {
    Text(String),
    ToolUse {
        id: String,
        name: String,
        /// The input at the start, which counts if no delta follows.
        input: String,
        deltas: String,
    },
    /// Thinking, or a type that this wire does not use. Its text is in the part.
    Other,
}

impl Block {
    fn parse(json: &RawValue, reasoning: Reasoning) -> Result<Self, WireError> {
        #[derive(Deserialize)]
        struct Text {
            #[serde(default)]
            text: String,
        }
        #[derive(Deserialize)]
        struct ToolUse<'a> {
            #[serde(default)]
            id: String,
            #[serde(default)]
            name: String,
            #[serde(borrow)]
            input: Option<&'a RawValue>,
        }
        let json = json.get();
        let content = match &*parse_part::<TypeTag<'_>>(json)?.name {
            "text" => Content::Text(parse_part::<Text>(json)?.text),
            "tool_use" => {
                let ToolUse { id, name, input } = parse_part(json)?;
                let input = input.map_or("{}", RawValue::get).to_owned();
                Content::ToolUse { id, name, input, deltas: String::new() }
            }
            _ => Content::Other,
        };
        let part = reasoning.is_kept().then(|| parse_part(json)).transpose()?;
        let start_bytes = if part.is_some() { json.len().saturating_sub(USUAL_START_BYTES) } else { 0 };
        Ok(Self { content, part, start_bytes })
    }

    /// Ignores a delta of a type that the block does not have.
    fn add(&mut self, delta: &BlockDelta<'_>) {
        match (&mut self.content, &*delta.kind) {
            (Content::Text(text), "text_delta") => text.push_str(&delta.text),
            (Content::ToolUse { deltas, .. }, "input_json_delta") => deltas.push_str(&delta.partial_json),
            (Content::Other, kind) => {
                let Some(part) = &mut self.part else { return };
                match (kind, part.get_mut("thinking")) {
                    ("thinking_delta", Some(Value::String(text))) => text.push_str(&delta.thinking),
                    ("thinking_delta", _) => {
                        part.insert("thinking".to_owned(), delta.thinking.as_ref().into());
                    }
                    // The signature arrives in one delta.
                    ("signature_delta", _) => {
                        part.insert("signature".to_owned(), delta.signature.as_ref().into());
                    }
                    _ => self.part = None,
                }
            }
            _ => {}
        }
    }

    /// The bytes that the stream has added to it.
    fn held_bytes(&self) -> usize {
        let text_of = |key| self.part.as_ref().and_then(|part| part.get(key)?.as_str()).map_or(0, str::len);
        let added = match &self.content {
            Content::Text(text) => text.len(),
            Content::ToolUse { input, deltas, .. } => input.len() + deltas.len(),
            Content::Other => text_of("thinking") + text_of("signature") + text_of("data"),
        };
        self.start_bytes + added
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BlockDelta<'a> {
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

/// Assembles an answer from a body or a stream. The driver, which reads the bytes, bounds its size.
struct Assembler {
    reasoning: Reasoning,
    blocks: BTreeMap<u64, Block>,
    model: Option<String>,
    stop_reason: Option<String>,
    usage: UsageCounts,
    stopped: bool,
}

/// The last value of each count. A stream updates them.
#[derive(Default)]
struct UsageCounts {
    input: Option<u64>,
    cache_write: Option<u64>,
    cache_read: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
}

impl Assembler {
    fn new(reasoning: Reasoning) -> Self {
        Self {
            reasoning,
            blocks: BTreeMap::new(),
            model: None,
            stop_reason: None,
            usage: UsageCounts::default(),
            stopped: false,
        }
    }

    fn start_block(&mut self, index: u64, block: &RawValue) -> Result<(), WireError> {
        if index >= MAX_BLOCKS {
            return Err(WireError::Malformed("the answer has too many blocks"));
        }
        match self.blocks.insert(index, Block::parse(block, self.reasoning)?) {
            None => Ok(()),
            Some(_) => Err(WireError::Malformed("a block of the answer started twice")),
        }
    }

    /// Ignores invalid numbers, which must not fail the answer.
    fn add_usage(&mut self, usage: Option<&RawValue>) {
        let usage: Value =
            usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or(Value::Null);
        let read = |pointer| usage.pointer(pointer).and_then(token_count);
        let counts = &mut self.usage;
        counts.input = read("/input_tokens").or(counts.input);
        counts.cache_write = read("/cache_creation_input_tokens").or(counts.cache_write);
        counts.cache_read = read("/cache_read_input_tokens").or(counts.cache_read);
        counts.output = read("/output_tokens").or(counts.output);
        counts.thinking = read("/output_tokens_details/thinking_tokens").or(counts.thinking);
    }

    /// Whether text and calls alone would not give the same blocks again.
    fn needs_parts(&self) -> bool {
        let (mut has_text, mut has_call) = (false, false);
        self.blocks.values().any(|block| match &block.content {
            Content::Text(text) if text.trim().is_empty() => false,
            Content::Text(_) => std::mem::replace(&mut has_text, true) || has_call,
            Content::ToolUse { .. } => {
                has_call = true;
                false
            }
            Content::Other => block.part.is_some(),
        })
    }

    fn into_answer(self) -> Result<ModelAnswer, WireError> {
        // Only a larger window makes such an answer longer. A higher limit of tokens does not.
        if self.stop_reason.as_deref() == Some(WINDOW_IS_FULL) {
            let kind = WINDOW_IS_FULL.to_owned();
            return Err(WireError::Provider(ProviderError { status: 400, kind, ..ProviderError::default() }));
        }
        let needs_parts = self.needs_parts();
        let mut answer =
            ModelAnswer { model: self.model, usage: self.usage.into_usage(), ..ModelAnswer::default() };
        let mut parts = Vec::new();
        for Block { content, part, .. } in self.blocks.into_values() {
            let mut part = part.filter(|_| needs_parts);
            let mut set =
                |key: &str, value: Value| part.as_mut().map(|part| part.insert(key.to_owned(), value));
            match content {
                Content::Text(text) => {
                    answer.text.push_str(&text);
                    set("text", text.into());
                }
                Content::ToolUse { id, name, input, deltas } => {
                    let arguments = if deltas.is_empty() { input } else { deltas };
                    set("input", arguments_value(&arguments));
                    // Calls beyond the limit are dropped.
                    if answer.tool_calls.len() < MAX_CALLS {
                        answer.tool_calls.push(RequestedCall { id, name, arguments });
                    }
                }
                Content::Other => {}
            }
            parts.extend(part.map(Value::Object));
        }
        answer.reasoning = kept_parts(NAME, parts);
        answer.finish = match self.stop_reason.as_deref() {
            Some("tool_use") => ModelFinish::ToolCalls,
            Some("refusal") => ModelFinish::Refused,
            // Only tools of the provider pause a turn, and requests have none.
            Some("max_tokens" | "pause_turn") => ModelFinish::Truncated,
            _ if !answer.tool_calls.is_empty() => ModelFinish::ToolCalls,
            _ => ModelFinish::Stop,
        };
        Ok(answer)
    }
}

impl UsageCounts {
    fn into_usage(self) -> Option<Usage> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        let inputs = [self.input, self.cache_write, self.cache_read];
        Some(Usage {
            input_tokens: inputs.into_iter().flatten().fold(0, u64::saturating_add),
            output_tokens: self.output.unwrap_or(0),
            cached_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: self.thinking,
            ..Usage::default()
        })
    }
}

impl AnswerAssembler for Assembler {
    fn add_event(&mut self, name: Option<&str>, data: &[u8]) -> Result<bool, WireError> {
        // The data repeats the name, which a gateway may have removed.
        let kind = match name {
            Some(name) if name != "message" => Cow::Borrowed(name),
            _ => parse_object::<TypeTag<'_>>(data)?.name,
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
                let Start { index, content_block } = parse_object(data)?;
                self.start_block(index, content_block)?;
            }
            "content_block_delta" => {
                #[derive(Deserialize)]
                struct Delta<'a> {
                    index: u64,
                    #[serde(borrow)]
                    delta: BlockDelta<'a>,
                }
                let Delta { index, delta } = parse_object(data)?;
                let block = self.blocks.get_mut(&index);
                block.ok_or(WireError::Malformed("a block of the answer never started"))?.add(&delta);
            }
            "message_delta" => self.message_delta(data)?,
            "message_stop" => self.stopped = true,
            "error" => return Err(embedded_error(&parse_object(data)?)),
            // An error without a type, as other providers and gateways report it.
            "" => {
                let body: Value = parse_object(data)?;
                if body.get("error").is_some_and(|error| !error.is_null()) {
                    return Err(embedded_error(&body));
                }
            }
            _ => {}
        }
        Ok(self.stopped)
    }

    fn visit_text(&self, visit: &mut dyn FnMut(&str)) {
        for block in self.blocks.values() {
            if let Content::Text(text) = &block.content {
                visit(text);
            }
        }
    }

    fn held_bytes(&self) -> usize {
        self.blocks.values().map(Block::held_bytes).sum()
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError> {
        if self.stopped { self.into_answer() } else { Err(WireError::Interrupted) }
    }
}

impl Assembler {
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
        let Start { message } = parse_object(data)?;
        self.model = message.model;
        self.add_usage(message.usage);
        Ok(())
    }

    fn message_delta(&mut self, data: &[u8]) -> Result<(), WireError> {
        #[derive(Deserialize)]
        struct Delta<'a> {
            delta: StopDelta,
            #[serde(borrow)]
            usage: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct StopDelta {
            stop_reason: Option<String>,
        }
        let Delta { delta, usage } = parse_object(data)?;
        self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
        self.add_usage(usage);
        Ok(())
    }
}

#[cfg(test)]
#[path = "anthropic_tests.rs"]
mod tests;
