//! What failed, and what that means for a call.

use super::scopes::missing_text;
use redflow_egress::EgressError;
use rmcp::ServiceError;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::fmt;

/// Why a request has no usable answer. No text has a secret.
#[derive(Debug)]
pub enum HttpError {
    /// The way out refused it, or no answer came.
    Egress(EgressError),
    /// The server answered with a redirect that is not followed.
    Redirect(String),
    /// The sidecar has no token for it, so it was not sent.
    OAuth(String),
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Egress(error) => error.fmt(f),
            Self::Redirect(text) | Self::OAuth(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for HttpError {}

impl From<EgressError> for HttpError {
    fn from(error: EgressError) -> Self {
        Self::Egress(error)
    }
}

/// What a failure of a connection or a call over HTTP means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpFailure {
    /// What failed, for people, without secrets.
    pub text: String,
    /// Whether the server may have begun to do what the request asks. If not, the request can be sent again.
    pub is_sent: bool,
    /// Whether a person must sign in, or the secret of the server is wrong.
    pub needs_login: bool,
    /// Whether the server has ended the session. A new connection can be used.
    pub is_session_end: bool,
    /// The rule of the way out that refused it, such as `address`; none if no rule did.
    pub rule: Option<&'static str>,
}

impl HttpFailure {
    /// The failure of a connection; none if it did not come from HTTP.
    #[must_use]
    pub fn of_connection(error: &ClientInitializeError) -> Option<Self> {
        match error {
            ClientInitializeError::TransportError { error, .. } => Self::of_transport(error),
            ClientInitializeError::LegacyFallbackFailed { discover, fallback } => {
                Self::of_connection(fallback).or_else(|| Self::of_connection(discover))
            }
            _ => None,
        }
    }

    /// The failure of a call; none if it did not come from HTTP.
    #[must_use]
    pub fn of_call(error: &ServiceError) -> Option<Self> {
        match error {
            ServiceError::TransportSend(error) => Self::of_transport(error),
            _ => None,
        }
    }

    fn of_transport(error: &DynamicTransportError) -> Option<Self> {
        error.error.downcast_ref::<StreamableHttpError<HttpError>>().map(Self::of)
    }

    fn of(error: &StreamableHttpError<HttpError>) -> Self {
        let mut failure = Self {
            text: error.to_string(),
            is_sent: true,
            needs_login: false,
            is_session_end: false,
            rule: None,
        };
        match error {
            StreamableHttpError::Client(HttpError::Egress(error)) => {
                failure.text = error.to_string();
                failure.rule = rule_of(error);
                // After an answer only the server knows what it did.
                failure.is_sent = error.is_sent()
                    || matches!(error, EgressError::Answered { .. })
                    || matches!(error, EgressError::TooLarge { .. } | EgressError::HeadTooLarge);
            }
            // A server may redirect after it did what the request asks.
            StreamableHttpError::Client(HttpError::Redirect(text)) => {
                failure.text.clone_from(text);
                failure.rule = Some("redirect");
            }
            StreamableHttpError::Client(HttpError::OAuth(text)) => {
                failure.text.clone_from(text);
                failure.is_sent = false;
            }
            StreamableHttpError::AuthRequired(_) => {
                "the server asks for a sign-in, or refuses the token that it got"
                    .clone_into(&mut failure.text);
                failure.is_sent = false;
                failure.needs_login = true;
            }
            StreamableHttpError::InsufficientScope(error) => {
                failure.text = missing_text(error.get_required_scope());
                failure.is_sent = false;
                failure.needs_login = true;
            }
            StreamableHttpError::SessionExpired => {
                "the server has ended the session".clone_into(&mut failure.text);
                failure.is_sent = false;
                failure.is_session_end = true;
            }
            _ => {}
        }
        failure
    }
}

fn rule_of(error: &EgressError) -> Option<&'static str> {
    match error {
        EgressError::Refused(refusal) => Some(refusal.rule.as_str()),
        EgressError::Answered { error, .. } => rule_of(error),
        _ => None,
    }
}
