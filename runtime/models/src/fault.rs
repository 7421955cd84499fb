//! Why a call failed: its code, whether it may pass, and the sentence people read.

use crate::retry::Advice;
use crate::transport::TransportError;
use crate::wire::{ProviderError, WireError};
use redflow_contract::code::RunErrorCode;
use redflow_contract::scrub::Scrubber;
use std::fmt::Write as _;
use std::time::Duration;

/// Why one try failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The provider answered with an error.
    Provider(ProviderError, Advice),
    /// It could not be reached, or was lost.
    Transport(TransportError),
    /// Its answer is not what its wire says.
    Garbled(&'static str),
    /// Its stream ended before the answer did.
    Cut,
    /// Its answer is larger than anyone could use.
    TooLarge(usize),
    /// The call took longer than it may.
    TimedOut(Duration),
}

/// Codes that say the money is used up. Waiting does not help.
const BILLING: [&str; 7] = [
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "enforced_spend_limit_reached",
    "billing_error",
];

const TOO_LONG: [&str; 3] = ["context_length_exceeded", "string_above_max_length", "request_too_large"];

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Provider(error) => Self::Provider(error, Advice::default()),
            WireError::Garbled(what) => Self::Garbled(what),
            WireError::Cut => Self::Cut,
        }
    }
}

impl From<TransportError> for Fault {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

impl Fault {
    /// The code of the run's error.
    #[must_use]
    pub fn code(&self) -> RunErrorCode {
        let error = match self {
            Self::Provider(error, _) => error,
            Self::Transport(TransportError::ConnectTimeout) | Self::TimedOut(_) => {
                return RunErrorCode::Timeout;
            }
            Self::Transport(_) | Self::Cut => return RunErrorCode::ProviderUnavailable,
            Self::Garbled(_) | Self::TooLarge(_) => return RunErrorCode::ModelError,
        };
        if is_billing(error) {
            return RunErrorCode::QuotaExceeded;
        }
        if names(error, &["content_filter", "content_policy_violation"]) {
            return RunErrorCode::ModelRefused;
        }
        match error.status {
            401 | 403 => RunErrorCode::InvalidCredentials,
            429 => RunErrorCode::RateLimit,
            404 => RunErrorCode::ModelNotFound,
            400 if names(error, &TOO_LONG) => RunErrorCode::ContextLength,
            400 if names(error, &["model_not_found"]) => RunErrorCode::ModelNotFound,
            413 => RunErrorCode::ContextLength,
            408 | 504 => RunErrorCode::Timeout,
            500.. => RunErrorCode::ProviderUnavailable,
            _ => RunErrorCode::ModelError,
        }
    }

    /// Whether the same call may work a little later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Provider(error, advice) => {
                !is_billing(error)
                    && advice.should_retry.unwrap_or(matches!(error.status, 408 | 409 | 429 | 500..))
            }
            Self::Transport(TransportError::NotHttp) => false,
            Self::Transport(_) | Self::Cut => true,
            Self::Garbled(_) | Self::TooLarge(_) | Self::TimedOut(_) => false,
        }
    }

    /// What the provider says of another try.
    #[must_use]
    pub fn advice(&self) -> Advice {
        match self {
            Self::Provider(_, advice) => *advice,
            _ => Advice::default(),
        }
    }

    /// Without the secrets a provider has put into its words. To be done before they are cut to size.
    pub(crate) fn scrub(&mut self, secrets: &Scrubber) {
        if let Self::Provider(error, _) = self {
            for text in [&mut error.kind, &mut error.code, &mut error.message] {
                secrets.text(text);
            }
        }
    }

    /// What happened, for people. `who` is the provider and where it is; `tries` how often it was asked.
    #[must_use]
    pub fn sentence(&self, who: &str, model: &str, tries: u32) -> String {
        let mut text = match self {
            Self::Provider(error, advice) => provider_sentence(error, *advice, self.code(), who, model),
            Self::Transport(error) => format!("{who} could not be reached: {error}"),
            Self::Garbled(what) => format!("{who} answered with something it should not: {what}"),
            Self::Cut => format!("the answer of {who} broke off before it ended"),
            Self::TooLarge(most) => format!("the answer of {who} has more than {most} bytes"),
            Self::TimedOut(limit) => format!("{who} did not answer within {} ms", limit.as_millis()),
        };
        if tries > 1 {
            let _ = write!(text, " (asked {tries} times)");
        }
        text
    }
}

fn provider_sentence(
    error: &ProviderError,
    advice: Advice,
    code: RunErrorCode,
    who: &str,
    model: &str,
) -> String {
    let mut text = match code {
        RunErrorCode::InvalidCredentials => {
            format!("{who} refused the key; check the node's credentials or the environment variable")
        }
        RunErrorCode::RateLimit => format!("{who} asks for fewer requests"),
        RunErrorCode::QuotaExceeded => format!("the quota or balance at {who} is used up"),
        RunErrorCode::ModelNotFound => {
            format!("{who} does not know the model `{model}`, or there is nothing at that address")
        }
        RunErrorCode::ContextLength => format!("the conversation is longer than `{model}` can read"),
        RunErrorCode::ModelRefused => format!("{who} refused to answer this conversation"),
        RunErrorCode::Timeout => format!("{who} gave up waiting"),
        RunErrorCode::ProviderUnavailable => format!("{who} is overloaded or out of order"),
        _ if (300..400).contains(&error.status) => {
            format!("{who} redirects to elsewhere; correct its address")
        }
        _ => format!("{who} refused the request"),
    };
    let _ = write!(text, " (HTTP {}", error.status);
    for name in [&error.kind, &error.code] {
        if !name.is_empty() {
            let _ = write!(text, ", {}", plain(name, 80));
        }
    }
    text.push(')');
    if let Some(after) = advice.after.filter(|_| code == RunErrorCode::RateLimit) {
        let _ = write!(text, "; it asks to wait {} s", after.as_secs_f64().ceil());
    }
    if !error.message.is_empty() {
        let _ = write!(text, ": {}", plain(&error.message, 300));
    }
    // Servers that speak OpenAI's language do not agree on this one.
    if error.status == 400 && error.message.contains("response_format") {
        text.push_str("; set `structuredOutput` on the node to json_schema, json_object or none");
    }
    text
}

/// A stranger's text on one line, and not too much of it.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let mut out: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        out.push('…');
    }
    out.trim().to_owned()
}

fn is_billing(error: &ProviderError) -> bool {
    error.status == 402 || names(error, &BILLING)
}

fn names(error: &ProviderError, known: &[&str]) -> bool {
    known.contains(&error.kind.as_str()) || known.contains(&error.code.as_str())
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
