//! The Gemini API of Google: `generateContent` and `streamGenerateContent`.
//!
//! Owns the format of its requests, answers, streams and errors. Never decides which settings a model gets.
//! An answer is a list of parts, and some of them have a signature that the API wants back at its place. So the
//! reasoning of an answer is all of its parts, and a later request has them instead of the text and the calls.

mod request;

use crate::address::join;
use crate::event_stream::StreamFormat;
use crate::google_error::error_of;
use crate::lenient::{parse_object, parse_part, parse_provider_error, provider_error, token_count};
use crate::own_parts::kept_parts;
use crate::wire::{AnswerAssembler, ChatRequest, MAX_CALLS, ProviderError, Reasoning, Wire, WireError};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::transcript::{ImageType, RequestedCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use url::Url;

const NAME: &str = "gemini";
/// The most parts of one answer. Adjacent pieces of a text are one part.
const MAX_PARTS: usize = 256;

/// The reasons to finish that mean: the provider withholds the answer.
const REFUSALS: [&str; 11] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "JAILBREAK",
];

/// The wire, with the settings of a node, which every request has.
#[derive(Debug, Clone, Default)]
pub struct Gemini {
    /// The name of the model, without `models/`.
    pub model: String,
    /// The most output tokens, thinking included.
    pub max_output_tokens: Option<u32>,
    /// Higher values give more varied answers.
    pub temperature: Option<f64>,
    /// The share of the most likely tokens to choose from.
    pub top_p: Option<f64>,
    /// The number of most likely tokens to choose from.
    pub top_k: Option<u32>,
    /// For reproducible answers.
    pub seed: Option<i32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// How much the model thinks, from `MINIMAL` to `HIGH`.
    pub thinking_level: Option<&'static str>,
    /// Whether the model refuses its own earlier calls without a signature.
    pub needs_signatures: bool,
}

impl Wire for Gemini {
    fn name(&self) -> &str {
        NAME
    }

    fn with_model(&self, model: &str) -> Box<dyn Wire> {
        Box::new(Self { model: model.to_owned(), ..self.clone() })
    }

    /// The path names the model, and what the request asks for.
    fn address<'a>(&self, base: &'a Url, stream: bool) -> Cow<'a, Url> {
        let method = if stream { "streamGenerateContent" } else { "generateContent" };
        let mut url = join(base, &[&format!("{}:{method}", self.model)]);
        if stream {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        Cow::Owned(url)
    }

    fn image_types(&self) -> &'static [ImageType] {
        &[ImageType::Png, ImageType::Jpeg, ImageType::Webp]
    }

    fn encode(&self, chat: &ChatRequest<'_>, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, &request::RequestBody::new(self, chat))
    }

    fn decode(&self, body: &[u8], reasoning: Reasoning) -> Result<ModelAnswer, WireError> {
        let mut assembler = Assembler { reasoning, ..Assembler::default() };
        assembler.add(parse_object(body)?)?;
        if !assembler.has_candidate && !assembler.is_blocked {
            return Err(WireError::Malformed("the answer has no candidates"));
        }
        assembler.into_answer()
    }

    fn stream_format(&self) -> StreamFormat {
        StreamFormat::Sse
    }

    fn assembler(&self, reasoning: Reasoning) -> Box<dyn AnswerAssembler> {
        Box::new(Assembler { reasoning, ..Assembler::default() })
    }

    fn parse_error(&self, status: u16, body: &[u8]) -> ProviderError {
        match serde_json::from_slice(body) {
            Ok(body) => read_error(Some(status), &body),
            Err(_) => parse_provider_error(status, body),
        }
    }
}

/// Reads the body of an error. Without a status, that of the error itself counts, as in a stream.
fn read_error(status: Option<u16>, body: &Value) -> ProviderError {
    let number = error_of(body).get("code").filter(|code| code.is_number());
    let own = number.and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let own = own.filter(|code| (400..=599).contains(code));
    let mut error = provider_error(status.or(own).unwrap_or(500), body);
    // The number is the HTTP status once more.
    if number.is_some_and(|number| error.code.parse().is_ok_and(|code: Value| code == *number)) {
        error.code.clear();
    }
    error
}

