//! The transcript that a model is sent: segments that are only ever appended, and a running hash over them.
//!
//! Requests share segments and never copy them. So a provider's cached prefix never changes, and step 20
//! costs what step 1 does.

use crate::digest::Digest;
use serde::{Deserialize, Serialize, Serializer};
use std::sync::Arc;

/// Bytes of UTF-8 per token of an estimate. It errs high for English, and fits Chinese, Japanese and Korean.
pub const BYTES_PER_TOKEN: usize = 3;
/// Tokens of an estimate for the role and the ends of each message.
pub const TOKENS_PER_MESSAGE: usize = 4;
/// Tokens of an estimate for an image, whatever its size.
pub const TOKENS_PER_IMAGE: usize = 1_600;
/// The most images of a message.
pub const MAX_IMAGES: usize = 4;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// The rules of the runtime.
    System,
    /// The input, and the results of tools.
    User,
    /// The actions of the model.
    Assistant,
    /// The result of a native tool call.
    Tool,
}

impl ChatRole {
    /// The role as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatMessage {
    /// The author.
    pub role: ChatRole,
    /// The text.
    pub content: String,
    /// The native tool calls of the model; only from an assistant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<RequestedCall>>", optional))]
    pub tool_calls: Vec<RequestedCall>,
    /// The id of the call that this is the result of; only from a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Reasoning that the provider wants back unchanged; only from an assistant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<OpaqueParts>,
    /// Images that belong to the text; only from a user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Image>>", optional))]
    pub images: Vec<Image>,
}

/// An image. Copies share the data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The format of the image.
    pub mime: ImageType,
    /// The bytes of the file in Base64.
    #[cfg_attr(feature = "codegen", ts(type = "string"))]
    pub data: Arc<str>,
}

impl Image {
    /// The bytes of the file.
    #[must_use]
    pub fn file_bytes(&self) -> usize {
        let body = self.data.trim_end_matches('=');
        body.len() * 3 / 4
    }
}

/// A format of images. Most providers with vision take all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub enum ImageType {
    /// PNG.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// GIF.
    #[serde(rename = "image/gif")]
    Gif,
    /// WebP.
    #[serde(rename = "image/webp")]
    Webp,
}

impl ImageType {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];

    /// The media type.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// A native tool call of a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestedCall {
    /// The id that the result names.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The input as JSON text, as the model wrote it. It may be invalid JSON.
    pub arguments: String,
}

/// Reasoning of a provider. It goes back unchanged to the same wire, and is never read or shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpaqueParts {
    /// The wire that it came from. Another wire never gets it.
    pub wire: String,
    /// The parts, as the provider sent them.
    pub parts: Vec<serde_json::Value>,
    /// The digest of the request that they answer, if they are valid only after the same conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub bound: Option<Digest>,
}

impl OpaqueParts {
    /// Parts that are bound to no request.
    #[must_use]
    pub fn new(wire: impl Into<String>, parts: Vec<serde_json::Value>) -> Self {
        Self { wire: wire.into(), parts, bound: None }
    }
}

impl ChatMessage {
    /// Makes a message with text only.
    #[must_use]
    pub fn new(role: ChatRole, content: impl Into<String>) -> Self {
        let (role, content) = (role, content.into());
        let (tool_calls, images) = (Vec::new(), Vec::new());
        Self { role, content, tool_calls, tool_call_id: None, reasoning: None, images }
    }

    /// The size in bytes without images, for limits.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let calls = self.tool_calls.iter().map(|call| call.name.len() + call.arguments.len() + call.id.len());
        let reasoning =
            self.reasoning.iter().flat_map(|opaque| &opaque.parts).map(|part| part.to_string().len());
        self.content.len() + calls.sum::<usize>() + reasoning.sum::<usize>()
    }

    /// The size in bytes, with as many for an image as a text of about its tokens has. For estimates of tokens.
    #[must_use]
    pub fn bytes_with_images(&self) -> usize {
        self.bytes() + self.images.len() * TOKENS_PER_IMAGE * BYTES_PER_TOKEN
    }

    /// About how many tokens a model reads for it: one for every three bytes, four for the message, and a fixed
    /// number for each image.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.bytes().div_ceil(BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE + self.images.len() * TOKENS_PER_IMAGE
    }

    fn is_plain(&self) -> bool {
        self.tool_calls.is_empty() && self.tool_call_id.is_none() && self.reasoning.is_none()
    }
}

/// An append-only conversation. Cloning shares the segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// Requests share the list. A push copies it only if a request still holds it.
    segments: Arc<Vec<Arc<ChatMessage>>>,
    hash: Digest,
}

impl Default for Transcript {
    fn default() -> Self {
        Self { segments: Arc::default(), hash: Digest::ZERO }
    }
}

impl Transcript {
    /// Appends one segment.
    pub fn push(&mut self, segment: Arc<ChatMessage>) {
        self.hash = self.hash.chain(segment.role as u8, segment.content.as_bytes());
        if !segment.is_plain() {
            let more = (&segment.tool_calls, &segment.tool_call_id, &segment.reasoning);
            self.hash = self.hash.chain(b'+', &serde_json::to_vec(&more).unwrap_or_default());
        }
        for image in &segment.images {
            self.hash = self.hash.chain(b'i', image.mime.as_str().as_bytes());
            self.hash = self.hash.chain(b'i', image.data.as_bytes());
        }
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

/// Serialises as length and hash, because an effect's digest covers only those.
impl Serialize for Transcript {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("Transcript", 2)?;
        out.serialize_field("segments", &self.segments.len())?;
        out.serialize_field("hash", &self.hash)?;
        out.end()
    }
}
