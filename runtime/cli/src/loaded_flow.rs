//! A flow file that is read and checked.

use crate::context::AppContext;
use crate::files::{absolute_path, read_flow};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::edge::PortKind;
use redflow_contract::id::NodeId;
use redflow_contract::limits::FlowLimits;
use redflow_flow::CheckedFlow;
use std::path::Path;
use std::sync::Arc;

pub(crate) struct LoadedFlow {
    pub(crate) checked: CheckedFlow,
    /// The absolute path; none for standard input.
    pub(crate) source: Option<Arc<str>>,
}

impl LoadedFlow {
    pub(crate) fn read(context: &AppContext, path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let bytes = read_flow(path, FlowLimits::default().max_bytes).map_err(|problem| vec![*problem])?;
        let checked = context.check(&bytes).map_err(|report| report.diagnostics)?;
        Ok(Self { checked, source: absolute_path(path) })
    }

    /// The agents with a stream port. The answers of others are not written for people.
    pub(crate) fn streaming_agents(&self) -> impl Iterator<Item = NodeId> {
        let streams = self.checked.flow.nodes.iter().filter(|node| {
            let ports = node.kind.outputs.unwrap_or_default();
            ports.contains(&PortKind::Stream)
        });
        streams.map(|node| node.id.clone())
    }

    pub(crate) fn has_agent(&self, id: &NodeId) -> bool {
        self.checked.agents.iter().any(|agent| agent.node.id == *id)
    }
}
