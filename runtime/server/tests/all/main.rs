//! Tests of the sidecar as clients see it: over real sockets, with the real store.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod admin_flows;
mod admin_tabs;
mod azure_connection_test;
mod azure_stand_in;
mod bridge;
mod browser_sign_in;
mod chat;
mod client;
mod comms;
mod console_page;
mod credentials;
mod deployed_models;
mod event_socket;
mod flows;
mod hostile_input;
mod hung_runs;
mod kit;
mod llama_stand_in;
mod log_secrets;
mod mcp_api;
mod mcp_calls;
mod mcp_lists;
mod mcp_policy;
mod mcp_server;
mod memory;
mod models;
mod observability;
mod presets;
mod redflow_ui_origin;
mod route_access;
mod run_events;
mod run_parts;
mod runs;
mod tokens;
mod tool_rules;
mod tools;
mod traces;
mod ui_storage;
mod usage;
