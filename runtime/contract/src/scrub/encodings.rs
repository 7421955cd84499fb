//! The forms in which a text can hold a secret.
//!
//! Base64 has few forms of a secret, so all are made in advance. Escapes have too many, so the text is decoded
//! and searched again; each decoded byte knows its place in the text.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::ops::Range;

/// A longer secret is not searched for in base64. All known kinds of keys are shorter.
const MAX_ENCODED: usize = 8 * 1024;

/// A secret as it is, as `+` writes its spaces, and in base64.
pub(super) fn forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned(), secret.replace(' ', "+")];
    let shifts = if secret.len() > MAX_ENCODED { 0 } else { 3 };
    // The bytes before the secret decide how its bits are spread over characters.
    for shift in 0..shifts {
        let bytes = [&b"\0\0"[..shift], secret.as_bytes()].concat();
        // Only characters that hold bits of the secret alone.
        let alone = (shift * 8).div_ceil(6)..bytes.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            forms.extend(engine.encode(&bytes).get(alone.clone()).map(str::to_owned));
        }
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// A text with its escapes decoded.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// For every byte and for the end, the position in the original text.
    pub(super) positions: Vec<usize>,
    /// The number of bytes before an escape that the text does not complete.
    complete: usize,
}

impl Decoded {
    /// The bytes that stay the same when more text follows.
    pub(super) fn complete_bytes(&self) -> &[u8] {
        &self.bytes[..self.complete]
    }

    /// Ranges of the decoded bytes as ranges of the original text.
    pub(super) fn ranges(&self, found: Vec<Range<usize>>) -> impl Iterator<Item = Range<usize>> {
        found.into_iter().map(|range| self.positions[range.start]..self.positions[range.end])
    }
}

/// Decodes the escapes of a text, also of a URL in a JSON string in a URL, and visits each result. Gives the
/// position of the first escape that the text does not complete; without one, the end of the text.
pub(super) fn decode_all(text: &str, mut visit: impl FnMut(&Decoded)) -> usize {
    let mut complete = text.len();
    for first in [Escapes::Json, Escapes::Percent] {
        let mut level: Option<Decoded> = None;
        for escapes in [first, first.other(), first, first.other()] {
            let bytes = level.as_ref().map_or(text.as_bytes(), |level| &level.bytes);
            if bytes.contains(&escapes.mark()) {
                let next = decode(bytes, level.as_ref(), escapes);
                // An escape is longer than its character.
                if next.bytes.len() < bytes.len() || next.complete < bytes.len() {
                    complete = complete.min(next.positions[next.complete]);
                    visit(&next);
                    level = Some(next);
                }
            }
            // The other order begins with the other escapes.
            if level.is_none() {
                break;
            }
        }
    }
    complete
}

/// Joins ranges that overlap.
pub(super) fn merge(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[derive(Clone, Copy)]
enum Escapes {
    /// `\/`, `\n`, `\u002f`.
    Json,
    /// `%2F`.
    Percent,
}

impl Escapes {
    fn other(self) -> Self {
        match self {
            Self::Json => Self::Percent,
            Self::Percent => Self::Json,
        }
    }

    /// The first byte of an escape.
    fn mark(self) -> u8 {
        match self {
            Self::Json => b'\\',
            Self::Percent => b'%',
        }
    }

    /// Whether a text, which starts with the mark, can become an escape when more text follows.
    fn is_incomplete(self, text: &[u8]) -> bool {
        let is_start = |text: &[u8], form: &[u8]| {
            let is_same =
                |(byte, kind): (&u8, &u8)| byte == kind || (*kind == b'0' && byte.is_ascii_hexdigit());
            text.len() < form.len() && text.iter().zip(form).all(is_same)
        };
        match (self, text) {
            (Self::Percent, _) => is_start(text, b"%00"),
            (Self::Json, [_, b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'b' | b'A'..=b'B', ..]) => {
                is_start(text, br"\u0000\u0000")
            }
            (Self::Json, _) => is_start(text, br"\u0000"),
        }
    }

    /// Decodes the escape at the start of a text. Gives its length; none if it is no escape.
    fn decode(self, text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        match self {
            Self::Json => decode_json(text, out),
            Self::Percent => {
                out.push(u8::try_from(hexadecimal(text.get(1..3)?)?).ok()?);
                Some(3)
            }
        }
    }
}

/// Decodes the escapes of one kind. `level` has the positions of the text, if it was decoded before.
fn decode(text: &[u8], level: Option<&Decoded>, escapes: Escapes) -> Decoded {
    let position = |at: usize| level.map_or(at, |level| level.positions[at]);
    let end = level.map_or(text.len(), |level| level.complete);
    let (mut bytes, mut positions) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    let (mut at, mut complete) = (0, None);
    while let Some(&byte) = text.get(at) {
        let is_mark = byte == escapes.mark();
        if complete.is_none() && (at >= end || (is_mark && escapes.is_incomplete(&text[at..end]))) {
            complete = Some(bytes.len());
        }
        let escape = if is_mark { escapes.decode(&text[at..], &mut bytes) } else { None };
        let length = escape.unwrap_or_else(|| {
            bytes.push(byte);
            1
        });
        positions.resize(bytes.len(), position(at));
        at += length;
    }
    positions.push(position(at));
    let complete = complete.unwrap_or(bytes.len());
    Decoded { bytes, positions, complete }
}

/// A character beyond 16 bits takes two `\u`.
fn decode_json(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let short = match text.get(1)? {
        b'u' => {
            let first = hexadecimal(text.get(2..6)?)?;
            let second = || text.get(6..8).filter(|start| *start == b"\\u").and_then(|_| text.get(8..12));
            let (units, length) = match first {
                0xd800..=0xdbff => ([first, hexadecimal(second()?)?], 12),
                _ => ([first, 0], 6),
            };
            let character = char::decode_utf16(units).next()?.ok()?;
            out.extend(character.encode_utf8(&mut [0; 4]).bytes());
            return Some(length);
        }
        byte @ (b'"' | b'\\' | b'/') => *byte,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    };
    out.push(short);
    Some(2)
}

fn hexadecimal(digits: &[u8]) -> Option<u16> {
    let is_hexadecimal = digits.iter().all(u8::is_ascii_hexdigit);
    std::str::from_utf8(digits)
        .ok()
        .filter(|_| is_hexadecimal)
        .and_then(|text| u16::from_str_radix(text, 16).ok())
}
