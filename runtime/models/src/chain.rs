//! A model and its fallback models, as one model.
//!
//! Owns when the next model is called, and what a run learns about those that failed.

use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{FailedModel, ModelAnswer};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ImageType;
use redflow_ports::{BoxFuture, ChatModel, DeltaObserver, ModelInfo, ModelRequest};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// The shortest time that a model gets before the next one is called.
const SHORTEST_SHARE: Duration = Duration::from_secs(1);

/// Calls the models in their order until one answers. Each has its own time limit, and all but the last one get
/// only their part of the time that the run has left.
pub struct ModelChain {
    info: ModelInfo,
    models: Vec<Arc<dyn ChatModel>>,
}

impl ModelChain {
    /// Joins a model and its fallback models.
    #[must_use]
    pub fn build(models: Vec<Arc<dyn ChatModel>>) -> Arc<dyn ChatModel> {
        let first = models.first().map(|model| model.info().clone()).unwrap_or_default();
        // Any of them may have to answer.
        let info = ModelInfo {
            tools: models.iter().all(|model| model.info().tools),
            vision: models.iter().all(|model| model.info().vision),
            refused_images: refused_images(&models),
            priced: models.iter().all(|model| model.info().priced),
            ..first
        };
        Arc::new(Self { info, models })
    }

    async fn call_in_order(&self, request: ModelRequest<'_>) -> Result<ModelAnswer, Failure> {
        let started = Instant::now();
        let last = self.models.len().saturating_sub(1);
        let first = usize::try_from(request.first_model).unwrap_or(usize::MAX).min(last);
        let mut failure =
            Failure { code: RunErrorCode::ConfigInvalid, message: "there is no model to call".to_owned() };
        let (mut fell_over, mut attempts, mut too_small) = (Vec::new(), 0, None);
        for (index, model) in self.models.iter().enumerate().skip(first) {
            let info = model.info();
            // An unknown window is not larger than another one.
            if too_small.is_some_and(|window| info.context_window <= window) {
                let (model, code) = (info.model.clone(), RunErrorCode::ContextLength);
                fell_over.push(FailedModel { model, code, skipped: true });
                continue;
            }
            let observer = request.delta_observer.map(|observer| AttemptCounter::new(observer, attempts));
            let delta_observer = observer.as_ref().map(|observer| observer as &dyn DeltaObserver);
            let retry = request.retry && index == last;
            let time_left = request.time_left.map(|left| left.saturating_sub(started.elapsed()));
            let call = model.call(ModelRequest { retry, time_left, delta_observer, ..request });
            let models_left = u32::try_from(last - index + 1).unwrap_or(u32::MAX);
            let answer = match time_left.filter(|_| index != last) {
                Some(left) => call_within(call, (left / models_left).max(SHORTEST_SHARE), &info.model).await,
                None => call.await,
            };
            match answer {
                Ok(answer) => return Ok(ModelAnswer { fell_over, ..answer }),
                Err(error) => failure = error,
            }
            attempts = observer.map_or(0, |observer| observer.highest.into_inner());
            fell_over.push(FailedModel { model: info.model.clone(), code: failure.code, skipped: false });
            if !falls_over(failure.code) {
                break;
            }
            if failure.code == RunErrorCode::ContextLength {
                too_small = Some(info.context_window);
            }
            tracing::warn!(
                provider = info.provider,
                code = failure.code.as_str(),
                "the model call fell over"
            );
        }
        if fell_over.len() > 1 {
            let models: Vec<String> = fell_over
                .iter()
                .map(|failed| format!("`{}` {}", failed.model, failed.code.as_str()))
                .collect();
            failure.message = format!("no model answered ({}): {}", models.join(", "), failure.message);
        }
        Err(failure)
    }
}

/// The formats of images that one of these models does not take.
fn refused_images(models: &[Arc<dyn ChatModel>]) -> Vec<ImageType> {
    let is_refused =
        |format: &ImageType| models.iter().any(|model| model.info().refused_images.contains(format));
    ImageType::ALL.into_iter().filter(is_refused).collect()
}

async fn call_within(
    call: BoxFuture<'_, Result<ModelAnswer, Failure>>,
    share: Duration,
    model: &str,
) -> Result<ModelAnswer, Failure> {
    tokio::time::timeout(share, call).await.unwrap_or_else(|_| {
        let message = format!("the model `{model}` did not answer within {} ms", share.as_millis());
        Err(Failure { code: RunErrorCode::Timeout, message })
    })
}

/// Whether another model may answer what this one could not. One that refuses, or that takes the request for
/// invalid, has the last word.
fn falls_over(code: RunErrorCode) -> bool {
    matches!(
        code,
        RunErrorCode::RateLimit
            | RunErrorCode::QuotaExceeded
            | RunErrorCode::ProviderUnavailable
            | RunErrorCode::ModelNotFound
            | RunErrorCode::InvalidCredentials
            | RunErrorCode::Timeout
            | RunErrorCode::ContextLength
    )
}

impl ChatModel for ModelChain {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        Box::pin(self.call_in_order(request))
    }
}

/// Counts the attempts of one model after those of the models before it.
struct AttemptCounter<'a> {
    observer: &'a dyn DeltaObserver,
    before: u32,
    /// The last attempt that sent text.
    highest: AtomicU32,
}

impl<'a> AttemptCounter<'a> {
    fn new(observer: &'a dyn DeltaObserver, before: u32) -> Self {
        Self { observer, before, highest: AtomicU32::new(before) }
    }
}

impl DeltaObserver for AttemptCounter<'_> {
    fn text(&self, attempt: u32, text: &str) {
        let attempt = self.before.saturating_add(attempt);
        self.highest.fetch_max(attempt, Ordering::Relaxed);
        self.observer.text(attempt, text);
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
