//! Every limit of the door, with its default.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What the door lets in, and how much of it.
#[derive(Debug, Clone)]
pub struct AccessSettings {
    /// The address that is listened at, with the port that was really given.
    pub listen: SocketAddr,
    /// Further names requests may be sent to, each exactly as the `Host` header has it: `name` or `name:port`.
    pub hosts: Vec<String>,
    /// Further web pages that may ask, each exactly as the `Origin` header has it: `https://name` or with a port.
    pub origins: Vec<String>,
    /// The one origin whose pages, those of the Redflow UI, come in without a token. Only for a listener that other
    /// machines cannot reach.
    pub redflow_ui: Option<String>,
    /// Whether a token that pages of the Redflow UI send and that is none of ours is meant for somebody behind us. They
    /// need none here, so they come in with it as they would without.
    pub tokens_for_others: bool,
    /// Whether `hosts` are reached over https, ended by a proxy in front. The cookie is `Secure` then.
    pub https: bool,
    /// Requests a token or a session may make each second in the long run.
    pub requests_per_second: u32,
    /// Requests it may make at once after a pause.
    pub request_burst: u32,
    /// Wrong tokens and codes that are answered with what is wrong each second, from everybody together.
    pub failures_per_second: u32,
    /// Wrong tokens and codes that are answered so at once after a pause.
    pub failure_burst: u32,
    /// Connections that are open at the same time, sockets included.
    pub max_connections: usize,
    /// Connections over that number which are told so at the same time; others are closed without a word.
    pub max_refusals: usize,
    /// How long the head of a request may take to arrive. A connection that waits for its next request is closed
    /// after the same time: the HTTP library has one timer for both.
    pub head_timeout: Duration,
    /// The largest head of a request, in bytes.
    pub max_head_bytes: usize,
    /// The most headers of a request.
    pub max_headers: usize,
    /// How long a peer may take nothing of what is written to it before its connection is closed.
    pub write_stall: Duration,
    /// How long a closed connection is still read from, so that the peer gets the last answer and not a reset.
    pub linger: Duration,
    /// How long a one-time code works.
    pub code_lifetime: Duration,
    /// One-time codes that work at the same time; one more makes the oldest worthless.
    pub max_codes: usize,
    /// How long a browser may stay away before it has to sign in again.
    pub session_idle: Duration,
    /// How long a browser stays signed in at most.
    pub session_lifetime: Duration,
    /// Browsers that are signed in at the same time; one more signs out the oldest.
    pub max_sessions: usize,
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
        }
    }
}
