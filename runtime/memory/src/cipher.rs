//! Encrypts turns and summaries, and hides the names of users and tags in keys and fields.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};
use redflow_contract::digest::Digest;

const NONCE_BYTES: usize = 24;
/// Separates the digests of users from other uses of the key.
const USERS: &[u8] = b"users of a memory";

/// Encrypts and decrypts turns. It has no `Debug`, so it never shows its key.
pub(crate) struct TurnCipher {
    cipher: XChaCha20Poly1305,
    /// Known only with the key, so that the digest of a name cannot be guessed.
    users: Digest,
}

impl TurnCipher {
    /// None unless the key is 32 bytes in base64.
    pub(crate) fn new(key: &str) -> Option<Self> {
        let bytes = STANDARD.decode(key.trim()).ok()?;
        let key = Key::try_from(bytes.as_slice()).ok()?;
        let users = Digest::of(&[USERS, bytes.as_slice()].concat());
        Some(Self { cipher: XChaCha20Poly1305::new(&key), users })
    }

    pub(crate) fn encrypt(&self, plain: &[u8], bound_to: &[u8]) -> Option<String> {
        let mut sealed = vec![0; NONCE_BYTES];
        getrandom::fill(&mut sealed).ok()?;
        let nonce = XNonce::try_from(sealed.as_slice()).ok()?;
        sealed.extend(self.cipher.encrypt(&nonce, Payload { msg: plain, aad: bound_to }).ok()?);
        Some(STANDARD.encode(sealed))
    }

    pub(crate) fn decrypt(&self, sealed: &str, bound_to: &[u8]) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(sealed).ok()?;
        let (nonce, cipher) = bytes.split_at_checked(NONCE_BYTES)?;
        let nonce = XNonce::try_from(nonce).ok()?;
        self.cipher.decrypt(&nonce, Payload { msg: cipher, aad: bound_to }).ok()
    }
}

/// The name of a tag filter in fields: as for users.
pub(crate) fn filter_digest(filter: &str, cipher: Option<&TurnCipher>) -> String {
    match cipher {
        Some(cipher) => cipher.users.chain(b'f', filter.as_bytes()).to_hex(),
        None => Digest::of(filter.as_bytes()).to_hex(),
    }
}

/// The name of a user in keys: never readable, and with a cipher not to be guessed either.
pub(crate) fn user_digest(user: &str, cipher: Option<&TurnCipher>) -> String {
    match cipher {
        Some(cipher) => cipher.users.chain(b'u', user.as_bytes()).to_hex(),
        None => Digest::of(user.as_bytes()).to_hex(),
    }
}
