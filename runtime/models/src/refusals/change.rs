//! One change of a request, after which a provider accepts it.

use super::edit::{Edit, edit, find};
use std::borrow::Cow;
use std::sync::Arc;

/// One of OpenAI's two interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// Chat Completions.
    Chat,
    /// Responses.
    Responses,
}

impl Interface {
    /// Its name, for users.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "Chat Completions",
            Self::Responses => "Responses",
        }
    }
}

/// A change of a request that a provider refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The request goes to another interface.
    Interface(Interface),
    /// The model is not forced to call a tool.
    FreeChoice,
    /// The answer is not streamed.
    NoStream,
    /// The answer has a weaker format.
    WeakerFormat,
    /// Thoughts are not sent back.
    NoThoughts,
    /// The field at this path is left out.
    Omit(Arc<[Box<str>]>),
    /// The limit of output tokens has this name.
    LimitName(&'static str),
    /// The limit of output tokens is this one.
    Limit(u32),
    /// The effort of reasoning is this one.
    Effort(&'static str),
    /// Claude thinks as much as it finds right.
    AdaptiveThinking,
}

/// The names of the limit of output tokens, by wire.
pub(crate) const LIMITS: [&[&str]; 5] = [
    &["max_completion_tokens"],
    &["max_tokens"],
    &["max_output_tokens"],
    &["options", "num_predict"],
    &["generationConfig", "maxOutputTokens"],
];

/// Where the effort of reasoning stands, by wire.
pub(super) const EFFORTS: [&[&str]; 4] = [
    &["reasoning_effort"],
    &["reasoning", "effort"],
    &["output_config", "effort"],
    &["generationConfig", "thinkingConfig", "thinkingLevel"],
];

/// The groups of fields that servers refuse as a whole.
pub(super) const WHOLE_GROUPS: [&str; 2] = ["output_config", "reasoning"];

/// The first of these paths at which something stands.
pub(super) fn present<'a>(json: &str, paths: &[&'a [&'a str]]) -> Option<&'a [&'a str]> {
    paths.iter().find(|path| find(json, path).is_some()).copied()
}

impl Change {
    /// The name of the field that is refused, for the log and for the run.
    #[must_use]
    pub fn field(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::Interface(Interface::Responses) => "chat/completions",
            Self::Interface(Interface::Chat) => "responses",
            Self::FreeChoice => "tool_choice",
            Self::NoStream => "stream",
            Self::WeakerFormat => "response_format",
            Self::NoThoughts => "thoughts",
            Self::Omit(path) => return Cow::Owned(path.join(".")),
            Self::LimitName("max_tokens") => "max_completion_tokens",
            Self::LimitName(_) | Self::Limit(_) => "max_tokens",
            Self::Effort(_) => "reasoning_effort",
            Self::AdaptiveThinking => "thinking",
        })
    }

    /// Whether this change makes an earlier one superfluous.
    #[must_use]
    pub fn replaces(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (Self::Omit(path), Self::Omit(other)) => path == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(earlier),
        }
    }

    /// Applies the change to an encoded request. A change that the caller makes before the request is encoded, and
    /// one of a field that is not there, change nothing.
    pub(super) fn apply(&self, body: &str) -> Option<String> {
        match self {
            Self::Interface(_)
            | Self::FreeChoice
            | Self::NoStream
            | Self::WeakerFormat
            | Self::NoThoughts => None,
            Self::Omit(path) => {
                let path: Vec<&str> = path.iter().map(|part| &**part).collect();
                let edited = edit(body, &path, &Edit::Remove)?;
                // Who refuses the only field of a group may not know the group.
                let (_, group) = path.split_last()?;
                let is_group = matches!(group, [name] if WHOLE_GROUPS.contains(name));
                let is_empty = is_group && find(&edited, group) == Some("{}");
                let without = if is_empty { edit(&edited, group, &Edit::Remove) } else { None };
                Some(without.unwrap_or(edited))
            }
            Self::LimitName(new) => edit(body, present(body, &LIMITS[..2])?, &Edit::Rename(new)),
            Self::Limit(tokens) => edit(body, present(body, &LIMITS)?, &Edit::Replace(&tokens.to_string())),
            Self::Effort(effort) => {
                let value = match present(body, &EFFORTS) {
                    Some(path @ [.., "thinkingLevel"]) => (path, effort.to_ascii_uppercase()),
                    Some(path) => (path, (*effort).to_owned()),
                    None => (EFFORTS[0], (*effort).to_owned()),
                };
                edit(body, value.0, &Edit::Replace(&format!("\"{}\"", value.1))).or_else(|| {
                    Some(format!("{},\"reasoning_effort\":\"{effort}\"}}", body.strip_suffix('}')?))
                })
            }
            Self::AdaptiveThinking => edit(body, &["thinking"], &Edit::Replace(r#"{"type":"adaptive"}"#)),
        }
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
