//! The start of a provider's response as it was sent, for an agent with `debug`.

use redflow_contract::fact::MAX_RAW_BYTES;

/// The first bytes of a response. The rest is not copied.
#[derive(Default)]
pub(crate) struct RawStart(Vec<u8>);

impl RawStart {
    /// Adds the next part of the response.
    pub(crate) fn add(&mut self, part: &[u8]) {
        let free = MAX_RAW_BYTES.saturating_sub(self.0.len());
        self.0.extend_from_slice(part.get(..free).unwrap_or(part));
    }

    /// The bytes as text, without a character that was cut.
    pub(crate) fn into_text(self) -> String {
        let whole = match std::str::from_utf8(&self.0) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.0.len(),
        };
        let mut text = String::from_utf8_lossy(self.0.get(..whole).unwrap_or_default()).into_owned();
        // A byte that is no text takes three.
        text.truncate(text.floor_char_boundary(MAX_RAW_BYTES));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::RawStart;
    use redflow_contract::fact::MAX_RAW_BYTES;

    fn start(parts: &[&[u8]]) -> String {
        let mut raw = RawStart::default();
        parts.iter().for_each(|part| raw.add(part));
        raw.into_text()
    }

    #[test]
    fn keeps_the_start_and_cuts_at_a_character() {
        assert_eq!(start(&[]), "");
        assert_eq!(
            start(&["data: {\"a\":\"Grü".as_bytes(), "ße\"}\n\n".as_bytes()]),
            "data: {\"a\":\"Grüße\"}\n\n"
        );
        let full = "x".repeat(MAX_RAW_BYTES);
        assert_eq!(start(&[full.as_bytes(), b"more"]), full);
        assert_eq!(start(&[&full.as_bytes()[1..], "ü".as_bytes()]), full[1..]);
        assert_eq!(start(&[&full.as_bytes()[2..], "üü".as_bytes()]), format!("{}ü", &full[2..]));
    }

    #[test]
    fn bytes_that_are_no_text_keep_the_bound() {
        assert_eq!(start(&[b"a\xffb"]), "a\u{fffd}b");
        let text = start(&[&vec![0xff; 2 * MAX_RAW_BYTES]]);
        assert!((MAX_RAW_BYTES - 2..=MAX_RAW_BYTES).contains(&text.len()), "{}", text.len());
    }
}
