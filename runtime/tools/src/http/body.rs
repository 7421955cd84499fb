//! The body of an answer: read as a stream, kept up to a bound, and shown as JSON, text or a description.

use super::input::is_json_type;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redflow_contract::json::{JsonLimits, parse_exact};
use redflow_contract::scrub::Scrubber;
use redflow_knowledge::decode_web_text;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The most bytes of a body that is shown as base64.
pub(crate) const MAX_BASE64_BYTES: usize = 32 * 1024;

/// The most bytes of a body's JSON in a result, which has a limit of its own.
pub(crate) const MAX_JSON_BYTES: usize = 192 * 1024;

/// The deepest nesting of a JSON body. A deeper one is shown as text.
const MAX_DEPTH: usize = 64;

/// Bytes that are kept after the bound, to find a secret that the bound would cut.
const AFTER_BOUND: usize = 64 * 1024;

/// The first bytes of a body, with the size and the digest of all.
pub(crate) struct KeptBody {
    bytes: Vec<u8>,
    keep: usize,
    size: u64,
    hasher: Sha256,
}

impl KeptBody {
    /// Keeps the first `keep` bytes.
    pub(crate) fn new(keep: usize) -> Self {
        Self { bytes: Vec::new(), keep, size: 0, hasher: Sha256::new() }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.size += chunk.len() as u64;
        self.hasher.update(chunk);
        let room = (self.keep + AFTER_BOUND).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
    }

    /// The parts of a result about the body: `body`, and for a cut one `truncated`, `bytes` and `sha256`.
    pub(crate) fn show(self, content_type: Option<&str>, scrubber: &Scrubber) -> Map<String, Value> {
        let Self { bytes, keep, size, hasher } = self;
        let digest: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let is_whole = size <= keep as u64;
        let whole = if is_whole { bytes.as_slice() } else { &[] };
        let announced = content_type.is_some_and(is_json_type);
        let mut shown = Map::new();
        if is_whole
            && announced
            && let Some(value) = parse_json(whole)
        {
            shown.insert("body".to_owned(), value);
            return shown;
        }
        let goes_on = size > bytes.len() as u64;
        let Some(text) = decode_text(&bytes, content_type, goes_on) else {
            let mut body = json!({"contentType": content_type, "bytes": size, "sha256": digest});
            if is_whole && whole.len() <= MAX_BASE64_BYTES {
                body["base64"] = Value::from(STANDARD.encode(whole));
            }
            shown.insert("body".to_owned(), body);
            return shown;
        };
        let end = match (is_whole, goes_on) {
            (true, _) => text.len(),
            (false, false) => keep,
            // UTF-16 becomes shorter, and the end of what was kept can be within a secret.
            (false, true) => keep.min(text.len().saturating_sub(AFTER_BOUND / 2)),
        };
        let (text, is_cut) = cut_text(text, end, scrubber);
        shown.insert("body".to_owned(), Value::from(text));
        if is_cut {
            shown.insert("truncated".to_owned(), Value::from(true));
            shown.insert("bytes".to_owned(), Value::from(size));
            shown.insert("sha256".to_owned(), Value::from(digest));
        }
        shown
    }
}

/// Reads JSON whose copy in a result is not larger than a result may be.
fn parse_json(bytes: &[u8]) -> Option<Value> {
    let limits = JsonLimits { max_bytes: MAX_JSON_BYTES, max_depth: MAX_DEPTH };
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let value = parse_exact(bytes, limits).ok()?;
    (value.to_string().len() <= MAX_JSON_BYTES).then_some(value)
}

/// Decodes text; none if the bytes are no text. `goes_on` says that the last character may be cut.
fn decode_text(bytes: &[u8], content_type: Option<&str>, goes_on: bool) -> Option<String> {
    let lower = content_type.unwrap_or_default().to_ascii_lowercase();
    let (is_text, has_charset) = (lower.starts_with("text/"), lower.contains("charset="));
    let is_media = ["image/", "audio/", "video/", "font/"].iter().any(|family| lower.starts_with(family));
    if is_media && !lower.contains("+xml") {
        return None;
    }
    if (is_text || has_charset || lower.contains("xml"))
        && let Some(text) = decode_web_text(bytes, content_type, goes_on)
    {
        return (!text.contains('\0')).then_some(text);
    }
    if bytes.contains(&0) {
        return None;
    }
    let utf8 = match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if goes_on && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    match utf8 {
        Some(text) => Some(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned()),
        // In this encoding every byte is a character, so only what is announced as text counts.
        None if is_text && !has_charset => {
            decode_web_text(bytes, Some("text/plain; charset=windows-1252"), goes_on)
        }
        None => None,
    }
}

