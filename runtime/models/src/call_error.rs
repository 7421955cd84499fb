//! Why a call failed: its code, whether a retry can help, and the message for users.

use crate::error_kind::ErrorKind;
use crate::lenient::MAX_SHOWN_CHARS;
use crate::retry_advice::RetryAdvice;
use crate::transport::TransportError;
use crate::wire::{ProviderError, WireError};
use redflow_contract::code::RunErrorCode;
use redflow_contract::scrub::Scrubber;
use std::fmt::Write as _;
use std::time::Duration;

/// Why one attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The provider reported an error.
    Provider(ProviderError, RetryAdvice),
    /// The provider could not be reached, or the connection was lost.
    Transport(TransportError),
    /// The answer does not follow the wire format.
    Malformed(&'static str),
    /// The provider could not read the call that the model wrote, for this reason.
    InvalidCall(&'static str),
    /// The stream ended before the answer did.
    Interrupted,
    /// The answer has more than this many bytes.
    TooLarge(usize),
    /// The call took longer than this limit.
    TimedOut(Duration),
    /// No further part of the stream came within this time.
    Idle(Duration),
    /// There is no token for the call. The message is ours.
    SignIn {
        /// Whether the sign-in was refused, or could not be made.
        code: RunErrorCode,
        /// What happened, for users.
        message: String,
    },
}

impl From<WireError> for CallError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Provider(error) => Self::Provider(error, RetryAdvice::default()),
            WireError::Malformed(what) => Self::Malformed(what),
            WireError::InvalidCall(why) => Self::InvalidCall(why),
            WireError::Interrupted => Self::Interrupted,
        }
    }
}

impl From<TransportError> for CallError {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

impl CallError {
    /// The code of the run error.
    #[must_use]
    pub fn code(&self) -> RunErrorCode {
        let error = match self {
            Self::Provider(error, _) => error,
            Self::Transport(TransportError::ConnectTimeout) | Self::TimedOut(_) | Self::Idle(_) => {
                return RunErrorCode::Timeout;
            }
            Self::Transport(_) | Self::Interrupted => return RunErrorCode::ProviderUnavailable,
            Self::Malformed(_) | Self::InvalidCall(_) | Self::TooLarge(_) => return RunErrorCode::ModelError,
            Self::SignIn { code, .. } => return *code,
        };
        match ErrorKind::of(error) {
            Some(ErrorKind::QuotaUsedUp) => return RunErrorCode::QuotaExceeded,
            Some(ErrorKind::Filtered) => return RunErrorCode::ModelRefused,
            Some(ErrorKind::RateLimit | ErrorKind::LargerThanRate) => return RunErrorCode::RateLimit,
            Some(ErrorKind::Overloaded) => return RunErrorCode::ProviderUnavailable,
            Some(ErrorKind::TooLong) => return RunErrorCode::ContextLength,
            None => {}
        }
        match error.status {
            401 | 403 => RunErrorCode::InvalidCredentials,
            400 if has_code(error, &["API_KEY_INVALID"]) || names_wrong_key(error) => {
                RunErrorCode::InvalidCredentials
            }
            429 => RunErrorCode::RateLimit,
            404 => RunErrorCode::ModelNotFound,
            400 if has_code(error, &["model_not_found"]) => RunErrorCode::ModelNotFound,
            408 | 504 => RunErrorCode::Timeout,
            500.. => RunErrorCode::ProviderUnavailable,
            _ => RunErrorCode::ModelError,
        }
    }

