//! Which names mark a value as a secret. Such values never enter plans, journals, events or error texts.

use serde_json::Value;

/// What a secret value is replaced with.
pub const REDACTED: &str = "[redacted]";

/// Last words of names that hold secrets.
const SECRET_WORDS: [&str; 13] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "pass",
    "pin",
    "token",
    "credential",
    "authorization",
    "auth",
    "bearer",
    "cookie",
];

/// Endings that mark a secret also where no word border is written, as in `apikey` or `dbpassword`.
const SECRET_ENDINGS: [&str; 11] = [
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
];

/// Words that make of `key` something that is no secret.
const OPEN_KEYS: [&str; 7] = ["public", "primary", "foreign", "sort", "partition", "cache", "idempotency"];

/// Words that make of `tokens` secrets; others, as in `maxTokens`, make it a count.
const TOKEN_KINDS: [&str; 6] = ["access", "refresh", "api", "auth", "bearer", "session"];

/// Whether a property or environment variable of this name holds a secret. The last word decides, without a
/// plural `s` and without numbers behind it: `OPENAI_API_KEY_2` does, `keyPrefix` and `author` do not.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let mut words = words(name);
    let last = words.pop().unwrap_or_default();
    let before = words.last().map(String::as_str);
    let single = last.strip_suffix('s').unwrap_or(&last);
    match (single, before) {
        ("token", Some(kind)) if last != single => TOKEN_KINDS.contains(&kind),
        ("key", Some(kind)) => !OPEN_KEYS.contains(&kind),
        // The plural of a glued `maxtokens` is a count as well.
        (ending, _) if ending != "token" && ending.ends_with("token") => last == single,
        _ => {
            SECRET_WORDS.contains(&last.as_str())
                || SECRET_WORDS.contains(&single)
                || SECRET_ENDINGS.iter().any(|ending| single.ends_with(ending))
        }
    }
}

/// The words of a name in small letters: `APIKey_v2` is `api`, `key`, `v`. Numbers at its end are left out.
fn words(name: &str) -> Vec<String> {
    let name = name.trim_end_matches(|c: char| c.is_numeric() || !c.is_alphanumeric());
    let mut words = vec![String::new()];
    let mut chars = name.chars().peekable();
    let mut last = '_';
    while let Some(c) = chars.next() {
        let begins = c.is_uppercase()
            && (!last.is_uppercase() || chars.peek().is_some_and(|next| next.is_lowercase()));
        if (begins || !c.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        last = c;
    }
    words
}

/// A copy of a property with every secret in it replaced. `${NAME}` references stay: they are not the secret.
#[must_use]
pub fn redact_property(name: &str, value: &Value) -> Value {
    if is_secret_name(name) && !harmless(value) { Value::from(REDACTED) } else { redact(value) }
}

/// The same for a value without a name.
fn redact(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.clone(), redact_property(key, value))).collect()
        }
        Value::Array(items) => items.iter().map(redact).collect(),
        other => other.clone(),
    }
}

/// Nothing that could be a secret: empty, yes or no, or only the name of an environment variable.
fn harmless(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty() || is_reference(text),
        Value::Null | Value::Bool(_) => true,
        // A PIN.
        Value::Number(_) => false,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// `${NAME}` or `$(NAME)` and nothing else: around or between two of them there could be a secret.
#[must_use]
pub fn is_reference(text: &str) -> bool {
    let braces = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = braces.or_else(|| text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')));
    let foreign = |c: char| matches!(c, '{' | '}' | '(' | ')') || c.is_whitespace();
    name.is_some_and(|name| !name.is_empty() && !name.contains(foreign))
}

#[cfg(test)]
mod tests {
    use super::{is_secret_name, redact, words};
    use serde_json::json;

    #[test]
    fn names_that_hold_secrets() {
        let secret = "apiKey apikey OPENAI_API_KEY api-key apiKeys API_KEY_1 key.api.key password PASSWORD2 passwords \
            dbpassword GITHUB_TOKEN token tokens accessToken accesstoken accessTokens credentials credential \
            clientSecret secrets pwd dbPwd pass smtp_pass passwd passphrase auth basicAuth bearer cookie \
            cookies Set-Cookie authorization Proxy-Authorization openaiKey SSH_KEY signingKey x-api-key pin \
            userPIN";
        for name in secret.split_whitespace() {
            assert!(is_secret_name(name), "{name}");
        }
        let open = "promptTokens maxTokens max_tokens totalTokens maxtokens author oauthor key keys KEY_1 keyPrefix \
            monkey monkeys publicKey primaryKey primary_keys foreignKey sortKey partitionKey cacheKey \
            idempotencyKey Idempotency-Key tokenizer name compass bypass passes spin pins_count authority \
            cookieless secretary 1 _ é";
        for name in open.split_whitespace().chain([""]) {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn names_have_words() {
        for (name, expected) in [
            ("APIKey_v2", "api key v"),
            ("x-api.key_1_2", "x api key"),
            ("oauth2Token", "oauth2 token"),
            ("__a__b", "a b"),
            ("ÄpfelZahl", "äpfel zahl"),
        ] {
            assert_eq!(words(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn redacts_at_any_depth_and_keeps_references() {
        let value =
            json!({"apiKey": "sk-1", "a": [{"password": {"p": 1}, "n": 1}], "token": "${T}", "secret": ""});
        let safe = json!({"apiKey": "[redacted]", "a": [{"password": "[redacted]", "n": 1}], "token": "${T}", "secret": ""});
        assert_eq!(redact(&value), safe);
    }

    #[test]
    fn only_a_whole_reference_stays() {
        for kept in [json!("${T}"), json!("$(T)"), json!("${$parent.T}"), json!(null), json!(true), json!([])]
        {
            assert_eq!(redact(&json!({"apiKey": kept})), json!({"apiKey": kept}));
        }
        for hidden in [
            json!("${PFX}sk-1${SFX}"),
            json!("${A}}"),
            json!("${A B}"),
            json!("${}"),
            json!("$(A)sk-1$(B)"),
            json!("${A} "),
            json!("x${A}"),
            json!(1234),
            json!(["${A}"]),
        ] {
            assert_eq!(redact(&json!({"pin": hidden})), json!({"pin": "[redacted]"}), "{hidden}");
        }
    }
}
