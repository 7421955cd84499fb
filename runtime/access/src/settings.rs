//! Every limit of access control, with its default.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Which requests are accepted, and how many.
#[derive(Debug, Clone)]
pub struct AccessSettings {
    /// The address of the listener, with its actual port.
    pub listen: SocketAddr,
    /// Further hosts that requests may name, each exactly as in the `Host` header: `name` or `name:port`.
    pub hosts: Vec<String>,
    /// Further origins whose pages may send requests, each exactly as in the `Origin` header: `https://name`
    /// or with a port.
    pub origins: Vec<String>,
    /// The origin of the Redflow UI. Its pages need no token, so other machines must not reach the listener.
    pub redflow_ui: Option<String>,
    /// Whether the Redflow UI may send tokens of another server, to which this one forwards. Its pages need
    /// no token here, so such a token neither helps nor hurts.
    pub tokens_for_others: bool,
    /// Whether a proxy serves `hosts` over https. Then the cookie is `Secure`.
    pub https: bool,
    /// Requests that each token or session may send per second on average.
    pub requests_per_second: u32,
    /// Requests that it may send at once after a pause.
    pub request_burst: u32,
    /// Wrong tokens and codes per second, of all clients together, whose error says what is wrong. Also the typed
    /// tokens, right or wrong, that each address may try per second.
    pub failures_per_second: u32,
    /// Such tokens and codes at once after a pause.
    pub failure_burst: u32,
    /// Open connections, WebSockets included.
    pub max_connections: usize,
    /// Connections beyond that number which get an error at the same time. Others are closed without one.
    pub max_refusals: usize,
    /// How long the head of a request may take to arrive. An idle connection is closed after the same time,
    /// because hyper has one timer for both.
    pub head_timeout: Duration,
    /// The largest head of a request, in bytes.
    pub max_head_bytes: usize,
    /// The most headers of a request.
    pub max_headers: usize,
    /// How long a peer may accept no bytes before its connection is closed.
    pub write_stall: Duration,
    /// How long a closed connection is still read, so that the peer gets the last response and not a reset.
    pub linger: Duration,
    /// How long a one-time code works.
    pub code_lifetime: Duration,
    /// One-time codes that work at the same time. One more invalidates the oldest.
    pub max_codes: usize,
    /// How long a session lives without a request.
    pub session_idle: Duration,
    /// How long a session lives at most.
    pub session_lifetime: Duration,
    /// Open sessions. One more closes the oldest one of the token that has most of them.
    pub max_sessions: usize,
    /// The file that keeps sessions over a restart. None keeps them in memory only.
    pub sessions_file: Option<PathBuf>,
}

/// How browsers reach the configured hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl AccessSettings {
    pub(crate) fn scheme(&self) -> Scheme {
        if self.https { Scheme::Https } else { Scheme::Http }
    }
}

impl Default for AccessSettings {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 1881)),
            hosts: Vec::new(),
            origins: Vec::new(),
            redflow_ui: None,
            tokens_for_others: false,
            https: false,
            requests_per_second: 100,
            request_burst: 200,
            failures_per_second: 5,
            failure_burst: 20,
            max_connections: 1024,
            max_refusals: 64,
            head_timeout: Duration::from_secs(10),
            max_head_bytes: 32 * 1024,
            max_headers: 64,
            write_stall: Duration::from_secs(30),
            linger: Duration::from_secs(1),
            code_lifetime: Duration::from_secs(10 * MINUTE),
            max_codes: 16,
            session_idle: Duration::from_secs(12 * HOUR),
            session_lifetime: Duration::from_secs(7 * 24 * HOUR),
            max_sessions: 64,
            sessions_file: None,
        }
    }
}
