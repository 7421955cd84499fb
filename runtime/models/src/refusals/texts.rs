//! What the error of a provider says about the request: which change may make it acceptable.
//!
//! Providers refuse a request with one status and a sentence. One table has the sentences that mean something
//! special. Any other sentence that names a field of the request means that field.

use super::change::{Change, EFFORTS, Interface, LIMITS, WHOLE_GROUPS, present};
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

/// What OpenAI writes about a model that only has the Responses interface.
const NO_CHAT: &str = "not supported in the v1/chat/completions";
/// The same of Chat Completions.
const NO_RESPONSES: &str = "not supported with the responses api";

/// What OpenAI writes about an item that it has not kept.
const NOT_KEPT: &str = "items are not persisted";

/// What providers write about a conversation that is longer than the window.
const WINDOW: &str = "maximum context length";
/// The same of Claude.
const WINDOW_OF_CLAUDE: &str = "exceed context limit";
/// What providers write about a request that is larger than a rate.
const RATE: &str = "tokens per minute";

/// The sentences with a meaning of their own. The first one that fits, and that the request can follow, counts.
const SENTENCES: &[Sentence] = &[
    // OpenAI and Azure: tools and reasoning on Chat Completions.
    sentence(&["v1/responses"], &[], Meaning::UseResponses),
    sentence(&[NO_CHAT], &[], Meaning::UseResponses),
    sentence(&["chatcompletion operation does not work"], &[], Meaning::UseResponses),
    sentence(&[NO_RESPONSES], &[], Meaning::UseChat),
    sentence(&["responses api"], &["only", "use the", "instead"], Meaning::UseResponses),
    sentence(&["v1/chat/completions"], &["use", "only", "instead"], Meaning::UseChat),
    // OpenAI and Azure: reasoning models.
    sentence(
        &["max_tokens", "max_completion_tokens"],
        &["use 'max_completion_tokens'", "instead"],
        Meaning::LimitName("max_completion_tokens"),
    ),
    // vLLM, OpenRouter, Claude: the conversation and the limit are longer than the window.
    sentence(
        &[WINDOW],
        &["max_tokens", "max_completion_tokens", "in the completion", "in the output"],
        Meaning::Limit,
    ),
    sentence(&[WINDOW_OF_CLAUDE, "max_tokens"], &[], Meaning::Limit),
    sentence(
        &["max_"],
        &["too large", "maximum allowed", "must be less", "at most", "maximum value"],
        Meaning::Limit,
    ),
    sentence(&[RATE, "limit", "requested"], &[], Meaning::Limit),
    sentence(&["max_completion_tokens"], REFUSING, Meaning::LimitName("max_tokens")),
    sentence(&["max_tokens"], REFUSING, Meaning::LimitName("max_completion_tokens")),
    // Claude, DeepSeek, Kimi, LM Studio.
    sentence(&["tool_choice"], &[], Meaning::FreeChoice),
    sentence(&["toolchoice"], &[], Meaning::FreeChoice),
    sentence(&["function calling config"], REFUSING, Meaning::FreeChoice),
    // Responses: reasoning that another account or another model made.
    sentence(
        &["encrypted"],
        &["could not be", "verified", "decrypted", "invalid_encrypted_content"],
        Meaning::Thoughts,
    ),
    // OpenAI and Azure: models without reasoning.
    sentence(&["encrypted content"], &["support", "permitted", "not allowed"], Meaning::Omit(&["include"])),
    // Claude. What another model made, or an earlier conversation, cannot be read again.
    sentence(&["signature"], &["thought", "thinking"], Meaning::Thoughts),
    sentence(&["thinking", "cannot be modified"], &[], Meaning::Thoughts),
    sentence(&["bound to a different conversation"], &[], Meaning::Thoughts),
    // Responses: an item whose reasoning is missing.
    sentence(&["without its required"], &[], Meaning::Thoughts),
    // Responses: an item whose reasoning is not encrypted, so that only its id goes back.
    sentence(&[NOT_KEPT], &[], Meaning::Thoughts),
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

/// A field whose name is a plain word, but a word that errors do not have for anything else.
const TEMPERATURE: &str = "temperature";

/// What stands before the name of a refused field.
const FIELD_WORDS: [&str; 7] =
    ["parameter", "parameters", "argument", "arguments", "field", "property", "name"];

/// The plain words among the fields that this program sends by itself. A person can add any other one.
const OWN_WORDS: [&str; 7] = ["seed", "stop", "include", "reasoning", "thinking", "think", "store"];

/// The efforts, from the least to the most.
const EFFORT_NAMES: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The change after which the provider may accept the request. None if its error is about something else.
pub(crate) fn find_change(error: &ProviderError, request: &RefusedRequest<'_>) -> Option<Change> {
    let text = format!("{} {} {}", error.message, error.param, error.code).to_ascii_lowercase();
    match error.status {
        // An address that the server does not have.
        404 if text.contains(NOT_KEPT) => return follow(Meaning::Thoughts, &text, request),
        404 | 405 => return other_interface_of_unknown_address(&text, request),
        400 | 422 => {}
        413 if text.contains(RATE) => {}
        500 | 501 => return weaker_format(&text, request),
        403 => return no_stream(&text, request),
        _ => return None,
    }
    let has = |part: &&str| text.contains(*part);
    let fits = |sentence: &&Sentence| {
        sentence.all.iter().all(has) && (sentence.any.is_empty() || sentence.any.iter().any(has))
    };
    for sentence in SENTENCES.iter().filter(fits) {
        let change = follow(sentence.meaning, &text, request);
        if change.is_some() {
            return change;
        }
        // The error is about the limit of the node. No other change of the request helps.
        let is_own_limit = matches!(sentence.meaning, Meaning::Limit) && request.has_own_limit;
        if is_own_limit && present(request.body, &LIMITS).is_some() {
            return None;
        }
    }
    weaker_format(&text, request)
        .or_else(|| named_field(error, &text, request))
        .or_else(|| no_stream(&text, request))
}

/// Whether a change helps with later conversations too. A limit that is too high for a long conversation is not too
/// high for a short one.
pub(crate) fn is_lasting(change: &Change, error: &ProviderError, body: &str) -> bool {
    let is_limit = match change {
        Change::Limit(_) => true,
        Change::Omit(path) => {
            LIMITS.iter().any(|limit| path.iter().map(|part| &**part).eq(limit.iter().copied()))
        }
        _ => false,
    };
    let text = error.message.to_ascii_lowercase();
    if !is_limit || !(text.contains(RATE) || text.contains(WINDOW) || text.contains(WINDOW_OF_CLAUDE)) {
        return true;
    }
    let sent = present(body, &LIMITS).and_then(|path| find(body, path)?.parse::<u64>().ok());
    // A limit that is not smaller than the window fits no conversation.
    sent.zip(number_after(&text, WINDOW)).is_some_and(|(sent, window)| window <= sent)
}

/// The first number after a part of a text.
fn number_after(text: &str, part: &str) -> Option<u64> {
    numbers_after(text, part)?.next()
}

fn numbers_after<'a>(text: &'a str, part: &str) -> Option<impl Iterator<Item = u64> + 'a> {
    let (_, rest) = text.split_once(part)?;
    Some(rest.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()))
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
        (Meaning::LimitName(new), Some((Interface::Chat, _))) => {
            let sent = present(body, &LIMITS[..2])?;
            (sent != [new]).then_some(Change::LimitName(new))
        }
        // The other interfaces have one name for it.
        (Meaning::LimitName(_), _) => None,
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
    let if_smaller = |limit: u64| {
        let limit = u32::try_from(limit).ok().filter(|limit| (MIN_LIMIT..sent).contains(limit));
        limit.map(Change::Limit)
    };
    if text.contains(RATE) {
        let over = number_after(text, "requested")?.checked_sub(number_after(text, "limit")?)?;
        return if_smaller(u64::from(sent).checked_sub(over)?);
    }
    // Claude: the conversation + the limit > the window.
    if let Some(mut numbers) = numbers_after(text, WINDOW_OF_CLAUDE) {
        let (used, _, window) = (numbers.next()?, numbers.next()?, numbers.next()?);
        return if_smaller(window.checked_sub(used)?);
    }
    if text.contains(WINDOW) {
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
    let list = ["supported values", "must be one of", "supported:", "one of", "input should be"];
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
        (Interface::Responses, true) if text.contains(NO_RESPONSES) => {
            Some(Change::Interface(Interface::Chat))
        }
        (Interface::Chat, true) if text.contains("v1/responses") || text.contains(NO_CHAT) => {
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
fn named_field(error: &ProviderError, text: &str, request: &RefusedRequest<'_>) -> Option<Change> {
    let message = error.message.to_ascii_lowercase();
    let says_refusal = REFUSING.iter().any(|word| text.contains(word));
    let words: Vec<String> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .map(plain_name)
        .filter(|word| !word.is_empty())
        .collect();
    let is_marked = |name: &str| says_refusal && (is_param(&error.param, name) || is_marked(&message, name));
    let is_named =
        |name: &str| words.contains(&plain_name(name)) && (!is_plain_word(name) || is_marked(name));
    let names = field_names(request.body);
    let outer =
        names.iter().filter(|name| !NEEDED.contains(&name.as_str()) && !GROUPS.contains(&name.as_str()));
    if let Some(name) = outer.clone().find(|name| is_named(name)) {
        return Some(omit(&[name]));
    }
    for group in GROUPS {
        let Some(inner) = find(request.body, &[group]) else { continue };
        let inner = field_names(inner);
        // A server may know the whole group no more than its field.
        let is_whole = WHOLE_GROUPS.contains(&group) && is_marked(group);
        let field =
            inner.iter().find(|name| !NEEDED.contains(&name.as_str()) && (is_whole || is_named(name)));
        if let Some(name) = field {
            return Some(omit(&[group, name]));
        }
    }
    let strict: [&[&str]; 2] = [&["tools", "*", "function", "strict"], &["tools", "*", "strict"]];
    let is_strict = says_refusal && words.iter().any(|word| word == "strict");
    present(request.body, &strict).filter(|_| is_strict).map(omit)
}

/// Whether the name of a field is also a word that errors have for other things, such as `provider` or `user`. Only an
/// error that has it as a name is about the field.
fn is_plain_word(name: &str) -> bool {
    name != TEMPERATURE && name.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Whether the provider says in a field of its own that its error is about this one.
fn is_param(param: &str, name: &str) -> bool {
    param.split(['.', '[', ']']).any(|part| part == name)
}

/// Whether a text has a word as the name of a field: in quotes, after `parameter` and the like, before what is
/// said of it, or alone after a colon.
fn is_marked(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if before.ends_with(is_part) || after.starts_with(is_part) {
            return false;
        }
        let is_quoted = before.ends_with(['\'', '"', '`']) && after.starts_with(['\'', '"', '`']);
        let introduced = before.trim_end();
        let is_place =
            after.starts_with(':') && (introduced.is_empty() || introduced.ends_with(['.', ';', ':']));
        let is_introduced = FIELD_WORDS.iter().any(|word| introduced.ends_with(word));
        let is_subject = OWN_WORDS.contains(&name)
            && [" is not supported", " is unsupported"].iter().any(|rest| after.starts_with(rest));
        let is_last = introduced.ends_with(':') && after.trim_end().trim_end_matches('.').is_empty();
        is_quoted || is_place || is_introduced || is_subject || is_last
    })
}

/// A name in small letters without underlines, because some servers write `reasoningEffort`.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
