//! Whether a failed call is retried, and when.
//!
//! Owns the same rules as the official clients. Pure: the clock and the random number are arguments.

use crate::call_error::CallError;
use std::time::Duration;

/// If a provider requests a longer wait, the call is not retried, and the run gets the error.
pub const MAX_REQUESTED_WAIT: Duration = Duration::from_secs(60);

const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// How long to wait before the next attempt. None if there is no further attempt. `attempts` counts those
/// made, from 1; `random` is between 0 and 1.
#[must_use]
pub fn retry_delay(error: &CallError, attempts: u32, max_retries: u32, random: f64) -> Option<Duration> {
    if attempts > max_retries || !error.is_retryable() {
        return None;
    }
    match error.advice().after {
        Some(after) => (after <= MAX_REQUESTED_WAIT).then_some(after),
        None => {
            let doubled = FIRST_BACKOFF.saturating_mul(1 << attempts.saturating_sub(1).min(16));
            Some(doubled.min(MAX_BACKOFF).mul_f64(1.0 - 0.25 * random.clamp(0.0, 1.0)))
        }
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
