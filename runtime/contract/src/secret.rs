//! Which names mark a value as a secret. Such values never enter plans, journals, events or error texts.

use serde_json::Value;

/// What a secret value is replaced with.
pub const REDACTED: &str = "[redacted]";

/// Whole names, and endings after a word border, that mark a secret. Compared without case, `-` and `_`.
const SECRET_NAMES: [&str; 13] = [
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "encryptionkey",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "credential",
    "credentials",
    "authorization",
];

/// Whether a property or environment variable of this name holds a secret. `promptTokens` and `author`
/// do not: only the end of a name counts.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| !matches!(c, '-' | '_' | '.')).flat_map(char::to_lowercase).collect();
    SECRET_NAMES.iter().any(|secret| plain.ends_with(secret))
}

/// A copy of a value with every secret in it replaced. `${NAME}` references stay: they are not the secret.
#[must_use]
pub fn redact(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| {
                    let hidden = is_secret_name(key) && !harmless(value);
                    (key.clone(), if hidden { Value::from(REDACTED) } else { redact(value) })
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(redact).collect()),
        other => other.clone(),
    }
}

/// Empty, no text at all, or only the name of an environment variable.
fn harmless(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty() || (text.starts_with("${") && text.ends_with('}')),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_secret_name, redact};
    use serde_json::json;

    #[test]
    fn names_that_hold_secrets() {
        for name in
            ["apiKey", "OPENAI_API_KEY", "api-key", "password", "GITHUB_TOKEN", "credentials", "clientSecret"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["promptTokens", "maxTokens", "author", "key", "keyPrefix", "monkey", "tokens", "name"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn redacts_at_any_depth_and_keeps_references() {
        let value =
            json!({"apiKey": "sk-1", "a": [{"password": {"p": 1}, "n": 1}], "token": "${T}", "secret": ""});
        let safe = json!({"apiKey": "[redacted]", "a": [{"password": "[redacted]", "n": 1}], "token": "${T}", "secret": ""});
        assert_eq!(redact(&value), safe);
    }
}
