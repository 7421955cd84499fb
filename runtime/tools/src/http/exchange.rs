//! Sends a request and makes the outcome of a call from its answer.

use super::body::KeptBody;
use crate::ToolSettings;
use http::{HeaderMap, StatusCode};
use redflow_contract::code::ToolCode;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_egress::{Egress, EgressError, EgressRequest};
use redflow_ports::{Measurement, ToolOutcome};
use std::time::Duration;

/// How long before the engine's deadline a call gives up. The engine cannot know whether a byte was sent.
const BEFORE_DEADLINE: Duration = Duration::from_millis(50);

/// What a call is told that would send a secret for everyone to read.
pub(crate) const MUST_BE_HTTPS: &str = "this tool sends credentials, so the address must begin with https://";

/// Whether everyone on the way could read a request: it goes by http to a host that is not private. Says nothing about
/// an address that is refused anyway.
pub(crate) fn is_open(egress: &Egress, url: &str) -> bool {
    egress.judge(url).is_ok_and(|judged| judged.scheme == "http" && !judged.is_private)
}

/// An answer, with as much of its body as is kept.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: KeptBody,
}

/// Sends a request and reads its answer. Keeps `keep` bytes of the body.
///
/// # Errors
/// The outcome of a call without a whole answer.
pub(crate) async fn exchange(
    settings: &ToolSettings,
    request: EgressRequest,
    keep: usize,
) -> Result<Answer, ToolOutcome> {
    let count = |verdict: &str| settings.meter.record(Measurement::EgressRequest { verdict });
    let response = settings.egress.send(request).await.map_err(|error| {
        count(error.verdict());
        outcome_of(&error)
    })?;
    let (status, headers, mut incoming) = (response.status, response.headers, response.body);
    let mut body = KeptBody::new(keep);
    let broken = |error: EgressError| {
        count(error.verdict());
        outcome_of(&error.after_answer(status))
    };
    while let Some(chunk) = incoming.chunk().await.map_err(broken)? {
        body.push(&chunk);
    }
    count("answered");
    Ok(Answer { status, headers, body })
}

/// The time of a call, which ends before the engine's.
pub(crate) fn timeout_of(call: &ToolCall) -> Duration {
    let whole = Duration::from_millis(call.timeout_ms);
    whole.saturating_sub(BEFORE_DEADLINE.min(whole / 10))
}

/// The outcome of a call that failed before anything was sent.
pub(crate) fn failed(problem: impl Into<String>) -> ToolOutcome {
    ToolOutcome::Returned(ToolResult::failed(problem))
}

/// The outcome of a call without a whole answer. It is unknown if a byte of the request was sent and nothing came back.
fn outcome_of(error: &EgressError) -> ToolOutcome {
    let text = match error {
        EgressError::Failed { sent: true, .. } | EgressError::TimedOut { sent: true } => {
            return ToolOutcome::Unknown { reason: format!("the request was sent, but {error}") };
        }
        EgressError::Failed { .. } | EgressError::TimedOut { .. } => format!("nothing was sent: {error}"),
        EgressError::Refused(_)
        | EgressError::TooLarge { .. }
        | EgressError::HeadTooLarge
        | EgressError::Answered { .. } => error.to_string(),
    };
    ToolOutcome::Returned(match code_of(error) {
        Some(code) => ToolResult::refused(code, text),
        None => ToolResult::failed(text),
    })
}

fn code_of(error: &EgressError) -> Option<ToolCode> {
    match error {
        EgressError::Answered { error, .. } => code_of(error),
        EgressError::Refused(_) => Some(ToolCode::EgressRefused),
        EgressError::TooLarge { .. } | EgressError::HeadTooLarge => Some(ToolCode::EgressTooLarge),
        EgressError::Failed { .. } | EgressError::TimedOut { .. } => None,
    }
}
