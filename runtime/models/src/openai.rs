//! What both OpenAI wires have in common: errors, usage, texts, tool calls and the schemas of tools.
//!
//! Owns how far a compatible server may deviate from OpenAI's format. Knows neither of the two bodies.

use crate::error_kind::ErrorKind;
use crate::lenient::provider_error;
use crate::wire::{CacheLifetime, CacheRequest, ProviderError, WireError};
use redflow_contract::fact::Usage;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::RequestedCall;
use redflow_ports::ToolChoice;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// The longest name of a model that is kept.
const MAX_MODEL_CHARS: usize = 200;
/// No usage has more tokens, and JSON numbers beyond it are not exact.
const MAX_TOKENS: u64 = 1 << 53;

/// Deserializes a field, or ignores it if it has another type.
pub(crate) fn valid_or_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let raw = Option::<&RawValue>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

/// A number of tokens. Never fails, not even for a number that is out of range.
pub(crate) fn token_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    let count = raw.parse().ok().or_else(|| {
        let number =
            raw.parse::<f64>().ok().filter(|number| *number >= 0.0 && *number <= MAX_TOKENS as f64)?;
        Some(number as u64)
    });
    Ok(count.filter(|count| *count <= MAX_TOKENS))
}

/// No call costs more. The sum of all calls must be a number too, because JSON has no infinite one.
const MAX_COST: f64 = 1e9;

/// The cost of a call: a number or its text. None for anything else.
fn cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    let cost: Option<f64> = raw.trim_matches('"').parse().ok();
    Ok(cost.filter(|cost| (0.0..=MAX_COST).contains(cost)))
}

/// The usage, with the field names of both wires, because some servers mix them.
#[derive(Deserialize)]
pub(crate) struct UsageFields {
    #[serde(default, deserialize_with = "token_count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    output_tokens: Option<u64>,
    /// Of Kimi, which has no details of the prompt.
    #[serde(default, deserialize_with = "token_count")]
    cached_tokens: Option<u64>,
    /// Of DeepSeek.
    #[serde(default, deserialize_with = "token_count")]
    prompt_cache_hit_tokens: Option<u64>,
    #[serde(default, deserialize_with = "valid_or_none")]
    prompt_tokens_details: Option<TokenDetails>,
    #[serde(default, deserialize_with = "valid_or_none")]
    input_tokens_details: Option<TokenDetails>,
    #[serde(default, deserialize_with = "valid_or_none")]
    completion_tokens_details: Option<TokenDetails>,
    #[serde(default, deserialize_with = "valid_or_none")]
    output_tokens_details: Option<TokenDetails>,
    /// What OpenRouter charges.
    #[serde(default, deserialize_with = "cost")]
    cost: Option<f64>,
}

#[derive(Default, Deserialize)]
struct TokenDetails {
    #[serde(default, deserialize_with = "token_count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    cache_write_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    reasoning_tokens: Option<u64>,
}

impl UsageFields {
    /// None if neither input nor output tokens are given.
    pub(crate) fn into_usage(self) -> Option<Usage> {
        let input = self.prompt_tokens.or(self.input_tokens);
        let output = self.completion_tokens.or(self.output_tokens);
        if input.is_none() && output.is_none() {
            return None;
        }
        let input_details = self.prompt_tokens_details.or(self.input_tokens_details).unwrap_or_default();
        let output_details =
            self.completion_tokens_details.or(self.output_tokens_details).unwrap_or_default();
        Some(Usage {
            input_tokens: input.unwrap_or_default(),
            output_tokens: output.unwrap_or_default(),
            cached_tokens: input_details
                .cached_tokens
                .or(self.prompt_cache_hit_tokens)
                .or(self.cached_tokens),
            cache_write_tokens: input_details.cache_write_tokens,
            reasoning_tokens: output_details.reasoning_tokens,
            cost: self.cost,
            ..Usage::default()
        })
    }
}

/// Text in the forms that servers use: a string, null, or a list of parts of which some are text.
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

/// A part of a call's arguments: JSON text in a string, or the JSON itself.
pub(crate) fn arguments_text(raw: Option<&RawValue>) -> Result<String, WireError> {
    let Some(raw) = raw.map(RawValue::get) else { return Ok(String::new()) };
    if raw.starts_with('"') {
        return serde_json::from_str(raw)
            .map_err(|_| WireError::Malformed("the arguments of a call are not text"));
    }
    Ok(raw.to_owned())
}

/// Gives the empty object to calls without arguments.
pub(crate) fn fill_arguments(calls: &mut [RequestedCall]) {
    for call in calls.iter_mut().filter(|call| call.arguments.is_empty()) {
        "{}".clone_into(&mut call.arguments);
    }
}

/// An id as the API accepts it. Other servers make longer ones, which differ at their ends.
pub(crate) fn short_id(id: &str, max_bytes: usize) -> &str {
    &id[id.ceil_char_boundary(id.len().saturating_sub(max_bytes))..]
}

/// The arguments of a call in the conversation. Some servers refuse a request with anything but an object here.
pub(crate) fn sent_arguments(arguments: &str) -> &str {
    let is_object =
        arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok();
    if is_object { arguments } else { "{}" }
}

/// The name of a model, shortened. None if it is empty.
pub(crate) fn model_name(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(|name| name.chars().take(MAX_MODEL_CHARS).collect())
}

