//! What an error of a provider is about, by its type, its code and its text.
//!
//! Owns the one table of what providers write. A new text of a provider is a line here.

use crate::google_error::DAILY_QUOTA;
use crate::wire::ProviderError;

/// What an error is about, as far as it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The quota, the balance or a spending limit is used up. No wait of a call helps.
    QuotaUsedUp,
    /// A filter of contents refused the conversation.
    Filtered,
    /// There were too many requests or tokens in a short time.
    RateLimit,
    /// The request alone has more tokens than the provider allows in a minute. The same request never succeeds.
    LargerThanRate,
    /// The servers have too much to do.
    Overloaded,
    /// The conversation is longer than the model can read.
    TooLong,
}

/// What providers write, in lower case. The first row with a match counts: a text about a limit of tokens per minute
/// can also ask for shorter messages.
const TABLE: [(ErrorKind, &[&str]); 5] = [
    (
        ErrorKind::QuotaUsedUp,
        &[
            // OpenAI
            "insufficient_quota",
            "credit_balance_exhausted",
            "billing_hard_limit_reached",
            "billing_not_active",
            "organization_usage_limit_exceeded",
            // OpenAI and Anthropic
            "_spend_limit_",
            "billing_error",
            "credit balance is too low",
            "specified api usage limits",
            // Gemini, for a quota of a whole day
            DAILY_QUOTA,
            // OpenRouter
            "insufficient credits",
            // DeepSeek
            "insufficient balance",
            // Kimi
            "exceeded_current_quota",
            // xAI
            "used all available credits",
            "run out of credits",
        ],
    ),
    (
        ErrorKind::Filtered,
        &[
            "content_filter",
            "content_policy_violation",
            "flagged as potentially violating",
            // Azure
            "responsibleaipolicyviolation",
            "content management policy",
            // OpenRouter
            "input was flagged",
            // DeepSeek
            "content exists risk",
            // Anthropic
            "content filtering policy",
            // xAI
            "content violates usage guidelines",
        ],
    ),
    (
        ErrorKind::RateLimit,
        &[
            "rate_limit",
            "rate limit",
            "too_many_requests",
            "too many requests",
            "tokens per min",
            // OpenAI
            "slow_down",
        ],
    ),
    (
        ErrorKind::Overloaded,
        &[
            // OpenAI
            "server_is_overloaded",
            // Anthropic
            "overloaded_error",
            // Kimi
            "engine_overloaded",
            // Gemini
            "experiencing high demand",
        ],
    ),
    (
        ErrorKind::TooLong,
        &[
            // OpenAI
            "context_length_exceeded",
            "string_above_max_length",
            "exceeds the context window",
            // Older models of OpenAI, vLLM, DeepSeek, Mistral, OpenRouter
            "maximum context length",
            // vLLM
            "maximum model length of",
            // Anthropic
            "prompt is too long",
            "exceed context limit",
            "request_too_large",
            WINDOW_IS_FULL,
            // Bedrock
            "input is too long for requested model",
            // Gemini
            "exceeds the maximum number of tokens allowed",
            // llama.cpp
            "exceeds the available context size",
            "exceed_context_size_error",
            "context size has been exceeded",
            // Ollama
            "longer than the context length",
            "exceeded max context length",
            // LM Studio
            "greater than the context length",
            // SGLang, Together
            "longer than the model's context length",
            // xAI
            "maximum prompt length is",
            // Groq
            "reduce the length of the messages",
            // Kimi
            "exceeded model token limit",
        ],
    ),
];

/// Why Anthropic ends an answer that fills the window of the model.
pub(crate) const WINDOW_IS_FULL: &str = "model_context_window_exceeded";

/// What providers write about a request that is larger than a rate.
const LARGER_THAN_RATE: &str = "request too large";

impl ErrorKind {
    /// What an error with its status is about. None if only the status says something.
    pub(crate) fn of(error: &ProviderError) -> Option<Self> {
        match (Self::of_text(error), error.status) {
            (_, 402) => Some(Self::QuotaUsedUp),
            (None, 413) => Some(Self::TooLong),
            // Elsewhere, such as with a refused key, the status says more.
            (Some(Self::TooLong), status) if !matches!(status, 400 | 413 | 422 | 500..) => None,
            (kind, _) => kind,
        }
    }

    /// What an error without a status is about.
    pub(crate) fn of_text(error: &ProviderError) -> Option<Self> {
        let text = format!("{}\n{}\n{}", error.kind, error.code, error.message).to_ascii_lowercase();
        let has_any = |patterns: &[&str]| patterns.iter().any(|pattern| text.contains(pattern));
        let (kind, _) = TABLE.iter().find(|(_, patterns)| has_any(patterns))?;
        match kind {
            Self::RateLimit if text.contains(LARGER_THAN_RATE) => Some(Self::LargerThanRate),
            kind => Some(*kind),
        }
    }
}

#[cfg(test)]
#[path = "error_kind_tests.rs"]
mod tests;