/// Cuts a text at `end`, and where its JSON would be too long. Leaves no part of a secret. Says whether it cut.
fn cut_text(mut text: String, end: usize, scrubber: &Scrubber) -> (String, bool) {
    let mut written = 0;
    let fits = |(_, c): &(usize, char)| {
        written += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if *c < ' ' => 6,
            c => c.len_utf8(),
        };
        written > MAX_JSON_BYTES
    };
    let too_long = text.char_indices().find(fits).map(|(at, _)| at);
    let end = end.min(too_long.unwrap_or(end));
    if end >= text.len() {
        return (text, false);
    }
    text.truncate(scrubber.cut_at(&text, end));
    (text, true)
}

#[cfg(test)]
mod tests {
    use super::{KeptBody, MAX_BASE64_BYTES, MAX_JSON_BYTES};
    use proptest::prelude::*;
    use redflow_contract::digest::Digest;
    use redflow_contract::scrub::Scrubber;
    use serde_json::{Value, json};

    const KEEP: usize = 100;

    fn show(content_type: &str, bytes: &[u8], keep: usize) -> Value {
        let mut body = KeptBody::new(keep);
        bytes.chunks(7).for_each(|chunk| body.push(chunk));
        let mut scrubber = Scrubber::default();
        scrubber.add("sk-verysecret");
        Value::Object(body.show(Some(content_type).filter(|name| !name.is_empty()), &scrubber))
    }

