//! Takes secrets and personal data out of text.
//!
//! Owns the patterns. Pure: the same text always gives the same text, and what came out stays as it is when it
//! goes in again. Every step is one pass over the text.

mod cuts;
mod pairs;
mod personal;
mod secrets;

use aho_corasick::{AhoCorasick, MatchKind};
use cuts::Cuts;
use personal::Personal;
use redflow_contract::secret::REDACTED;
use regex::Regex;
use secrecy::{ExposeSecret as _, SecretString};
use secrets::Keys;
use std::borrow::Cow;

/// How much is taken out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Level {
    /// Nothing.
    Off,
    /// What opens doors: keys, passwords, tokens.
    Secrets,
    /// That, and what tells who somebody is.
    #[default]
    All,
}

impl Level {
    /// Every level.
    pub const ALL: &'static [Self] = &[Self::Off, Self::Secrets, Self::All];

    /// As it is written everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Secrets => "secrets",
            Self::All => "all",
        }
    }

    /// From its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|level| level.as_str() == text)
    }
}

/// A shorter known secret would turn up in ordinary words.
const MIN_KNOWN: usize = 4;

/// Bytes of all known secrets at most.
const MAX_KNOWN: usize = 1 << 20;

/// Everything that is put in the place of something.
const MARKS: [&str; 5] = [REDACTED, "[email]", "[phone]", "[card]", "[iban]"];

/// Takes out what a level says.
pub struct Redactor {
    level: Level,
    known: Option<AhoCorasick>,
    keys: Keys,
    personal: Personal,
}

impl std::fmt::Debug for Redactor {
    /// Never says what is known.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Redactor {
    /// One that also knows these secrets, wherever they turn up.
    ///
    /// # Errors
    ///
    /// The known secrets are too many or too long to look for all of them.
    pub fn new(level: Level, known: &[SecretString]) -> Result<Self, String> {
        Ok(Self { level, known: known_pattern(known)?, keys: Keys::new()?, personal: Personal::new()? })
    }

    /// How much it takes out.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// The text without what it must not say.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.level == Level::Off {
            return Cow::Borrowed(text);
        }
        let mut out = Cow::Borrowed(text);
        if let Some(known) = &self.known {
            apply(&mut out, |text| hide_known(known, text));
        }
        apply(&mut out, secrets::private_keys);
        apply(&mut out, secrets::userinfo);
        apply(&mut out, pairs::redact);
        apply(&mut out, |text| self.keys.schemes(text));
        apply(&mut out, |text| self.keys.keys(text));
        if self.level == Level::All {
            apply(&mut out, |text| self.personal.redact(text));
        }
        out
    }
}

/// One step. A text that it does not change is not copied.
fn apply(text: &mut Cow<'_, str>, step: impl Fn(&str) -> Cow<'_, str>) {
    if let Cow::Owned(changed) = step(text) {
        *text = Cow::Owned(changed);
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|_| "a pattern to redact by is wrong".to_owned())
}

fn hide_known<'a>(known: &AhoCorasick, text: &'a str) -> Cow<'a, str> {
    let mut cuts = Cuts::new(text);
    for found in known.find_iter(text) {
        cuts.put(found.start(), found.end(), REDACTED);
    }
    cuts.done()
}

/// All known secrets, the longest first: one may begin with another.
fn known_pattern(known: &[SecretString]) -> Result<Option<AhoCorasick>, String> {
    const TOO_LARGE: &str = "the known secrets are too many or too long to look for";
    let mut forms: Vec<String> = Vec::new();
    for secret in known.iter().map(|secret| secret.expose_secret()) {
        // One that is part of a mark would be found in what was redacted already.
        if secret.chars().count() >= MIN_KNOWN && !MARKS.iter().any(|mark| mark.contains(secret)) {
            // As it is, and as it stands between quotes.
            forms.extend([secret.to_owned(), secret.escape_debug().to_string()]);
        }
    }
    forms.sort_unstable();
    forms.dedup();
    if forms.iter().map(String::len).sum::<usize>() > MAX_KNOWN {
        return Err(TOO_LARGE.to_owned());
    }
    if forms.is_empty() {
        return Ok(None);
    }
    let found = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms);
    found.map(Some).map_err(|_| TOO_LARGE.to_owned())
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
