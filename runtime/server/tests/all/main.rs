//! The sidecar as its readers see it: over real sockets, with the real store.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod admin;
mod admin_tabs;
mod azure;
mod azure_server;
mod bridge;
mod browser;
mod chat;
mod client;
mod comms;
mod events;
mod flows;
mod hostile;
mod kit;
mod logs;
mod observability;
mod redflow_origin;
mod route_access;
mod run_events;
mod runs;
mod secrets;
mod storage;
