//! Who may come in: hosts, origins, tokens, sessions, rates, connections.
//!
//! Owns the sidecar's outer door: the listener with its limits ([`listen`]), who a request comes from and what they
//! may do ([`AccessControl`]), the files of tokens ([`tokens`]). Never knows a flow or a run, and of the routes only where a
//! browser signs in. Time comes in as an argument wherever something is decided, so that tests need no clock.

mod body;
mod connection;
mod fingerprint;
mod framing;
mod guard;
pub mod listen;
mod origins;
mod rates;
mod secret_file;
mod sessions;
mod settings;
pub mod tokens;

pub use body::json_only;
pub use guard::{AccessControl, AuthMethod, Caller};
pub use origins::{Origins, Page};
pub use rates::{RateBucket, RateLimiter};
pub use sessions::COOKIE;
pub use settings::AccessSettings;
pub use tokens::Tokens;

use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;

/// The most of a stranger's text that an error repeats.
const SHOWN_BYTES: usize = 64;

/// A short part of what a stranger sent, safe to print.
fn shown(text: &[u8]) -> String {
    let mut out: String = text
        .iter()
        .take(SHOWN_BYTES)
        .map(|&byte| if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '?' })
        .collect();
    if text.len() > SHOWN_BYTES {
        out.push('…');
    }
    out
}

/// A value that is behind a lock. A holder that panicked leaves it as it was: nothing here is changed in two steps.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The system has no random bytes. Nothing secret can be made then.
fn no_randomness(why: getrandom::Error) -> ApiError {
    ApiError::new(ApiCode::Stopping, format!("The system gives no random bytes ({why}): try again."))
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_is_shown_of_a_strangers_text_is_short_and_printable() {
        assert_eq!(shown(b"evil.example"), "evil.example");
        assert_eq!(shown(b"a\r\n\x1b[31m\xff b"), "a???[31m? b");
        assert_eq!(shown(&[b'x'; 65]), format!("{}…", "x".repeat(64)));
    }
}
