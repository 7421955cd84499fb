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
struct Decoded {
    bytes: Vec<u8>,
    /// For every byte and for the end, the position in the original text.
    positions: Vec<usize>,
}

/// Searches a text as it is and with its escapes decoded, also a URL in a JSON string in a URL. Gives the ranges
/// of the text that `search` finds, in order and without overlaps.
pub(super) fn search_decoded(text: &str, search: impl Fn(&[u8]) -> Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut found = search(text.as_bytes());
    for first in [Escapes::Json, Escapes::Percent] {
        let mut level: Option<Decoded> = None;
        for escapes in [first, first.other(), first, first.other()] {
            let decoded = level.as_ref().map(|level| (&*level.bytes, Some(&*level.positions)));
            let (bytes, positions) = decoded.unwrap_or((text.as_bytes(), None));
            match bytes.contains(&escapes.mark()) {
                true => {}
                // The other order begins with the other escapes.
                false if level.is_none() => break,
                false => continue,
            }
            let next = decode(bytes, positions, escapes);
            let ranges = search(&next.bytes).into_iter();
            found.extend(ranges.map(|range| next.positions[range.start]..next.positions[range.end]));
            level = Some(next);
        }
    }
    merge(found)
}

/// Joins ranges that overlap.
fn merge(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
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

fn decode(text: &[u8], positions: Option<&[usize]>, escapes: Escapes) -> Decoded {
    let position = |at: usize| positions.map_or(at, |positions| positions[at]);
    let mut decoded = Decoded { bytes: Vec::with_capacity(text.len()), positions: Vec::new() };
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let escape =
            if byte == escapes.mark() { escapes.decode(&text[at..], &mut decoded.bytes) } else { None };
        let length = escape.unwrap_or_else(|| {
            decoded.bytes.push(byte);
            1
        });
        decoded.positions.resize(decoded.bytes.len(), position(at));
        at += length;
    }
    decoded.positions.push(position(at));
    decoded
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
