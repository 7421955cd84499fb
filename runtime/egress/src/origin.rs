//! Which requests may share a connection.

use crate::host::Host;

/// Scheme, host and port. Only requests to the same origin share a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) is_https: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
}
