//! What a model is sent: segments that are only ever appended, and a running hash over them.
//!
//! Requests share segments and never copy them, so a provider's cached prefix never changes and step 20
//! costs what step 1 does.

use crate::digest::Digest;
use serde::{Deserialize, Serialize, Serializer};
use std::sync::Arc;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// The runtime's rules.
    System,
    /// The input and the observations.
    User,
    /// The model's actions.
    Assistant,
}

impl ChatRole {
    /// As it is written everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: ChatRole,
    /// What is said.
    pub content: String,
}

/// An append-only conversation. Cloning shares the segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// Shared with the requests that were made of it; copied only if one of them is still held at the next push.
    segments: Arc<Vec<Arc<ChatMessage>>>,
    hash: Digest,
}

impl Default for Transcript {
    fn default() -> Self {
        Self { segments: Arc::default(), hash: Digest::ZERO }
    }
}

impl Transcript {
    /// Adds one segment.
    pub fn push(&mut self, segment: Arc<ChatMessage>) {
        self.hash = self.hash.chain(segment.role as u8, segment.content.as_bytes());
        Arc::make_mut(&mut self.segments).push(segment);
    }

    /// The segments, oldest first.
    #[must_use]
    pub fn segments(&self) -> &[Arc<ChatMessage>] {
        &self.segments
    }

    /// The running hash over all segments.
    #[must_use]
    pub fn hash(&self) -> Digest {
        self.hash
    }
}

/// A transcript is written as its length and hash: that is what an effect's digest takes.
impl Serialize for Transcript {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("Transcript", 2)?;
        out.serialize_field("segments", &self.segments.len())?;
        out.serialize_field("hash", &self.hash)?;
        out.end()
    }
}
