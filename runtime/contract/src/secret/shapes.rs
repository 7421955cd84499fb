//! The shapes of values that are secret whatever their name is.

use super::REDACTED;
use std::borrow::Cow;
use std::ops::Range;

/// The prefixes of keys and tokens with a known form, and the least number of characters after them. Those are
/// letters, digits, `-` and `_`. Logs hide all such words, [`is_secret_value`] leaves out ordinary names.
pub const KEY_PREFIXES: [(&str, usize); 27] = [
    ("sk-", 8),
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("rk_test_", 8),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxe-", 10),
    ("xoxo-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("AIza", 30),
    ("hf_", 20),
    ("npm_", 20),
    ("rf_", 20),
    ("shpat_", 20),
    ("dop_v1_", 20),
];

/// No key, token or address with a password is shorter.
const SHORTEST: usize = 8;

/// No label of a private key, such as `RSA PRIVATE KEY`, is longer.
const LONGEST_LABEL: usize = 64;

/// The lengths of one-time codes and of sessions.
const CODE_LENGTHS: [usize; 2] = [32, 43];

/// A shorter word, or one whose parts are all shorter, can be an ordinary name.
const RANDOM_WORD: usize = 24;
const RANDOM_PART: usize = 12;

/// Whether a text holds a secret by its form: a key with a known prefix, a JSON Web Token, a private key, or an
/// address with a password.
#[must_use]
pub fn is_secret_value(text: &str) -> bool {
    text.len() >= SHORTEST
        && ((text.contains("-----BEGIN ") && text.contains("PRIVATE KEY"))
            || has_url_password(text)
            || text.split(|c| !is_word_character(c)).any(is_key))
}

/// Replaces what can be a secret in a text that a client sent, so that an error may quote the text. That also
/// covers long random words, such as codes and sessions, which have no form.
#[must_use]
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    if is_secret_value(text) {
        return Cow::Borrowed(REDACTED);
    }
    let words = || text.split(|c: char| !is_word_character(c) || c == '.');
    if !words().any(is_random) {
        return Cow::Borrowed(text);
    }
    let mut masked = text.to_owned();
    for word in words().filter(|word| is_random(word)) {
        masked = masked.replace(word, REDACTED);
    }
    Cow::Owned(masked)
}

/// Replaces what can be a secret in a text that is kept: every secret of a known form, and long random words. The words
/// around them stay.
#[must_use]
pub fn mask_text(text: &str) -> String {
    let (masked, _) = mask_secret_values(text);
    // Random words have no form. A text with one would be masked as a whole, so each word is asked for by itself.
    let mut out = String::with_capacity(masked.len());
    for piece in masked.split_inclusive(char::is_whitespace) {
        let (word, space) = piece.split_at(piece.trim_end_matches(char::is_whitespace).len());
        out.push_str(&mask_secrets(word));
        out.push_str(space);
    }
    out
}

/// Replaces every secret of a known form in a text, and counts them. Long random words stay: in a document they are
/// digests, ids and names far more often than secrets.
#[must_use]
pub fn mask_secret_values(text: &str) -> (Cow<'_, str>, usize) {
    let mut places = private_keys(text);
    places.extend(url_passwords(text));
    let mut at = 0;
    for word in text.split(|c| !is_word_character(c)) {
        // One character ends a word.
        let end = at + word.len();
        if is_key(word) {
            // The last full stop ends a sentence.
            places.push(at..at + word.trim_end_matches('.').len());
        }
        at = end + text[end..].chars().next().map_or(0, char::len_utf8);
    }
    if places.is_empty() {
        return (Cow::Borrowed(text), 0);
    }
    places.sort_by_key(|place| place.start);
    let (mut masked, mut end, mut count) = (String::with_capacity(text.len()), 0, 0);
    for place in places {
        // A secret inside another one is already replaced.
        if place.start < end {
            if place.end > end {
                end = place.end;
            }
            continue;
        }
        masked.push_str(&text[end..place.start]);
        masked.push_str(REDACTED);
        (end, count) = (place.end, count + 1);
    }
    masked.push_str(&text[end..]);
    (Cow::Owned(masked), count)
}

