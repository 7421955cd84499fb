//! Browser sessions, and the one-time codes that open them.
//!
//! Owns both, in memory only and only as fingerprints. A session has the rights of the token that made its
//! code, and ends with that token. Never reads a clock.

use crate::fingerprint::{Fingerprint, make_secret};
use crate::settings::{AccessSettings, Scheme};
use redflow_contract::Millis;
use redflow_contract::api::ApiError;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::VecDeque;
use std::time::Duration;

/// The name of the cookie that holds a session.
pub const COOKIE: &str = "redflow_session";

/// The cookie that removes the session from a browser.
pub(crate) const CLEAR_COOKIE: &str = "redflow_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0";
/// The same for a cookie that is sent over https only.
pub(crate) const CLEAR_COOKIE_HTTPS: &str =
    "redflow_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0; Secure";

/// The random bytes of a session, and the characters of its text.
const SESSION_BYTES: usize = 32;
const SESSION_TEXT: usize = (SESSION_BYTES * 8).div_ceil(6);

/// The longest code or session text that is hashed.
const MAX_TEXT_BYTES: usize = 128;

#[derive(Debug)]
struct Code {
    fingerprint: Fingerprint,
    /// Of the token that made the code.
    token: Fingerprint,
    expires_at: Millis,
}

#[derive(Debug)]
struct Session {
    fingerprint: Fingerprint,
    /// Of the token that made the code.
    token: Fingerprint,
    number: u64,
    opened_at: Millis,
    last_used: Millis,
}

/// Valid codes and open sessions, the oldest first.
#[derive(Debug)]
pub(crate) struct Sessions {
    codes: VecDeque<Code>,
    sessions: VecDeque<Session>,
    last_number: u64,
    code_lifetime: Millis,
    max_codes: usize,
    idle: Millis,
    lifetime: Millis,
    max_sessions: usize,
}

impl Sessions {
    pub(crate) fn new(settings: &AccessSettings) -> Self {
        Self {
            codes: VecDeque::new(),
            sessions: VecDeque::new(),
            last_number: 0,
            code_lifetime: millis(settings.code_lifetime),
            max_codes: settings.max_codes.max(1),
            idle: millis(settings.session_idle),
            lifetime: millis(settings.session_lifetime),
            max_sessions: settings.max_sessions.max(1),
        }
    }

    /// A code that works once, and the time when it expires.
    pub(crate) fn make_code(
        &mut self,
        token: Fingerprint,
        now: Millis,
    ) -> Result<(SecretString, Millis), ApiError> {
        let text = make_secret::<24>("")?;
        let expires_at = now.saturating_add(self.code_lifetime);
        self.codes.retain(|code| now < code.expires_at);
        while self.codes.len() >= self.max_codes {
            self.codes.pop_front();
        }
        let fingerprint = Fingerprint::of(text.expose_secret());
        self.codes.push_back(Code { fingerprint, token, expires_at });
        Ok((text, expires_at))
    }

    /// Uses up a code, and returns the token that made it. None for a code that does not work.
    pub(crate) fn redeem(&mut self, text: &str, now: Millis) -> Option<Fingerprint> {
        self.codes.retain(|code| now < code.expires_at);
        let index = index_of(text, self.codes.iter().map(|code| &code.fingerprint))?;
        self.codes.remove(index).map(|code| code.token)
    }

    pub(crate) fn open(&mut self, token: Fingerprint, now: Millis) -> Result<SecretString, ApiError> {
        let text = make_secret::<SESSION_BYTES>("")?;
        self.remove_expired(now);
        while self.sessions.len() >= self.max_sessions {
            self.sessions.pop_front();
        }
        self.last_number += 1;
        self.sessions.push_back(Session {
            fingerprint: Fingerprint::of(text.expose_secret()),
            token,
            number: self.last_number,
            opened_at: now,
            last_used: now,
        });
        Ok(text)
    }

    /// Finds a session and marks it as used. Returns the token that made it, and its number.
    pub(crate) fn find(&mut self, text: &str, now: Millis) -> Option<(Fingerprint, u64)> {
        self.remove_expired(now);
        let index = self.index_of(text)?;
        let session = self.sessions.get_mut(index)?;
        session.last_used = session.last_used.max(now);
        Some((session.token, session.number))
    }

    /// Marks the session of this number as used: an open socket keeps it alive. False if the session is over.
    pub(crate) fn keep_alive(&mut self, number: u64, now: Millis) -> bool {
        self.remove_expired(now);
        let session = self.sessions.iter_mut().find(|session| session.number == number);
        session.map(|session| session.last_used = session.last_used.max(now)).is_some()
    }

    pub(crate) fn close(&mut self, text: &str) {
        if let Some(index) = self.index_of(text) {
            self.sessions.remove(index);
        }
    }

    fn index_of(&self, text: &str) -> Option<usize> {
        index_of(text, self.sessions.iter().map(|session| &session.fingerprint))
    }

    fn remove_expired(&mut self, now: Millis) {
        self.sessions.retain(|session| {
            now.saturating_sub(session.last_used) < self.idle
                && now.saturating_sub(session.opened_at) < self.lifetime
        });
    }
}

/// Where the fingerprint of this text is. It compares all of them, so that the time reveals nothing.
fn index_of<'a>(text: &str, fingerprints: impl Iterator<Item = &'a Fingerprint>) -> Option<usize> {
    let wanted = (text.len() <= MAX_TEXT_BYTES).then(|| Fingerprint::of(text))?;
    fingerprints.enumerate().fold(
        None,
        |found, (index, fingerprint)| {
            if fingerprint.matches(&wanted) { Some(index) } else { found }
        },
    )
}

/// Whether a text has the form of a session.
pub(crate) fn is_session(text: &str) -> bool {
    text.len() == SESSION_TEXT
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The cookie that holds a session. `Secure` if browsers use https.
pub(crate) fn set_cookie(session: &str, lifetime: Duration, scheme: Scheme) -> String {
    let secure = if scheme == Scheme::Https { "; Secure" } else { "" };
    let age = lifetime.as_secs();
    format!("{COOKIE}={session}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}")
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
