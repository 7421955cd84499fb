//! The real binary, as people and scripts use it.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod answers;
mod chains;
mod check;
mod config;
mod credentials;
mod data;
mod environment;
mod examples;
mod exchange;
mod explain;
mod export;
#[cfg(feature = "faults")]
mod faults;
mod housekeeping;
mod input;
#[cfg(unix)]
mod interrupt;
mod journal;
mod kit;
mod models;
#[cfg(feature = "otel")]
mod otel;
mod pipes;
mod readme;
mod redflow_ui;
mod requests;
#[cfg(unix)]
mod resume;
mod runs;
#[cfg(unix)]
mod served;
#[cfg(unix)]
mod served_kill;
#[cfg(unix)]
mod served_storage;
mod sidecar;
mod stage;
mod start;
mod token;
mod unreadable;
#[cfg(unix)]
mod watched;
