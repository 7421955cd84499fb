//! Flow tools that callers outside a run ask for.

use super::completion::Reply;
use crate::flow::agent::BuiltAgent;
use crate::invoke::InvokeError;
use crate::ports::Ports;
use redflow_contract::id::{NodeId, Principal};
use redflow_ports::ProvidedTool;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A request for a flow tool.
pub(crate) struct FlowToolSearch {
    pub(crate) node: NodeId,
    /// Who will call it; none for the engine's own principal.
    pub(crate) by: Option<Principal>,
    /// Cancels what the call sets off.
    pub(crate) cancel: CancellationToken,
    pub(crate) reply: Reply<Result<FoundFlowTool, InvokeError>>,
}

/// A flow tool with the agent whose tool it is.
pub(crate) struct FoundFlowTool {
    pub(crate) tool: ProvidedTool,
    pub(crate) agent: Arc<BuiltAgent>,
    pub(crate) ports: Arc<Ports>,
    pub(crate) by: Option<Principal>,
}
