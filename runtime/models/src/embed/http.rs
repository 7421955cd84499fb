//! An embedder behind HTTP: splits the texts into requests, sends them one after the other, retries.
//!
//! Owns the size of a request and the errors for users. Quotes no text of a provider, because it may quote an
//! entry.

use super::wire::{Answer, EmbedWire, MAX_TEXTS, max_answer_bytes};
use super::{cut, failed};
use crate::build::MAX_RETRIES;
use crate::call_error::CallError;
use crate::driver::{Driver, now, read_error_body, shown_address, unreadable_reason};
use crate::lenient::parse_provider_error;
use crate::price::Price;
use crate::retry::retry_delay;
use crate::retry_advice::RetryAdvice;
use crate::transport::{Endpoint, TransportResponse, read_body};
use redflow_contract::code::{ArchiveCode, RunErrorCode};
use redflow_contract::fact::Usage;
use redflow_contract::scrub::Scrubber;
use redflow_ports::{ArchiveError, BoxFuture, EmbedPurpose, Embedded, Embedder, EmbedderInfo, Measurement};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// The most bytes of the texts of a request.
const MAX_REQUEST_BYTES: usize = 256 * 1024;
/// The most bytes of a text. No text of this size has more than the 8,191 tokens that OpenAI's models read.
pub(super) const MAX_TEXT_BYTES: usize = 8_000;
/// How long a request may take, retries included. A run waits for the vector of a query.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(600);
/// The longest code of a provider that is shown.
const MAX_CODE_BYTES: usize = 80;

/// An embedder at one address.
pub(super) struct HttpEmbedder {
    pub(super) driver: Arc<Driver>,
    pub(super) wire: EmbedWire,
    /// Its address, and the headers of every request.
    pub(super) endpoint: Endpoint,
    /// The provider, for metrics.
    pub(super) provider: &'static str,
    /// The provider and its host, for users.
    pub(super) provider_text: String,
    /// The name of the model or deployment, for messages.
    pub(super) model: String,
    /// The name of the model in the body. None if the address names it.
    pub(super) sent_model: Option<String>,
    /// The length of vectors to ask for.
    pub(super) dimensions: Option<u32>,
    pub(super) price: Option<Price>,
    /// Secrets to remove from the errors of the provider.
    pub(super) secrets: Scrubber,
    pub(super) info: EmbedderInfo,
    /// The same after the first answer, if only that tells the length of the vectors.
    pub(super) learned: OnceLock<EmbedderInfo>,
}

impl Embedder for HttpEmbedder {
    fn cost_of(&self, tokens: u64) -> Option<f64> {
        self.price.map(|price| price.cost(&Usage { input_tokens: tokens, ..Usage::default() }))
    }

    fn info(&self) -> &EmbedderInfo {
        self.learned.get().unwrap_or(&self.info)
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        purpose: EmbedPurpose,
    ) -> BoxFuture<'a, Result<Embedded, ArchiveError>> {
        Box::pin(self.embed_all(texts, purpose))
    }
}

