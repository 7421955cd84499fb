//! What both OpenAI wires say alike: errors, counts, texts, calls and the schemas of tools.
//!
//! Owns how far from the letter a server may be and still be understood. Knows neither of the two bodies.

use crate::wire::{ProviderError, WireError};
use redflow_contract::fact::Usage;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::RequestedCall;
use redflow_ports::ToolChoice;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// How many calls one answer may ask for.
pub(crate) const MAX_CALLS: usize = 128;
/// Characters of a model's name that are kept.
const MAX_MODEL_CHARS: usize = 200;
const MAX_MESSAGE_CHARS: usize = 500;
const MAX_CODE_CHARS: usize = 100;
/// Counts above this are nobody's tokens; no JSON number is exact beyond it.
const MAX_COUNT: u64 = 1 << 53;

/// A field that is left out when it is not what it should be.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let raw = Option::<&RawValue>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

/// A number of tokens. Never fails, whatever the number: even one no machine can hold.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    let whole = raw.parse().ok().or_else(|| {
        let number =
            raw.parse::<f64>().ok().filter(|number| *number >= 0.0 && *number <= MAX_COUNT as f64)?;
        Some(number as u64)
    });
    Ok(whole.filter(|count| *count <= MAX_COUNT))
}

/// What was used, in the words of either wire: some servers mix them.
#[derive(Deserialize)]
pub(crate) struct Tokens {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens_details: Option<Details>,
    #[serde(default, deserialize_with = "lenient")]
    input_tokens_details: Option<Details>,
    #[serde(default, deserialize_with = "lenient")]
    completion_tokens_details: Option<Details>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens_details: Option<Details>,
}

#[derive(Default, Deserialize)]
struct Details {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_write_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

impl Tokens {
    /// As the contract has it; none if neither side was counted.
    pub(crate) fn usage(self) -> Option<Usage> {
        let input = self.prompt_tokens.or(self.input_tokens);
        let output = self.completion_tokens.or(self.output_tokens);
        if input.is_none() && output.is_none() {
            return None;
        }
        let read = self.prompt_tokens_details.or(self.input_tokens_details).unwrap_or_default();
        let wrote = self.completion_tokens_details.or(self.output_tokens_details).unwrap_or_default();
        Some(Usage {
            input_tokens: input.unwrap_or_default(),
            output_tokens: output.unwrap_or_default(),
            cached_tokens: read.cached_tokens,
            cache_write_tokens: read.cache_write_tokens,
            reasoning_tokens: wrote.reasoning_tokens,
            cost: None,
        })
    }
}

/// Text as servers write it: a string, nothing at all, or a list of parts of which some are text.
#[derive(Default)]
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
        let mut whole = String::new();
        while let Some(Text(part)) = parts.next_element()? {
            whole.push_str(&part);
        }
        Ok(Text(whole))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut part: A) -> Result<Text, A::Error> {
        let (mut text, mut is_text) = (Text::default(), true);
        while let Some(key) = part.next_key::<String>()? {
            match key.as_str() {
                "text" => text = part.next_value()?,
                "type" => {
                    is_text = matches!(part.next_value::<Text>()?.0.as_str(), "text" | "output_text" | "")
                }
                _ => drop(part.next_value::<IgnoredAny>()?),
            }
        }
        Ok(if is_text { text } else { Text::default() })
    }
}

/// A piece of a call's arguments: JSON text in a string, or the JSON itself.
pub(crate) fn arguments(raw: Option<&RawValue>) -> Result<String, WireError> {
    let Some(raw) = raw.map(RawValue::get) else { return Ok(String::new()) };
    if raw.starts_with('"') {
        return serde_json::from_str(raw).map_err(|_| WireError::Garbled("a call's arguments are no text"));
    }
    Ok(raw.to_owned())
}

/// Calls as their results will name them: without a name of its own, or with another's, a call gets one.
pub(crate) fn settle(mut calls: Vec<RequestedCall>) -> Result<Vec<RequestedCall>, WireError> {
    if calls.len() > MAX_CALLS {
        return Err(WireError::Garbled("it asks for too many calls"));
    }
    let mut next = 0;
    for place in 0..calls.len() {
        if calls[place].name.is_empty() {
            return Err(WireError::Garbled("it asks for a call of no tool"));
        }
        if calls[place].arguments.is_empty() {
            "{}".clone_into(&mut calls[place].arguments);
        }
        let taken = calls[..place].iter().any(|other| other.id == calls[place].id);
        if taken || calls[place].id.is_empty() {
            let free = (next..).map(|n| (n, format!("call_{n}")));
            let found = free.into_iter().find(|(_, id)| calls.iter().all(|other| other.id != *id));
            if let Some((n, id)) = found {
                (next, calls[place].id) = (n + 1, id);
            }
        }
    }
    Ok(calls)
}

