//! Masks the secrets in the stored items of the Redflow UI, and restores them when masked values come back.
//!
//! The path of a value decides whether it is secret, by the names in `contract::secret`. No value moves to another
//! path, so a value that was masked once is never shown later.

use redflow_contract::json::{JsonLimits, JsonProblem, MAX_DEPTH, parse_strict};
use redflow_contract::secret::{
    PASSWORD_MASK, is_credential_detail, is_credential_key, is_credential_wrapper, is_secret_storage_name,
};
use serde_json::Value;

/// Limits on JSON within a text. They exceed those on stored values.
const TEXT_LIMITS: JsonLimits = JsonLimits { max_bytes: 1024 * 1024, max_depth: MAX_DEPTH };

/// Levels of JSON texts within JSON texts that are parsed.
const MAX_TEXT_LEVELS: usize = 4;

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
            Self::Credential | Self::Container if is_credential_detail(name) => Self::ByName,
            Self::Credential if is_credential_wrapper(name) => Self::Container,
            Self::ByName if !is_secret_storage_name(name) => Self::ByName,
            _ => Self::Secret,
        }
    }
}

/// The value of a key with all secrets masked.
pub(crate) fn mask_item(key: &str, value: &Value) -> Value {
    let secrecy = if is_credential_key(key) {
        Secrecy::Credential
    } else if is_secret_storage_name(key) {
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
        Value::String(text) if secrecy != Secrecy::ByName && !text.is_empty() => Value::from(PASSWORD_MASK),
        Value::String(text) if holds_secret(text, MAX_TEXT_LEVELS) => Value::from(PASSWORD_MASK),
        // It can be a PIN.
        Value::Number(_) if secrecy != Secrecy::ByName => Value::from(PASSWORD_MASK),
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
        Value::Object(map) => {
            map.iter().any(|(name, value)| is_secret_storage_name(name) || names_secret(value, levels))
        }
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
        Value::String(text) if text == PASSWORD_MASK => stored.cloned(),
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
