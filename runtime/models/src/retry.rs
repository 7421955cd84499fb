//! Whether a call that failed is made again, and when.
//!
//! Owns the rules the official clients keep. Pure: the clock and the dice come in from outside.

use crate::fault::Fault;
use http::HeaderMap;
use std::time::Duration;

/// Who asks for longer than this gets no second call: the run is told instead.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);

/// What the headers of a failure say of another try.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Advice {
    /// Whether the provider wants one, if it says so.
    pub should_retry: Option<bool>,
    /// How long to wait before it, if the provider says so.
    pub after: Option<Duration>,
}

impl Advice {
    /// Reads the headers. What cannot be understood is not there. `now` in milliseconds since 1970.
    #[must_use]
    pub fn of(headers: &HeaderMap, now: u64) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let should_retry = match text("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let millis = text("retry-after-ms").and_then(|text| wait(text, 1e-3));
        let after = millis.or_else(|| {
            let text = text("retry-after")?;
            wait(text, 1.0).or_else(|| until(text, now))
        });
        Self { should_retry, after }
    }
}

fn wait(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok()
}

/// The time until an HTTP date; none left if it is past.
fn until(text: &str, now: u64) -> Option<Duration> {
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    let at = u64::try_from(date.timestamp().as_millisecond()).ok()?;
    Some(Duration::from_millis(at.saturating_sub(now)))
}

/// How long to wait before the next try; none if there is to be none. `tries` counts those already made, from
/// 1; `dice` is between 0 and 1.
#[must_use]
pub fn next_wait(fault: &Fault, tries: u32, max_retries: u32, dice: f64) -> Option<Duration> {
    if tries > max_retries || !fault.may_pass() {
        return None;
    }
    match fault.advice().after {
        Some(after) => (after <= LONGEST_WAIT).then_some(after),
        None => {
            let doubled = FIRST_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(16));
            Some(doubled.min(LONGEST_BACKOFF).mul_f64(1.0 - 0.25 * dice.clamp(0.0, 1.0)))
        }
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
