//! Bytes to text: UTF-8 and UTF-16.

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
