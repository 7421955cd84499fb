//! The Node-RED that a command names, and the flow file for it.

use crate::config::Settings;
use crate::diagnostics::{print_report, unreadable};
use crate::errors::print_api_error;
use crate::exit::Exit;
use crate::files::read_flow;
use crate::node_red::find_node_red;
use crate::session::new_runtime;
use crate::terminal::fail;
use redflow_contract::limits::FlowLimits;
use redflow_flow::RawFlow;
use redflow_node_red::{DeployedFlow, NodeRed};
use std::path::Path;

pub(super) fn require_node_red(settings: &Settings) -> Result<NodeRed, Exit> {
    find_node_red(settings)?.ok_or_else(|| {
        fail("no Node-RED is named: give its address with --node-red URL, or in REDFLOW_NODE_RED")
    })
}

/// Fetches the flow of Node-RED.
pub(super) fn fetch(node_red: &NodeRed) -> Result<DeployedFlow, Exit> {
    new_runtime()?.block_on(node_red.flows()).map_err(print_api_error)
}

/// Reads a flow file: its bytes, and the parsed flow.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, RawFlow), Exit> {
    let limits = FlowLimits::default();
    let bytes = read_flow(path, limits.max_bytes).map_err(unreadable);
    let parsed =
        bytes.and_then(|bytes| RawFlow::parse(&bytes, &limits).map(|flow| (bytes, flow.into_flow_file())));
    parsed.map_err(|report| {
        print_report(Some(path), report);
        Exit::Unusable
    })
}
