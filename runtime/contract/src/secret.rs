//! What is secret: which names mark a value as a secret, and what replaces the value.
//!
//! Owns every list of such names, and of the forms of such values. Secret values never enter plans, journals,
//! events or error texts.

mod shapes;

pub use shapes::{KEY_PREFIXES, is_secret_value, mask_secret_values, mask_secrets, mask_text};

use serde_json::Value;

/// Replaces a secret value in plans, journals, events, logs and error texts.
pub const REDACTED: &str = "[redacted]";

/// Node-RED's mask for a secret. Node-RED sends it to an editor instead of the value. When an editor sends it
/// back, the stored value stays.
pub const PASSWORD_MASK: &str = "__PWRD__";

/// Last words of names that hold secrets.
const SECRET_WORDS: [&str; 17] = [
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
    "pat",
    "jwt",
    "dsn",
    "creds",
];

/// Endings that mark a secret even without a border between the words, as in `apikey` or `dbpassword`.
const SECRET_ENDINGS: [&str; 13] = [
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
    "connectionstring",
    "keybase",
];

/// Last two words of names that hold secrets.
const SECRET_PAIRS: [(&str, &str); 6] = [
    ("connection", "string"),
    ("conn", "string"),
    ("connection", "str"),
    ("conn", "str"),
    ("key", "base"),
    ("header", "value"),
];

/// Words before `URL` or `URI` in the name of an environment variable that holds an address with a password.
const ADDRESSES_WITH_PASSWORD: [&str; 15] = [
    "database",
    "db",
    "postgres",
    "postgresql",
    "pg",
    "mysql",
    "mariadb",
    "mongo",
    "mongodb",
    "redis",
    "amqp",
    "rabbitmq",
    "broker",
    "smtp",
    "sentry",
];

/// Words before `key` that make it public.
const PUBLIC_KEYS: [&str; 7] = ["public", "primary", "foreign", "sort", "partition", "cache", "idempotency"];

/// Words before `tokens` that make it secret. Any other word, as in `maxTokens`, makes it a count.
const TOKEN_KINDS: [&str; 6] = ["access", "refresh", "api", "auth", "bearer", "session"];

/// Separate words before `key` that make it secret, as in the log line `api key: …`.
const KEY_KINDS: [&str; 6] = ["api", "access", "secret", "private", "signing", "encryption"];

/// Names of URL parameters that hold a secret, in addition to [`is_secret_name`].
const SECRET_PARAMETERS: [&str; 4] = ["key", "code", "sig", "signature"];

/// Names in the storage of the Redflow UI that mark a secret, in addition to [`is_secret_name`]. Written in
/// small letters, without borders between the words.
const SECRET_STORAGE_NAMES: [&str; 1] = ["key"];

/// Credentials of a node that are connection settings. Ordinary text contains such values all the time.
const CONNECTION_SETTINGS: [&str; 15] = [
    "host",
    "hostname",
    "port",
    "db",
    "database",
    "username",
    "user",
    "tls",
    "url",
    "baseurl",
    "endpoint",
    "organization",
    "project",
    "region",
    "name",
];

/// Properties of a stored credential that describe it.
const CREDENTIAL_DETAILS: [&str; 14] = [
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

/// Words before the secret in an `Authorization` value, as in `Bearer abc`.
const AUTH_SCHEMES: [&str; 6] = ["bearer", "basic", "token", "digest", "apikey", "negotiate"];

/// Values that reveal nothing, whatever their name is.
const EMPTY_VALUES: [&str; 5] = ["null", "none", "true", "false", "undefined"];

/// The prefix of a storage key with the credentials of one node. The id of the node follows.
pub const NODE_CREDENTIALS_PREFIX: &str = "node-credentials:";

/// The prefix of a storage key with credentials that several nodes can share. The id of the credential
/// follows.
pub const SHARED_CREDENTIAL_PREFIX: &str = "credential:";

/// Storage keys of the Redflow UI that hold credentials start with one of these.
const CREDENTIAL_PREFIXES: [&str; 3] = [NODE_CREDENTIALS_PREFIX, SHARED_CREDENTIAL_PREFIX, "credentials:"];

/// The Redflow UI puts this before the key of a value that it has encrypted itself.
const ENCRYPTED_PREFIX: &str = "encrypted:";

/// Properties in which the Redflow UI wraps the properties of a credential.
const CREDENTIAL_WRAPPERS: [&str; 2] = ["data", "value"];

/// Whether a property or environment variable of this name holds a secret. The last word decides, without a
/// plural `s` and without numbers behind it: `OPENAI_API_KEY_2` does, `keyPrefix` and `author` do not.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let mut small = [[0; LONGEST_WORD]; 2];
    match last_words(name, &mut small) {
        Some((before, last)) => is_secret_word(before, last),
        None => {
            let mut words = words(name);
            let last = words.pop().unwrap_or_default();
            is_secret_word(words.last().map(String::as_str), &last)
        }
    }
}