/// A model's name, if it has one.
pub(crate) fn model(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(|name| clip(name, MAX_MODEL_CHARS))
}

fn clip(mut text: String, chars: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(chars) {
        text.truncate(end);
    }
    text
}

/// The error a body of failure tells.
pub(crate) fn error(status: u16, body: &[u8]) -> ProviderError {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    // Some servers put the one error into a list.
    let body = body.get(0).unwrap_or(&body);
    let error = body.get("error").filter(|error| error.is_object() || error.is_string()).unwrap_or(body);
    ProviderError { status, ..told(error) }
}

/// The error in a body or a stream of success, if there is one: with the status it would have had.
pub(crate) fn error_within(raw: Option<&RawValue>) -> Option<ProviderError> {
    let error: Value = serde_json::from_str(raw?.get()).ok()?;
    let any = match &error {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => false,
    };
    any.then(|| {
        let error = told(&error);
        ProviderError { status: status(&error.kind, &error.code), ..error }
    })
}

/// An error that is told and not named.
pub(crate) fn nameless() -> ProviderError {
    ProviderError { status: 500, ..ProviderError::default() }
}

fn told(error: &Value) -> ProviderError {
    let text = |place: &Value, key: &str| match place.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let first = |texts: &mut [String]| {
        texts.iter_mut().find(|text| !text.is_empty()).map(std::mem::take).unwrap_or_default()
    };
    let inner = error.get("innererror").unwrap_or(&Value::Null);
    // A list of details is what servers that check bodies by a schema say.
    let detail = error.pointer("/detail/0").unwrap_or(&Value::Null);
    let said = error.as_str().map(str::to_owned).unwrap_or_default();
    let message = first(&mut [said, text(error, "message"), text(error, "detail"), text(detail, "msg")]);
    // An event of a stream says of itself that it is one.
    let kind = Some(text(error, "type")).filter(|kind| kind != "error").unwrap_or_default();
    let code = first(&mut [text(error, "code"), text(inner, "code")]);
    ProviderError {
        status: 0,
        kind: clip(kind, MAX_CODE_CHARS),
        code: clip(code, MAX_CODE_CHARS),
        message: clip(message, MAX_MESSAGE_CHARS),
    }
}

/// The status an error has outside of a stream.
fn status(kind: &str, code: &str) -> u16 {
    if let Some(status) = code.parse().ok().filter(|status| (400..=599).contains(status)) {
        return status;
    }
    let of = |word: &str| match word {
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "slow_down"
        | "insufficient_quota"
        | "too_many_requests"
        | "tokens"
        | "requests"
        | "credit_balance_exhausted"
        | "organization_spend_limit_exceeded"
        | "project_spend_limit_exceeded"
        | "organization_usage_limit_exceeded" => Some(429),
        "invalid_api_key" | "authentication_error" => Some(401),
        "permission_error" | "permission_denied" => Some(403),
        "model_not_found" | "not_found_error" => Some(404),
        "context_length_exceeded" | "content_filter" | "bio_policy" | "data_residency_mismatch" => Some(400),
        "server_is_overloaded" | "overloaded_error" | "service_unavailable" | "service_unavailable_error" => {
            Some(503)
        }
        "timeout" | "timeout_error" | "vector_store_timeout" => Some(504),
        "server_error" | "api_error" | "internal_error" | "internal_server_error" => Some(500),
        word if word.starts_with("invalid_") || word.contains("image") => Some(400),
        _ => None,
    };
    of(code).or_else(|| of(kind)).unwrap_or(500)
}

/// Writes what there is.
pub(crate) fn put<M: SerializeMap, T: Serialize>(
    map: &mut M,
    key: &str,
    value: Option<T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, &value))
}

/// Writes a list without making one.
pub(crate) struct Each<I>(pub(crate) I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Each<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

/// A tool's name, description and schema, as both wires have them.
pub(crate) fn put_tool<M: SerializeMap>(map: &mut M, tool: &ToolSpec) -> Result<(), M::Error> {
    map.serialize_entry("name", &tool.name)?;
    put(map, "description", Some(&tool.description).filter(|text| !text.is_empty()))?;
    map.serialize_entry("parameters", &Parameters(tool.input_schema.as_ref()))
}

/// A tool's schema. Without `type` and `properties` at its top the request is refused, so they are always there.
struct Parameters<'a>(Option<&'a Value>);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.and_then(Value::as_object);
        let lacks = |key: &str| fields.is_none_or(|fields| !fields.contains_key(key));
        let mut map = serializer.serialize_map(None)?;
        put(&mut map, "type", lacks("type").then_some("object"))?;
        for (key, value) in fields.into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        put(&mut map, "properties", lacks("properties").then_some(serde_json::Map::new()))?;
        map.end()
    }
}

/// Whether a model may ask for tools, in one word.
pub(crate) fn tool_choice(choice: ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::Required => "required",
        ToolChoice::None => "none",
    }
}
