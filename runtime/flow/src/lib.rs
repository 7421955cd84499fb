//! Reads, resolves, checks and writes Node-RED flow JSON.
//!
//! Each stage has its own type: [`RawFlow`] (as written) → [`ResolvedFlow`] (subflows expanded, links joined,
//! disabled nodes removed) → [`CheckedFlow`] (agents with everything they bind, and every problem at once).
//! Never does I/O: bytes and environment values are arguments.
//!
//! # Example
//!
//! ```
//! use redflow_contract::limits::FlowLimits;
//! use redflow_flow::RawFlow;
//!
//! let file = br#"[{"id": "t", "type": "tab"}, {"id": "d", "type": "debug", "z": "t", "wires": []}]"#;
//! let flow = RawFlow::parse(file, &FlowLimits::default()).expect("a flow");
//! assert_eq!(flow.nodes().len(), 2);
//! ```

mod check;
mod connect;
mod credentials;
mod diff;
mod env;
mod graph;
mod manifest;
mod named_services;
mod raw;
mod redflow_format;
mod report;
mod resolve;
mod resolved;
mod shared_key;
mod wire_kinds;
mod wire_search;

pub use check::{
    CheckOptions, CheckedAgent, CheckedFlow, ReadyAgent, ReadyProvider, ReadyTool, Verdict, check_bytes,
    check_flow,
};
pub use diff::differences;
pub use env::{ProcessSecrets, resolve_process_env};
pub use graph::{MAX_GRAPH_NODES, draw_flow};
pub use manifest::{MAX_MANIFEST_PROBLEMS, check_manifest, check_mcp_server, check_node_tools, check_tool};
pub use named_services::{ServiceProperty, service_properties};
pub use raw::{RawFlow, RawNode};
pub use redflow_format::{TabFile, join_flows, split_by_tab, tab_names};
pub use resolve::resolve_flow;
pub use resolved::{NodeIx, ResolvedFlow, ResolvedNode, Wire};
pub use shared_key::key_node_type;
