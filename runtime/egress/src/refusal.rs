//! Why a request is refused, and what an operator would write to allow it.

use std::fmt;

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
    /// What an operator would write to allow it, such as `[egress] private = ["nas.lan:8123"]`.
    pub allow: Option<String>,
    /// The `HOST:PORT` for `--allow-private`, if that allows it.
    pub allow_private: Option<String>,
}

impl Refusal {
    pub(crate) fn new(rule: Rule, reason: impl Into<String>) -> Self {
        Self { rule, reason: reason.into(), allow: None, allow_private: None }
    }

    /// Says that the operator can allow it with a line of `[egress]`.
    pub(crate) fn allowed_by(mut self, setting: &str) -> Self {
        self.allow = Some(format!("[egress] {setting}"));
        self
    }

    /// Says that the operator can allow it as a private host.
    pub(crate) fn allowed_as_private(mut self, host_and_port: String) -> Self {
        self.allow = Some(format!("[egress] private = [\"{host_and_port}\"]"));
        self.allow_private = Some(host_and_port);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request is refused by the rule `{}`: {}", self.rule, self.reason)?;
        match (&self.allow, &self.allow_private) {
            (Some(allow), Some(private)) => write!(
                f,
                "; to allow it, an operator writes `{allow}` into the configuration, starts the sidecar with \
                 `--allow-private {private}`, or fills in the private hosts of the node redflow-runtime"
            ),
            (Some(allow), None) => {
                write!(f, "; to allow it, an operator writes `{allow}` into the configuration")
            }
            (None, _) => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

/// Why a request has no usable answer. No text holds an address or a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// A rule refuses it. For the hop that the refusal is about, nothing was dialled, except with the rules
    /// `connect` and `bounds`.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The body of the answer is too large.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The bound that applied.
        limit: u64,
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
    /// The label in metrics: the rule that refused, or how the request failed.
    #[must_use]
    pub const fn verdict(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.rule.as_str(),
            Self::TooLarge { .. } => "too_large",
            Self::Failed { .. } => "failed",
            Self::TimedOut { .. } => "timed_out",
        }
    }
}
