//! Secrets in what the Redflow UI stores: how they are shown, and that what is shown changes nothing when it comes
//! back.
//!
//! Owns which values are secret. The way to a value decides that, and a value only ever stays where it is: so none that
//! was masked once is shown later.

use redflow_contract::secret::is_secret_name;
use serde_json::Value;

/// What stands for a secret, as in Node-RED.
pub(crate) const MASK: &str = "__PWRD__";

/// Keys that begin like this hold credentials.
const CREDENTIALS: [&str; 3] = ["node-credentials:", "credential:", "credentials:"];

/// What the UI puts before the key of something that it has encrypted itself.
const ENCRYPTED: &str = "encrypted:";

/// What of credentials is no secret.
const OPEN: [&str; 14] = [
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

/// Whether a property of credentials of this name is no secret.
pub(crate) fn is_open(name: &str) -> bool {
    OPEN.contains(&name)
}

/// What is stored under a key, for anybody's eyes.
pub(crate) fn shown(key: &str, value: &Value) -> Value {
    let rest = key.strip_prefix(ENCRYPTED).unwrap_or(key);
    let is_secret = CREDENTIALS.iter().any(|start| rest.starts_with(start)) || is_secret_name(key);
    masked(value, is_secret)
}

fn masked(value: &Value, is_secret: bool) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| {
                let is_leaf = !value.is_object() && !value.is_array();
                let shown = if is_leaf && is_open(name) {
                    value.clone()
                } else {
                    masked(value, is_secret || is_secret_name(name))
                };
                (name.clone(), shown)
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| masked(item, is_secret)).collect(),
        Value::String(text) if is_secret && !text.is_empty() => Value::from(MASK),
        // A PIN.
        Value::Number(_) if is_secret => Value::from(MASK),
        other => other.clone(),
    }
}

/// What is stored when this is sent: where the mask stands, what was there stays. None if nothing was.
pub(crate) fn unmasked(sent: Value, stored: Option<&Value>) -> Option<Value> {
    match sent {
        Value::String(text) if text == MASK => stored.cloned(),
        Value::Object(map) => {
            let stored = stored.and_then(Value::as_object);
            let keep = |(name, value): (String, Value)| {
                let kept = unmasked(value, stored.and_then(|stored| stored.get(&name)))?;
                Some((name, kept))
            };
            Some(map.into_iter().filter_map(keep).collect())
        }
        Value::Array(items) => {
            let stored = stored.and_then(Value::as_array);
            let keep = |(place, item)| {
                unmasked(item, stored.and_then(|stored| stored.get(place))).unwrap_or(Value::Null)
            };
            Some(items.into_iter().enumerate().map(keep).collect())
        }
        other => Some(other),
    }
}

#[cfg(test)]
#[path = "masked_tests.rs"]
mod tests;