    /// Whether the same call may succeed a little later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Provider(error, advice) => {
                let may_pass = match ErrorKind::of(error) {
                    Some(ErrorKind::QuotaUsedUp | ErrorKind::TooLong | ErrorKind::LargerThanRate) => {
                        return false;
                    }
                    Some(ErrorKind::RateLimit | ErrorKind::Overloaded) => true,
                    Some(ErrorKind::Filtered) => false,
                    None => matches!(error.status, 408 | 409 | 429 | 500..),
                };
                advice.should_retry.unwrap_or(may_pass)
            }
            Self::Transport(TransportError::NotHttp) => false,
            Self::Transport(_) | Self::Interrupted | Self::InvalidCall(_) | Self::Idle(_) => true,
            Self::Malformed(_) | Self::TooLarge(_) | Self::TimedOut(_) => false,
            Self::SignIn { code, .. } => *code == RunErrorCode::ProviderUnavailable,
        }
    }

    /// Whether no change of the request can help.
    #[must_use]
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self.code(),
            RunErrorCode::QuotaExceeded | RunErrorCode::ModelRefused | RunErrorCode::InvalidCredentials
        ) && !matches!(self, Self::Provider(error, _) if error.status == 403)
    }

    /// Whether the server may have refused the interface, and not what was asked of it.
    #[must_use]
    pub(crate) fn may_mean_interface(&self) -> bool {
        matches!(self, Self::Provider(error, _) if matches!(error.status, 400 | 404 | 405 | 422))
            && matches!(self.code(), RunErrorCode::ModelError | RunErrorCode::ModelNotFound)
    }

    /// Whether the provider refuses the request for a reason that has no code of its own.
    #[must_use]
    pub(crate) fn is_bad_request(&self) -> bool {
        matches!(self, Self::Provider(error, _) if error.status == 400)
            && self.code() == RunErrorCode::ModelError
    }

    /// Whether the server failed by itself, perhaps for a moment.
    #[must_use]
    pub(crate) fn is_internal(&self) -> bool {
        matches!(self, Self::Provider(error, _) if error.status == 500)
    }

    /// Whether the server is still loading the model.
    #[must_use]
    pub(crate) fn is_loading(&self) -> bool {
        let Self::Provider(error, _) = self else { return false };
        error.status == 503 && error.message.to_ascii_lowercase().contains("loading")
    }

    /// Whether the server does not have what was asked for, as after a wrong address.
    #[must_use]
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Provider(error, _) if matches!(error.status, 404 | 405))
    }

    /// Whether the server does not accept who calls.
    #[must_use]
    pub(crate) fn is_refused_token(&self) -> bool {
        matches!(self, Self::Provider(error, _) if matches!(error.status, 401 | 403))
    }

    /// What the provider says about a retry.
    #[must_use]
    pub fn advice(&self) -> RetryAdvice {
        match self {
            Self::Provider(_, advice) => *advice,
            _ => RetryAdvice::default(),
        }
    }

    /// Removes secrets from the texts of the provider. Call it before the texts are shortened.
    pub(crate) fn scrub(&mut self, secrets: &Scrubber) {
        if let Self::Provider(error, _) = self {
            for text in [&mut error.kind, &mut error.code, &mut error.message] {
                secrets.text(text);
            }
        }
    }

    /// What happened, for users. `provider` is its name and host; `attempts` is how often it was called.
    #[must_use]
    pub fn message(&self, provider: &str, model: &str, attempts: u32) -> String {
        let mut text = match self {
            Self::Provider(error, advice) => provider_message(error, *advice, self.code(), provider, model),
            Self::Transport(error) => format!("{provider} could not be reached: {error}"),
            Self::Malformed(what) => format!("{provider} sent an invalid answer: {what}"),
            Self::InvalidCall(why) => format!(
                "{provider} could not read the call that `{model}` wrote: {why}; describe the inputs of the tools more \
                 simply, or use another model"
            ),
            Self::Interrupted => format!("the answer of {provider} broke off before it ended"),
            Self::TooLarge(limit) => format!("the answer of {provider} has more than {limit} bytes"),
            Self::TimedOut(limit) => format!("{provider} did not answer within {} ms", limit.as_millis()),
            Self::Idle(limit) => {
                format!("the answer of {provider} did not go on for {} ms (`idleTimeout`)", limit.as_millis())
            }
            Self::SignIn { message, .. } => message.clone(),
        };
        if attempts > 1 {
            let _ = write!(text, " (after {attempts} attempts)");
        }
        text
    }
}

fn provider_message(
    error: &ProviderError,
    advice: RetryAdvice,
    code: RunErrorCode,
    provider: &str,
    model: &str,
) -> String {
    let mut text = match code {
        RunErrorCode::InvalidCredentials => {
            format!("{provider} refused the key; check the node's credentials or the environment variable")
        }
        RunErrorCode::RateLimit if ErrorKind::of(error) == Some(ErrorKind::LargerThanRate) => format!(
            "the request is larger than what {provider} allows in a minute; lower `maxTokens`, shorten the \
             conversation, or ask the provider for a higher limit"
        ),
        RunErrorCode::RateLimit => format!("{provider} asks for fewer requests"),
        RunErrorCode::QuotaExceeded => format!("the quota or balance at {provider} is used up"),
        RunErrorCode::ModelNotFound => {
            format!("{provider} does not know the model `{model}`, or the address is wrong")
        }
        RunErrorCode::ContextLength => format!("the conversation is longer than `{model}` can read"),
        RunErrorCode::ModelRefused => format!("{provider} refused to answer this conversation"),
        RunErrorCode::Timeout => format!("{provider} timed out"),
        RunErrorCode::ProviderUnavailable => format!("{provider} is overloaded or out of order"),
        _ if (300..400).contains(&error.status) => {
            format!("{provider} redirects to another address; correct the address of the node")
        }
        _ => format!("{provider} refused the request"),
    };
    let _ = write!(text, " (HTTP {}", error.status);
    for name in [&error.kind, &error.code] {
        if !name.is_empty() {
            let _ = write!(text, ", {}", shorten(name, 80));
        }
    }
    text.push(')');
    if let Some(after) = advice.after.filter(|_| code == RunErrorCode::RateLimit) {
        let _ = write!(text, "; it asks to wait {} s", after.as_secs_f64().ceil());
    }
    if !error.message.is_empty() {
        let _ = write!(text, ": {}", shorten(&error.message, MAX_SHOWN_CHARS));
    }
    // Servers with OpenAI's API do not agree on this setting.
    if error.status == 400 && error.message.contains("response_format") {
        text.push_str("; set `responseFormat` on the node to schema, json or none");
    }
    text
}

/// A foreign text on one line, shortened.
pub(crate) fn shorten(text: &str, max_chars: usize) -> String {
    let mut out: String =
        text.chars().take(max_chars).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(max_chars).is_some() {
        out.push('…');
    }
    out.trim().to_owned()
}

fn has_code(error: &ProviderError, codes: &[&str]) -> bool {
    codes.contains(&error.kind.as_str()) || codes.contains(&error.code.as_str())
}

/// Whether xAI, whose error has the code of any invalid field, refuses the key.
fn names_wrong_key(error: &ProviderError) -> bool {
    error.message.to_ascii_lowercase().starts_with("incorrect api key provided")
}

#[cfg(test)]
#[path = "call_error_tests.rs"]
mod tests;