impl HttpEmbedder {
    async fn embed_all(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Embedded, ArchiveError> {
        let mut embedded = Embedded { vectors: Vec::with_capacity(texts.len()), tokens: 0, cost: None };
        let mut rest = texts;
        while !rest.is_empty() {
            let batch = next_batch(rest);
            rest = &rest[batch.len()..];
            let answer = self.request(&batch, purpose).await?;
            self.learn_dimensions(&answer)?;
            embedded.vectors.extend(answer.vectors);
            let tokens = answer.tokens.unwrap_or(0);
            embedded.tokens = embedded.tokens.saturating_add(tokens);
            if let Some(price) = self.price.filter(|_| answer.tokens.is_some()) {
                let cost = price.cost(&Usage { input_tokens: tokens, ..Usage::default() });
                embedded.cost = Some(embedded.cost.unwrap_or(0.0) + cost);
            }
        }
        Ok(embedded)
    }

    /// Remembers how long the vectors are. Those of one embedder all have the same length.
    fn learn_dimensions(&self, answer: &Answer) -> Result<(), ArchiveError> {
        let Some(first) = answer.vectors.first() else { return Ok(()) };
        let dimensions = u32::try_from(first.len()).unwrap_or(u32::MAX);
        let known = match self.info.dimensions {
            0 => self.learned.get_or_init(|| EmbedderInfo { dimensions, ..self.info.clone() }).dimensions,
            known => known,
        };
        if known != dimensions {
            return Err(failed(format!(
                "{} sent vectors of {dimensions} dimensions, and {known} before; does it still run `{}`?",
                self.provider_text, self.model
            )));
        }
        Ok(())
    }

    /// Sends one request, and again after a passing failure.
    async fn request(&self, texts: &[&str], purpose: EmbedPurpose) -> Result<Answer, ArchiveError> {
        let timeout = match purpose {
            EmbedPurpose::Query => QUERY_TIMEOUT,
            EmbedPurpose::Document => DOCUMENT_TIMEOUT,
        };
        let deadline = Instant::now() + timeout;
        let mut attempts = 1;
        loop {
            let error = match tokio::time::timeout_at(deadline, self.attempt(texts)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => CallError::TimedOut(timeout),
            };
            let is_in_time = |wait: &Duration| Instant::now() + *wait < deadline;
            let wait = retry_delay(&error, attempts, MAX_RETRIES, fastrand::f64()).filter(is_in_time);
            let Some(wait) = wait else { return Err(self.failure(error, attempts)) };
            let failed = error.code();
            self.driver.meter.record(Measurement::ModelRetry { provider: self.provider, failed });
            tracing::warn!(
                provider = self.provider,
                code = failed.as_str(),
                wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                "retrying the request for embeddings"
            );
            tokio::time::sleep(wait).await;
            attempts += 1;
        }
    }

    async fn attempt(&self, texts: &[&str]) -> Result<Answer, CallError> {
        let body = self.wire.encode(self.sent_model.as_deref(), texts, self.dimensions);
        let body = body.map_err(|_| CallError::Malformed("the request could not be encoded"))?;
        let response = self.driver.transport.post(&self.endpoint, body).await?;
        let TransportResponse { status, headers, body } = response;
        if !(200..300).contains(&status) {
            let error = parse_provider_error(status, &read_error_body(body).await);
            return Err(CallError::Provider(error, RetryAdvice::from_headers(&headers, now())));
        }
        if let Some(reason) = unreadable_reason(&headers) {
            return Err(CallError::Malformed(reason));
        }
        let max_bytes = max_answer_bytes(texts.len());
        let (text, is_complete) = read_body(body, max_bytes).await?;
        if !is_complete {
            return Err(CallError::TooLarge(max_bytes));
        }
        Ok(self.wire.decode(&text, texts.len(), self.dimensions)?)
    }

    /// The failure for users. Of the provider's words only its codes are shown.
    fn failure(&self, mut error: CallError, attempts: u32) -> ArchiveError {
        error.scrub(&self.secrets);
        let code = error.code();
        if let CallError::Provider(error, _) = &mut error {
            error.message.clear();
            for name in [&mut error.kind, &mut error.code] {
                let is_code = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
                if name.len() > MAX_CODE_BYTES || !name.bytes().all(is_code) {
                    name.clear();
                }
            }
        }
        let Self { provider_text, model, .. } = self;
        // Any other refusal meets all texts: the key, the model, the address.
        let is_invalid = |error: &CallError| matches!(error, CallError::Provider(error, _) if matches!(error.status, 400 | 422));
        let refuses_text = matches!(code, RunErrorCode::ContextLength | RunErrorCode::ModelRefused)
            || (code == RunErrorCode::ModelError && is_invalid(&error));
        let mut message = match code {
            RunErrorCode::ContextLength => format!("a text is longer than `{model}` can read"),
            RunErrorCode::ModelRefused => format!("{provider_text} refused one of the texts"),
            _ => error.message(provider_text, model, attempts),
        };
        if error.is_not_found() {
            let _ = write!(message, "; the request went to {}", shown_address(&self.endpoint.url));
        }
        if is_invalid(&error) {
            message.push_str("; check the model of the embeddings and `dimensions`");
        }
        if refuses_text { ArchiveError::new(ArchiveCode::TextRefused, message) } else { failed(message) }
    }
}

/// As many of the texts as fit into one request: at least one.
fn next_batch(texts: &[String]) -> Vec<&str> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for text in texts.iter().take(MAX_TEXTS) {
        // Providers refuse empty texts.
        let text = if text.is_empty() { " " } else { cut(text, MAX_TEXT_BYTES) };
        bytes += text.len();
        if bytes > MAX_REQUEST_BYTES && !batch.is_empty() {
            break;
        }
        batch.push(text);
    }
    batch
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
