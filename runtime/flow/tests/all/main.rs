//! Tests of the public interface: flows in, diagnostics and files out.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take values"
)]

mod ai_agent;
mod bad_input;
mod bindings;
mod config;
mod credentials;
mod edges;
mod env;
mod flow_tools;
mod graph;
mod http_request;
mod kit;
mod knowledge_base;
mod manifest;
mod mcp_servers;
mod model_price;
mod named_services;
mod phrases;
mod plan;
mod presets;
mod redflow_flows;
mod redflow_format;
mod resolve;
mod round_trip;
mod shared_key;
