use super::{Advice, next_wait};
use crate::fault::Fault;
use crate::transport::TransportError;
use crate::wire::ProviderError;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;

/// 2026-11-15T08:00:00Z
const NOW: u64 = 1_794_729_600_000;

fn advice(headers: &[(&'static str, &'static str)]) -> Advice {
    let map: HeaderMap = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    Advice::of(&map, NOW)
}

#[test]
fn which_header_wins() {
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

fn provider(status: u16, code: &str, advice: Advice) -> Fault {
    Fault::Provider(ProviderError { status, code: code.to_owned(), ..ProviderError::default() }, advice)
}

#[test]
fn what_is_tried_again() {
    let (no, yes) =
        (Advice { should_retry: Some(false), after: None }, Advice { should_retry: Some(true), after: None });
    for (fault, again) in [
        (provider(400, "", Advice::default()), false),
        (provider(401, "", Advice::default()), false),
        (provider(404, "", Advice::default()), false),
        (provider(408, "", Advice::default()), true),
        (provider(409, "", Advice::default()), true),
        (provider(422, "", Advice::default()), false),
        (provider(429, "rate_limit_exceeded", Advice::default()), true),
        (provider(429, "slow_down", Advice::default()), true),
        (provider(500, "", Advice::default()), true),
        (provider(503, "server_is_overloaded", Advice::default()), true),
        (provider(529, "", Advice::default()), true),
        (provider(529, "", no), false),
        (provider(400, "", yes), true),
        // No header brings back money.
        (provider(429, "insufficient_quota", yes), false),
        (provider(429, "credit_balance_exhausted", Advice::default()), false),
        (provider(429, "organization_spend_limit_exceeded", Advice::default()), false),
        (provider(429, "project_spend_limit_exceeded", Advice::default()), false),
        (provider(429, "organization_usage_limit_exceeded", Advice::default()), false),
        (provider(429, "enforced_spend_limit_reached", Advice::default()), false),
        (provider(402, "", yes), false),
        (Fault::Transport(TransportError::Refused), true),
        (Fault::Transport(TransportError::Lost), true),
        (Fault::Cut, true),
        (Fault::Garbled("x"), false),
        (Fault::TooLarge(1), false),
        (Fault::TimedOut(Duration::ZERO), false),
    ] {
        assert_eq!(next_wait(&fault, 1, 2, 0.0).is_some(), again, "{fault:?}");
    }
}

#[test]
fn how_long_and_how_often() {
    let fault = Fault::Cut;
    let waits = |dice| (1..=6).map(move |tries| next_wait(&Fault::Cut, tries, 10, dice).unwrap().as_millis());
    assert_eq!(waits(0.0).collect::<Vec<_>>(), [500, 1_000, 2_000, 4_000, 8_000, 8_000]);
    assert_eq!(waits(1.0).collect::<Vec<_>>(), [375, 750, 1_500, 3_000, 6_000, 6_000]);
    assert_eq!(next_wait(&fault, 1_000, u32::MAX, 0.0), Some(Duration::from_secs(8)));
    assert!(next_wait(&fault, 2, 2, 0.5).is_some());
    assert!(next_wait(&fault, 3, 2, 0.5).is_none());
    assert!(next_wait(&fault, 1, 0, 0.5).is_none());
    let asks = |seconds| Advice { should_retry: None, after: Some(Duration::from_secs(seconds)) };
    assert_eq!(next_wait(&provider(429, "", asks(60)), 1, 2, 1.0), Some(Duration::from_secs(60)));
    assert_eq!(next_wait(&provider(429, "", asks(0)), 1, 2, 1.0), Some(Duration::ZERO));
    // Who asks for more is not asked again.
    assert_eq!(next_wait(&provider(429, "", asks(61)), 1, 2, 1.0), None);
}
