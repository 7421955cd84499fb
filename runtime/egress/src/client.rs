//! One call from its address to its answer.

use crate::{Dial, EgressError, EgressPolicy, EgressRequest, JudgedUrl, Refusal, Resolve, Rule};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;

/// The client. Its clones share connections and bounds.
#[derive(Clone)]
pub struct Egress {
    policy: Arc<EgressPolicy>,
}

impl Egress {
    /// A client with the network of this machine.
    #[must_use]
    pub fn new(policy: EgressPolicy) -> Self {
        Self { policy: Arc::new(policy) }
    }

    /// A client with another resolver and dialler.
    #[must_use]
    pub fn with_net(policy: EgressPolicy, resolver: Arc<dyn Resolve>, dialler: Arc<dyn Dial>) -> Self {
        let _ = (resolver, dialler);
        Self::new(policy)
    }

    /// The operator's policy.
    #[must_use]
    pub fn policy(&self) -> &EgressPolicy {
        &self.policy
    }

    /// Judges an address as written. Looks nothing up.
    ///
    /// # Errors
    /// When a rule refuses it.
    pub fn judge(&self, _url: &str) -> Result<JudgedUrl, Refusal> {
        Err(Refusal::new(Rule::Text, "not written yet"))
    }

    /// Applies all rules that come before a connection. Looks the name up, but dials nothing.
    ///
    /// # Errors
    /// When a rule refuses it.
    pub async fn test(&self, url: &str) -> Result<JudgedUrl, Refusal> {
        self.judge(url)
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// When a rule refuses it, or no answer comes.
    pub async fn send(&self, request: EgressRequest) -> Result<EgressResponse, EgressError> {
        Err(self.judge(&request.url).err().map_or(EgressError::TimedOut { sent: false }, EgressError::Refused))
    }
}

/// The head of an answer, and its body as a stream.
pub struct EgressResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The address of the last hop, without the credential.
    pub url: String,
    /// The body.
    pub body: EgressBody,
}

/// The decoded body of an answer.
pub struct EgressBody(());

impl EgressBody {
    /// The next bytes, or `None` at the end.
    ///
    /// # Errors
    /// When the body is too large, broken or too slow.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        Ok(None)
    }
}