/// The error in a stream or in a body with a success status, if there is one. Gets the status that it has
/// elsewhere.
pub(crate) fn embedded_error(raw: Option<&RawValue>) -> Option<ProviderError> {
    let error: Value = serde_json::from_str(raw?.get()).ok()?;
    let has_error = match &error {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => false,
    };
    has_error.then(|| {
        let number = error.get("code").and_then(status_number);
        let error = provider_error(0, &error);
        ProviderError { status: number.unwrap_or_else(|| usual_status(&error)), ..error }
    })
}

/// The error in a list, as Google's interface of OpenAI has it.
pub(crate) fn listed_error(data: &[u8]) -> Option<ProviderError> {
    #[derive(Deserialize)]
    struct Entry<'a> {
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    if !data.trim_ascii_start().starts_with(b"[") {
        return None;
    }
    let entries: Vec<Entry<'_>> = serde_json::from_slice(data).ok()?;
    entries.into_iter().find_map(|entry| embedded_error(entry.error))
}

/// A code that is a status.
fn status_number(code: &Value) -> Option<u16> {
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..=599).contains(status))
}

/// An error without any details.
pub(crate) fn unknown_error() -> ProviderError {
    ProviderError { status: 500, ..ProviderError::default() }
}

/// The status that an error has outside of a stream.
fn usual_status(error: &ProviderError) -> u16 {
    match ErrorKind::of_text(error) {
        Some(ErrorKind::QuotaUsedUp | ErrorKind::RateLimit | ErrorKind::LargerThanRate) => return 429,
        Some(ErrorKind::Filtered | ErrorKind::TooLong) => return 400,
        Some(ErrorKind::Overloaded) => return 503,
        None => {}
    }
    let status_of = |word: &str| match word {
        "tokens" | "requests" => Some(429),
        "invalid_api_key" | "authentication_error" => Some(401),
        "permission_error" | "permission_denied" => Some(403),
        "model_not_found" | "not_found_error" => Some(404),
        "bio_policy" | "data_residency_mismatch" => Some(400),
        "service_unavailable" | "service_unavailable_error" => Some(503),
        "timeout" | "timeout_error" | "vector_store_timeout" => Some(504),
        "server_error" | "api_error" | "internal_error" | "internal_server_error" => Some(500),
        word if word.starts_with("invalid_") || word.contains("image") => Some(400),
        _ => None,
    };
    status_of(&error.code).or_else(|| status_of(&error.kind)).unwrap_or(500)
}

/// Adds to an encoded request what it does not have yet.
pub(crate) fn add_missing(request: &mut Vec<u8>, extra: &Map<String, Value>) -> serde_json::Result<()> {
    if extra.is_empty() {
        return Ok(());
    }
    let sent: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(request)?;
    let missing: Map<String, Value> = extra
        .iter()
        .filter(|(name, _)| !sent.contains_key(name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !missing.is_empty() {
        // Both are objects with entries: the braces between them become a comma.
        request.pop();
        request.push(b',');
        request.extend_from_slice(serde_json::to_vec(&missing)?.get(1..).unwrap_or_default());
    }
    Ok(())
}

/// Writes an entry, unless the value is none.
pub(crate) fn serialize_some<M: SerializeMap, T: Serialize>(
    map: &mut M,
    key: &str,
    value: Option<T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, &value))
}

/// Writes what the request says about the provider's cache. The provider caches without it too. The key leads
/// requests that begin alike to the same cache.
pub(crate) fn serialize_cache<M: SerializeMap>(
    map: &mut M,
    cache: Option<CacheRequest<'_>>,
) -> Result<(), M::Error> {
    let Some(CacheRequest { key, lifetime }) = cache else { return Ok(()) };
    serialize_some(map, "prompt_cache_key", key.map(|key| key.digest()))?;
    // Without it the cache may last some minutes only. There is no value between them and a day.
    let retention = (lifetime == CacheLifetime::OneHour).then_some("24h");
    serialize_some(map, "prompt_cache_retention", retention)
}

/// Serialises an iterator as a list, without collecting it.
pub(crate) struct IterList<I>(pub(crate) I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for IterList<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

/// Writes the name, description and schema of a tool, which both wires have in common.
pub(crate) fn serialize_tool<M: SerializeMap>(
    map: &mut M,
    tool: &ToolSpec,
    schema: Option<&Value>,
) -> Result<(), M::Error> {
    map.serialize_entry("name", &tool.name)?;
    serialize_some(map, "description", Some(&tool.description).filter(|text| !text.is_empty()))?;
    map.serialize_entry("parameters", &Parameters(schema))
}

/// The schema of a tool. The provider refuses one without `type` and `properties`, so both are always
/// written.
struct Parameters<'a>(Option<&'a Value>);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.and_then(Value::as_object);
        let lacks = |key: &str| fields.is_none_or(|fields| !fields.contains_key(key));
        let mut map = serializer.serialize_map(None)?;
        serialize_some(&mut map, "type", lacks("type").then_some("object"))?;
        for (key, value) in fields.into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        serialize_some(&mut map, "properties", lacks("properties").then_some(serde_json::Map::new()))?;
        map.end()
    }
}

pub(crate) fn tool_choice_name(choice: ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::Required => "required",
        ToolChoice::None => "none",
    }
}
