//! Errors of Google's APIs: a code, a status, a message, and details with a type each.

use crate::lenient::provider_error;
use crate::wire::ProviderError;
use serde_json::Value;
use std::time::Duration;

/// The longest status or reason that is kept.
const MAX_CODE_CHARS: usize = 100;
/// The code of a quota that is used up until the next day, in the list of [`crate::call_error`].
const DAILY_QUOTA: &str = "daily_quota_exceeded";

/// Reads the body of an error. Without a status, that of the error itself counts, as in a stream.
pub(super) fn read(status: Option<u16>, body: &Value) -> ProviderError {
    let error = error_of(body);
    let own = || error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let status = status.or_else(|| own().filter(|code| (400..=599).contains(code))).unwrap_or(500);
    // Gateways report errors as other providers do.
    let plain = provider_error(status, body.get(0).unwrap_or(body));
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::as_str).unwrap_or_default();
        text.chars().take(MAX_CODE_CHARS).collect::<String>()
    };
    let kind = text(error.get("status"));
    let reason = text(details(error, "ErrorInfo").find_map(|detail| detail.get("reason")));
    let is_number = error.get("code").is_some_and(Value::is_number);
    let code = match reason {
        _ if names_daily_quota(error) => DAILY_QUOTA.to_owned(),
        reason if !reason.is_empty() => reason,
        // The number is the HTTP status once more.
        _ if is_number => String::new(),
        _ => plain.code,
    };
    ProviderError { kind: if kind.is_empty() { plain.kind } else { kind }, code, ..plain }
}

/// How long the provider asks to wait, such as `20.04s`.
pub(super) fn requested_wait(body: &Value) -> Option<Duration> {
    let text = details(error_of(body), "RetryInfo").find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The error of a body. Streams without events put it into a list.
fn error_of(body: &Value) -> &Value {
    body.get(0).unwrap_or(body).get("error").unwrap_or(&Value::Null)
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
