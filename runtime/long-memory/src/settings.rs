//! What a node says about its memory.

use redflow_contract::Message;
use redflow_contract::archive::Trust;
use redflow_contract::node::{LongMemoryConfig, MAX_RECALL_TOKENS, MAX_TOP_K, MemoryScope};
use redflow_contract::secret::mask_secrets;
use serde_json::Value;
use std::time::Duration;

/// The entries of a recall, if the node does not say.
const DEFAULT_TOP_K: u32 = 8;
/// The tokens of a recall, if the node does not say.
const DEFAULT_RECALL_TOKENS: u32 = 1_500;
/// The turns after which the memory consolidates, if the node does not say.
const DEFAULT_AFTER_TURNS: u32 = 6;
/// The seconds without a turn after which the memory consolidates, if the node does not say.
const DEFAULT_IDLE_SECONDS: u32 = 600;
/// The longest time to make a vector, if the node does not say.
const DEFAULT_TIMEOUT_MS: u64 = 10_000;

/// What a node says about its embedder, as a collection keeps it. It has no key.
pub(crate) fn embedder_settings(node: &LongMemoryConfig) -> Message {
    // An address may have a password or a key.
    let is_plain = |url: &&str| !url.contains(['@', '?']) && mask_secrets(url) == **url;
    let texts = [
        ("embeddingModel", node.embedding_model.as_deref()),
        ("baseURL", node.base_url.as_deref().filter(is_plain)),
        ("deployment", node.deployment.as_deref()),
        ("apiVersion", node.api_version.as_deref()),
    ];
    let given = |(name, text): (&str, Option<&str>)| {
        let text = text.map(str::trim).filter(|text| !text.is_empty())?;
        Some((name.to_owned(), Value::from(text)))
    };
    let dimensions = node.dimensions.map(|dimensions| ("dimensions".to_owned(), Value::from(dimensions)));
    texts.into_iter().filter_map(given).chain(dimensions).collect()
}

/// What a node says about its memory, with what it does not say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) scope: MemoryScope,
    pub(crate) top_k: usize,
    pub(crate) min_score: Option<f32>,
    pub(crate) min_trust: Trust,
    pub(crate) recall_tokens: usize,
    pub(crate) after_turns: u32,
    pub(crate) idle: Option<Duration>,
    pub(crate) schedule: Option<String>,
    pub(crate) retention_days: u32,
    pub(crate) timeout: Duration,
}

impl Settings {
    pub(crate) fn new(node: &LongMemoryConfig) -> Self {
        let idle = node.idle_seconds.unwrap_or(DEFAULT_IDLE_SECONDS);
        let schedule = node.schedule.as_deref().map(str::trim).filter(|text| !text.is_empty());
        Self {
            scope: node.scope.unwrap_or_default(),
            top_k: node.top_k.unwrap_or(DEFAULT_TOP_K).clamp(1, MAX_TOP_K) as usize,
            min_score: node.min_score.map(|score| score as f32),
            min_trust: node.min_trust.unwrap_or(Trust::Tool),
            recall_tokens: node.recall_tokens.unwrap_or(DEFAULT_RECALL_TOKENS).min(MAX_RECALL_TOKENS)
                as usize,
            after_turns: node.after_turns.unwrap_or(DEFAULT_AFTER_TURNS),
            idle: (idle > 0).then(|| Duration::from_secs(u64::from(idle))),
            schedule: schedule.map(str::to_owned),
            retention_days: node.retention_days.unwrap_or(0),
            timeout: Duration::from_millis(node.timeout.unwrap_or(DEFAULT_TIMEOUT_MS)),
        }
    }
}
