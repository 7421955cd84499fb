//! One turn as an element of the list in Redis: JSON, plain or encrypted.
//!
//! The messages are encrypted with XChaCha20-Poly1305 and bound to the list's key and the run: an element
//! that is moved to another conversation does not open. The number of messages, the run and the time stay
//! readable.

use crate::failure::memory_error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};
use redflow_contract::Millis;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;

/// Encrypts and decrypts turns. It has no `Debug`, so it never shows its key.
pub(crate) struct TurnCipher(XChaCha20Poly1305);

/// An element to write. The scripts read the first three fields, so these stay first, in this order.
#[derive(Serialize)]
struct NewElement<'a> {
    v: u8,
    n: usize,
    run: &'a str,
    at: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<&'a [ChatMessage]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredElement {
    v: u8,
    n: usize,
    run: String,
    #[serde(rename = "at")]
    _at: Millis,
    messages: Option<Vec<ChatMessage>>,
    sealed: Option<String>,
}

impl TurnCipher {
    /// None unless the key is 32 bytes in base64.
    pub(crate) fn new(key: &str) -> Option<Self> {
        let bytes = STANDARD.decode(key.trim()).ok()?;
        let key = Key::try_from(bytes.as_slice()).ok()?;
        Some(Self(XChaCha20Poly1305::new(&key)))
    }

    fn encrypt(&self, messages: &[ChatMessage], bound_to: &[u8]) -> Option<String> {
        let plain = serde_json::to_vec(messages).ok()?;
        let mut sealed = vec![0; NONCE_BYTES];
        getrandom::fill(&mut sealed).ok()?;
        let nonce = XNonce::try_from(sealed.as_slice()).ok()?;
        sealed.extend(self.0.encrypt(&nonce, Payload { msg: &plain, aad: bound_to }).ok()?);
        Some(STANDARD.encode(sealed))
    }

    fn decrypt(&self, sealed: &str, bound_to: &[u8]) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(sealed).ok()?;
        let (nonce, cipher) = bytes.split_at_checked(NONCE_BYTES)?;
        let nonce = XNonce::try_from(nonce).ok()?;
        self.0.decrypt(&nonce, Payload { msg: cipher, aad: bound_to }).ok()
    }
}

/// The text `"run":RUN,` of an element.
pub(crate) fn run_field(run: &str) -> String {
    format!("\"run\":{},", serde_json::Value::from(run))
}

fn bound_to(key: &str, run: &str) -> Vec<u8> {
    serde_json::Value::from(vec![key, run]).to_string().into_bytes()
}

/// Encodes a turn for the list at `key`.
pub(crate) fn encode(
    key: &str,
    run: &str,
    at: Millis,
    messages: &[ChatMessage],
    cipher: Option<&TurnCipher>,
) -> Result<Vec<u8>, Failure> {
    let mut element = NewElement { v: VERSION, n: messages.len(), run, at, messages: None, sealed: None };
    match cipher {
        None => element.messages = Some(messages),
        Some(cipher) => {
            let sealed = cipher.encrypt(messages, &bound_to(key, run));
            element.sealed = Some(sealed.ok_or_else(|| memory_error("the turn cannot be encrypted"))?);
        }
    }
    serde_json::to_vec(&element).map_err(|_| memory_error("the turn cannot be written as JSON"))
}

/// Decodes a turn of the list at `key`. A node with a cipher reads plain turns too: the key may have been
/// added later.
pub(crate) fn decode(
    key: &str,
    element: &[u8],
    cipher: Option<&TurnCipher>,
) -> Result<Vec<ChatMessage>, Failure> {
    let stored: StoredElement = serde_json::from_slice(element).map_err(|_| not_a_conversation(key))?;
    let messages = match (stored.messages, stored.sealed) {
        (Some(messages), None) => messages,
        (None, Some(sealed)) => {
            let Some(cipher) = cipher else {
                return Err(memory_error(format!(
                    "the key `{key}` is encrypted, and the node has no encryptionKey"
                )));
            };
            let plain = cipher.decrypt(&sealed, &bound_to(key, &stored.run)).ok_or_else(|| {
                memory_error(format!(
                    "the key `{key}` holds a turn that cannot be decrypted with this encryptionKey"
                ))
            })?;
            serde_json::from_slice(&plain).map_err(|_| not_a_conversation(key))?
        }
        _ => return Err(not_a_conversation(key)),
    };
    if stored.v != VERSION || stored.n != messages.len() {
        return Err(not_a_conversation(key));
    }
    Ok(messages)
}

/// The key holds another program's value, which is left unchanged.
pub(crate) fn not_a_conversation(key: &str) -> Failure {
    memory_error(format!("the key `{key}` holds something that is not a conversation"))
}

#[cfg(test)]
#[path = "element_tests.rs"]
mod tests;
