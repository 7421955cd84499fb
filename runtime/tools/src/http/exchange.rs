//! Sends a request and makes the outcome of a call from its answer.

use super::body::KeptBody;
use crate::ToolSettings;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use redflow_contract::code::ToolCode;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::manifest::HttpMethod;
use redflow_egress::{Egress, EgressError, EgressRequest};
use redflow_ports::{Measurement, ToolOutcome};
use std::time::Duration;

/// How long before the engine's deadline a call gives up. The engine cannot know whether a byte was sent.
const BEFORE_DEADLINE: Duration = Duration::from_millis(50);

/// The header of the key.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header of the trace.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// The error of a call that would send a secret unencrypted.
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

/// Adds what every request of a call has: the key of a request that may change something, and the trace.
pub(crate) fn add_call_headers(headers: &mut HeaderMap, method: HttpMethod, call: &ToolCall) {
    let key = call.idempotency_key.to_hex();
    if method != HttpMethod::Get
        && let Ok(key) = HeaderValue::from_str(&key)
    {
        headers.insert(IDEMPOTENCY_KEY, key);
    }
    if let Some(trace) = trace_parent(call, &key).and_then(|text| HeaderValue::from_str(&text).ok()) {
        headers.insert(TRACE_PARENT, trace);
    }
}

/// The trace of a call as W3C Trace Context writes it: the run is the trace, the call is the parent. None if the id of
/// the run is no uuid.
fn trace_parent(call: &ToolCall, key: &str) -> Option<String> {
    let trace: String = call.run_id.as_str().chars().filter(|c| *c != '-').collect();
    let is_uuid = trace.len() == 32 && trace.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_uuid.then(|| format!("00-{}-{}-01", trace.to_ascii_lowercase(), &key[..16]))
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

#[cfg(test)]
mod tests {
    use super::add_call_headers;
    use http::HeaderMap;
    use redflow_contract::Message;
    use redflow_contract::digest::Digest;
    use redflow_contract::effect::ToolCall;
    use redflow_contract::manifest::HttpMethod;

    #[test]
    fn a_request_has_its_key_and_its_trace() {
        let headers = |run: &str, method| {
            let call = ToolCall {
                run_id: run.into(),
                iteration: 1,
                call_id: "c".into(),
                tool: "http_request".to_owned(),
                node: "n".into(),
                input: Message::new(),
                idempotency_key: Digest::of(b"key"),
                timeout_ms: 1,
                agent: "a".into(),
                declared: None,
                operation: None,
                conversation: Default::default(),
            };
            let mut headers = HeaderMap::new();
            add_call_headers(&mut headers, method, &call);
            let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
            (text("idempotency-key"), text("traceparent"))
        };
        let (key, run) = (Digest::of(b"key").to_hex(), "019B76da-a800-7000-8000-000000000001");
        let trace = format!("00-019b76daa80070008000000000000001-{}-01", &key[..16]);
        assert_eq!(headers(run, HttpMethod::Get), (None, Some(trace.clone())));
        assert_eq!(headers(run, HttpMethod::Post), (Some(key.clone()), Some(trace)));
        assert_eq!(headers("run-1", HttpMethod::Put), (Some(key), None));
    }
}
