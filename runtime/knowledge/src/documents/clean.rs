//! Bytes to text: encodings, and characters that are removed.

use super::names::unreadable;
use redflow_ports::ArchiveError;
use std::borrow::Cow;

/// The text of a document: UTF-8, or UTF-16 with a byte order mark. The mark is dropped.
pub(super) fn decode<'b>(name: &str, bytes: &'b [u8]) -> Result<Cow<'b, str>, ArchiveError> {
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(decode_utf16(name, rest, u16::from_le_bytes)?),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(decode_utf16(name, rest, u16::from_be_bytes)?),
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(decode_utf8(name, rest)?),
        _ => Cow::Borrowed(decode_utf8(name, bytes)?),
    };
    match text.bytes().position(|byte| byte == 0) {
        None => Ok(text),
        Some(at) => {
            let line = line_at(&text.as_bytes()[..at]);
            Err(unreadable(
                name,
                &format!("has a NUL in line {line}, so it is not text: save it as UTF-8 text"),
            ))
        }
    }
}

fn decode_utf8<'b>(name: &str, bytes: &'b [u8]) -> Result<&'b str, ArchiveError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = line_at(&bytes[..error.valid_up_to()]);
        unreadable(name, &format!("is not UTF-8 in line {line}: save it as UTF-8 text"))
    })
}

fn decode_utf16(name: &str, bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, ArchiveError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text: Option<String> =
        char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).map(Result::ok).collect();
    text.filter(|_| rest.is_empty())
        .ok_or_else(|| unreadable(name, "begins as UTF-16 and is not: save it as UTF-8 text"))
}

/// The number of the line after these bytes, from 1.
fn line_at(before: &[u8]) -> usize {
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Removes characters that show nothing or turn the direction of text. Every end of a line becomes `\n`.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_removed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            c if is_removed(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Invisible characters, and characters that change the direction of the text after them. Names and titles have none.
pub(super) fn is_hidden(c: char) -> bool {
    is_removed(c)
        || matches!(c, '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Control characters except `\n` and tab, marks of direction, and the byte order mark.
fn is_removed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{feff}' => true,
        c => c.is_control(),
    }
}
