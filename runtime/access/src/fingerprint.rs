//! Creates secrets, and the digests that stand for them.
//!
//! Never prints a secret or its digest.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use redflow_contract::api::ApiError;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The SHA-256 of a secret. It has no `==`, only a comparison in constant time.
#[derive(Clone, Copy)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }

    pub(crate) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    pub(crate) fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads 64 lower-case hex digits.
    pub(crate) fn parse_hex(text: &str) -> Option<Self> {
        let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fingerprint(…)")
    }
}

/// Makes a secret of `N` random bytes: `prefix`, then base64url, which needs no escaping anywhere.
pub(crate) fn make_secret<const N: usize>(prefix: &str) -> Result<SecretString, ApiError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(crate::randomness_error)?;
    Ok(SecretString::from(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))))
}

#[cfg(test)]
mod tests {
    use super::{Fingerprint, make_secret};
    use secrecy::ExposeSecret as _;

    // SECURITY: token-digest
    #[test]
    fn a_fingerprint_is_sha256_in_hex_and_back() {
        let abc = Fingerprint::of("abc");
        assert_eq!(abc.to_hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(Fingerprint::parse_hex(&abc.to_hex()).unwrap().matches(&abc));
        assert!(!abc.matches(&Fingerprint::of("abd")));
        for bad in ["", "ba", &"A".repeat(64), &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            assert!(Fingerprint::parse_hex(bad).is_none(), "{bad}");
        }
        assert_eq!(format!("{abc:?}"), "Fingerprint(…)");
    }

    // SECURITY: token-digest
    #[test]
    fn secrets_differ_and_have_their_length() {
        let (a, b) = (make_secret::<32>("rf_").unwrap(), make_secret::<32>("rf_").unwrap());
        assert_eq!(a.expose_secret().len(), 3 + 43);
        assert!(a.expose_secret().starts_with("rf_") && a.expose_secret() != b.expose_secret());
    }
}
