//! What memories do after a run, and whose data is forgotten.

use crate::digest::Digest;
use crate::fact::Usage;
use crate::input::user_name;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Bytes of the name of a session, without its flow. A longer one is stored as its digest.
pub const MAX_SESSION: usize = 256;

/// What a consolidation did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Consolidated {
    /// Entries that are new.
    pub added: u32,
    /// Entries that were there already.
    pub confirmed: u32,
    /// Entries that a new one has replaced.
    pub superseded: u32,
    /// Proposals that were not stored: without a quote, without need, or over a limit.
    pub dropped: u32,
    /// Entries among `added` that wait for a review.
    pub quarantined: u32,
    /// The tokens that the model used; absent if none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Consolidated {
    /// Whether nothing happened, and no model was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whose data is forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum DataOwner {
    /// All data of a user.
    User(String),
    /// The data of a session, by its key `FLOW:NAME`.
    Session(String),
    /// Entries that come from this source: a run, a document, an address.
    Source(String),
}

impl DataOwner {
    /// The owner as its data names it; none without a name.
    #[must_use]
    pub fn normalised(&self) -> Option<Self> {
        match self {
            Self::User(name) => user_name(name).map(Self::User),
            Self::Session(key) => (!key.trim().is_empty()).then(|| Self::Session(stored_session(key))),
            Self::Source(reference) => {
                let reference = reference.trim();
                (!reference.is_empty()).then(|| Self::Source(reference.to_owned()))
            }
        }
    }
}

/// The key of a session as it is stored. Blanks around a name belong to it.
fn stored_session(key: &str) -> String {
    match key.split_once(':') {
        Some((flow, name)) => format!("{flow}:{}", session_name(name)),
        None => key.to_owned(),
    }
}

/// The name of a session as it is stored: a long one becomes its digest. A name can be as long as a message, but a key
/// must be short.
#[must_use]
pub fn session_name(name: &str) -> Cow<'_, str> {
    if name.len() > MAX_SESSION { Digest::of(name.as_bytes()).to_hex().into() } else { name.into() }
}

/// What was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Forgotten {
    /// Entries of long memories.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub entries: u64,
    /// Conversations of short memories.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub conversations: u64,
    /// Runs, with their journals, events and chats.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub runs: u64,
}

impl std::ops::AddAssign for Forgotten {
    fn add_assign(&mut self, other: Self) {
        self.entries += other.entries;
        self.conversations += other.conversations;
        self.runs += other.runs;
    }
}

/// How full a memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemoryStats {
    /// The conversations that it keeps; absent if it cannot count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub conversations: Option<u64>,
    /// The entries that it can recall; absent for a short memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub entries: Option<u64>,
    /// The entries that wait for a review; absent for a short memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub quarantined: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::{DataOwner, MAX_SESSION};
    use crate::digest::Digest;
    use crate::input::user_name;

    #[test]
    fn an_owner_is_named_as_its_data_is() {
        let user = |name: &str| DataOwner::User(name.to_owned());
        assert_eq!(user(" ada ").normalised(), Some(user("ada")));
        let long = "u".repeat(300);
        assert_eq!(user(&long).normalised(), user_name(&long).map(DataOwner::User));
        for blank in ["", " \t"] {
            let of = [DataOwner::User, DataOwner::Session, DataOwner::Source];
            assert!(of.iter().all(|of| of(blank.to_owned()).normalised().is_none()));
        }
        let session = |key: &str| DataOwner::Session(key.to_owned());
        for kept in [" tab: chat\n", "tab:a:b", "tab", &format!("tab:{}", "n".repeat(MAX_SESSION))] {
            assert_eq!(session(kept).normalised(), Some(session(kept)));
        }
        let long = "n:".repeat(MAX_SESSION);
        let digest = Digest::of(long.as_bytes()).to_hex();
        assert_eq!(session(&format!("tab:{long}")).normalised(), Some(session(&format!("tab:{digest}"))));
    }
}
