//! One turn as an element of the list in Redis: JSON, in the open or sealed.
//!
//! Sealed means XChaCha20-Poly1305 over the messages, bound to the list's key and the run: an element that is
//! moved to another conversation does not open. Number, run and time stay readable.

use crate::failed;
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

/// Seals turns and opens them. Says nothing of its key.
pub(crate) struct Seal(XChaCha20Poly1305);

/// A turn as it is written. The scripts read the first three fields: they stay first, and in this order.
#[derive(Serialize)]
struct Written<'a> {
    v: u8,
    n: usize,
    run: &'a str,
    at: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<&'a [ChatMessage]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
}

/// The same as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    v: u8,
    n: usize,
    run: String,
    #[serde(rename = "at")]
    _at: Millis,
    messages: Option<Vec<ChatMessage>>,
    sealed: Option<String>,
}

impl Seal {
    /// None unless the text is 32 bytes in base64.
    pub(crate) fn new(key: &str) -> Option<Self> {
        let bytes = STANDARD.decode(key.trim()).ok()?;
        let key = Key::try_from(bytes.as_slice()).ok()?;
        Some(Self(XChaCha20Poly1305::new(&key)))
    }

    fn close(&self, messages: &[ChatMessage], bound_to: &[u8]) -> Option<String> {
        let plain = serde_json::to_vec(messages).ok()?;
        let mut sealed = vec![0; NONCE_BYTES];
        getrandom::fill(&mut sealed).ok()?;
        let nonce = XNonce::try_from(sealed.as_slice()).ok()?;
        sealed.extend(self.0.encrypt(&nonce, Payload { msg: &plain, aad: bound_to }).ok()?);
        Some(STANDARD.encode(sealed))
    }

    fn open(&self, sealed: &str, bound_to: &[u8]) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(sealed).ok()?;
        let (nonce, cipher) = bytes.split_at_checked(NONCE_BYTES)?;
        let nonce = XNonce::try_from(nonce).ok()?;
        self.0.decrypt(&nonce, Payload { msg: cipher, aad: bound_to }).ok()
    }
}

/// The `"run":RUN,` of an element.
pub(crate) fn run_part(run: &str) -> String {
    format!("\"run\":{},", serde_json::Value::from(run))
}

fn bound_to(key: &str, run: &str) -> Vec<u8> {
    serde_json::Value::from(vec![key, run]).to_string().into_bytes()
}

/// Writes a turn for the list at `key`.
pub(crate) fn write(
    key: &str,
    run: &str,
    at: Millis,
    messages: &[ChatMessage],
    seal: Option<&Seal>,
) -> Result<Vec<u8>, Failure> {
    let mut turn = Written { v: VERSION, n: messages.len(), run, at, messages: None, sealed: None };
    match seal {
        None => turn.messages = Some(messages),
        Some(seal) => {
            let sealed = seal.close(messages, &bound_to(key, run));
            turn.sealed = Some(sealed.ok_or_else(|| failed("the turn cannot be encrypted"))?);
        }
    }
    serde_json::to_vec(&turn).map_err(|_| failed("the turn cannot be written as JSON"))
}

/// Reads a turn of the list at `key`. One in the open is read also by a node that seals: a key may come later.
pub(crate) fn read(key: &str, element: &[u8], seal: Option<&Seal>) -> Result<Vec<ChatMessage>, Failure> {
    let stored: Stored = serde_json::from_slice(element).map_err(|_| junk(key))?;
    let messages = match (stored.messages, stored.sealed) {
        (Some(messages), None) => messages,
        (None, Some(sealed)) => {
            let Some(seal) = seal else {
                return Err(failed(format!(
                    "the key `{key}` is encrypted, and the node has no encryptionKey"
                )));
            };
            let plain = seal.open(&sealed, &bound_to(key, &stored.run)).ok_or_else(|| {
                failed(format!(
                    "the key `{key}` holds a turn that cannot be decrypted with this encryptionKey"
                ))
            })?;
            serde_json::from_slice(&plain).map_err(|_| junk(key))?
        }
        _ => return Err(junk(key)),
    };
    if stored.v != VERSION || stored.n != messages.len() {
        return Err(junk(key));
    }
    Ok(messages)
}

/// Something that is not ours, and is left as it is.
pub(crate) fn junk(key: &str) -> Failure {
    failed(format!("the key `{key}` holds something that is not a conversation"))
}

#[cfg(test)]
#[path = "element_tests.rs"]
mod tests;