/// Where private keys are, from `-----BEGIN` to the end of `-----END …-----`. One without an end goes to the next blank
/// line or quotation mark.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    const BEGIN: &str = "-----BEGIN ";
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(BEGIN).map(|at| from + at) {
        from = start + BEGIN.len();
        let Some(label) = text[from..].find("-----").map(|at| &text[from..from + at]) else { break };
        if label.len() > LONGEST_LABEL || !label.contains("PRIVATE KEY") {
            continue;
        }
        let body = from + label.len() + "-----".len();
        let mark = format!("-----END {label}-----");
        // A key begins before the next one: its own end is nearer.
        let limit = text[body..].find(BEGIN).map_or(text.len(), |at| body + at);
        let end = match text[body..limit].find(&mark) {
            Some(at) => body + at + mark.len(),
            None => text[body..limit]
                .find("\n\n")
                .into_iter()
                .chain(text[body..limit].find(['"', '\'', '`']))
                .min()
                .map_or(limit, |at| body + at),
        };
        places.push(start..end);
        from = end;
    }
    places
}

/// Where passwords of addresses are, such as that of `postgres://user:password@host`.
fn url_passwords(text: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        if let Some(password) = url_password(&text[start..]) {
            places.push(start + password.start..start + password.end);
        }
    }
    places
}

fn is_word_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn is_key(word: &str) -> bool {
    let has_prefix = |part: &str, (prefix, least): (&str, usize)| {
        part.len() >= prefix.len() + least
            && part.get(..prefix.len()).is_some_and(|start| {
                start == prefix || start.bytes().eq(prefix.bytes().map(|byte| byte.to_ascii_lowercase()))
            })
            && !is_name(prefix, &part[prefix.len()..])
    };
    // A token can follow another word, as in `token.rf_…`. Hosts are written in small letters.
    word.len() >= SHORTEST
        && (word.split('.').any(|part| KEY_PREFIXES.into_iter().any(|prefix| has_prefix(part, prefix)))
            || is_json_web_token(word))
}

/// Whether a word with the prefix of a key is an ordinary name, by what follows the prefix.
fn is_name(prefix: &str, rest: &str) -> bool {
    match prefix {
        // `sk-SK` is the Slovak language, as in the names of voices.
        "sk-" => {
            rest.len() < 16
                || !rest.bytes().any(|byte| byte.is_ascii_digit())
                || rest.get(..3).is_some_and(|region| region.eq_ignore_ascii_case("SK-"))
        }
        // These keys have letters and digits only.
        "hf_" | "npm_" => rest.len() < 30 || rest.contains(['-', '_']),
        // The tokens of the sidecar have 43 characters.
        "rf_" => rest.len() < 40,
        _ => false,
    }
}

fn is_json_web_token(word: &str) -> bool {
    let mut parts = word.split('.');
    parts.next().is_some_and(|head| head.starts_with("eyJ") && head.len() >= 8)
        && parts.next().is_some_and(|body| body.len() >= 5)
}

/// Whether an address such as `postgres://user:password@host` is part of the text.
fn has_url_password(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| url_password(rest).is_some())
}

/// Where the password is in the rest of an address after `://`; none if it has none.
fn url_password(rest: &str) -> Option<Range<usize>> {
    let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'`<>\\".contains(c)).unwrap_or(rest.len());
    let (user, _) = rest[..end].rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    (!password.is_empty()).then(|| name.len() + 1..user.len())
}

