//! The listener with real sockets: whatever a client sends, the next good request gets a response.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod connection_limit;
mod malformed;
mod shutdown;
mod test_server;
mod timeouts;
