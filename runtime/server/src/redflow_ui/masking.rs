//! Masks the secrets in the stored items of the Redflow UI, and restores them when masked values come back.
//!
//! Owns which values are secret. The path of a value decides that, and no value moves to another path. So a
//! value that was masked once is never shown later.

use redflow_contract::json::{JsonLimits, JsonProblem, MAX_DEPTH, parse_strict};
use redflow_contract::secret::is_secret_name;
use serde_json::Value;

/// Replaces a secret, as in Node-RED.
pub(crate) const MASK: &str = "__PWRD__";

/// Prefixes of the keys that hold credentials.
const CREDENTIAL_PREFIXES: [&str; 3] = ["node-credentials:", "credential:", "credentials:"];

/// Prefix of the keys whose values the UI has encrypted itself.
const ENCRYPTED_PREFIX: &str = "encrypted:";

/// Properties that contain the actual credentials.
const CONTAINERS: [&str; 2] = ["data", "value"];

/// Names that mark a secret here, in addition to those of the contract: letters and digits only.
const SECRET_NAMES: [&str; 4] = ["key", "connectionstring", "dsn", "creds"];

/// Limits on JSON within a text. They exceed those on stored values.
const TEXT_LIMITS: JsonLimits = JsonLimits { max_bytes: 1024 * 1024, max_depth: MAX_DEPTH };

/// Levels of JSON texts within JSON texts that are parsed.
const MAX_TEXT_LEVELS: usize = 4;

/// Properties of credentials that are not secret.
const PUBLIC_PROPERTIES: [&str; 14] = [
    "id",
    "name",
    "type",
    "provider",
    "endpoint",
    "deployment",
    "apiVersion",
    "createdAt",
    "updatedAt",
    "lastUsedAt",
    "description",
    "nodeId",
    "credentialId",
    "timestamp",
];

pub(crate) fn is_public_property(name: &str) -> bool {
    PUBLIC_PROPERTIES.contains(&name)
}

/// Whether the UI has encrypted the value of this key itself.
pub(crate) fn is_encrypted_by_ui(key: &str) -> bool {
    normalize(key).starts_with(ENCRYPTED_PREFIX)
}

/// One spelling for all variants of a key.
fn normalize(key: &str) -> String {
    key.trim().to_lowercase().replace('_', "-")
}

/// How secret a value is, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secrecy {
    /// The names of its properties decide.
    ByName,
    /// A credential, or an object that contains one: some of its properties are public.
    Credential,
    /// The content of a container: some of its properties are public.
    Container,
    /// All of it is secret.
    Secret,
}

impl Secrecy {
    /// The secrecy of a property of this value.
    fn of_property(self, name: &str) -> Self {
        match self {
            Self::Credential | Self::Container if is_public_property(name) => Self::ByName,
            Self::Credential if CONTAINERS.contains(&name) => Self::Container,
            Self::ByName if !is_secret(name) => Self::ByName,
            _ => Self::Secret,
        }
    }
}

/// Whether a property of this name is a secret.
fn is_secret(name: &str) -> bool {
    let letters = || -> String { name.chars().filter(|c| c.is_alphanumeric()).collect() };
    is_secret_name(name) || SECRET_NAMES.contains(&letters().to_lowercase().as_str())
}

/// The value of a key with all secrets masked.
pub(crate) fn mask_item(key: &str, value: &Value) -> Value {
    let normalized = normalize(key);
    let rest = normalized.strip_prefix(ENCRYPTED_PREFIX).map_or(&*normalized, str::trim_start);
    let secrecy = if CREDENTIAL_PREFIXES.iter().any(|prefix| rest.starts_with(prefix)) {
        Secrecy::Credential
    } else if is_secret(key) {
        Secrecy::Secret
    } else {
        Secrecy::ByName
    };
    mask(value, secrecy)
}

fn mask(value: &Value, secrecy: Secrecy) -> Value {
    let of_items = if secrecy == Secrecy::ByName { Secrecy::ByName } else { Secrecy::Secret };
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| {
                let is_leaf = !value.is_object() && !value.is_array();
                let secrecy = match secrecy.of_property(name) {
                    // A public property is a plain value. An object of that name is something else.
                    Secrecy::ByName if secrecy != Secrecy::ByName && !is_leaf => Secrecy::Secret,
                    secrecy => secrecy,
                };
                (name.clone(), mask(value, secrecy))
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| mask(item, of_items)).collect(),
        Value::String(text) if secrecy != Secrecy::ByName && !text.is_empty() => Value::from(MASK),
        Value::String(text) if holds_secret(text, MAX_TEXT_LEVELS) => Value::from(MASK),
        // It can be a PIN.
        Value::Number(_) if secrecy != Secrecy::ByName => Value::from(MASK),
        other => other.clone(),
    }
}

/// Whether a text is JSON in which a name marks a secret. Such a text is masked as a whole, because a mask
/// inside it could not be restored.
fn holds_secret(text: &str, levels: usize) -> bool {
    if !text.trim_start().starts_with(['{', '[', '"']) {
        return false;
    }
    match parse_strict(text.trim().as_bytes(), TEXT_LIMITS) {
        Ok(value) => names_secret(&value, levels),
        Err(JsonProblem::NotJson { .. }) => false,
        // It was not searched, so it may hold one.
        Err(_) => true,
    }
}

fn names_secret(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(name, value)| is_secret(name) || names_secret(value, levels)),
        Value::Array(items) => items.iter().any(|item| names_secret(item, levels)),
        Value::String(text) => match levels.checked_sub(1) {
            Some(levels) => holds_secret(text, levels),
            None => text.contains('{'),
        },
        _ => false,
    }
}

/// Replaces each mask by the stored value of the same path. A mask without a stored value is removed.
pub(crate) fn restore_masked(sent: Value, stored: Option<&Value>) -> Option<Value> {
    match sent {
        Value::String(text) if text == MASK => stored.cloned(),
        Value::Object(map) => {
            let stored = stored.and_then(Value::as_object);
            let restore = |(name, value): (String, Value)| {
                let restored = restore_masked(value, stored.and_then(|stored| stored.get(&name)))?;
                Some((name, restored))
            };
            Some(map.into_iter().filter_map(restore).collect())
        }
        Value::Array(items) => {
            let stored = stored.and_then(Value::as_array);
            let restore = |(index, item)| {
                restore_masked(item, stored.and_then(|stored| stored.get(index))).unwrap_or(Value::Null)
            };
            Some(items.into_iter().enumerate().map(restore).collect())
        }
        other => Some(other),
    }
}

#[cfg(test)]
#[path = "masking_tests.rs"]
mod tests;
