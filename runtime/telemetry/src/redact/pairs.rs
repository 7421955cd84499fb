//! Values that follow the name of a secret: `password=…`, `"apiKey": "…"`, `Cookie: …`.

use super::cuts::Cuts;
use redflow_contract::secret::{REDACTED, is_secret_name};
use std::borrow::Cow;
use std::ops::Range;

/// Characters of a name at most. Longer ones are judged by their end, which is what decides.
const MAX_NAME: usize = 64;

/// Spaces and escapes between a name, its sign and its value, at most.
const MAX_GAP: usize = 4;

/// Words that make of `key` a secret when they stand before it as a word of their own.
const KEY_KINDS: [&str; 6] = ["api", "access", "secret", "private", "signing", "encryption"];

/// Words before the value proper.
const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "digest", "apikey", "negotiate"];

/// Values that tell nothing.
const PLAIN: [&str; 5] = ["null", "none", "true", "false", "undefined"];

/// Hides the values of all pairs whose name is that of a secret.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    let (mut cuts, mut from) = (Cuts::new(text), 0);
    while let Some(sign) = text[from..].find([':', '=']).map(|at| from + at) {
        // A value may be a pair itself: only what was hidden is passed over.
        from = sign + 1;
        // `=>` and `:=`, but not `a::b`.
        let rest = text[from..].strip_prefix(['>', '=']).unwrap_or(&text[from..]);
        let path = text[sign..].starts_with("::") || text[..sign].ends_with(':');
        let Some(name) = name_before(&text[..sign]).filter(|name| !path && is_secret(name)) else { continue };
        let gap = rest.bytes().take(MAX_GAP).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let start = text.len() - rest.len() + gap;
        let value = value_of(name.last, &text[start..]);
        let (begin, end) = (start + value.start, start + value.end);
        if begin < end && !is_open(name.last, &text[begin..end]) {
            cuts.put(begin, end, REDACTED);
            from = end;
        }
    }
    cuts.done()
}

/// A name, and the word before it.
struct Name<'a> {
    last: &'a str,
    before: &'a str,
}

/// The name at the end of a text. It may stand in quotes, also in escaped ones: JSON in a text in JSON.
fn name_before(text: &str) -> Option<Name<'_>> {
    let text = trim_end(text, |c| matches!(c, ' ' | '\t'), MAX_GAP);
    let bare = text.strip_suffix(['"', '\'', '`']).map(|text| trim_end(text, |c| c == '\\', MAX_GAP));
    let text = bare.unwrap_or(text);
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    let rest = trim_end(text, in_name, MAX_NAME);
    let last = &text[rest.len()..];
    // The end of a Rust path, as in `server::auth: refused`, names a place.
    if last.is_empty() || rest.ends_with("::") {
        return None;
    }
    let before = rest.strip_suffix(' ').unwrap_or_default();
    let before = &before[trim_end(before, char::is_alphanumeric, MAX_NAME).len()..];
    Some(Name { last, before })
}

/// Without so many of such characters at its end.
fn trim_end(text: &str, trims: impl Fn(char) -> bool, most: usize) -> &str {
    let taken = text.chars().rev().take(most).take_while(|c| trims(*c));
    &text[..text.len() - taken.map(char::len_utf8).sum::<usize>()]
}

fn is_secret(name: &Name<'_>) -> bool {
    let kind = || KEY_KINDS.iter().any(|kind| kind.eq_ignore_ascii_case(name.before));
    is_secret_name(name.last) || (name.last.eq_ignore_ascii_case("key") && kind())
}

/// Where the value lies in the text behind the name.
fn value_of(name: &str, text: &str) -> Range<usize> {
    let slashes = text.bytes().take(MAX_GAP).take_while(|byte| *byte == b'\\').count();
    if let Some(quote @ (b'"' | b'\'' | b'`')) = text.as_bytes().get(slashes).copied() {
        let start = slashes + 1;
        return start..start + quoted(&text[start..], quote, slashes);
    }
    if text.starts_with(REDACTED) {
        return 0..0;
    }
    let last = name.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if last.to_ascii_lowercase().starts_with("cookie") {
        // Cookies are many, and have a line of their own.
        return 0..text.find(['"', '\'', '\n', '\r', '\\']).unwrap_or(text.len());
    }
    let end = word(text);
    if SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(&text[..end])) {
        let rest = text[end..].trim_start_matches([' ', '\t']);
        if rest.len() < text.len() - end && !rest.starts_with(REDACTED) {
            return 0..text.len() - rest.len() + word(rest);
        }
    }
    0..end
}

/// Up to the quote that is escaped no more than the one that opened the value.
fn quoted(text: &str, quote: u8, slashes: usize) -> usize {
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

/// Up to the end of a word, and of the brackets that follow it: `Some("x")`, `{"a": 1}`, `${NAME}`.
fn word(text: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || c.is_control() || ",;&\"'`<>()[]{}\\".contains(c);
    let end = text.find(ends).unwrap_or(text.len());
    if text[end..].starts_with(['{', '[', '(']) { end + bracketed(&text[end..]) } else { end }
}

/// Up to the bracket that closes the first, or all of it.
fn bracketed(text: &str) -> usize {
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

/// Whether a value may be shown although its name is that of a secret.
fn is_open(name: &str, value: &str) -> bool {
    let count =
        || name.to_ascii_lowercase().ends_with("tokens") && value.bytes().all(|byte| byte.is_ascii_digit());
    let plain = || PLAIN.iter().any(|plain| value.eq_ignore_ascii_case(plain));
    value == REDACTED || plain() || is_reference(value) || count()
}

/// `${NAME}` and nothing else.
fn is_reference(value: &str) -> bool {
    let name = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    name.is_some_and(|name| !name.is_empty() && plain(name))
}
