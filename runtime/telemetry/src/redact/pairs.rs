//! Redacts values that follow the name of a secret: `password=…`, `"apiKey": "…"`, `Cookie: …`.

use super::replacer::Replacer;
use redflow_contract::secret::{REDACTED, is_auth_scheme, is_empty_value, is_secret_phrase};
use std::borrow::Cow;
use std::ops::Range;

/// The characters of a name that are checked. Of a longer name only the end, which decides.
const MAX_NAME: usize = 64;

/// The limit on spaces and escapes between a name, its sign and its value.
const MAX_GAP: usize = 4;

/// Redacts the values of all pairs that have the name of a secret.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    let (mut replacer, mut from) = (Replacer::new(text), 0);
    while let Some(sign) = text[from..].find([':', '=']).map(|at| from + at) {
        // A value may contain a pair itself, so only redacted values are skipped.
        from = sign + 1;
        // `=>` and `:=`, but not `a::b`.
        let rest = text[from..].strip_prefix(['>', '=']).unwrap_or(&text[from..]);
        let is_path = text[sign..].starts_with("::") || text[..sign].ends_with(':');
        let Some(name) =
            name_before(&text[..sign]).filter(|name| !is_path && is_secret_phrase(name.before, name.last))
        else {
            continue;
        };
        let gap = rest.bytes().take(MAX_GAP).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let start = text.len() - rest.len() + gap;
        let value = find_value(name.last, &text[start..]);
        let (begin, end) = (start + value.start, start + value.end);
        if begin < end && !is_harmless(name.last, &text[begin..end]) {
            replacer.replace(begin, end, REDACTED);
            from = end;
        }
    }
    replacer.finish()
}

/// A name, and the word before it.
struct Name<'a> {
    last: &'a str,
    before: &'a str,
}

/// The name at the end of a text. It may be in quotes, or in escaped quotes for JSON inside a JSON string.
fn name_before(text: &str) -> Option<Name<'_>> {
    let text = trim_end(text, |c| matches!(c, ' ' | '\t'), MAX_GAP);
    let unquoted = text.strip_suffix(['"', '\'', '`']).map(|text| trim_end(text, |c| c == '\\', MAX_GAP));
    let text = unquoted.unwrap_or(text);
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    let rest = trim_end(text, in_name, MAX_NAME);
    let last = &text[rest.len()..];
    // The end of a Rust path, as in `server::auth: refused`, is not the name of a value.
    if last.is_empty() || rest.ends_with("::") {
        return None;
    }
    let before = rest.strip_suffix(' ').unwrap_or_default();
    let before = &before[trim_end(before, char::is_alphanumeric, MAX_NAME).len()..];
    Some(Name { last, before })
}

/// Removes up to `limit` matching characters at the end.
fn trim_end(text: &str, matches: impl Fn(char) -> bool, limit: usize) -> &str {
    let trimmed = text.chars().rev().take(limit).take_while(|c| matches(*c));
    &text[..text.len() - trimmed.map(char::len_utf8).sum::<usize>()]
}

/// The range of the value in the text after the name and its sign.
fn find_value(name: &str, text: &str) -> Range<usize> {
    let slashes = text.bytes().take(MAX_GAP).take_while(|byte| *byte == b'\\').count();
    if let Some(quote @ (b'"' | b'\'' | b'`')) = text.as_bytes().get(slashes).copied() {
        let start = slashes + 1;
        return start..start + quoted_length(&text[start..], quote, slashes);
    }
    if text.starts_with(REDACTED) {
        return 0..0;
    }
    let last = name.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if last.to_ascii_lowercase().starts_with("cookie") {
        // A header has several cookies; the value is the rest of its line.
        return 0..text.find(['"', '\'', '\n', '\r', '\\']).unwrap_or(text.len());
    }
    let end = word_length(text);
    if is_auth_scheme(&text[..end]) {
        let rest = text[end..].trim_start_matches([' ', '\t']);
        if rest.len() < text.len() - end && !rest.starts_with(REDACTED) {
            return 0..text.len() - rest.len() + word_length(rest);
        }
    }
    0..end
}

/// The length up to the closing quote, which is escaped no more than the opening one.
fn quoted_length(text: &str, quote: u8, slashes: usize) -> usize {
    let mut run = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\\' => run += 1,
            _ if byte == quote && run <= slashes => return at - run,
            _ => run = 0,
        }
    }
    text.len()
}

/// The length of a word with the brackets that follow it: `Some("x")`, `{"a": 1}`, `${NAME}`.
fn word_length(text: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || c.is_control() || ",;&\"'`<>()[]{}\\".contains(c);
    let end = text.find(ends).unwrap_or(text.len());
    if text[end..].starts_with(['{', '[', '(']) { end + bracketed_length(&text[end..]) } else { end }
}

/// The length up to the bracket that closes the first one, or of the whole text.
fn bracketed_length(text: &str) -> usize {
    let (mut depth, mut in_quotes, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_quotes = !in_quotes,
            b'{' | b'[' | b'(' if !in_quotes => depth += 1,
            b'}' | b']' | b')' if !in_quotes => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// Whether a value may be shown although it has the name of a secret.
fn is_harmless(name: &str, value: &str) -> bool {
    let is_count =
        || name.to_ascii_lowercase().ends_with("tokens") && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_constant = || is_empty_value(value);
    value == REDACTED || is_constant() || is_reference(value) || is_count()
}

/// Whether the value is exactly `${NAME}`.
fn is_reference(value: &str) -> bool {
    let name = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    name.is_some_and(|name| !name.is_empty() && plain(name))
}