    #[test]
    fn bodies_are_json_text_or_described() {
        let nested = format!("{}{}", "[".repeat(65), "]".repeat(65));
        for (content_type, bytes, body) in [
            ("application/json", br#"{"a": [1, null]}"#.as_slice(), json!({"a": [1, null]})),
            ("Application/Problem+JSON; charset=utf-8", b"5", json!(5)),
            ("application/json", b"\xef\xbb\xbf[1]", json!([1])),
            ("application/json", b"{broken", json!("{broken")),
            ("application/json", br#"{"a":1,"a":2}"#, json!(r#"{"a":1,"a":2}"#)),
            ("application/json", b"123456789012345678901", json!("123456789012345678901")),
            ("application/json", b"", json!("")),
            ("text/plain", br#"{"a": 1}"#, json!(r#"{"a": 1}"#)),
            ("", "grün".as_bytes(), json!("grün")),
            ("application/octet-stream", b"plain", json!("plain")),
            ("text/html", b"gr\xfcn", json!("grün")),
            ("text/html; charset=ISO-8859-1", b"gr\xfcn", json!("grün")),
            ("text/html; charset=\"latin1\"", "ü".as_bytes(), json!("Ã¼")),
            ("text/html; charset=windows-1252", b"5 \x80", json!("5 €")),
            ("text/plain", b"5 \x80", json!("5 €")),
            ("text/html; charset=Shift_JIS", b"\x93\xfa\x96{\x8c\xea", json!("日本語")),
            ("text/html; charset=GBK", b"\xd6\xd0\xce\xc4", json!("中文")),
            ("application/json; charset=gbk", b"\"\xd6\xd0\"", json!("\"中\"")),
            ("text/html", b"<meta charset=euc-kr>\xc7\xd1", json!("<meta charset=euc-kr>한")),
            ("text/plain", b"\xff\xfea\0\xe9\0", json!("aé")),
            ("image/svg+xml", b"<svg/>", json!("<svg/>")),
            ("application/json", nested.as_bytes(), json!(nested)),
        ] {
            assert_eq!(show(content_type, bytes, 1000), json!({"body": body}), "{content_type}");
        }
        for (content_type, bytes) in [
            ("image/png", b"text".as_slice()),
            ("application/pdf", b"%PDF \xff\xfe"),
            ("text/plain", b"a\0b"),
            ("text/html; charset=utf-8", b"gr\xfcn"),
            ("text/html; charset=of-tomorrow", b"gr\xfcn"),
            ("text/html; charset=gbk", b"a\0b"),
            ("application/octet-stream", b"\xff\xfea\0"),
        ] {
            use base64::Engine as _;
            let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
            let body = json!({"contentType": content_type, "bytes": bytes.len(),
                "sha256": Digest::of(bytes).to_hex(), "base64": base64});
            assert_eq!(show(content_type, bytes, KEEP), json!({"body": body}), "{content_type}");
        }
    }

    #[test]
    fn a_long_body_is_cut_with_its_size_and_digest() {
        let bytes = "ä".repeat(KEEP).into_bytes();
        let cut = json!({"body": "ä".repeat(KEEP / 2), "truncated": true, "bytes": 2 * KEEP,
            "sha256": Digest::of(&bytes).to_hex()});
        assert_eq!(show("text/plain", &bytes, KEEP), cut);
        assert_eq!(show("application/json", &bytes, KEEP), cut);
        assert_eq!(show("text/plain", &bytes, 2 * KEEP), json!({"body": "ä".repeat(KEEP)}));
        // Also one of which only a part is kept.
        let large = "ä".repeat(200_001).into_bytes();
        let shown = show("text/plain", &large, KEEP + 1);
        assert_eq!(shown["body"], json!("ä".repeat(KEEP / 2)));
        assert_eq!(
            (&shown["bytes"], &shown["sha256"]),
            (&json!(400_002), &json!(Digest::of(&large).to_hex()))
        );
        // As UTF-8 it would be shorter than the bound.
        let utf16: Vec<u8> = "a".repeat(200_000).encode_utf16().flat_map(u16::to_le_bytes).collect();
        let shown = show("text/plain; charset=utf-16le", &utf16, 150_000);
        assert_eq!((&shown["body"], &shown["truncated"]), (&json!("a".repeat(75_000)), &json!(true)));
        let described = show("image/png", &large, KEEP);
        assert_eq!(described["body"]["bytes"], 400_002);
        assert!(described["body"].get("base64").is_none());
        let just = vec![255; MAX_BASE64_BYTES + 1];
        assert!(show("image/png", &just, 2 * just.len())["body"].get("base64").is_none());
        assert!(show("image/png", &just[1..], 2 * just.len())["body"].get("base64").is_some());
    }

    // SECURITY: tool-cut
    #[test]
    fn a_cut_leaves_no_part_of_a_secret() {
        for (text, keep) in [("12345 sk-verysecret", 10), ("12345 c2stdmVyeXNlY3JldA", 12)] {
            let shown = show("text/plain", text.as_bytes(), keep);
            assert_eq!(shown["body"], "12345 ", "{text}");
        }
    }

    proptest! {
        /// No body of a stranger breaks a result or makes it larger than it may be.
        #[test]
        fn any_body_has_a_result(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..2000),
                "[\\[{}\",:0-9a\u{0}-\u{1f}ü]{0,600}".prop_map(String::into_bytes),
            ],
            content_type in prop_oneof![
                Just("application/json"), Just("text/plain"), Just("text/html; charset=latin1"), Just("image/png"), Just(""),
            ],
            keep in 1usize..1500,
        ) {
            let shown = show(content_type, &bytes, keep);
            prop_assert!(shown.to_string().len() <= 6 * keep + 2 * MAX_BASE64_BYTES);
            prop_assert_eq!(shown.get("truncated").is_some(), shown.get("sha256").is_some());
        }
    }

    #[test]
    fn a_result_stays_below_its_limit() {
        for bytes in [vec![1; MAX_JSON_BYTES], vec![b'"'; MAX_JSON_BYTES]] {
            let shown = show("text/plain", &bytes, MAX_JSON_BYTES);
            assert_eq!(shown["truncated"], true);
            assert!(shown["body"].to_string().len() <= MAX_JSON_BYTES + 2);
        }
        let text = format!("[{}1]", "1e15,".repeat(12_000));
        assert!(show("application/json", text.as_bytes(), MAX_JSON_BYTES)["body"].is_string());
    }
}
