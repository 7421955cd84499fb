//! Browsers: one-time codes, and the sessions they become.
//!
//! Owns both, in memory alone and only by their fingerprints. A session is worth what the token is worth that made
//! its code, and ends with it. Never reads a clock.

use crate::fingerprint::{Fingerprint, make_secret};
use crate::settings::AccessSettings;
use redflow_contract::Millis;
use redflow_contract::api::ApiError;
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::VecDeque;
use std::time::Duration;

/// The name of the cookie.
pub const COOKIE: &str = "redflow_session";

/// The cookie that makes a browser forget its session.
pub(crate) const FORGET: &str = "redflow_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0";
/// The same where the cookie goes over https alone.
pub(crate) const FORGET_SECURE: &str =
    "redflow_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0; Secure";

/// The longest code and session text that is looked at.
const MAX_TEXT_BYTES: usize = 128;

#[derive(Debug)]
struct Code {
    print: Fingerprint,
    maker: Fingerprint,
    until: Millis,
}

#[derive(Debug)]
struct Session {
    print: Fingerprint,
    maker: Fingerprint,
    number: u64,
    began: Millis,
    seen: Millis,
}

/// Open codes and sessions, the oldest first.
#[derive(Debug)]
pub(crate) struct Sessions {
    codes: VecDeque<Code>,
    sessions: VecDeque<Session>,
    count: u64,
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
            count: 0,
            code_lifetime: millis(settings.code_lifetime),
            max_codes: settings.max_codes.max(1),
            idle: millis(settings.session_idle),
            lifetime: millis(settings.session_lifetime),
            max_sessions: settings.max_sessions.max(1),
        }
    }

    /// A code that works once, and until when it does.
    pub(crate) fn make_code(
        &mut self,
        maker: Fingerprint,
        now: Millis,
    ) -> Result<(SecretString, Millis), ApiError> {
        let text = make_secret::<24>("")?;
        let until = now.saturating_add(self.code_lifetime);
        self.codes.retain(|code| now < code.until);
        while self.codes.len() >= self.max_codes {
            self.codes.pop_front();
        }
        self.codes.push_back(Code { print: Fingerprint::of(text.expose_secret()), maker, until });
        Ok((text, until))
    }

    /// Who made this code, if it works. It does not work again.
    pub(crate) fn redeem(&mut self, text: &str, now: Millis) -> Option<Fingerprint> {
        self.codes.retain(|code| now < code.until);
        let print = print_of(text)?;
        let place = last_place(self.codes.iter().map(|code| &code.print), &print)?;
        self.codes.remove(place).map(|code| code.maker)
    }

    /// A new session.
    pub(crate) fn open(&mut self, maker: Fingerprint, now: Millis) -> Result<SecretString, ApiError> {
        let text = make_secret::<32>("")?;
        self.forget(now);
        while self.sessions.len() >= self.max_sessions {
            self.sessions.pop_front();
        }
        self.count += 1;
        let print = Fingerprint::of(text.expose_secret());
        self.sessions.push_back(Session { print, maker, number: self.count, began: now, seen: now });
        Ok(text)
    }

    /// Who made this session, and its number. It counts as seen.
    pub(crate) fn find(&mut self, text: &str, now: Millis) -> Option<(Fingerprint, u64)> {
        self.forget(now);
        let place = self.place_of(text)?;
        let session = self.sessions.get_mut(place)?;
        session.seen = session.seen.max(now);
        Some((session.maker, session.number))
    }

    /// Whether the session of this number is not over. Who has something open is not away.
    pub(crate) fn goes_on(&mut self, number: u64, now: Millis) -> bool {
        self.forget(now);
        let session = self.sessions.iter_mut().find(|session| session.number == number);
        session.map(|session| session.seen = session.seen.max(now)).is_some()
    }

    /// Ends a session.
    pub(crate) fn close(&mut self, text: &str) {
        if let Some(place) = self.place_of(text) {
            self.sessions.remove(place);
        }
    }

    fn place_of(&self, text: &str) -> Option<usize> {
        last_place(self.sessions.iter().map(|session| &session.print), &print_of(text)?)
    }

    fn forget(&mut self, now: Millis) {
        self.sessions.retain(|session| {
            now.saturating_sub(session.seen) < self.idle && now.saturating_sub(session.began) < self.lifetime
        });
    }
}

/// Where this fingerprint is. All are compared, so that the time says nothing.
fn last_place<'a>(prints: impl Iterator<Item = &'a Fingerprint>, print: &Fingerprint) -> Option<usize> {
    let mut found = None;
    for (place, known) in prints.enumerate() {
        if known.is(print) {
            found = Some(place);
        }
    }
    found
}

fn print_of(text: &str) -> Option<Fingerprint> {
    (text.len() <= MAX_TEXT_BYTES).then(|| Fingerprint::of(text))
}

/// The cookie that makes a browser this session.
pub(crate) fn set_cookie(session: &str, lifetime: Duration, https: bool) -> String {
    let secure = if https { "; Secure" } else { "" };
    let age = lifetime.as_secs();
    format!("{COOKIE}={session}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}")
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
