//! Secrets that are known by how they look: private keys, passwords in addresses, keys and tokens.

use super::compile;
use super::cuts::Cuts;
use redflow_contract::secret::REDACTED;
use regex::Regex;
use std::borrow::Cow;

/// What follows `Bearer` or `Basic`.
const SCHEME: &str = r"(?i-u)\b(?:bearer|basic)[ \t]{1,4}[A-Z0-9._~+/=-]{8,}";

/// Keys that are known by how they begin.
const KEYS: &str = concat!(
    r"(?-u)\b(?:sk-[A-Za-z0-9_-]{8,}",
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{8,}",
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"|gh[pousr]_[A-Za-z0-9]{20,}",
    r"|github_pat_[A-Za-z0-9_]{20,}",
    r"|glpat-[A-Za-z0-9_-]{16,}",
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"|AIza[0-9A-Za-z_-]{30,}",
    r"|hf_[A-Za-z0-9]{20,}",
    r"|eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?",
    r")",
);

/// The longest first line of a key.
const HEADER: usize = 60;

/// Finds what follows a scheme, and keys.
pub(super) struct Keys {
    scheme: Regex,
    keys: Regex,
}

impl Keys {
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self { scheme: compile(SCHEME)?, keys: compile(KEYS)? })
    }

    pub(super) fn schemes<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut cuts = Cuts::new(text);
        for found in self.scheme.find_iter(text) {
            let gap = found.as_str().find([' ', '\t']).unwrap_or(0);
            let (scheme, word) = found.as_str().split_at(gap);
            let word = word.trim_start_matches([' ', '\t']);
            if !is_prose(scheme, word) {
                cuts.put(found.end() - word.len(), found.end(), REDACTED);
            }
        }
        cuts.done()
    }

    pub(super) fn keys<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.keys.replace_all(text, REDACTED)
    }
}

/// `basic authentication` is no secret.
fn is_prose(scheme: &str, word: &str) -> bool {
    if scheme.eq_ignore_ascii_case("basic") {
        return word.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '.' | '-'));
    }
    let word = word.trim_end_matches(['.', '-']);
    ["authentication", "authorization"].iter().any(|prose| prose.eq_ignore_ascii_case(word))
}

/// Private keys, also one whose end is missing or whose line breaks are written as `\n`.
pub(super) fn private_keys(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let (mut cuts, mut from) = (Cuts::new(text), 0);
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
        cuts.put(start, end, REDACTED);
        from = end;
    }
    cuts.done()
}

/// What stands between the dashes.
fn title(text: &str) -> &str {
    let title = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    &text[..text.bytes().take(HEADER).take_while(title).count()]
}

/// Passwords in `scheme://user:password@host`.
pub(super) fn userinfo(text: &str) -> Cow<'_, str> {
    const MARK: &str = "://";
    let (mut cuts, mut from) = (Cuts::new(text), 0);
    while let Some(start) = text[from..].find(MARK).map(|at| from + at + MARK.len()) {
        let ends = |c: char| c.is_whitespace() || c.is_control() || "/?#\"'`<>\\".contains(c);
        let host = &text[start..text[start..].find(ends).map_or(text.len(), |at| start + at)];
        let user = host.rfind('@').map_or("", |at| &host[..at]);
        if let Some(colon) = user.find(':').filter(|colon| colon + 1 < user.len()) {
            cuts.put(start + colon + 1, start + user.len(), REDACTED);
        }
        from = start + host.len();
    }
    cuts.done()
}
