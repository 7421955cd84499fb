//! The memories as the engine meets them: real clocks stopped, a real Redis killed.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod kit;
mod process;
mod redis_crowd;
mod redis_double;
mod redis_kept;
mod redis_legacy;
mod redis_server;
mod redis_tls;
mod redis_trouble;
