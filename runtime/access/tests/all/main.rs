//! The listener against real sockets: what a stranger may send, and that a good request is answered after all of it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod cap;
mod close;
mod forms;
mod house;
mod time;
