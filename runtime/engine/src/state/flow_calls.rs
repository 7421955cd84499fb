//! Calls of flow tools by callers outside a run. They find their tool without the task, which only makes the calls.

use crate::cascade::Cascade;
use crate::flow::agent::{BuiltAgent, ToolTarget};
use crate::flow::{CallableFlowTool, CallableFlowTools};
use crate::invoke::InvokeError;
use crate::ports::{EngineLimits, Ports};
use crate::report::RunReport;
use crate::run::outgoing::{FlowToolTarget, Outgoing};
use crate::state::completion::Reply;
use redflow_contract::id::{NodeId, Principal};
use redflow_ports::{ProvidedTool, StartId, Tool};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What a call of a flow tool outside a run needs. The task and the handle of the engine share it.
pub(crate) struct FlowCalls {
    pub(crate) ports: Arc<Ports>,
    limits: EngineLimits,
    outgoing: mpsc::Sender<Outgoing>,
    /// How many cascades the engine has begun. The number of the last one is its `StartId`.
    starts: AtomicU64,
    /// The tools of the current flow; none when the engine stops.
    tools: Mutex<Option<Arc<CallableFlowTools>>>,
}

/// A flow tool with the agent whose tool it is.
pub(crate) struct FoundFlowTool {
    pub(crate) tool: ProvidedTool,
    pub(crate) agent: Arc<BuiltAgent>,
    pub(crate) by: Option<Principal>,
}

impl FlowCalls {
    pub(crate) fn new(
        ports: Arc<Ports>,
        limits: EngineLimits,
        outgoing: mpsc::Sender<Outgoing>,
        tools: Arc<CallableFlowTools>,
    ) -> Arc<Self> {
        let (starts, tools) = (AtomicU64::new(0), Mutex::new(Some(tools)));
        Arc::new(Self { ports, limits, outgoing, starts, tools })
    }

    /// Takes the tools of another flow.
    pub(crate) fn set_tools(&self, tools: &Arc<CallableFlowTools>) {
        *self.tools() = Some(Arc::clone(tools));
    }

    /// Refuses all later calls, because the engine stops.
    pub(crate) fn stop(&self) {
        *self.tools() = None;
    }

    /// Finds a tool. `cancel` cancels what its call sets off; `by` is none for the engine's own principal.
    pub(crate) fn find(
        &self,
        node: &NodeId,
        by: Option<Principal>,
        cancel: CancellationToken,
    ) -> Result<FoundFlowTool, InvokeError> {
        let Some(tools) = self.tools().clone() else {
            return Err(InvokeError::Unavailable("The engine has stopped. Try again later.".to_owned()));
        };
        let Some(CallableFlowTool { entry, target, agent }) = tools.get(node) else {
            return Err(InvokeError::Unavailable(format!(
                "The flow has no flow tool `{node}` that an agent uses. See `redflow tools list`."
            )));
        };
        let by = by.or_else(|| self.ports.principal.clone());
        let tool: Arc<dyn Tool> = match target {
            ToolTarget::Service(tool) => Arc::clone(tool),
            ToolTarget::Flow => {
                let cascade = self.new_cascade(cancel, None);
                cascade.set_principal(by.clone());
                let agent = agent.compiled.spec().agent.node_id.clone();
                Arc::new(FlowToolTarget { cascade, agent, outgoing: self.outgoing.clone() })
            }
        };
        let tool = ProvidedTool { entry: Arc::clone(entry), tool };
        Ok(FoundFlowTool { tool, agent: Arc::clone(agent), by })
    }

    /// Begins a cascade. Its reports go to `reply` when nothing of it moves any more.
    pub(crate) fn new_cascade(
        &self,
        cancel: CancellationToken,
        reply: Option<Reply<Vec<RunReport>>>,
    ) -> Arc<Cascade> {
        let start = StartId(self.starts.fetch_add(1, Ordering::Relaxed) + 1);
        Cascade::new(start, Arc::clone(&self.ports.events), self.limits, cancel, reply)
    }

    fn tools(&self) -> MutexGuard<'_, Option<Arc<CallableFlowTools>>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
