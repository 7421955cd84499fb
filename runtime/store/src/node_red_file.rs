//! The file in which Node-RED keeps credentials, `flows_cred.json`.
//!
//! Owns that form: what a secret makes of it, and what of it can be taken over. Node-RED's cipher tells nobody whether a
//! byte was changed, so it is for exchange only; what is kept here is sealed otherwise. Never says a value in an error.

use crate::error;
use crate::whole_file;
use aes::Aes256;
use aes::cipher::{KeyIvInit as _, StreamCipher as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ctr::Ctr128BE;
use redflow_contract::Message;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::id::NodeId;
use redflow_contract::json::{JsonLimits, parse_strict};
use redflow_ports::{Credentials, FileStoreError, StoreError};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::io::ErrorKind;
use std::path::Path;
use zeroize::Zeroizing;

/// The most bytes of such a file that are read.
pub const MAX_NODE_RED_BYTES: usize = 8 * 1024 * 1024;

/// Deepest nesting of credentials.
const MAX_DEPTH: usize = 100;

const IV_BYTES: usize = 16;

/// What an editor sends for a secret it was not told.
const MASK: &str = "__PWRD__";

/// Under this name stands what is encrypted.
const ENCRYPTED: &str = "$";

/// Credentials out of a file of Node-RED's.
#[derive(Default)]
pub struct NodeRedFile {
    /// Those that can be taken over.
    pub credentials: Credentials,
    /// How many nodes have something that is none: no names and values.
    pub odd_nodes: usize,
    /// How many values are none: empty, or the mask that an editor shows for a secret.
    pub empty_values: usize,
}

/// Reads such a file: encrypted with a secret, or plain.
///
/// # Errors
/// `CREDENTIALS_FILE_INVALID` when it is no such file, or encrypted with another secret.
pub fn read_node_red(bytes: &[u8], secret: Option<&str>) -> Result<NodeRedFile, FileStoreError> {
    let whole = parse(bytes).ok_or_else(|| invalid("it is no JSON object"))?;
    let Some(encrypted) = whole.get(ENCRYPTED) else {
        return if whole.values().all(Value::is_object) {
            Ok(taken_over(whole))
        } else {
            Err(invalid("it is neither encrypted nor a list of the credentials of nodes"))
        };
    };
    let encrypted = encrypted.as_str().ok_or_else(|| invalid("what is encrypted in it is no text"))?;
    let secret = secret.ok_or_else(|| invalid("it is encrypted, and no secret was given"))?;
    let plain = decrypt(encrypted, secret).ok_or_else(|| invalid("what is encrypted in it was changed"))?;
    let nodes = parse(&plain).ok_or_else(|| invalid("the secret is another one, or it was changed"))?;
    Ok(taken_over(nodes))
}

/// Such a file, encrypted with a secret; plain without one.
///
/// # Errors
/// When the system has no random bytes.
pub fn write_node_red(
    credentials: &Credentials,
    secret: Option<&str>,
) -> Result<Zeroizing<Vec<u8>>, FileStoreError> {
    let failed = |why: &dyn std::fmt::Display| {
        error::on_shelf(StoreError::new(
            StoreCode::DataUnusable,
            format!("The credentials cannot be written ({why}): try again."),
        ))
    };
    let plain = serde_json::to_vec(credentials).map(Zeroizing::new).map_err(|why| failed(&why))?;
    let Some(secret) = secret else { return Ok(plain) };
    let mut iv = [0; IV_BYTES];
    getrandom::fill(&mut iv).map_err(|why| failed(&why))?;
    Ok(Zeroizing::new(json!({ENCRYPTED: encrypt(plain, secret, iv)}).to_string().into_bytes()))
}

/// Puts such a file in a place, for its owner alone. One that is there stays, unless it is to be replaced.
///
/// # Errors
/// When there is a file already, or it cannot be written.
pub fn place_node_red(path: &Path, bytes: &[u8], replace: bool) -> Result<(), FileStoreError> {
    let placed = if replace { whole_file::replace(path, bytes, None) } else { whole_file::make(path, bytes) };
    placed.map_err(|why| match why.kind() {
        ErrorKind::AlreadyExists => error::on_shelf(StoreError::new(
            StoreCode::DataUnusable,
            format!("{} exists already: name a file that does not, or say --force.", path.display()),
        )),
        _ => error::flow_unwritten(path, &why),
    })
}

fn invalid(why: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::CredentialsFileInvalid),
        message: format!(
            "The credentials file cannot be used ({why}): name Node-RED's file, and the secret it was written with."
        ),
    }
}

/// A JSON object. Why it is none may quote a value.
fn parse(bytes: &[u8]) -> Option<Message> {
    let limits = JsonLimits { max_bytes: MAX_NODE_RED_BYTES, max_depth: MAX_DEPTH };
    match parse_strict(bytes, limits) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
}

fn taken_over(nodes: Message) -> NodeRedFile {
    let mut file = NodeRedFile::default();
    for (id, own) in nodes {
        let Value::Object(mut own) = own else {
            file.odd_nodes += 1;
            continue;
        };
        let before = own.len();
        own.retain(|_, value| !value.is_null() && !matches!(value.as_str(), Some("" | MASK)));
        file.empty_values += before - own.len();
        if !own.is_empty() {
            file.credentials.insert(NodeId::from(id.as_str()), own);
        }
    }
    file
}

/// Node-RED's cipher: AES-256 in counter mode, with the digest of the secret as its key.
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
    for (byte, place) in iv.iter_mut().zip((0..).step_by(2)) {
        let digits = head.get(place..place + 2).filter(|two| two.bytes().all(|c| c.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    let mut plain = Zeroizing::new(STANDARD.decode(rest).ok()?);
    cipher(secret, iv).apply_keystream(&mut plain);
    Some(plain)
}

#[cfg(test)]
#[path = "node_red_file_tests.rs"]
mod tests;
