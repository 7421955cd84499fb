//! The real Node-RED, of both lines, with the packed palette module, the real binary beside it, and what happens between
//! them when one of them is killed, away, wrong or slow.
//!
//! `cargo xtask node-red` prepares what these tests need and runs them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod answers;
mod away;
mod beside;
mod beside_flows;
#[path = "../live/built.rs"]
mod built;
#[allow(dead_code, reason = "the sidecar's own tests need more of it")]
#[path = "../../runtime/server/tests/all/client.rs"]
mod client;
mod deploys;
mod editor_api;
mod hard;
mod kills;
mod kit;
mod managed;
mod newcomer;
mod packaged;
mod plain;
mod refused_edges;
mod several;
mod shapes;
mod tools;
mod values;
