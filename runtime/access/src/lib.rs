//! Access control of the sidecar: hosts, origins, tokens, sessions, rate limits and connections.
//!
//! Owns the listener with its limits ([`listen`]), the check of each caller ([`AccessControl`]) and the token
//! files ([`tokens`]). Never knows a flow or a run, and only one route: where a browser signs in. Every
//! decision takes the time as an argument, so that tests need no clock.
//!
//! It is a crate of its own because the command line needs tokens without a server, and because access rules are
//! easier to keep right where nothing else is.

mod body;
mod connection;
mod fingerprint;
mod framing;
mod guard;
pub mod listen;
mod origins;
mod peer;
mod secret_file;
mod session_file;
mod sessions;
mod settings;
mod sign_in;
mod token_changes;
pub mod tokens;

pub use body::{bytes_only, json_only};
pub use guard::{AccessControl, AuthMethod, Caller};
pub use origins::{Origins, Page};
pub use peer::PeerAddress;
pub use sessions::COOKIE;
pub use settings::AccessSettings;
pub use tokens::Tokens;

use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::secret::mask_secrets;

/// The most bytes of a client's text that an error repeats.
const MAX_EXCERPT_BYTES: usize = 64;

/// The most bytes of a client's text that are searched for secrets.
const MAX_SEARCHED_BYTES: usize = 4_000;

/// The start of what a client sent, safe to print. A token that came in the wrong place is not repeated.
fn printable_excerpt(text: &[u8]) -> String {
    let printable: String = text
        .iter()
        .take(MAX_SEARCHED_BYTES)
        .map(|&byte| if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '?' })
        .collect();
    let mut out = mask_secrets(&printable).into_owned();
    if out.len() > MAX_EXCERPT_BYTES {
        out.truncate(MAX_EXCERPT_BYTES);
        out.push('…');
    }
    out
}

/// Locks, also after a panic of another holder: every change here is a single step, so the value is still
/// consistent.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn randomness_error(why: getrandom::Error) -> ApiError {
    ApiError::new(ApiCode::Stopping, format!("The system has no random bytes ({why}): try again."))
}

#[cfg(test)]
mod tests {
    use super::printable_excerpt;

    #[test]
    fn an_excerpt_is_short_and_printable() {
        assert_eq!(printable_excerpt(b"evil.example"), "evil.example");
        assert_eq!(printable_excerpt(b"a\r\n\x1b[31m\xff b"), "a???[31m? b");
        assert_eq!(printable_excerpt(&[b'x'; 65]), format!("{}…", "x".repeat(64)));
        assert_eq!(printable_excerpt(b"rf_0123456789abcdefABCDEF_-.evil.example"), "[redacted].evil.example");
    }
}