/// Whether a word looks random: as long as a code or a session, or long, with letters and digits mixed in one
/// part. Ids in the form of a UUID are no secrets.
fn is_random(word: &str) -> bool {
    let is_mixed = |part: &str| {
        part.len() >= RANDOM_PART
            && part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    CODE_LENGTHS.contains(&word.len())
        || (word.len() >= RANDOM_WORD && !is_uuid(word) && word.split(['-', '_']).any(is_mixed))
}

fn is_uuid(word: &str) -> bool {
    let lengths =
        word.split('-').map(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(part.len()));
    lengths.eq([8, 4, 4, 4, 12].map(Some))
}

#[cfg(test)]
mod tests {
    use super::{is_secret_value, mask_secret_values, mask_secrets};

    const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl";

    #[test]
    fn values_that_are_secrets_by_their_form() {
        for secret in [
            "postgres://app:s3cret@db.example/app",
            "redis://:s3cret@localhost:6379/0",
            "amqp://a:b@c",
            "see https://bob:p@ss@host/path",
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "github_pat_11ABCDEFG0123456789_abcdefgh",
            "sk-ant-api03-AbC_dEf-0123456789",
            "key=sk_live_abcdefgh",
            "AKIAIOSFODNN7EXAMPLE",
            "xoxb-123456789012-abcdefGHIJ",
            "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
            JWT,
            &format!("Bearer {JWT}"),
            "rf_AbCdEf0123456789AbCdEf0123456789AbCdEf01234",
            // Tokens of Hugging Face have letters only.
            "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
            "npm_AbCdEf0123456789AbCdEf0123456789AbCd",
        ] {
            assert!(is_secret_value(secret), "{secret}");
        }
        for open in [
            "",
            "postgres://db.example/app",
            "https://api.example:8443/v1",
            "https://bob@host/",
            "https://bob:@host/",
            "mailto:a@b",
            "a://b c:d@e",
            "task-force, sk-1, desk-lamp-with-a-long-name",
            "eyJ is no token",
            "-----BEGIN CERTIFICATE-----",
            "gpt-5.1-mini",
            "rf_short",
            "sk-SK-LukasNeural",
            "sk-SK-Chirp3-HD-Achernar",
            "sk-learn-pipeline-of-models",
            "home/rf_temperature_sensor_livingroom",
            "npm_config_registry_mirror_url_for_all_of_us",
            "hf_hub_download_of_all_the_models_2",
        ] {
            assert!(!is_secret_value(open), "{open}");
        }
    }

    #[test]
    fn errors_quote_names_and_no_tokens() {
        for kept in [
            "evil.example:8443",
            "agent",
            "0190c8a4-7b1e-7cc3-98c4-dc0c0c07398f",
            "f6f2187d.f17ca8",
            "2bd5a0e5c1f4b6a7",
            "a-very-long-name-of-a-node-with-the-number-12",
            "http://localhost:5173",
        ] {
            assert_eq!(mask_secrets(kept), kept);
        }
        for (token, masked) in [
            ("rf_AbCdEf0123456789AbCdEf0123456789AbCdEf01234", "[redacted]"),
            ("rf_abcdef0123456789abcdef0123456789.evil.example", "[redacted].evil.example"),
            ("https://user:s3cret@evil.example", "[redacted]"),
            // A one-time code, and a session.
            ("x/qT7hJmK2vBnR4tYwZxC8dF5gH1jL9pQs:1", "x/[redacted]:1"),
            ("AbCdEfGh1234IjKlMn-oPqRsTuVwXyZ5678_AbCdEfGhIj9", "[redacted]"),
            // A code and a session without a digit, or with many short parts.
            ("/qThJmKaBnRtYwZxCdFgHjLpQsqThJmKa/x", "/[redacted]/x"),
            ("a-b_c-d_e-f_g-h_i-j_k-l_m-n_o-pq.evil", "[redacted].evil"),
            ("AbC-dEf_GhI-jKl_MnO-pQr_StU-vWx_YzA-bCd_EfG", "[redacted]"),
        ] {
            assert_eq!(mask_secrets(token), masked);
        }
    }

    #[test]
    fn documents_lose_secrets_and_keep_the_rest() {
        let key = "sk-ant-api03-AbC_dEf-0123456789";
        for (text, masked, count) in [
            (format!("Set KEY={key}, then\tgo."), "Set KEY=[redacted], then\tgo.".to_owned(), 1),
            (format!("{key} {key}.\n{JWT}é"), "[redacted] [redacted].\n[redacted]é".to_owned(), 3),
            (
                "at postgres://app:s3cret@db/app and redis://:p@ss@h".to_owned(),
                "at postgres://app:[redacted]@db/app and redis://:[redacted]@h".to_owned(),
                2,
            ),
            // A key as a password is one place.
            (format!("https://u:{key}@h/"), "https://u:[redacted]@h/".to_owned(), 1),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n\nAbC\n-----END RSA PRIVATE KEY-----\nb".to_owned(),
                "a\n[redacted]\nb".to_owned(),
                1,
            ),
            (
                r#"{"k": "-----BEGIN PRIVATE KEY-----\nMII", "x": 1}"#.to_owned(),
                r#"{"k": "[redacted]", "x": 1}"#.to_owned(),
                1,
            ),
            ("-----BEGIN PRIVATE KEY-----\nMII\nAbC\n\nText".to_owned(), "[redacted]\n\nText".to_owned(), 1),
            (
                "-----BEGIN PRIVATE KEY-----\nA\n-----BEGIN EC PRIVATE KEY-----\nB\n-----END EC PRIVATE KEY-----"
                    .to_owned(),
                "[redacted][redacted]".to_owned(),
                2,
            ),
        ] {
            let (found, places) = mask_secret_values(&text);
            assert_eq!((found.as_ref(), places), (masked.as_str(), count), "{text}");
        }
        // Digests, ids, names and public keys are no secrets.
        for kept in [
            "",
            "d41d8cd98f00b204e9800998ecf8427e",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "https://bob:@host/ and mailto:a@b",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "-----BEGIN ",
            "desk-lamp, sk-learn-pipeline-of-models, sk-SK-Chirp3-HD-Achernar",
        ] {
            assert_eq!(mask_secret_values(kept), (kept.into(), 0));
        }
    }
}
