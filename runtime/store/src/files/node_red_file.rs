//! Node-RED's credentials file, `flows_cred.json`.
//!
//! Owns that format: its encryption, and which values are imported. Node-RED's cipher does not detect changed
//! bytes, so this format is for exchange only; our own files are sealed in another way. Never puts a value
//! into an error.

use super::whole_file;
use crate::error;
use aes::Aes256;
use aes::cipher::{KeyIvInit as _, StreamCipher as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ctr::Ctr128BE;
use redflow_contract::Message;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::id::NodeId;
use redflow_contract::json::{JsonLimits, parse_exact};
use redflow_contract::secret::PASSWORD_MASK;
use redflow_ports::{Credentials, FileStoreError, StoreError};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;
use zeroize::Zeroizing;

/// The largest credentials file of Node-RED that is read.
pub const MAX_NODE_RED_BYTES: usize = 8 * 1024 * 1024;

/// The deepest nesting of credentials.
const MAX_DEPTH: usize = 100;

const IV_BYTES: usize = 16;

/// The key of the encrypted text.
const ENCRYPTED_KEY: &str = "$";

/// The credentials of a Node-RED file, and what was left out.
#[derive(Default)]
pub struct NodeRedCredentials {
    /// The credentials to import.
    pub credentials: Credentials,
    /// Nodes whose entry is not an object of names and values.
    pub odd_nodes: usize,
    /// Values that are empty, or the mask that an editor shows for a secret.
    pub empty_values: usize,
}

/// Reads Node-RED's credentials file: encrypted with a secret, or plain.
///
/// # Errors
/// `CREDENTIALS_FILE_INVALID` when it is another kind of file, or encrypted with another secret.
pub fn decode_node_red(bytes: &[u8], secret: Option<&str>) -> Result<NodeRedCredentials, FileStoreError> {
    let file = parse(bytes).ok_or_else(|| invalid("it is no JSON object"))?;
    let Some(encrypted) = file.get(ENCRYPTED_KEY) else {
        return if file.values().all(Value::is_object) {
            Ok(import(file))
        } else {
            Err(invalid("it is neither encrypted nor a list of the credentials of nodes"))
        };
    };
    let encrypted = encrypted.as_str().ok_or_else(|| invalid("its encrypted part is no text"))?;
    let secret = secret.ok_or_else(|| invalid("it is encrypted, and no secret was given"))?;
    let plain = decrypt(encrypted, secret).ok_or_else(|| invalid("its encrypted part was changed"))?;
    let nodes = parse(&plain).ok_or_else(|| invalid("the secret is another one, or it was changed"))?;
    Ok(import(nodes))
}

/// The bytes of Node-RED's credentials file, encrypted with a secret; plain without one.
///
/// # Errors
/// When the system has no random bytes.
pub fn encode_node_red(
    credentials: &Credentials,
    secret: Option<&str>,
) -> Result<Zeroizing<Vec<u8>>, FileStoreError> {
    let failed = |reason: &dyn Display| {
        error::to_file_error(StoreError::new(
            StoreCode::DataUnusable,
            format!("The credentials cannot be written ({reason}): try again."),
        ))
    };
    let plain = serde_json::to_vec(credentials).map(Zeroizing::new).map_err(|error| failed(&error))?;
    let Some(secret) = secret else { return Ok(plain) };
    let mut iv = [0; IV_BYTES];
    getrandom::fill(&mut iv).map_err(|error| failed(&error))?;
    Ok(Zeroizing::new(json!({ENCRYPTED_KEY: encrypt(plain, secret, iv)}).to_string().into_bytes()))
}

/// What [`place_node_red`] does with a file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    /// The file stays, and the call fails.
    Keep,
    /// The new file takes its place.
    Replace,
}

/// Writes Node-RED's credentials file with mode 0600.
///
/// # Errors
/// When the file exists and `existing` is `Keep`, or when it cannot be written.
pub fn place_node_red(path: &Path, bytes: &[u8], existing: ExistingFile) -> Result<(), FileStoreError> {
    let written = match existing {
        ExistingFile::Keep => whole_file::create(path, bytes),
        ExistingFile::Replace => whole_file::replace(path, bytes, None),
    };
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => error::to_file_error(StoreError::new(
            StoreCode::DataUnusable,
            format!("{} exists already: name a file that does not, or use --force.", path.display()),
        )),
        _ => error::file_not_written(path, &error),
    })
}

fn invalid(reason: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::CredentialsFileInvalid),
        message: format!(
            "The credentials file cannot be used ({reason}): name Node-RED's file, and the secret it was written with."
        ),
    }
}

/// Parses a JSON object. The parser's error is left out, because it may quote a value.
fn parse(bytes: &[u8]) -> Option<Message> {
    let limits = JsonLimits { max_bytes: MAX_NODE_RED_BYTES, max_depth: MAX_DEPTH };
    match parse_exact(bytes, limits) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
}

fn import(nodes: Message) -> NodeRedCredentials {
    let mut file = NodeRedCredentials::default();
    for (id, values) in nodes {
        let Value::Object(mut values) = values else {
            file.odd_nodes += 1;
            continue;
        };
        let before = values.len();
        values.retain(|_, value| !value.is_null() && !matches!(value.as_str(), Some("" | PASSWORD_MASK)));
        file.empty_values += before - values.len();
        if !values.is_empty() {
            file.credentials.insert(NodeId::from(id.as_str()), values);
        }
    }
    file
}

/// Node-RED's cipher: AES-256 in counter mode, with the SHA-256 digest of the secret as key.
fn cipher(secret: &str, iv: [u8; IV_BYTES]) -> Ctr128BE<Aes256> {
    let key: Zeroizing<[u8; 32]> = Zeroizing::new(Sha256::digest(secret.as_bytes()).into());
    Ctr128BE::<Aes256>::new(&(*key).into(), &iv.into())
}

fn encrypt(mut plain: Zeroizing<Vec<u8>>, secret: &str, iv: [u8; IV_BYTES]) -> String {
    use std::fmt::Write as _;
    cipher(secret, iv).apply_keystream(&mut plain);
    let mut text = String::new();
    for byte in iv {
        let _ = write!(text, "{byte:02x}");
    }
    text + &STANDARD.encode(&*plain)
}

fn decrypt(text: &str, secret: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (head, rest) = text.split_at_checked(2 * IV_BYTES)?;
    let mut iv = [0; IV_BYTES];
    for (byte, index) in iv.iter_mut().zip((0..).step_by(2)) {
        let digits = head.get(index..index + 2).filter(|two| two.bytes().all(|c| c.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    let mut plain = Zeroizing::new(STANDARD.decode(rest).ok()?);
    cipher(secret, iv).apply_keystream(&mut plain);
    Some(plain)
}

#[cfg(test)]
#[path = "node_red_file_tests.rs"]
mod tests;
