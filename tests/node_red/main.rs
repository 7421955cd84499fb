//! Tests with the real Node-RED of both release lines, the packed palette module and the real binary, also when one of
//! them is killed, unavailable, wrong or slow.
//!
//! `cargo xtask node-red` prepares what these tests need and runs them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and its helpers may take values"
)]

mod agent_results;
mod attached;
mod attached_flows;
#[allow(dead_code, reason = "the sidecar's own tests use more of it")]
#[path = "../../runtime/server/tests/all/client.rs"]
mod client;
mod deploys;
mod editor_api;
mod first_steps;
mod flow_layouts;
mod http_request_tool;
mod interruptions;
mod kit;
mod kit_test;
mod managed_sidecar;
mod mcp;
#[allow(dead_code, reason = "the tests with MCP peers use more of it")]
#[path = "../mcp/kit.rs"]
mod mcp_kit;
mod node_packages;
mod non_json_values;
mod packaged;
#[allow(dead_code, reason = "the tests of the memories use more of it")]
#[path = "../../runtime/memory/tests/all/redis_server.rs"]
mod redis_server;
mod refused_edges;
mod several_instances;
mod sidecar_unavailable;
mod stress;
mod tools;
