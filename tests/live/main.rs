//! Live models from end to end: the real engine and the real binary, against an independent mock of the
//! providers' interfaces and a real Redis.
//!
//! The mock takes almost anything, so every request passes a recorder on its way, and a strict validator of our
//! own judges what it wrote down.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod aimock;
mod binary;
mod built;
mod conversations;
mod errors;
mod golden;
mod native_tools;
mod recorder;
#[allow(dead_code, reason = "the memories' own tests need more of it")]
#[path = "../../runtime/memory/tests/all/redis_server.rs"]
mod redis_server;
mod redis_trouble;
mod validator;
mod wires;
mod world;
