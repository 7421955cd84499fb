//! What is searched for in a knowledge base.

use redflow_contract::archive::SearchMode;
use redflow_ports::{EmbedderInfo, SearchFilter};

/// The passages of a search, if nothing else is said.
const DEFAULT_LIMIT: usize = 5;

/// The least score of a passage, if nothing else is said.
const DEFAULT_MIN_SCORE: f32 = 0.7;

/// A search in a knowledge base. What is not given depends on the embedder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnowledgeQuery {
    /// The question.
    pub text: String,
    /// How texts are compared. None: by meaning if the embedder can, else by both.
    pub mode: Option<SearchMode>,
    /// The least score. None: 0.7 in a search by meaning, if the embedder finds it, else 0.
    pub min_score: Option<f32>,
    /// The most passages; none for 5.
    pub limit: Option<usize>,
    /// Which passages may be found.
    pub filter: SearchFilter,
}

impl KnowledgeQuery {
    pub(crate) fn mode_with(&self, info: &EmbedderInfo) -> SearchMode {
        let default = if info.finds_meaning { SearchMode::Semantic } else { SearchMode::Hybrid };
        self.mode.unwrap_or(default)
    }

    pub(crate) fn min_score_with(&self, mode: SearchMode, info: &EmbedderInfo) -> f32 {
        let is_exact = mode == SearchMode::Semantic && info.finds_meaning;
        self.min_score.unwrap_or(if is_exact { DEFAULT_MIN_SCORE } else { 0.0 })
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_LIMIT)
    }
}
