//! The sidecar: runs a flow, and serves it over HTTP and WebSockets.
//!
//! Owns the routes, the responses, the event sockets and the active flow. The crate `access` decides who may
//! call, `engine` runs the flow, and `ports` hides all storage. This crate knows no adapter.

mod active_flow;
mod admin;
mod agent_counts;
mod agent_status;
mod agents;
mod app;
mod attached;
mod body;
mod bridge;
mod console;
mod cors;
mod cursor;
mod deploy;
mod deployed_models;
mod event_socket;
mod feed;
mod flows;
mod guard;
mod hub;
mod info;
mod keyed_models;
mod knowledge;
mod log_stream;
mod loop_delay;
mod mcp;
mod mcp_servers;
mod mcp_uses;
mod memory;
mod model_test;
mod models;
mod pages;
mod peer;
mod principal;
mod redflow_ui;
mod refused_origins;
mod request;
mod response;
mod routes;
mod run_events;
mod runs;
mod service_notices;
mod settings;
mod sidecar;
mod start_failure;
mod starts;
mod tokens;
mod tool_definitions;
mod tools;
mod watchdog;
mod work_slots;

pub use mcp::streams::ClientEnd;
pub use model_test::ModelTester;
pub use settings::{Parts, Settings};
pub use sidecar::Sidecar;
pub use start_failure::StartFailure;
