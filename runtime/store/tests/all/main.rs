//! The store with real files and real processes.

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
mod driver;
mod event_log;
mod event_log_contract;
mod flow_file;
#[cfg(unix)]
mod flow_kills;
mod forget;
#[cfg(unix)]
mod kills;
mod kit;
mod manifest;
mod mcp_files;
mod mcp_servers;
mod memory_store;
#[cfg(unix)]
mod processes;
mod prune;
mod recount;
mod requests;
mod run_store_contract;
mod ui_storage;
mod usage_contract;
