//! SHA-256 digests, written as 64 hex digits.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "codegen",
    derive(ts_rs::TS, schemars::JsonSchema),
    ts(type = "string"),
    schemars(with = "String")
)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The start value of a chain.
    pub const ZERO: Self = Self([0; 32]);

    /// Hashes bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes this digest, a tag byte and the new bytes. The length of the bytes is hashed too, so that two
    /// links can never be read as one.
    #[must_use]
    pub fn chain(&self, tag: u8, bytes: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update([tag]);
        hasher.update((bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
        Self(hasher.finalize().into())
    }

    /// Hashes the compact JSON of a value. Keys keep their order, so equal values with the same key order
    /// have equal digests.
    ///
    /// # Errors
    /// Only if the value cannot be written as JSON (a map with keys that are not strings).
    pub fn of_json<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        // Most effects fit, and one long text is hashed faster than many short ones.
        let mut text = Vec::with_capacity(512);
        serde_json::to_writer(&mut text, value)?;
        Ok(Self::of(&text))
    }

    /// Formats the digest as 64 hex digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.with_hex(str::to_owned)
    }

    /// Avoids a copy on the heap, because every journal line has a digest.
    fn with_hex<T>(&self, read: impl FnOnce(&str) -> T) -> T {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        read(std::str::from_utf8(&text).unwrap_or_default())
    }

    /// Reads 64 lower-case hex digits.
    #[must_use]
    pub fn parse_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            for &digit in pair {
                let value = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return None,
                };
                *byte = *byte << 4 | value;
            }
        }
        Some(Self(bytes))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.with_hex(|text| f.write_str(text))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_hex(|text| serializer.serialize_str(text))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_hex(&text).ok_or_else(|| serde::de::Error::custom("expected 64 lower-case hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn of_json_hashes_the_compact_text() {
        let value = serde_json::json!({"b": 1, "a": [1.5, null, "ü"]});
        assert_eq!(Digest::of_json(&value).unwrap(), Digest::of(value.to_string().as_bytes()));
        assert_eq!(
            Digest::of(b"abc").to_hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn reads_its_own_hex_and_nothing_else() {
        let digest = Digest::of(b"x");
        assert_eq!(Digest::parse_hex(&digest.to_hex()), Some(digest));
        let upper = digest.to_hex().to_uppercase();
        for bad in ["", "00", upper.as_str(), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(Digest::parse_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn chain_links_cannot_be_confused() {
        let a = Digest::ZERO.chain(1, b"ab").chain(1, b"c");
        assert_ne!(a, Digest::ZERO.chain(1, b"a").chain(1, b"bc"));
        assert_ne!(Digest::ZERO.chain(1, b"a"), Digest::ZERO.chain(2, b"a"));
    }
}
