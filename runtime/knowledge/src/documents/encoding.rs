//! Text of the web in other encodings than UTF-8.

use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// How far the `<meta>` of HTML is looked for, in bytes.
const META_BYTES: usize = 1024;

/// The text of bytes that a byte order mark, the `charset` of their content type or the `<meta>` of HTML announces in
/// another encoding than UTF-8, in this order. None if nothing announces a known one. A character that the encoding does
/// not have becomes U+FFFD. `goes_on` says that the last character may be cut.
#[must_use]
pub fn decode_web_text(bytes: &[u8], content_type: Option<&str>, goes_on: bool) -> Option<String> {
    let (encoding, mark) = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => (encoding, length),
        None => {
            let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
            let by_name = charset_of(&content_type).and_then(|label| known(label.as_bytes()));
            let is_html =
                ["text/html", "application/xhtml"].iter().any(|kind| content_type.starts_with(kind));
            (by_name.or_else(|| if is_html { encoding_in_meta(bytes) } else { None })?, 0)
        }
    };
    (encoding != UTF_8).then(|| decode(encoding, bytes.get(mark..).unwrap_or_default(), goes_on))
}

fn decode(encoding: &'static Encoding, bytes: &[u8], goes_on: bool) -> String {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        let room = decoder.max_utf8_buffer_length_without_replacement(rest.len()).unwrap_or(rest.len());
        text.reserve(room);
        let (result, read) = decoder.decode_to_string_without_replacement(rest, &mut text, !goes_on);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            DecoderResult::InputEmpty => return text,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
}

/// The `charset` of a content type in lower case.
fn charset_of(content_type: &str) -> Option<&str> {
    let label = content_type.split(';').skip(1).find_map(|part| part.trim().strip_prefix("charset="))?;
    Some(label.trim_matches(['"', '\'', ' ']))
}

/// The encoding with this name. Names that serve only attacks have none.
fn known(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label)
}

/// The encoding that the `<meta>` of HTML names. None for text that is UTF-8 whatever it names.
fn encoding_in_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    if !bytes.is_ascii() && is_utf8(bytes) {
        return None;
    }
    let head = bytes.get(..META_BYTES).unwrap_or(bytes).to_ascii_lowercase();
    let mut rest = head.as_slice();
    loop {
        let start = find(rest, b"<")?;
        rest = &rest[start..];
        if rest.starts_with(b"<!--") {
            rest = &rest[find(rest, b"-->")?..];
            continue;
        }
        let end = find(rest, b">")?;
        if rest.starts_with(b"<meta")
            && let Some(label) = label_in(&rest[..end])
        {
            // A text whose `<meta>` could be read is not UTF-16.
            return known(label)
                .map(|found| if [UTF_16BE, UTF_16LE].contains(&found) { UTF_8 } else { found });
        }
        rest = &rest[end..];
    }
}

/// The label behind `charset=`, in a tag of lower case.
fn label_in(tag: &[u8]) -> Option<&[u8]> {
    let name = b"charset";
    let after = tag[find(tag, name)? + name.len()..].trim_ascii_start().strip_prefix(b"=")?;
    let after = after.trim_ascii_start();
    let after = after.strip_prefix(b"\"").or_else(|| after.strip_prefix(b"'")).unwrap_or(after);
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"';/".contains(byte);
    Some(&after[..after.iter().position(is_end).unwrap_or(after.len())])
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// Whether bytes are UTF-8. Their last character may be cut.
fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
