//! Models as the engine calls them, with servers that misbehave in every way.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod answers;
mod broken_connections;
mod connections;
mod errors;
mod images;
mod limits;
mod llama_cpp;
mod minilm;
mod scripted_server;
mod tls;
mod wires;
