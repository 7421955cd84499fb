//! The models as the engine meets them, against servers that do what no server should.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod answers;
mod ask;
mod bounds;
mod broken;
mod connections;
mod errors;
mod server;
mod tls;
