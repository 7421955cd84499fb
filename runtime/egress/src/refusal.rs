//! Why a request is refused, and what an operator would write to allow it.

use crate::{MAX_HEAD_BYTES, MAX_HEADERS};
use http::StatusCode;
use std::fmt;
use std::net::SocketAddr;

/// A rule of the way out. They apply in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The characters and the beginning of an address.
    Text,
    /// Its host and port as written.
    Authority,
    /// Its scheme.
    Scheme,
    /// Its port.
    Port,
    /// The name of its host.
    Name,
    /// The addresses of its host.
    Address,
    /// The connection to one of these addresses.
    Connect,
    /// The address that a redirect leads to.
    Redirect,
    /// The form of the answer.
    Bounds,
}

impl Rule {
    /// The name of the rule in texts, events and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Authority => "authority",
            Self::Scheme => "scheme",
            Self::Port => "port",
            Self::Name => "name",
            Self::Address => "address",
            Self::Connect => "connect",
            Self::Redirect => "redirect",
            Self::Bounds => "bounds",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request that a rule refuses. Its texts hold no more of an address than host and port, because the rest may be
/// secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub rule: Rule,
    /// What is wrong, as a clause without a full stop.
    pub reason: String,
    /// What an operator would do to allow it, such as: add `nas.lan:8123` to `[egress] private`.
    pub allow: Option<String>,
    /// The `HOST:PORT` for `--allow-private`, if that allows it.
    pub allow_private: Option<String>,
    /// The refused address of a name. No text has it: a model must not learn the addresses of a private network.
    pub(crate) looked_up: Option<SocketAddr>,
}

impl Refusal {
    pub(crate) fn new(rule: Rule, reason: impl Into<String>) -> Self {
        Self { rule, reason: reason.into(), allow: None, allow_private: None, looked_up: None }
    }

    /// Says that the operator can allow it with an entry in a list of `[egress]`.
    pub(crate) fn allowed_by(mut self, key: &str, entry: &str) -> Self {
        self.allow = Some(format!("add `{entry}` to `[egress] {key}`"));
        self
    }

    /// Says that the operator can allow it as a private host.
    pub(crate) fn allowed_as_private(mut self, host_and_port: String) -> Self {
        self = self.allowed_by("private", &host_and_port);
        self.allow_private = Some(host_and_port);
        self
    }

    /// Notes the refused address of a name, for the operator.
    pub(crate) fn of_address(self, address: SocketAddr) -> Self {
        Self { looked_up: Some(address), ..self }
    }

    /// The same refusal for an operator: it has the address of a name, and what allows exactly that address.
    pub(crate) fn for_operator(mut self) -> Self {
        let Some(address) = self.looked_up.take() else { return self };
        self.reason = format!("{}: {}", self.reason, address.ip());
        if self.allow.is_none() { self.allowed_as_private(address.to_string()) } else { self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request is refused by the rule `{}`: {}", self.rule, self.reason)?;
        match (&self.allow, &self.allow_private) {
            (Some(allow), Some(private)) => write!(
                f,
                "; an operator can allow it: {allow}, start the sidecar with `--allow-private {private}`, or fill in \
                 the private hosts of the node redflow-runtime"
            ),
            (Some(allow), None) => write!(f, "; an operator can allow it: {allow}"),
            (None, _) => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

/// Why a request has no usable answer. No text holds an address or a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// A rule refuses it. For the hop that the refusal is about, nothing was sent, except with the rule `bounds`.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The body of the answer is too large.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The bound that applied.
        limit: u64,
    },
    /// The head of the answer is too large.
    #[error("the head of the answer has more than {MAX_HEAD_BYTES} bytes or {MAX_HEADERS} headers")]
    HeadTooLarge,
    /// A server has answered, and what followed failed: its redirect, or the use of its answer. So the outcome of the
    /// request is known.
    #[error("the server answered with status {}, but {error}", status.as_u16())]
    Answered {
        /// The last status.
        status: StatusCode,
        /// What failed.
        error: Box<Self>,
    },
    /// No answer, or only a part of one.
    #[error("{reason}")]
    Failed {
        /// Whether a byte of the request may have left.
        sent: bool,
        /// A sentence about it.
        reason: String,
    },
    /// No complete answer in time.
    #[error("there was no complete answer in time")]
    TimedOut {
        /// Whether a byte of the request may have left.
        sent: bool,
    },
}

impl EgressError {
    /// The same error of a request that has an answer.
    #[must_use]
    pub fn after_answer(self, status: StatusCode) -> Self {
        Self::Answered { status, error: Box::new(self) }
    }

    /// Whether a byte of a request without an answer may have left.
    #[must_use]
    pub const fn is_sent(&self) -> bool {
        matches!(self, Self::Failed { sent: true, .. } | Self::TimedOut { sent: true })
    }

    /// The label in metrics: the rule that refused, or how the request failed.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match self {
            Self::Answered { error, .. } => error.verdict(),
            Self::Refused(refusal) => refusal.rule.as_str(),
            Self::TooLarge { .. } | Self::HeadTooLarge => "too_large",
            Self::Failed { .. } => "failed",
            Self::TimedOut { .. } => "timed_out",
        }
    }
}
