//! The store as its users meet it: real files, real processes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod backup;
mod chats;
mod damage;
mod directory;
mod drawer;
mod driving;
mod event_log;
mod events;
mod flow_file;
#[cfg(unix)]
mod flow_kills;
#[cfg(unix)]
mod kills;
mod kit;
mod memory;
#[cfg(unix)]
mod processes;
mod prune;
mod requests;
mod shared;
