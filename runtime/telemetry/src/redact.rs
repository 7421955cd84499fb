//! Removes secrets and personal data from text.
//!
//! Owns the patterns. Pure: the same text always gives the same result, and redacting a result again changes
//! nothing. Every step is one pass over the text.

mod pairs;
mod pattern;
mod personal;
mod replacer;
mod secrets;

use aho_corasick::{AhoCorasick, MatchKind};
use personal::PersonalPatterns;
use redflow_contract::secret::{REDACTED, is_secret_name};
use redflow_ports::TextRedactor;
use replacer::Replacer;
use secrecy::{ExposeSecret as _, SecretString};
use secrets::KeyPatterns;
use std::borrow::Cow;

/// What the redactor removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RedactionLevel {
    /// Nothing.
    Off,
    /// Keys, passwords and tokens.
    Secrets,
    /// Secrets and personal data: e-mail addresses, telephone and card numbers, bank accounts.
    #[default]
    All,
}

impl RedactionLevel {
    /// All levels, for parsing and help texts.
    pub const ALL: &'static [Self] = &[Self::Off, Self::Secrets, Self::All];

    /// The name in configuration files and arguments.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Secrets => "secrets",
            Self::All => "all",
        }
    }

    /// Parses a name; none if there is no such level.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|level| level.as_str() == text)
    }
}

/// Characters of a known secret. A shorter one would occur in ordinary words.
const MIN_KNOWN_CHARS: usize = 4;

/// The limit on the bytes of all known secrets.
const MAX_KNOWN_BYTES: usize = 1 << 20;

/// All placeholders that replace something.
const PLACEHOLDERS: [&str; 5] = [REDACTED, "[email]", "[phone]", "[card]", "[iban]"];

/// Replaces secrets and personal data by placeholders such as `[redacted]` and `[email]`.
pub struct Redactor {
    level: RedactionLevel,
    known: Option<AhoCorasick>,
    keys: KeyPatterns,
    personal: PersonalPatterns,
}

impl std::fmt::Debug for Redactor {
    /// Without the known secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("level", &self.level).finish_non_exhaustive()
    }
}

impl TextRedactor for Redactor {
    fn redact(&self, text: &str) -> String {
        Self::redact(self, text).into_owned()
    }
}

impl Redactor {
    /// A redactor that also removes these known secrets, wherever they occur.
    ///
    /// # Errors
    ///
    /// When the known secrets are too many or too long to search for.
    pub fn new(level: RedactionLevel, known: &[SecretString]) -> Result<Self, String> {
        Ok(Self {
            level,
            known: known_pattern(known)?,
            keys: KeyPatterns::new()?,
            personal: PersonalPatterns::new()?,
        })
    }

    /// The level it was built with.
    #[must_use]
    pub fn level(&self) -> RedactionLevel {
        self.level
    }

    /// The text with placeholders in place of what the level removes.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.level == RedactionLevel::Off {
            return Cow::Borrowed(text);
        }
        let mut out = Cow::Borrowed(text);
        if let Some(known) = &self.known {
            apply(&mut out, |text| redact_known(known, text));
        }
        apply(&mut out, secrets::redact_private_keys);
        apply(&mut out, secrets::redact_url_passwords);
        apply(&mut out, pairs::redact);
        apply(&mut out, |text| self.keys.redact_schemes(text));
        apply(&mut out, |text| self.keys.redact_keys(text));
        if self.level == RedactionLevel::All {
            apply(&mut out, |text| self.personal.redact(text));
        }
        out
    }

    /// Whether a value of this name is a secret as a whole. A number named `…tokens` is a count.
    pub(crate) fn hides_value_of(&self, name: &str, is_number: bool) -> bool {
        self.level != RedactionLevel::Off
            && is_secret_name(name)
            && !(is_number && name.to_ascii_lowercase().ends_with("tokens"))
    }
}

/// Applies one step. A text that the step does not change is not copied.
fn apply(text: &mut Cow<'_, str>, step: impl Fn(&str) -> Cow<'_, str>) {
    if let Cow::Owned(changed) = step(text) {
        *text = Cow::Owned(changed);
    }
}

fn redact_known<'a>(known: &AhoCorasick, text: &'a str) -> Cow<'a, str> {
    let mut replacer = Replacer::new(text);
    for found in known.find_iter(text) {
        replacer.replace(found.start(), found.end(), REDACTED);
    }
    replacer.finish()
}

/// Searches for all known secrets. The longest match wins, because one secret may begin with another.
fn known_pattern(known: &[SecretString]) -> Result<Option<AhoCorasick>, String> {
    const TOO_LARGE: &str = "the known secrets are too many or too long to search for";
    let mut forms: Vec<String> = Vec::new();
    for secret in known.iter().map(|secret| secret.expose_secret()) {
        // A secret that is part of a placeholder would be found in redacted text.
        if secret.chars().count() >= MIN_KNOWN_CHARS && !PLACEHOLDERS.iter().any(|text| text.contains(secret))
        {
            // Unchanged, and as it is escaped between quotes.
            forms.extend([secret.to_owned(), secret.escape_debug().to_string()]);
        }
    }
    forms.sort_unstable();
    forms.dedup();
    if forms.iter().map(String::len).sum::<usize>() > MAX_KNOWN_BYTES {
        return Err(TOO_LARGE.to_owned());
    }
    if forms.is_empty() {
        return Ok(None);
    }
    let pattern = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(forms);
    pattern.map(Some).map_err(|_| TOO_LARGE.to_owned())
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