/// A whole answer, or one event of a stream, which has the same form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<&'a RawValue>>,
    prompt_feedback: Option<Value>,
    usage_metadata: Option<Value>,
    model_version: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseCandidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

/// The call of a part, whose arguments keep their text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallPart<'a> {
    #[serde(borrow)]
    function_call: FunctionCall<'a>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    id: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

/// Whether a part is a summary of the model's thinking, which is never text of the answer.
fn is_thought(part: &Map<String, Value>) -> bool {
    part.get("thought") == Some(&Value::Bool(true))
}

/// The text of a part, if it has nothing else. Such parts may be joined; one with a signature must stay alone.
fn plain_text(part: &Map<String, Value>) -> Option<&str> {
    let is_plain = part.keys().all(|key| key == "text" || key == "thought");
    part.get("text").filter(|_| is_plain)?.as_str()
}

/// Assembles an answer from a body or a stream. The driver, which reads the bytes, bounds its size.
#[derive(Default)]
struct Assembler {
    reasoning: Reasoning,
    /// The parts as the provider sent them, with adjacent pieces of a text joined.
    parts: Vec<Map<String, Value>>,
    calls: Vec<RequestedCall>,
    /// About the bytes of all parts.
    held_bytes: usize,
    model: Option<String>,
    finish_reason: Option<String>,
    usage: UsageCounts,
    has_candidate: bool,
    /// Whether the provider refuses the conversation, so that there is no answer.
    is_blocked: bool,
}

/// The last value of each count. A stream updates them.
#[derive(Default)]
struct UsageCounts {
    prompt: Option<u64>,
    tool_prompt: Option<u64>,
    cached: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
}

impl Assembler {
    fn add(&mut self, response: Response<'_>) -> Result<(), WireError> {
        let candidate = response.candidates.iter().flatten().next();
        if let Some(error) = response.error.filter(|_| candidate.is_none()) {
            let body = Value::Object(Map::from_iter([("error".to_owned(), error)]));
            return Err(WireError::Provider(read_error(None, &body)));
        }
        let feedback = response.prompt_feedback.as_ref().and_then(|feedback| feedback.get("blockReason"));
        self.is_blocked |= feedback.is_some_and(Value::is_string);
        self.model = response.model_version.or(self.model.take());
        self.usage.update(&response.usage_metadata.unwrap_or(Value::Null));
        // Requests ask for one candidate.
        let Some(candidate) = candidate else { return Ok(()) };
        self.has_candidate = true;
        let ResponseCandidate { content, finish_reason } = parse_part(candidate.get())?;
        self.finish_reason = finish_reason.or(self.finish_reason.take());
        for part in content.and_then(|content| content.parts).unwrap_or_default() {
            self.add_part(part.get())?;
        }
        Ok(())
    }

    fn add_part(&mut self, json: &str) -> Result<(), WireError> {
        let part: Map<String, Value> = parse_part(json)?;
        if part.get("text").is_some_and(|text| !text.is_string()) {
            return Err(WireError::Malformed("a part of the answer has a text that is none"));
        }
        if let Some(text) = plain_text(&part) {
            if text.is_empty() {
                return Ok(());
            }
            self.held_bytes += text.len();
            if let Some(last) = self.parts.last_mut()
                && plain_text(last).is_some()
                && is_thought(last) == is_thought(&part)
                && let Some(Value::String(all)) = last.get_mut("text")
            {
                all.push_str(text);
                return Ok(());
            }
        }
        self.held_bytes += plain_text(&part).map_or(json.len(), |_| 0);
        if self.parts.len() == MAX_PARTS {
            return Err(WireError::Malformed("the answer has too many parts"));
        }
        // Calls beyond the limit are dropped.
        if part.get("functionCall").is_some_and(|call| !call.is_null()) && self.calls.len() < MAX_CALLS {
            let FunctionCall { id, name, args } = parse_part::<CallPart<'_>>(json)?.function_call;
            let arguments = args.map_or("{}", RawValue::get).to_owned();
            self.calls.push(RequestedCall { id: id.unwrap_or_default(), name, arguments });
        }
        self.parts.push(part);
        Ok(())
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let parts = self.parts.iter().filter(|part| !is_thought(part));
        parts.filter_map(|part| part.get("text")?.as_str())
    }

