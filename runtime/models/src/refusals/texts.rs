//! What the error of a provider says about the request: which change may make it acceptable.
//!
//! Providers refuse a request with one status and a sentence. One table has the sentences that mean something
//! special. Any other sentence that names a field of the request means that field.

use super::change::{Change, EFFORTS, Interface, LIMITS, present};
use super::edit::{field_names, find};
use crate::wire::{AnswerFormat, ChatRequest, ProviderError};
use redflow_ports::ToolChoice;
use std::sync::Arc;

/// The request that was refused.
pub(crate) struct RefusedRequest<'a> {
    /// Its body.
    pub(crate) body: &'a str,
    /// What it was made of.
    pub(crate) chat: &'a ChatRequest<'a>,
    /// The interface it went to, and whether there is another one. None for wires with one interface.
    pub(crate) interface: Option<(Interface, bool)>,
    /// Whether the node sets the limit of output tokens.
    pub(crate) has_own_limit: bool,
    /// Whether the node demands a stream.
    pub(crate) requires_stream: bool,
    /// Whether a weaker format is left.
    pub(crate) has_weaker_format: bool,
    /// Whether the conversation has thoughts that this wire sends.
    pub(crate) has_thoughts: bool,
}

/// What a sentence says about the request.
#[derive(Clone, Copy)]
enum Meaning {
    /// Call the Responses interface.
    UseResponses,
    /// Call Chat Completions.
    UseChat,
    /// The model cannot be forced to call a tool.
    FreeChoice,
    /// The limit of output tokens has another name.
    LimitName(&'static str),
    /// The limit of output tokens is too high.
    Limit,
    /// The effort of reasoning is none of the model's.
    Effort,
    /// Claude has no fixed budget for thinking.
    AdaptiveThinking,
    /// This field is refused.
    Omit(&'static [&'static str]),
    /// Thoughts are refused, or miss something.
    Thoughts,
}

/// A sentence, by texts that it has all of and texts that it has one of, in small letters.
struct Sentence {
    all: &'static [&'static str],
    any: &'static [&'static str],
    meaning: Meaning,
}

const fn sentence(all: &'static [&'static str], any: &'static [&'static str], meaning: Meaning) -> Sentence {
    Sentence { all, any, meaning }
}

/// How providers say that they refuse something.
const REFUSING: &[&str] = &[
    "support",
    "unknown",
    "unrecognized",
    "unexpected",
    "extra",
    "permitted",
    "allowed",
    "deprecated",
    "invalid",
    "incompatible",
];

/// The sentences with a meaning of their own. The first one that fits, and that the request can follow, counts.
const SENTENCES: &[Sentence] = &[
    // OpenAI and Azure: tools and reasoning on Chat Completions.
    sentence(&["/v1/responses"], &[], Meaning::UseResponses),
    sentence(&["responses api"], &["only", "use the", "instead"], Meaning::UseResponses),
    sentence(&["/v1/chat/completions"], &["use", "only", "instead"], Meaning::UseChat),
    // OpenAI and Azure: reasoning models.
    sentence(
        &["max_tokens", "max_completion_tokens"],
        &["use 'max_completion_tokens'", "instead"],
        Meaning::LimitName("max_completion_tokens"),
    ),
    // vLLM: the conversation and the limit are longer than the window.
    sentence(
        &["maximum context length"],
        &["max_tokens", "max_completion_tokens", "in the completion"],
        Meaning::Limit,
    ),
    sentence(
        &["max_"],
        &["too large", "maximum allowed", "must be less", "at most", "maximum value"],
        Meaning::Limit,
    ),
    sentence(&["tokens per minute", "limit", "requested"], &[], Meaning::Limit),
    sentence(&["max_completion_tokens"], REFUSING, Meaning::LimitName("max_tokens")),
    sentence(&["max_tokens"], REFUSING, Meaning::LimitName("max_completion_tokens")),
    // Claude, DeepSeek, Kimi, LM Studio.
    sentence(&["tool_choice"], &[], Meaning::FreeChoice),
    sentence(&["toolchoice"], &[], Meaning::FreeChoice),
    sentence(&["function calling config"], REFUSING, Meaning::FreeChoice),
    // OpenAI and Azure: models without reasoning.
    sentence(&["encrypted content"], REFUSING, Meaning::Omit(&["include"])),
    // Claude. What another model made, or an earlier conversation, cannot be read again.
    sentence(&["signature"], &["thought", "thinking"], Meaning::Thoughts),
    sentence(&["thinking", "cannot be modified"], &[], Meaning::Thoughts),
    sentence(&["bound to a different conversation"], &[], Meaning::Thoughts),
    // Responses: an item whose reasoning is missing.
    sentence(&["without its required"], &[], Meaning::Thoughts),
    sentence(
        &["encrypted_content"],
        &["could not be", "verified", "decrypted", "invalid"],
        Meaning::Thoughts,
    ),
    sentence(&["thinking.type.enabled", "adaptive"], &[], Meaning::AdaptiveThinking),
    sentence(
        &["thinking"],
        &["thinking.type", "adaptive thinking is not supported", "does not support thinking"],
        Meaning::Omit(&["thinking"]),
    ),
    sentence(&["does not support thinking"], &[], Meaning::Omit(&["think"])),
    sentence(&["effort"], &[], Meaning::Effort),
    sentence(&["thinking level"], &[], Meaning::Effort),
    sentence(&["thinking_level"], &[], Meaning::Effort),
    sentence(&["stream_options"], &[], Meaning::Omit(&["stream_options"])),
];

