use super::{CallError, shorten};
use crate::retry_advice::RetryAdvice;
use crate::transport::TransportError;
use crate::wire::{ProviderError, WireError};
use redflow_contract::code::RunErrorCode;
use std::time::Duration;

fn provider(status: u16, kind: &str, code: &str) -> CallError {
    let error = ProviderError { status, kind: kind.to_owned(), code: code.to_owned(), ..Default::default() };
    CallError::Provider(error, RetryAdvice::default())
}

fn provider_text(status: u16, message: &str) -> CallError {
    let error = ProviderError { status, message: message.to_owned(), ..Default::default() };
    CallError::Provider(error, RetryAdvice::default())
}

#[test]
fn each_error_has_its_code() {
    use RunErrorCode as Code;
    for (error, code) in [
        (provider(401, "authentication_error", ""), Code::InvalidCredentials),
        (provider(403, "permission_error", ""), Code::InvalidCredentials),
        (provider(429, "rate_limit_error", "rate_limit_exceeded"), Code::RateLimit),
        (provider(429, "insufficient_quota", "insufficient_quota"), Code::QuotaExceeded),
        (provider(429, "rate_limit_error", "enforced_spend_limit_reached"), Code::QuotaExceeded),
        (provider(402, "billing_error", ""), Code::QuotaExceeded),
        (provider(404, "not_found_error", "model_not_found"), Code::ModelNotFound),
        (provider(400, "invalid_request_error", "model_not_found"), Code::ModelNotFound),
        (provider(400, "invalid_request_error", "context_length_exceeded"), Code::ContextLength),
        (provider(413, "request_too_large", ""), Code::ContextLength),
        (provider(400, "", "content_filter"), Code::ModelRefused),
        (provider(408, "", ""), Code::Timeout),
        (provider(504, "timeout_error", ""), Code::Timeout),
        (provider(500, "api_error", ""), Code::ProviderUnavailable),
        (provider(502, "", ""), Code::ProviderUnavailable),
        (provider(503, "", ""), Code::ProviderUnavailable),
        (provider(529, "overloaded_error", ""), Code::ProviderUnavailable),
        (provider(400, "invalid_request_error", ""), Code::ModelError),
        (provider(409, "conflict_error", ""), Code::ModelError),
        (provider(302, "", ""), Code::ModelError),
        (CallError::Transport(TransportError::Refused), Code::ProviderUnavailable),
        (CallError::Transport(TransportError::ConnectTimeout), Code::Timeout),
        (WireError::Interrupted.into(), Code::ProviderUnavailable),
        (WireError::Malformed("x").into(), Code::ModelError),
        (WireError::InvalidCall("x").into(), Code::ModelError),
        (provider(400, "INVALID_ARGUMENT", "API_KEY_INVALID"), Code::InvalidCredentials),
        (provider(429, "RESOURCE_EXHAUSTED", ""), Code::RateLimit),
        (provider(429, "RESOURCE_EXHAUSTED", "daily_quota_exceeded"), Code::QuotaExceeded),
        (
            provider_text(400, "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
            Code::ContextLength,
        ),
        (provider_text(400, "The input token count is fine."), Code::ModelError),
        (CallError::TooLarge(5), Code::ModelError),
        (CallError::TimedOut(Duration::from_secs(1)), Code::Timeout),
    ] {
        assert_eq!(error.code(), code, "{error:?}");
    }
}

#[test]
fn messages_for_users() {
    let mut error = ProviderError {
        status: 429,
        kind: "rate_limit_error".to_owned(),
        code: String::new(),
        param: "".into(),
        message: "Slow\ndown \u{1b}[31m".to_owned(),
    };
    let advice = RetryAdvice { should_retry: None, after: Some(Duration::from_millis(61_200)) };
    let text = CallError::Provider(error.clone(), advice).message("Anthropic (host)", "m", 3);
    assert_eq!(
        text,
        "Anthropic (host) asks for fewer requests (HTTP 429, rate_limit_error); it asks to wait 62 s: \
         Slow down  [31m (after 3 attempts)"
    );
    error.status = 302;
    error.kind.clear();
    let text = CallError::Provider(error, RetryAdvice::default()).message("X", "m", 1);
    assert!(
        text.starts_with("X redirects to another address; correct the address of the node (HTTP 302"),
        "{text}"
    );
    let text = CallError::InvalidCall("it is not valid (BAD)").message("X", "m", 2);
    assert_eq!(
        text,
        "X could not read the call that `m` wrote: it is not valid (BAD); describe the inputs of the tools more \
         simply, or use another model (after 2 attempts)"
    );
    let text = CallError::Transport(TransportError::Refused).message("X", "m", 1);
    assert_eq!(text, "X could not be reached: nothing listens there");
    assert_eq!(shorten(&"ä".repeat(400), 300).chars().count(), 301);
}
