//! Reads, resolves, checks and writes Node-RED flow JSON.
//!
//! Each stage has its own type: [`RawFlow`] (as written) → [`ResolvedFlow`] (subflows expanded, links joined,
//! disabled nodes removed) → [`CheckedFlow`] (agents with everything they bind, and every problem at once).
//! Never does I/O: bytes and environment values are arguments.
//!
//! # Example
//!
//! ```
//! use redflow_contract::code::DiagnosticCode;
//! use redflow_contract::limits::FlowLimits;
//! use redflow_flow::RawFlow;
//!
//! let file = br#"[{"id": "t", "type": "tab"}, {"id": "d", "type": "debug", "z": "t", "wires": []}]"#;
//! let flow = RawFlow::parse(file, &FlowLimits::default()).expect("a flow");
//! assert_eq!(flow.nodes().len(), 2);
//!
//! // Two nodes with one id: the whole file is refused, with all its problems.
//! let file = br#"[{"id": "t", "type": "tab"}, {"id": "t", "type": "tab"}]"#;
//! let report = RawFlow::parse(file, &FlowLimits::default()).expect_err("refused");
//! assert_eq!(report.diagnostics[0].code, DiagnosticCode::DuplicateId);
//! ```
//!
//! [`check_bytes`] has an example of a flow with a refused agent.
//!
//! # How the checker reads a flow
//!
//! A flow file does not say what kind a wire is. The kind follows from the node type and the port at each end.
//! `contract::catalogue` says what a type is. `contract::edge::EDGE_TABLE` says which port may reach which role,
//! and how often. The checker adds no rule of its own about kinds. It checks only wires that touch an agent, a
//! model, a memory or a tool.
//!
//! Junctions, link pairs and the ends of a subflow instance are transparent. A subflow instance becomes one
//! transparent node for its input and one for each output, so nothing is multiplied. The steps of searches from
//! agents and services count against `max_steps`. So checking is linear in the number of wires, and a hub that
//! joins everything to everything is refused.
//!
//! A problem in one agent refuses that agent, not the flow: the agent answers every message with a structured
//! error. Only an unusable file (not JSON, too large, duplicate ids or keys) refuses the whole flow.
//!
//! - `pointer` in a diagnostic is inside the node if the diagnostic names one, else inside the file.
//! - A link node may name a link node that is not in the file, as exports of one tab do. It then leads nowhere, as
//!   in Node-RED. A wire to a missing node is `EDGE_TARGET_MISSING`.
//! - A memory or a tool may name a model or a memory in a property. `check/named_services.rs` finds them and
//!   refuses circles. The plan of the agent holds them as `services`, so a resumed run builds them from there.
//! - The agents for one thing (`ai-simple-agent`, `ai-extractor`, `ai-classifier`, `ai-summarizer`) are AI Agents.
//!   `check/presets.rs` makes their prompt and the schema of their result from their properties.
//! - A process variable with a secret name is resolved only in a property that holds a secret, such as `apiKey`
//!   (`env`). All other properties can reach prompts and journals.

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
