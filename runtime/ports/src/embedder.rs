//! Embedders: they make vectors of texts. Texts with a similar meaning have similar vectors.

use crate::archive::ArchiveError;
use crate::future::BoxFuture;
use redflow_contract::Message;
use redflow_contract::digest::Digest;
use std::sync::Arc;

/// Makes vectors of texts.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_ports::{BoxFuture, EmbedPurpose, Embedded, Embedder, EmbedderInfo, ArchiveError};
///
/// /// Knows only how long a text is.
/// struct Length(EmbedderInfo);
///
/// impl Embedder for Length {
///     fn info(&self) -> &EmbedderInfo {
///         &self.0
///     }
///
///     fn embed<'a>(
///         &'a self,
///         texts: &'a [String],
///         _: EmbedPurpose,
///     ) -> BoxFuture<'a, Result<Embedded, ArchiveError>> {
///         let vectors = texts.iter().map(|text| vec![text.len() as f32]).collect();
///         Box::pin(std::future::ready(Ok(Embedded { vectors, tokens: 0, cost: None })))
///     }
/// }
///
/// let info = EmbedderInfo { id: "length".to_owned(), dimensions: 1, max_bytes: 100, finds_meaning: false, is_cached: false };
/// let (length, texts) = (Length(info), ["four".to_owned()]);
/// let embedded = length.embed(&texts, EmbedPurpose::Query).now_or_never().unwrap()?;
/// assert_eq!(embedded.vectors, [[4.0]]);
/// # Ok::<(), ArchiveError>(())
/// ```
pub trait Embedder: Send + Sync {
    /// What is known about it.
    fn info(&self) -> &EmbedderInfo;

    /// Makes a vector of each text, in the order of the texts. The vectors have the length 1.
    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        purpose: EmbedPurpose,
    ) -> BoxFuture<'a, Result<Embedded, ArchiveError>>;

    /// What so many tokens cost; none if the model has no price.
    fn cost_of(&self, tokens: u64) -> Option<f64> {
        let _ = tokens;
        None
    }
}

/// What is known about an embedder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderInfo {
    /// Its provider and model, such as `openai/text-embedding-3-small`. A collection remembers it.
    pub id: String,
    /// The length of its vectors; 0 if it is known after the first call.
    pub dimensions: u32,
    /// The most bytes of a text that it reads. The rest of a longer text is not in its vector.
    pub max_bytes: usize,
    /// Whether its vectors show what a text means, and not only which words it has.
    pub finds_meaning: bool,
    /// Whether its vectors cost enough to be cached.
    pub is_cached: bool,
}

/// What a vector is for. Some models make other vectors for questions than for documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedPurpose {
    /// A text that is searched for.
    Query,
    /// A text that is found.
    Document,
}

impl EmbedPurpose {
    /// Every purpose.
    pub const ALL: [Self; 2] = [Self::Query, Self::Document];

    /// The name of a text's vector in the cache of an archive.
    #[must_use]
    pub fn cached_name(self, text: &str) -> Digest {
        let tag = match self {
            Self::Query => b'q',
            Self::Document => b'd',
        };
        Digest::ZERO.chain(tag, text.as_bytes())
    }
}

/// The vectors of some texts, and what they cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// A vector for each text.
    pub vectors: Vec<Vec<f32>>,
    /// The tokens that the provider counted; 0 if it counts none.
    pub tokens: u64,
    /// The cost; none if the model has no price.
    pub cost: Option<f64>,
}

/// Builds the embedder of a collection from the settings that the collection keeps. Knows the keys and what else
/// the collection does not keep.
pub type EmbedderSource = Arc<dyn Fn(&Message) -> Result<Arc<dyn Embedder>, ArchiveError> + Send + Sync>;
