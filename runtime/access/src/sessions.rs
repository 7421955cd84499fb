//! Browser sessions, and the one-time codes that open them.
//!
//! Owns both, only as fingerprints. A session has the rights of the token that opened it, and ends with that
//! token. Never reads a clock or a file: `session_file.rs` keeps the sessions over a restart.

use crate::fingerprint::{Fingerprint, make_secret};
use crate::settings::{AccessSettings, Scheme};
use crate::tokens::AcceptedToken;
use redflow_contract::Millis;
use redflow_contract::api::ApiError;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
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

/// A session that is used is written to the file again after this time. After a restart it may end earlier by it.
const STORE_INTERVAL: Millis = 10 * 60 * 1000;

#[derive(Debug)]
struct Code {
    fingerprint: Fingerprint,
    /// Of the token that made the code.
    token: Fingerprint,
    expires_at: Millis,
}

/// An open session. Its file has these values.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) fingerprint: Fingerprint,
    /// The name of the token that opened it.
    pub(crate) token_name: Arc<str>,
    /// Of the session and of its token together: without the session, it does not help to guess the token.
    pub(crate) binding: Fingerprint,
    pub(crate) number: u64,
    pub(crate) opened_at: Millis,
    pub(crate) last_used: Millis,
}

/// A session that a browser has named.
pub(crate) struct FoundSession {
    pub(crate) token_name: Arc<str>,
    pub(crate) number: u64,
    binding: Fingerprint,
    text: SecretString,
}

impl FoundSession {
    /// Whether this token, and no other one with its name, opened the session.
    pub(crate) fn is_of(&self, token: &AcceptedToken) -> bool {
        self.binding.matches(&bind(self.text.expose_secret(), token))
    }
}

/// Valid codes and open sessions, the oldest first.
#[derive(Debug)]
pub(crate) struct Sessions {
    codes: VecDeque<Code>,
    sessions: VecDeque<Session>,
    last_number: u64,
    /// Counts the changes that the file must have.
    revision: u64,
    /// The revision that the file has.
    stored_revision: u64,
    /// The latest use of a session when they were last taken for the file.
    stored_at: Millis,
    code_lifetime: Millis,
    max_codes: usize,
    idle: Millis,
    lifetime: Millis,
    max_sessions: usize,
}

impl Sessions {
    /// Begins with the sessions of an earlier process. Its clock may have been fast, so none of them is from the future.
    pub(crate) fn new(settings: &AccessSettings, mut stored: Vec<Session>, now: Millis) -> Self {
        for session in &mut stored {
            session.opened_at = session.opened_at.min(now);
            session.last_used = session.last_used.min(now);
        }
        Self {
            codes: VecDeque::new(),
            last_number: stored.iter().map(|session| session.number).max().unwrap_or(0),
            stored_at: stored.iter().map(|session| session.last_used).max().unwrap_or(0),
            sessions: stored.into(),
            revision: 0,
            stored_revision: 0,
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

    pub(crate) fn open(
        &mut self,
        token: &AcceptedToken,
        now: Millis,
    ) -> Result<(SecretString, u64), ApiError> {
        let text = make_secret::<SESSION_BYTES>("")?;
        self.remove_expired(now);
        while self.sessions.len() >= self.max_sessions {
            self.remove_surplus();
        }
        self.last_number = self.last_number.saturating_add(1);
        self.sessions.push_back(Session {
            fingerprint: Fingerprint::of(text.expose_secret()),
            token_name: Arc::clone(&token.name),
            binding: bind(text.expose_secret(), token),
            number: self.last_number,
            opened_at: now,
            last_used: now,
        });
        self.revision += 1;
        Ok((text, self.last_number))
    }

    /// Finds a session and marks it as used.
    pub(crate) fn find(&mut self, text: &str, now: Millis) -> Option<FoundSession> {
        self.remove_expired(now);
        let index = self.index_of(text)?;
        self.mark_used(index, now);
        let Session { token_name, binding, number, .. } = self.sessions.get(index)?.clone();
        Some(FoundSession { token_name, number, binding, text: SecretString::from(text) })
    }

    /// Marks the session of this number as used: an open socket keeps it alive. False if the session is over.
    pub(crate) fn keep_alive(&mut self, number: u64, now: Millis) -> bool {
        self.remove_expired(now);
        let index = self.sessions.iter().position(|session| session.number == number);
        index.map(|index| self.mark_used(index, now)).is_some()
    }

    pub(crate) fn close(&mut self, text: &str) {
        if let Some(index) = self.index_of(text) {
            self.sessions.remove(index);
            self.revision += 1;
        }
    }

    /// Whether the file of the sessions is older than them.
    pub(crate) fn is_changed(&self) -> bool {
        self.revision > self.stored_revision
    }

    /// The sessions to write to the file and their revision, if they have changed. They count as changed until
    /// [`Sessions::mark_stored`].
    pub(crate) fn changes(&mut self) -> Option<(Vec<Session>, u64)> {
        self.stored_at = self.sessions.iter().map(|session| session.last_used).max().unwrap_or(0);
        self.is_changed().then(|| (self.sessions.iter().cloned().collect(), self.revision))
    }

    /// Notes that the file has this revision.
    pub(crate) fn mark_stored(&mut self, revision: u64) {
        self.stored_revision = self.stored_revision.max(revision);
    }

    fn mark_used(&mut self, index: usize, now: Millis) {
        if now.saturating_sub(self.stored_at) >= STORE_INTERVAL {
            self.revision += 1;
        }
        if let Some(session) = self.sessions.get_mut(index) {
            session.last_used = session.last_used.max(now);
        }
    }

    /// Closes the oldest session of the token that has most of them, so that no token can close those of others.
    fn remove_surplus(&mut self) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for session in &self.sessions {
            *counts.entry(&session.token_name).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or(0);
        let oldest = self.sessions.iter().position(|session| counts.get(&*session.token_name) == Some(&most));
        oldest.map(|index| self.sessions.remove(index));
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

/// The fingerprint of a session together with its token.
fn bind(session: &str, token: &AcceptedToken) -> Fingerprint {
    Fingerprint::of(&format!("{session} {}", token.fingerprint.to_hex()))
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
