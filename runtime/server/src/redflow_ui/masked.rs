//! Secrets in what the Redflow UI stores: how they are shown, and that what is shown changes nothing when it comes
//! back.
//!
//! Owns which values are secret. The way to a value decides that, and a value only ever stays where it is: so none that
//! was masked once is shown later.

use redflow_contract::json::{JsonLimits, JsonProblem, MAX_DEPTH, parse_strict};
use redflow_contract::secret::is_secret_name;
use serde_json::Value;

/// What stands for a secret, as in Node-RED.
pub(crate) const MASK: &str = "__PWRD__";

/// Keys that begin like this hold credentials.
const CREDENTIALS: [&str; 3] = ["node-credentials:", "credential:", "credentials:"];

/// What the UI puts before the key of something that it has encrypted itself.
const ENCRYPTED: &str = "encrypted:";

/// The properties that credentials are wrapped in.
const WRAPPINGS: [&str; 2] = ["data", "value"];

/// Names that mark a secret here, beside those that do everywhere: without borders between their words.
const SECRET_NAMES: [&str; 4] = ["key", "connectionstring", "dsn", "creds"];

/// JSON in a text is looked at up to this: larger than any value that is stored.
const TEXT_LIMITS: JsonLimits = JsonLimits { max_bytes: 1024 * 1024, max_depth: MAX_DEPTH };

/// Texts within texts that are looked at.
const MAX_TEXTS: usize = 4;

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

/// Whether the UI has sealed what it stores under this key itself.
pub(crate) fn is_sealed(key: &str) -> bool {
    normal(key).starts_with(ENCRYPTED)
}

/// A key however it is written.
fn normal(key: &str) -> String {
    key.trim().to_lowercase().replace('_', "-")
}

/// Where in what is stored a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Where names tell what is secret.
    Open,
    /// A credential, or what it is wrapped in: some of its properties say what it is for.
    Credential,
    /// The properties of a wrapped credential.
    Wrapped,
    /// Where everything is secret.
    Secret,
}

impl Place {
    /// Where the value of a property is.
    fn of(self, name: &str) -> Self {
        match self {
            Self::Credential | Self::Wrapped if is_open(name) => Self::Open,
            Self::Credential if WRAPPINGS.contains(&name) => Self::Wrapped,
            Self::Open if !is_secret(name) => Self::Open,
            _ => Self::Secret,
        }
    }
}

/// Whether a property of this name is a secret.
fn is_secret(name: &str) -> bool {
    let glued = || -> String { name.chars().filter(|c| c.is_alphanumeric()).collect() };
    is_secret_name(name) || SECRET_NAMES.contains(&glued().to_lowercase().as_str())
}

/// What is stored under a key, for anybody's eyes.
pub(crate) fn shown(key: &str, value: &Value) -> Value {
    let normal = normal(key);
    let rest = normal.strip_prefix(ENCRYPTED).map_or(&*normal, str::trim_start);
    let place = if CREDENTIALS.iter().any(|start| rest.starts_with(start)) {
        Place::Credential
    } else if is_secret(key) {
        Place::Secret
    } else {
        Place::Open
    };
    masked(value, place)
}

fn masked(value: &Value, place: Place) -> Value {
    let inner = if place == Place::Open { Place::Open } else { Place::Secret };
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| {
                let is_leaf = !value.is_object() && !value.is_array();
                let place = match place.of(name) {
                    // What is called like that and holds more is something else.
                    Place::Open if place != Place::Open && !is_leaf => Place::Secret,
                    place => place,
                };
                (name.clone(), masked(value, place))
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| masked(item, inner)).collect(),
        Value::String(text) if place != Place::Open && !text.is_empty() => Value::from(MASK),
        Value::String(text) if holds_secret(text, MAX_TEXTS) => Value::from(MASK),
        // A PIN.
        Value::Number(_) if place != Place::Open => Value::from(MASK),
        other => other.clone(),
    }
}

/// Whether a text is JSON in which a name marks a secret. It is masked whole: a mask within it would come back as a part
/// of the text.
fn holds_secret(text: &str, texts: usize) -> bool {
    if !text.trim_start().starts_with(['{', '[', '"']) {
        return false;
    }
    match parse_strict(text.trim().as_bytes(), TEXT_LIMITS) {
        Ok(value) => names_secret(&value, texts),
        Err(JsonProblem::NotJson { .. }) => false,
        // Nobody looked.
        Err(_) => true,
    }
}

fn names_secret(value: &Value, texts: usize) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(name, value)| is_secret(name) || names_secret(value, texts)),
        Value::Array(items) => items.iter().any(|item| names_secret(item, texts)),
        Value::String(text) => match texts.checked_sub(1) {
            Some(texts) => holds_secret(text, texts),
            None => text.contains('{'),
        },
        _ => false,
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
