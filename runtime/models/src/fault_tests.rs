use super::{Fault, plain};
use crate::retry::Advice;
use crate::transport::TransportError;
use crate::wire::{ProviderError, WireError};
use redflow_contract::code::RunErrorCode;
use std::time::Duration;

fn provider(status: u16, kind: &str, code: &str) -> Fault {
    let error =
        ProviderError { status, kind: kind.to_owned(), code: code.to_owned(), message: String::new() };
    Fault::Provider(error, Advice::default())
}

#[test]
fn each_failure_has_its_code() {
    use RunErrorCode as Code;
    for (fault, code) in [
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
        (Fault::Transport(TransportError::Refused), Code::ProviderUnavailable),
        (Fault::Transport(TransportError::ConnectTimeout), Code::Timeout),
        (WireError::Cut.into(), Code::ProviderUnavailable),
        (WireError::Garbled("x").into(), Code::ModelError),
        (Fault::TooLarge(5), Code::ModelError),
        (Fault::TimedOut(Duration::from_secs(1)), Code::Timeout),
    ] {
        assert_eq!(fault.code(), code, "{fault:?}");
    }
}

#[test]
fn what_people_read() {
    let mut said = ProviderError {
        status: 429,
        kind: "rate_limit_error".to_owned(),
        code: String::new(),
        message: "Slow\ndown \u{1b}[31m".to_owned(),
    };
    let advice = Advice { should_retry: None, after: Some(Duration::from_millis(61_200)) };
    let text = Fault::Provider(said.clone(), advice).sentence("Anthropic (host)", "m", 3);
    assert_eq!(
        text,
        "Anthropic (host) asks for fewer requests (HTTP 429, rate_limit_error); it asks to wait 62 s: \
         Slow down  [31m (asked 3 times)"
    );
    said.status = 302;
    let text = Fault::Provider(said, Advice::default()).sentence("X", "m", 1);
    assert!(text.starts_with("X redirects to elsewhere; correct its address (HTTP 302"), "{text}");
    let text = Fault::Transport(TransportError::Refused).sentence("X", "m", 1);
    assert_eq!(text, "X could not be reached: nothing listens there");
    assert_eq!(plain(&"ä".repeat(400), 300).chars().count(), 301);
}
