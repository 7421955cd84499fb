//! What several checks of a request share.

use serde_json::{Map, Value};

/// The first key of an object that is not known.
pub(super) fn unknown_key<'a>(value: &'a Value, known: &[&str]) -> Option<(&'a String, &'a Value)> {
    value.as_object()?.iter().find(|(key, _)| !known.contains(&key.as_str()))
}

/// The items of a list. Empty if it is none.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a name of a tool fits `^[a-zA-Z0-9_-]{1,64}$`.
pub(super) fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Whether a text is a JSON object.
pub(super) fn is_object_text(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

/// A name that stands twice in a list.
pub(super) fn twice<'a>(names: &[&'a str]) -> Option<&'a str> {
    names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)).map(|(_, name)| *name)
}
