//! The details of Google's errors, which have a type each. Its interface of OpenAI sends them too.

use serde_json::Value;
use std::time::Duration;

/// Our code of a quota that is used up until the next day. Google has none of its own.
pub(crate) const DAILY_QUOTA: &str = "daily_quota_exceeded";

/// The error of a body. Streams without events, and the interface of OpenAI, put it into a list.
pub(crate) fn error_of(body: &Value) -> &Value {
    body.get(0).unwrap_or(body).get("error").unwrap_or(&Value::Null)
}

/// The code in the details of an error. None if there is none.
pub(crate) fn code(error: &Value) -> Option<&str> {
    if names_daily_quota(error) {
        return Some(DAILY_QUOTA);
    }
    details(error, "ErrorInfo").find_map(|detail| detail.get("reason")?.as_str())
}

/// How long the body of an error asks to wait, such as `20.04s`.
pub(crate) fn requested_wait(body: &Value) -> Option<Duration> {
    let text = details(error_of(body), "RetryInfo").find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The details of one type, whose names are addresses.
fn details<'a>(error: &'a Value, name: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = error.get("details").and_then(Value::as_array).into_iter().flatten();
    all.filter(move |detail| {
        let kind = detail.get("@type").and_then(Value::as_str).unwrap_or_default();
        kind.rsplit('.').next() == Some(name)
    })
}

/// Whether a quota for a whole day is used up, so that no wait of a call helps.
fn names_daily_quota(error: &Value) -> bool {
    let violations = details(error, "QuotaFailure").filter_map(|detail| detail.get("violations")?.as_array());
    violations.flatten().any(|violation| {
        let names = ["quotaId", "quotaMetric"].iter().filter_map(|name| violation.get(*name)?.as_str());
        names.into_iter().any(|name| name.contains("PerDay") || name.contains("per_day"))
    })
}