/// Whether the last word of a name, after the word before it, marks a secret.
fn is_secret_word(before: Option<&str>, last: &str) -> bool {
    let single = last.strip_suffix('s').unwrap_or(last);
    match (single, before) {
        ("token", Some(kind)) if last != single => TOKEN_KINDS.contains(&kind),
        ("key", Some(kind)) => !PUBLIC_KEYS.contains(&kind),
        (_, Some(kind)) if SECRET_PAIRS.contains(&(kind, single)) => true,
        // The plural in `maxtokens` is a count as well.
        (ending, _) if ending != "token" && ending.ends_with("token") => last == single,
        _ => {
            SECRET_WORDS.contains(&last)
                || SECRET_WORDS.contains(&single)
                || SECRET_ENDINGS.iter().any(|ending| single.ends_with(ending))
        }
    }
}

/// Whether an environment variable holds a secret, by its name or by its value.
#[must_use]
pub fn is_secret_variable(name: &str, value: Option<&str>) -> bool {
    let words = words(name);
    let mut last_words = words.iter().rev().map(String::as_str);
    let last = last_words.next().unwrap_or_default();
    let is_url = matches!(last, "url" | "uri" | "urls" | "uris");
    let kind = if is_url { last_words.next().unwrap_or_default() } else { last };
    let is_address = is_url && ADDRESSES_WITH_PASSWORD.contains(&kind);
    // The path of a webhook is its secret.
    let is_webhook =
        matches!(kind, "webhook" | "webhooks") && value.is_none_or(|value| value.contains("://"));
    is_webhook
        || (is_address && value.is_none_or(has_password))
        || is_secret_name(name)
        || value.is_some_and(is_secret_value)
}

/// Whether an address can hold a password: it has a user, or the parameters of a connection string, or a secret
/// parameter.
fn has_password(address: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let names = address.match_indices('=').map(|(at, _)| {
        let before = &address[..at];
        &before[before.trim_end_matches(is_name).len()..]
    });
    address.contains(['@', ';']) || names.into_iter().any(is_secret_parameter)
}

/// Whether a name in free text holds a secret. `before` is the word before the name, so that `api key: …`
/// counts.
#[must_use]
pub fn is_secret_phrase(before: &str, name: &str) -> bool {
    let is_key = || name.eq_ignore_ascii_case("key") && contains_ignoring_case(&KEY_KINDS, before);
    is_secret_name(name) || is_key()
}

/// Whether a URL parameter of this name holds a secret. The additional names count only in small letters.
#[must_use]
pub fn is_secret_parameter(name: &str) -> bool {
    is_secret_name(name) || SECRET_PARAMETERS.contains(&name)
}

/// Whether a property of this name in the storage of the Redflow UI holds a secret.
#[must_use]
pub fn is_secret_storage_name(name: &str) -> bool {
    let joined = || -> String { name.chars().filter(|c| c.is_alphanumeric()).collect() };
    is_secret_name(name) || SECRET_STORAGE_NAMES.contains(&joined().to_lowercase().as_str())
}

/// Whether a credential of a node is a connection setting and not a secret, such as its `host`.
#[must_use]
pub fn is_connection_setting(name: &str) -> bool {
    contains_ignoring_case(&CONNECTION_SETTINGS, name)
}

/// Whether a property of a stored credential only describes it, so that the UI may show its value.
#[must_use]
pub fn is_credential_detail(name: &str) -> bool {
    CREDENTIAL_DETAILS.contains(&name)
}

/// Whether the Redflow UI wraps the properties of a credential in a property of this name.
#[must_use]
pub fn is_credential_wrapper(name: &str) -> bool {
    CREDENTIAL_WRAPPERS.contains(&name)
}

