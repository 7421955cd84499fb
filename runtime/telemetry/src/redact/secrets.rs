//! Redacts secrets with a known form: private keys, passwords in URLs, keys and tokens.

use super::pattern::compile;
use super::replacer::Replacer;
use redflow_contract::secret::{KEY_PREFIXES, REDACTED};
use regex::Regex;
use std::borrow::Cow;

/// `Bearer` or `Basic` and the value after it.
const SCHEME: &str = r"(?i-u)\b(?:bearer|basic)[ \t]{1,4}[A-Z0-9._~+/=-]{8,}";

/// A JSON Web Token.
const JWT: &str = r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?";

/// The longest title of a private key.
const MAX_TITLE: usize = 60;

pub(super) struct KeyPatterns {
    scheme: Regex,
    keys: Regex,
}

impl KeyPatterns {
    pub(super) fn new() -> Result<Self, String> {
        let keys = KEY_PREFIXES.map(|(prefix, least)| format!("{prefix}[A-Za-z0-9_-]{{{least},}}"));
        let keys = format!(r"(?-u)\b(?:{}|{JWT})", keys.join("|"));
        Ok(Self { scheme: compile(SCHEME)?, keys: compile(&keys)? })
    }

    pub(super) fn redact_schemes<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut replacer = Replacer::new(text);
        for found in self.scheme.find_iter(text) {
            let gap = found.as_str().find([' ', '\t']).unwrap_or(0);
            let (scheme, word) = found.as_str().split_at(gap);
            let word = word.trim_start_matches([' ', '\t']);
            if !is_prose(scheme, word) {
                replacer.replace(found.end() - word.len(), found.end(), REDACTED);
            }
        }
        replacer.finish()
    }

    pub(super) fn redact_keys<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.keys.replace_all(text, REDACTED)
    }
}

/// Whether it is ordinary text, such as `basic authentication`.
fn is_prose(scheme: &str, word: &str) -> bool {
    if scheme.eq_ignore_ascii_case("basic") {
        return word.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '.' | '-'));
    }
    let word = word.trim_end_matches(['.', '-']);
    ["authentication", "authorization"].iter().any(|prose| prose.eq_ignore_ascii_case(word))
}

/// Redacts private keys, even if the end is missing or line breaks are written as `\n`.
pub(super) fn redact_private_keys(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let (mut replacer, mut from) = (Replacer::new(text), 0);
    while let Some(start) = text[from..].find(BEGIN).map(|at| from + at) {
        from = start + BEGIN.len();
        if !title(&text[from..]).contains("PRIVATE KEY") {
            continue;
        }
        let end = text[from..].find(END).map_or(text.len(), |at| {
            let last = from + at + END.len();
            let title = title(&text[last..]);
            last + title.len()
                + text[last + title.len()..].bytes().take(5).take_while(|byte| *byte == b'-').count()
        });
        replacer.replace(start, end, REDACTED);
        from = end;
    }
    replacer.finish()
}

/// The text between the dashes.
fn title(text: &str) -> &str {
    let title = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    &text[..text.bytes().take(MAX_TITLE).take_while(title).count()]
}

/// Redacts passwords in `scheme://user:password@host`.
pub(super) fn redact_url_passwords(text: &str) -> Cow<'_, str> {
    const MARK: &str = "://";
    let (mut replacer, mut from) = (Replacer::new(text), 0);
    while let Some(start) = text[from..].find(MARK).map(|at| from + at + MARK.len()) {
        let ends = |c: char| c.is_whitespace() || c.is_control() || "/?#\"'`<>\\".contains(c);
        let host = &text[start..text[start..].find(ends).map_or(text.len(), |at| start + at)];
        let user = host.rfind('@').map_or("", |at| &host[..at]);
        if let Some(colon) = user.find(':').filter(|colon| colon + 1 < user.len()) {
            replacer.replace(start + colon + 1, start + user.len(), REDACTED);
        }
        from = start + host.len();
    }
    replacer.finish()
}