    fn finish_kind(&self) -> Result<ModelFinish, WireError> {
        Ok(match self.finish_reason.as_deref() {
            Some("MAX_TOKENS") => ModelFinish::Truncated,
            Some(reason) if REFUSALS.contains(&reason) => ModelFinish::Refused,
            Some("MALFORMED_FUNCTION_CALL") => {
                return Err(WireError::InvalidCall("it is not valid (MALFORMED_FUNCTION_CALL)"));
            }
            Some("UNEXPECTED_TOOL_CALL") => {
                return Err(WireError::InvalidCall("there is no such tool (UNEXPECTED_TOOL_CALL)"));
            }
            Some("TOO_MANY_TOOL_CALLS") => {
                return Err(WireError::InvalidCall("there are too many calls (TOO_MANY_TOOL_CALLS)"));
            }
            Some("MISSING_THOUGHT_SIGNATURE") => {
                return Err(WireError::InvalidCall("it has no signature (MISSING_THOUGHT_SIGNATURE)"));
            }
            _ if self.is_blocked => ModelFinish::Refused,
            _ if !self.calls.is_empty() => ModelFinish::ToolCalls,
            _ => ModelFinish::Stop,
        })
    }

    fn into_answer(self) -> Result<ModelAnswer, WireError> {
        let finish = self.finish_kind()?;
        let text = self.texts().collect();
        let is_reasoned =
            self.parts.iter().any(|part| part.contains_key("thoughtSignature") || is_thought(part));
        let is_kept = self.reasoning.is_kept() && is_reasoned;
        let parts = self.parts.into_iter().filter(|_| is_kept).map(Value::Object).collect();
        Ok(ModelAnswer {
            text,
            finish,
            usage: self.usage.into_usage(),
            tool_calls: self.calls,
            reasoning: kept_parts(NAME, parts),
            model: self.model,
            ..ModelAnswer::default()
        })
    }
}

impl UsageCounts {
    /// Ignores invalid numbers, which must not fail the answer.
    fn update(&mut self, usage: &Value) {
        let read = |name| usage.get(name).and_then(token_count);
        self.prompt = read("promptTokenCount").or(self.prompt);
        self.tool_prompt = read("toolUsePromptTokenCount").or(self.tool_prompt);
        self.cached = read("cachedContentTokenCount").or(self.cached);
        self.candidates = read("candidatesTokenCount").or(self.candidates);
        self.thoughts = read("thoughtsTokenCount").or(self.thoughts);
    }

    /// The prompt includes what the cache has; the candidates do not include the thoughts.
    fn into_usage(self) -> Option<Usage> {
        if self.prompt.is_none() && self.candidates.is_none() {
            return None;
        }
        let sum = |counts: [Option<u64>; 2]| counts.into_iter().flatten().fold(0, u64::saturating_add);
        Some(Usage {
            input_tokens: sum([self.prompt, self.tool_prompt]),
            output_tokens: sum([self.candidates, self.thoughts]),
            cached_tokens: self.cached,
            reasoning_tokens: self.thoughts,
            ..Usage::default()
        })
    }
}

impl AnswerAssembler for Assembler {
    /// Every event may have a reason to finish, so only the end of the stream is the end of the answer.
    fn add_event(&mut self, _: Option<&str>, data: &[u8]) -> Result<bool, WireError> {
        // Some gateways end every stream as OpenAI does.
        if data.trim_ascii() == b"[DONE]" {
            return Ok(true);
        }
        self.add(parse_object(data)?)?;
        Ok(false)
    }

    fn visit_text(&self, visit: &mut dyn FnMut(&str)) {
        self.texts().for_each(visit);
    }

    fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    fn finish(self: Box<Self>) -> Result<ModelAnswer, WireError> {
        if self.finish_reason.is_none() && !self.is_blocked {
            return Err(WireError::Interrupted);
        }
        self.into_answer()
    }
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