/// Whether a storage key of the Redflow UI holds credentials.
#[must_use]
pub fn is_credential_key(key: &str) -> bool {
    let key = normalize_key(key);
    let rest = key.strip_prefix(ENCRYPTED_PREFIX).map_or(&*key, str::trim_start);
    CREDENTIAL_PREFIXES.iter().any(|prefix| rest.starts_with(prefix))
}

/// Whether the Redflow UI has encrypted the value of this storage key itself.
#[must_use]
pub fn is_encrypted_key(key: &str) -> bool {
    normalize_key(key).starts_with(ENCRYPTED_PREFIX)
}

/// Spaces, case and underscores make no difference in a storage key.
fn normalize_key(key: &str) -> String {
    key.trim().to_lowercase().replace('_', "-")
}

/// Whether a word names an `Authorization` scheme, so that the secret is the word after it.
#[must_use]
pub fn is_auth_scheme(word: &str) -> bool {
    contains_ignoring_case(&AUTH_SCHEMES, word)
}

/// Whether a value in free text reveals nothing, so that it may stay after the name of a secret.
#[must_use]
pub fn is_empty_value(value: &str) -> bool {
    contains_ignoring_case(&EMPTY_VALUES, value)
}

fn contains_ignoring_case(list: &[&str], word: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The longest word that [`last_words`] reads.
const LONGEST_WORD: usize = 32;

/// The last but one and the last of the [`words`] of a name, without a copy on the heap: a check asks for every
/// property of every node. None for long words and for letters of other scripts.
fn last_words<'a>(name: &str, small: &'a mut [[u8; LONGEST_WORD]; 2]) -> Option<(Option<&'a str>, &'a str)> {
    if !name.is_ascii() {
        return None;
    }
    let name = name.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    let bytes = name.as_bytes();
    let (mut before, mut word, mut previous) = (0..0, 0..0, b'_');
    for (at, byte) in bytes.iter().enumerate() {
        let begins = byte.is_ascii_uppercase()
            && (!previous.is_ascii_uppercase() || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase));
        let is_part = byte.is_ascii_alphanumeric();
        if (begins || !is_part) && !word.is_empty() {
            before = std::mem::replace(&mut word, 0..0);
        }
        if is_part {
            word = if word.is_empty() { at..at + 1 } else { word.start..at + 1 };
        }
        previous = *byte;
    }
    let [first, second] = small;
    let before = if before.is_empty() { None } else { Some(small_letters(&bytes[before], first)?) };
    Some((before, small_letters(&bytes[word], second)?))
}

/// A word in small letters; none if it is too long.
fn small_letters<'a>(word: &[u8], small: &'a mut [u8; LONGEST_WORD]) -> Option<&'a str> {
    let small = small.get_mut(..word.len())?;
    small.copy_from_slice(word);
    small.make_ascii_lowercase();
    std::str::from_utf8(small).ok()
}

/// Splits a name into words in small letters: `APIKey_v2` is `api`, `key`, `v`. Leaves out numbers at the
/// end.
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

/// Whether a property is a secret as a whole.
#[must_use]
pub fn is_secret_property(name: &str, value: &Value) -> bool {
    is_secret_name(name) && !is_harmless(value)
}

/// Copies a property and replaces every secret in it. `${NAME}` references stay: they are not the secret.
#[must_use]
pub fn redact_property(name: &str, value: &Value) -> Value {
    if is_secret_property(name, value) { Value::from(REDACTED) } else { redact(value) }
}

/// Copies a value without a name and replaces every secret in it.
fn redact(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.clone(), redact_property(key, value))).collect()
        }
        Value::Array(items) => items.iter().map(redact).collect(),
        other => other.clone(),
    }
}

/// Whether a value cannot be a secret: it is empty, a boolean, or only names an environment variable.
fn is_harmless(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty() || is_reference(text),
        Value::Null | Value::Bool(_) => true,
        // A number can be a PIN.
        Value::Number(_) => false,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Whether a text is `${NAME}` or `$(NAME)` and nothing else. Text around or between references can be a
/// secret.
#[must_use]
pub fn is_reference(text: &str) -> bool {
    let braces = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = braces.or_else(|| text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')));
    let foreign = |c: char| matches!(c, '{' | '}' | '(' | ')') || c.is_whitespace();
    name.is_some_and(|name| !name.is_empty() && !name.contains(foreign))
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