/// What errors about the format of an answer name. llama.cpp makes a grammar of a schema, for its samplers.
const FORMAT_WORDS: [&str; 9] = [
    "response_format",
    "json_schema",
    "json_object",
    "text.format",
    "output_config",
    "schema",
    "grammar",
    "initialize samplers",
    // Gemini: models that take tools or JSON, not both.
    "response mime type",
];

/// Fields without which a request asks for something else.
const NEEDED: [&str; 21] = [
    "model",
    "messages",
    "input",
    "instructions",
    "system",
    "contents",
    "systemInstruction",
    "tools",
    "tool_choice",
    "toolConfig",
    "stream",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "response_format",
    "text",
    "format",
    "maxOutputTokens",
    "num_predict",
    "responseMimeType",
    "responseJsonSchema",
];

/// Objects whose fields are settings of their own.
const GROUPS: [&str; 4] = ["generationConfig", "options", "output_config", "reasoning"];

/// Fields whose names are also ordinary words. They count only where the text says that it refuses something.
const ORDINARY_WORDS: [&str; 10] =
    ["stop", "seed", "include", "reasoning", "thinking", "think", "store", "user", "metadata", "strict"];

/// The efforts, from the least to the most.
const EFFORT_NAMES: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The change after which the provider may accept the request. None if its error is about something else.
pub(crate) fn find_change(error: &ProviderError, request: &RefusedRequest<'_>) -> Option<Change> {
    let text = format!("{} {} {}", error.message, error.param, error.code).to_ascii_lowercase();
    match error.status {
        // An address that the server does not have.
        404 | 405 => return other_interface_of_unknown_address(&text, request),
        400 | 422 => {}
        413 if text.contains("tokens per minute") => {}
        500 | 501 => return weaker_format(&text, request),
        403 => return no_stream(&text, request),
        _ => return None,
    }
    let has = |part: &&str| text.contains(*part);
    let fits = |sentence: &&Sentence| {
        sentence.all.iter().all(has) && (sentence.any.is_empty() || sentence.any.iter().any(has))
    };
    SENTENCES
        .iter()
        .filter(fits)
        .find_map(|sentence| follow(sentence.meaning, &text, request))
        .or_else(|| weaker_format(&text, request))
        .or_else(|| named_field(&text, request))
        .or_else(|| no_stream(&text, request))
}

/// The change of a sentence; none if the request has nothing that it refuses.
fn follow(meaning: Meaning, text: &str, request: &RefusedRequest<'_>) -> Option<Change> {
    let body = request.body;
    match (meaning, request.interface) {
        (Meaning::UseResponses, Some((Interface::Chat, true))) => {
            Some(Change::Interface(Interface::Responses))
        }
        // Without the other interface, such a model must not reason.
        (Meaning::UseResponses, Some((Interface::Chat, false))) => {
            let is_none = find(body, EFFORTS[0]) == Some("\"none\"");
            (text.contains("reasoning_effort") && !is_none).then_some(Change::Effort("none"))
        }
        (Meaning::UseChat, Some((Interface::Responses, true))) => Some(Change::Interface(Interface::Chat)),
        (Meaning::UseResponses | Meaning::UseChat, _) => None,
        (Meaning::FreeChoice, _) => {
            let is_forced =
                !request.chat.tools.is_empty() && request.chat.tool_choice == ToolChoice::Required;
            is_forced.then_some(Change::FreeChoice)
        }
        (Meaning::LimitName(new), _) => {
            let sent = present(body, &LIMITS[..2])?;
            (sent != [new]).then_some(Change::LimitName(new))
        }
        (Meaning::Limit, _) if request.has_own_limit => None,
        (Meaning::Limit, interface) => lower_limit(text, body, interface.is_some()),
        (Meaning::Effort, _) => {
            let path = present(body, &EFFORTS)?;
            let sent = find(body, path)?.trim_matches('"').to_ascii_lowercase();
            Some(nearest_effort(text, &sent).map_or_else(|| omit(path), Change::Effort))
        }
        (Meaning::AdaptiveThinking, _) => find(body, &["thinking"]).map(|_| Change::AdaptiveThinking),
        (Meaning::Omit(path), _) => find(body, path).map(|_| omit(path)),
        (Meaning::Thoughts, _) => request.has_thoughts.then_some(Change::NoThoughts),
    }
}

