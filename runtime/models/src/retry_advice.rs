//! What a provider says about a retry in the headers of an error response.

use http::HeaderMap;
use std::time::Duration;

/// What the headers of an error response say about a retry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryAdvice {
    /// Whether the provider recommends a retry. None if it does not say.
    pub should_retry: Option<bool>,
    /// How long to wait before it. None if the provider does not say.
    pub after: Option<Duration>,
}

impl RetryAdvice {
    /// Reads the headers and ignores unreadable ones. `now` is in milliseconds since 1970.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap, now: u64) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let should_retry = match text("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let millis = text("retry-after-ms").and_then(|text| parse_duration(text, 1e-3));
        let after = millis.or_else(|| {
            let text = text("retry-after")?;
            parse_duration(text, 1.0).or_else(|| time_until(text, now))
        });
        Self { should_retry, after }
    }
}

fn parse_duration(text: &str, seconds_per_unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(number * seconds_per_unit).ok()
}

/// The time until an HTTP date. Zero for a date in the past.
fn time_until(text: &str, now: u64) -> Option<Duration> {
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    let at = u64::try_from(date.timestamp().as_millisecond()).ok()?;
    Some(Duration::from_millis(at.saturating_sub(now)))
}
