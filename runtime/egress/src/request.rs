//! A request, its credential and its answer.

use crate::HostPattern;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method};
use secrecy::SecretString;
use std::fmt;
use std::time::Duration;

/// The largest head of an answer.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The most headers of an answer.
pub const MAX_HEADERS: usize = 100;

/// A request to an address that no rule has judged yet.
#[derive(Clone)]
pub struct EgressRequest {
    /// The method.
    pub method: Method,
    /// The address, as it was written.
    pub url: String,
    /// Headers. A redirect to another origin leaves them out. `Host`, framing and hop-by-hop headers are never sent.
    pub headers: HeaderMap,
    /// The key of a service. It goes only to its own hosts.
    pub credential: Option<EgressCredential>,
    /// If given, the only hosts that this request may reach.
    pub hosts: Option<Vec<HostPattern>>,
    /// The body.
    pub body: Bytes,
    /// How many redirects to follow. With 0, the redirect itself is the answer.
    pub max_redirects: u32,
    /// The longest time of the whole call, with its redirects and the body of the answer.
    pub timeout: Duration,
    /// The largest body of the answer. The operator's bound applies, too.
    pub max_body_bytes: u64,
}

/// Leaves out address, headers and body: each may hold a secret.
impl fmt::Debug for EgressRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressRequest")
            .field("method", &self.method)
            .field("has_credential", &self.credential.is_some())
            .field("hosts", &self.hosts)
            .field("max_redirects", &self.max_redirects)
            .field("timeout", &self.timeout)
            .field("max_body_bytes", &self.max_body_bytes)
            .finish_non_exhaustive()
    }
}

/// The key of a service, and the hosts that may receive it: by https, or by http where `[egress] private` names
/// host and port.
#[derive(Debug, Clone)]
pub enum EgressCredential {
    /// A header.
    Header {
        /// Its name.
        name: HeaderName,
        /// Its whole value.
        value: SecretString,
        /// The hosts that may receive it.
        hosts: Vec<HostPattern>,
    },
    /// A parameter of the query.
    Query {
        /// Its name.
        name: String,
        /// Its value, not encoded.
        value: SecretString,
        /// The hosts that may receive it.
        hosts: Vec<HostPattern>,
    },
}

impl EgressCredential {
    pub(crate) fn hosts(&self) -> &[HostPattern] {
        match self {
            Self::Header { hosts, .. } | Self::Query { hosts, .. } => hosts,
        }
    }
}
