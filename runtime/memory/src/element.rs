//! One turn as an element of the list in Redis: JSON, plain or encrypted.
//!
//! User, tags and messages are encrypted with XChaCha20-Poly1305 and bound to the list's key and the run: an element
//! that is moved to another conversation does not open. The numbers of messages and tokens, the run and the time stay
//! readable. Elements of version 1 have neither tokens nor user nor tags.

use crate::cipher::TurnCipher;
use crate::failure::memory_error;
use crate::stored_turn::StoredTurn;
use crate::trim::Size;
use redflow_contract::Millis;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::Summary;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 2;
/// The version without tokens, user and tags.
const FIRST_VERSION: u8 = 1;
const SUMMARY_VERSION: u8 = 1;

/// A turn to encode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewTurn<'a> {
    pub(crate) run: &'a str,
    pub(crate) at: Millis,
    pub(crate) user: Option<&'a str>,
    pub(crate) tags: &'a [String],
    pub(crate) messages: &'a [ChatMessage],
}

/// An element to write. The scripts read the first four fields, so these stay first, in this order.
#[derive(Serialize)]
struct NewElement<'a> {
    v: u8,
    n: usize,
    t: usize,
    run: &'a str,
    at: Millis,
    #[serde(flatten)]
    content: Option<NewContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
}

#[derive(Serialize)]
struct NewContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'a [String],
    messages: &'a [ChatMessage],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredElement {
    v: u8,
    n: usize,
    t: Option<usize>,
    run: String,
    #[serde(rename = "at")]
    _at: Millis,
    user: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    messages: Option<Vec<ChatMessage>>,
    sealed: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    user: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    messages: Vec<ChatMessage>,
}

/// A summary, plain or encrypted.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SummaryValue {
    v: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
}

/// The text `"run":RUN,` of an element.
pub(crate) fn run_field(run: &str) -> String {
    format!("\"run\":{},", serde_json::Value::from(run))
}

fn bound_to(parts: &[&str]) -> Vec<u8> {
    serde_json::Value::from(parts.to_vec()).to_string().into_bytes()
}

/// Encodes a turn for the list at `key`.
pub(crate) fn encode(key: &str, turn: NewTurn<'_>, cipher: Option<&TurnCipher>) -> Result<Vec<u8>, Failure> {
    let NewTurn { run, at, user, tags, messages } = turn;
    let size = Size::of_turn(messages);
    let content = NewContent { user, tags, messages };
    let mut element =
        NewElement { v: VERSION, n: size.messages, t: size.tokens, run, at, content: None, sealed: None };
    match cipher {
        None => element.content = Some(content),
        Some(cipher) => {
            let plain = serde_json::to_vec(&content).map_err(|_| unwritable())?;
            let sealed = cipher.encrypt(&plain, &bound_to(&[key, run]));
            element.sealed = Some(sealed.ok_or_else(|| memory_error("the turn cannot be encrypted"))?);
        }
    }
    serde_json::to_vec(&element).map_err(|_| unwritable())
}

fn unwritable() -> Failure {
    memory_error("the turn cannot be written as JSON")
}

/// Decodes a turn of the list at `key`. A node with a cipher reads plain turns too: the key may have been
/// added later.
pub(crate) fn decode(key: &str, element: &[u8], cipher: Option<&TurnCipher>) -> Result<StoredTurn, Failure> {
    let junk = || not_a_conversation(key);
    let stored: StoredElement = serde_json::from_slice(element).map_err(|_| junk())?;
    let is_first = stored.v == FIRST_VERSION;
    let is_known = match stored.v {
        FIRST_VERSION => stored.t.is_none() && stored.user.is_none() && stored.tags.is_empty(),
        VERSION => stored.t.is_some(),
        _ => false,
    };
    if !is_known {
        return Err(junk());
    }
    let content = match (stored.messages, stored.sealed) {
        (Some(messages), None) => Content { user: stored.user, tags: stored.tags, messages },
        (None, Some(sealed)) if stored.user.is_none() && stored.tags.is_empty() => {
            let plain = open(key, &sealed, &bound_to(&[key, &stored.run]), cipher)?;
            if is_first {
                let messages = serde_json::from_slice(&plain).map_err(|_| junk())?;
                Content { user: None, tags: Vec::new(), messages }
            } else {
                serde_json::from_slice(&plain).map_err(|_| junk())?
            }
        }
        _ => return Err(junk()),
    };
    let Content { user, tags, messages } = content;
    if stored.n != messages.len() {
        return Err(junk());
    }
    let size = Size { bytes: element.len(), ..Size::of_turn(&messages) };
    Ok(StoredTurn { run: stored.run.as_str().into(), user, tags, messages, size })
}

/// Encodes a summary of the conversation at `key`. The names of its fields have this end.
pub(crate) fn encode_summary(
    key: &str,
    fields: &str,
    summary: &Summary,
    cipher: Option<&TurnCipher>,
) -> Result<Vec<u8>, Failure> {
    let mut value = SummaryValue { v: SUMMARY_VERSION, text: None, sealed: None };
    match cipher {
        None => value.text = Some(summary.text.clone()),
        Some(cipher) => {
            let bound_to = summary_bound_to(key, fields, summary.until.as_str());
            let sealed = cipher.encrypt(summary.text.as_bytes(), &bound_to);
            value.sealed = Some(sealed.ok_or_else(|| memory_error("the summary cannot be encrypted"))?);
        }
    }
    serde_json::to_vec(&value).map_err(|_| memory_error("the summary cannot be written as JSON"))
}

/// Decodes a summary of the conversation at `key`. The names of its fields have this end.
pub(crate) fn decode_summary(
    key: &str,
    fields: &str,
    until: &str,
    value: &[u8],
    cipher: Option<&TurnCipher>,
) -> Result<Summary, Failure> {
    let junk = || not_a_conversation(key);
    let stored: SummaryValue = serde_json::from_slice(value).map_err(|_| junk())?;
    let text = match (stored.v, stored.text, stored.sealed) {
        (SUMMARY_VERSION, Some(text), None) => text,
        (SUMMARY_VERSION, None, Some(sealed)) => {
            let plain = open(key, &sealed, &summary_bound_to(key, fields, until), cipher)?;
            String::from_utf8(plain).map_err(|_| junk())?
        }
        _ => return Err(junk()),
    };
    Ok(Summary { text, until: until.into() })
}

/// A summary of all turns is bound as it was before filters had their own.
fn summary_bound_to(key: &str, fields: &str, until: &str) -> Vec<u8> {
    match fields {
        "" => bound_to(&["summary", key, until]),
        fields => bound_to(&["summary", key, until, fields]),
    }
}

fn open(key: &str, sealed: &str, bound_to: &[u8], cipher: Option<&TurnCipher>) -> Result<Vec<u8>, Failure> {
    let no_key = || memory_error(format!("the key `{key}` is encrypted, and the node has no encryptionKey"));
    cipher.ok_or_else(no_key)?.decrypt(sealed, bound_to).ok_or_else(|| {
        memory_error(format!("the key `{key}` holds a turn that cannot be decrypted with this encryptionKey"))
    })
}

/// The key holds another program's value, which is left unchanged.
pub(crate) fn not_a_conversation(key: &str) -> Failure {
    memory_error(format!("the key `{key}` holds something that is not a conversation"))
}

#[cfg(test)]
#[path = "element_tests.rs"]
mod tests;
