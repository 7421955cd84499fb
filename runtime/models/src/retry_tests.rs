use super::retry_delay;
use crate::call_error::CallError;
use crate::retry_advice::RetryAdvice;
use crate::transport::TransportError;
use crate::wire::ProviderError;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;

/// 2026-11-15T08:00:00Z
const NOW: u64 = 1_794_729_600_000;

fn advice(headers: &[(&'static str, &'static str)]) -> RetryAdvice {
    let map: HeaderMap = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    RetryAdvice::from_headers(&map, NOW)
}

#[test]
fn the_headers_of_a_provider_in_their_order() {
    for (headers, expected) in [
        (vec![], None),
        (vec![("retry-after-ms", "1500"), ("retry-after", "9")], Some(1_500)),
        (vec![("retry-after-ms", "soon"), ("retry-after", "9")], Some(9_000)),
        (vec![("retry-after", "0.25")], Some(250)),
        (vec![("retry-after", " 2 ")], Some(2_000)),
        (vec![("retry-after", "Sun, 15 Nov 2026 08:00:07 GMT")], Some(7_000)),
        (vec![("retry-after", "Sun, 15 Nov 2026 07:00:00 GMT")], Some(0)),
        (vec![("retry-after", "-1")], None),
        (vec![("retry-after", "NaN")], None),
        (vec![("retry-after", "1e300")], None),
        (vec![("retry-after", "tomorrow")], None),
    ] {
        assert_eq!(advice(&headers).after, expected.map(Duration::from_millis), "{headers:?}");
    }
    for (value, expected) in [("true", Some(true)), ("false", Some(false)), ("yes", None)] {
        assert_eq!(advice(&[("x-should-retry", value)]).should_retry, expected);
    }
}

fn provider(status: u16, code: &str, advice: RetryAdvice) -> CallError {
    CallError::Provider(ProviderError { status, code: code.to_owned(), ..ProviderError::default() }, advice)
}

#[test]
fn which_errors_are_retried() {
    let (no, yes) = (
        RetryAdvice { should_retry: Some(false), after: None },
        RetryAdvice { should_retry: Some(true), after: None },
    );
    for (error, retried) in [
        (provider(400, "", RetryAdvice::default()), false),
        (provider(401, "", RetryAdvice::default()), false),
        (provider(404, "", RetryAdvice::default()), false),
        (provider(408, "", RetryAdvice::default()), true),
        (provider(409, "", RetryAdvice::default()), true),
        (provider(422, "", RetryAdvice::default()), false),
        (provider(429, "rate_limit_exceeded", RetryAdvice::default()), true),
        (provider(429, "slow_down", RetryAdvice::default()), true),
        (provider(500, "", RetryAdvice::default()), true),
        (provider(503, "server_is_overloaded", RetryAdvice::default()), true),
        (provider(529, "", RetryAdvice::default()), true),
        (provider(529, "", no), false),
        (provider(400, "", yes), true),
        // A header does not help when the budget is exhausted.
        (provider(429, "insufficient_quota", yes), false),
        (provider(429, "credit_balance_exhausted", RetryAdvice::default()), false),
        (provider(429, "organization_spend_limit_exceeded", RetryAdvice::default()), false),
        (provider(429, "project_spend_limit_exceeded", RetryAdvice::default()), false),
        (provider(429, "organization_usage_limit_exceeded", RetryAdvice::default()), false),
        (provider(429, "enforced_spend_limit_reached", RetryAdvice::default()), false),
        (provider(402, "", yes), false),
        (CallError::Transport(TransportError::Refused), true),
        (CallError::Transport(TransportError::Lost), true),
        (CallError::Interrupted, true),
        (CallError::Malformed("x"), false),
        (CallError::TooLarge(1), false),
        (CallError::TimedOut(Duration::ZERO), false),
    ] {
        assert_eq!(retry_delay(&error, 1, 2, 0.0).is_some(), retried, "{error:?}");
    }
}

#[test]
fn delays_grow_and_attempts_are_limited() {
    let error = CallError::Interrupted;
    let delays = |random| {
        (1..=6).map(move |attempts| {
            retry_delay(&CallError::Interrupted, attempts, 10, random).unwrap().as_millis()
        })
    };
    assert_eq!(delays(0.0).collect::<Vec<_>>(), [500, 1_000, 2_000, 4_000, 8_000, 8_000]);
    assert_eq!(delays(1.0).collect::<Vec<_>>(), [375, 750, 1_500, 3_000, 6_000, 6_000]);
    assert_eq!(retry_delay(&error, 1_000, u32::MAX, 0.0), Some(Duration::from_secs(8)));
    assert!(retry_delay(&error, 2, 2, 0.5).is_some());
    assert!(retry_delay(&error, 3, 2, 0.5).is_none());
    assert!(retry_delay(&error, 1, 0, 0.5).is_none());
    let requested = |seconds| RetryAdvice { should_retry: None, after: Some(Duration::from_secs(seconds)) };
    assert_eq!(retry_delay(&provider(429, "", requested(60)), 1, 2, 1.0), Some(Duration::from_secs(60)));
    assert_eq!(retry_delay(&provider(429, "", requested(0)), 1, 2, 1.0), Some(Duration::ZERO));
    // After a request for a longer wait there is no retry.
    assert_eq!(retry_delay(&provider(429, "", requested(61)), 1, 2, 1.0), None);
}