fn omit(path: &[&str]) -> Change {
    Change::Omit(path.iter().map(|part| Box::from(*part)).collect::<Arc<[_]>>())
}

/// A lower limit by the numbers in the text. A server of Chat Completions finds the highest one itself, if the
/// request has none.
fn lower_limit(text: &str, body: &str, may_omit: bool) -> Option<Change> {
    let path = present(body, &LIMITS)?;
    let sent: u32 = find(body, path)?.parse().ok()?;
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<u32>().ok());
    if text.contains("tokens per minute") {
        let after = |word: &str| {
            let rest = text.split_once(word)?.1;
            rest.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?.parse::<u32>().ok()
        };
        let over = after("requested")?.checked_sub(after("limit")?)?;
        return sent.checked_sub(over).filter(|limit| *limit >= MIN_LIMIT).map(Change::Limit);
    }
    if text.contains("context length") {
        return may_omit.then(|| omit(path));
    }
    let highest = numbers.filter(|number| *number < sent && *number >= MIN_LIMIT).max();
    highest.map(Change::Limit).or_else(|| may_omit.then(|| omit(path)))
}

/// A limit below this one leaves no room for an answer.
const MIN_LIMIT: u32 = 256;

/// The effort that the text names and that is nearest to the one sent, the higher one of two. None if it names none.
fn nearest_effort(text: &str, sent: &str) -> Option<&'static str> {
    let position = |name: &str| EFFORT_NAMES.iter().position(|known| *known == name);
    let own = position(sent)?;
    let list = ["supported values", "must be one of", "supported:", "one of"];
    let named = list.iter().find_map(|mark| text.split_once(mark)).map(|(_, rest)| rest);
    let distance = |other: usize| (other.abs_diff(own), usize::MAX - other);
    if let Some(named) = named {
        let words = named.split(|c: char| !c.is_ascii_alphabetic());
        let found =
            words.filter_map(position).filter(|other| *other != own).min_by_key(|other| distance(*other));
        return found.map(|found| EFFORT_NAMES[found]);
    }
    // Gemini names no levels: the next higher one may exist.
    let next = EFFORT_NAMES.get(own + 1).filter(|_| text.contains("thinking level"))?;
    (position("high")? > own).then_some(*next)
}

/// The other interface, if the address of this one is not known. A model that is not known is another matter.
fn other_interface_of_unknown_address(text: &str, request: &RefusedRequest<'_>) -> Option<Change> {
    match request.interface? {
        (Interface::Responses, true) if !text.contains("model") && !text.contains("deployment") => {
            Some(Change::Interface(Interface::Chat))
        }
        (Interface::Chat, true) if text.contains("/v1/responses") => {
            Some(Change::Interface(Interface::Responses))
        }
        _ => None,
    }
}

fn weaker_format(text: &str, request: &RefusedRequest<'_>) -> Option<Change> {
    let is_named = FORMAT_WORDS.iter().any(|word| text.contains(word));
    let is_sent = !matches!(request.chat.format, AnswerFormat::Text);
    (request.has_weaker_format && is_sent && is_named).then_some(Change::WeakerFormat)
}

fn no_stream(text: &str, request: &RefusedRequest<'_>) -> Option<Change> {
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
    let is_named = words.any(|word| word.starts_with("stream"));
    (request.chat.stream && !request.requires_stream && is_named).then_some(Change::NoStream)
}

/// A setting of the request that the text names.
fn named_field(text: &str, request: &RefusedRequest<'_>) -> Option<Change> {
    let says_refusal = REFUSING.iter().any(|word| text.contains(word));
    let words: Vec<String> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .map(plain_name)
        .filter(|word| !word.is_empty())
        .collect();
    let is_named = |name: &str| {
        let plain = plain_name(name);
        (says_refusal || !ORDINARY_WORDS.contains(&name)) && words.contains(&plain)
    };
    let names = field_names(request.body);
    let outer =
        names.iter().filter(|name| !NEEDED.contains(&name.as_str()) && !GROUPS.contains(&name.as_str()));
    if let Some(name) = outer.clone().find(|name| is_named(name)) {
        return Some(omit(&[name]));
    }
    for group in GROUPS {
        let Some(inner) = find(request.body, &[group]) else { continue };
        let inner = field_names(inner);
        let field = inner.iter().find(|name| !NEEDED.contains(&name.as_str()) && is_named(name));
        if let Some(name) = field {
            return Some(omit(&[group, name]));
        }
    }
    let strict: [&[&str]; 2] = [&["tools", "*", "function", "strict"], &["tools", "*", "strict"]];
    present(request.body, &strict).filter(|_| is_named("strict")).map(omit)
}

/// A name in small letters without underlines, because some servers write `reasoningEffort`.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
