//! What people store becomes an entry: what they leave out stays as it is, and no secret is kept.

use super::problems::invalid;
use redflow_contract::api::ApiError;
use redflow_contract::archive::{Entry, EntryKind, EntryState, MAX_ENTRY_KEY, MAX_ENTRY_TEXT, Trust};
use redflow_contract::input::user_name;
use redflow_contract::memory_api::MemoryPut;
use redflow_contract::secret::mask_secret_values;
use redflow_contract::{Message, Millis};
use redflow_knowledge::{clean_name, clean_text};
use redflow_ports::{Expected, NewEntry};
use serde_json::Value;

/// The largest whole number that JSON keeps exact.
const MAX_TIME: Millis = (1 << 53) - 1;

/// Fails if no entry can be stored under this key. An address could not name it, or people could not read it.
pub(super) fn check_key(key: &str) -> Result<(), ApiError> {
    if key.is_empty() || key.len() > MAX_ENTRY_KEY {
        return Err(invalid(key, &format!("its key must have 1 to {MAX_ENTRY_KEY} bytes")));
    }
    if matches!(key, "." | "..") || clean_name(key) != key {
        return Err(invalid(key, "its key must be one line of visible characters, and neither `.` nor `..`"));
    }
    Ok(())
}

/// The entry to store, in the place of the current one.
pub(super) fn merge(key: &str, put: MemoryPut, current: Option<&Entry>) -> Result<NewEntry, ApiError> {
    let MemoryPut { text, kind, tags, user, session, state, valid_from, expires_at, importance, meta } = put;
    let text = clean(&text);
    if text.trim().is_empty() {
        return Err(invalid(key, "it has no text"));
    }
    if text.len() > MAX_ENTRY_TEXT {
        return Err(invalid(key, &format!("its text has more than {MAX_ENTRY_TEXT} bytes")));
    }
    if importance.is_some_and(|importance| !(0.0..=1.0).contains(&importance)) {
        return Err(invalid(key, "its importance is not a number from 0 to 1"));
    }
    if [valid_from, expires_at].into_iter().flatten().any(|time| time > MAX_TIME) {
        return Err(invalid(key, "a time is not in milliseconds since 1970"));
    }
    let new = NewEntry::new(key, EntryKind::Fact, String::new());
    let is_same = current.is_some_and(|current| current.text == text);
    let base = current.map_or(new, |current| copy_of(current.clone()));
    let state = state.unwrap_or(base.state);
    Ok(NewEntry {
        kind: kind.unwrap_or(base.kind),
        tags: tags.map_or(base.tags, |tags| tags.iter().map(|tag| clean(tag).trim().to_owned()).collect()),
        user: user.map_or(base.user, |user| user_name(&user)),
        session: session.map_or(base.session, |session| named(&session)),
        state,
        valid_from: valid_from.or(base.valid_from),
        // What is found again is true again.
        valid_to: base.valid_to.filter(|_| !matches!(state, EntryState::Live | EntryState::Pinned)),
        created_at: base.created_at.filter(|_| is_same),
        expires_at: expires_at.or(base.expires_at),
        importance: importance.unwrap_or(base.importance),
        meta: meta.map_or(base.meta, |meta| clean_meta(&meta)),
        trust: Trust::Operator,
        text,
        vector: None,
        ..base
    })
}

/// The same entry, to be stored in its own place, without its vector.
pub(super) fn copy_of(entry: Entry) -> NewEntry {
    NewEntry {
        key: entry.key,
        expected: Expected::Version(entry.version),
        kind: entry.kind,
        text: entry.text,
        vector: None,
        meta: entry.meta,
        tags: entry.tags,
        user: entry.user,
        session: entry.session,
        state: entry.state,
        valid_from: Some(entry.valid_from),
        valid_to: entry.valid_to,
        created_at: Some(entry.created_at),
        expires_at: entry.expires_at,
        trust: entry.trust,
        importance: entry.importance,
        source: entry.source,
        supersedes: entry.supersedes,
    }
}

/// A text without characters that show nothing or turn its direction, and without secrets of a known form.
fn clean(text: &str) -> String {
    mask_secret_values(&clean_text(text)).0.into_owned()
}

fn clean_meta(meta: &Message) -> Message {
    meta.iter().map(|(name, value)| (clean(name), clean_value(value))).collect()
}

/// The nesting of a request is limited, so this ends.
fn clean_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(text)),
        Value::Array(values) => values.iter().map(clean_value).collect(),
        Value::Object(fields) => Value::Object(clean_meta(fields)),
        other => other.clone(),
    }
}

fn named(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
