//! Calls of flow tools outside a run. The task finds the tool; its caller makes the call.

use super::command::Command;
use super::engine::Engine;
use crate::flow::CallableFlowTool;
use crate::flow::agent::ToolTarget;
use crate::invoke::{FlowCallDetails, FlowToolRequest, InvokeError, ToolRequest};
use crate::run::outgoing::FlowToolTarget;
use crate::state::EngineState;
use crate::state::flow_calls::{FlowToolSearch, FoundFlowTool};
use redflow_contract::digest::Digest;
use redflow_contract::id::{NodeId, Principal};
use redflow_contract::tool::ToolInvocation;
use redflow_ports::{ProvidedTool, Tool};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Engine {
    /// Calls a flow tool outside a run: policy, rate, input schema, deadline, size and secrets as for other tools. The
    /// flow gets a message and replies to the agent whose tool it is, as in a run. Dropping the future or a cancel ends
    /// the call; the runs that it has begun are cancelled.
    ///
    /// # Errors
    /// When the flow has no such tool, the input breaks its schema, the call is cancelled, or the engine stops.
    pub async fn call_flow_tool(
        &self,
        call: FlowToolRequest,
        cancel: &CancellationToken,
    ) -> Result<ToolInvocation, InvokeError> {
        let FlowToolRequest { node, input, by, key } = call;
        let own_cancel = cancel.child_token();
        let guard = own_cancel.clone().drop_guard();
        let search = |reply| {
            let node = node.clone();
            Command::FindFlowTool(FlowToolSearch { node, by, cancel: own_cancel, reply })
        };
        let stopped = || Err(InvokeError::Unavailable("The engine has stopped. Try again later.".to_owned()));
        let called = async {
            let FoundFlowTool { tool, agent, ports, by } = self.send(search).await.unwrap_or_else(stopped)?;
            let spec = agent.compiled.spec();
            let details = FlowCallDetails {
                agent: Some(spec.agent.node_id.clone()),
                idempotency_key: key.map(|key| key_digest(by.as_ref(), &node, &key)),
            };
            let (limits, scrubber) = (&spec.limits, &agent.scrubber);
            let request = ToolRequest { tool: &tool, input, by, limits, scrubber };
            ports.registry.invoke_flow_tool(request, details, &*ports.clock, &*ports.meter).await
        };
        let invocation = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(InvokeError::Cancelled),
            invocation = called => invocation,
        }?;
        // What the flow does after its reply goes on.
        drop(guard.disarm());
        Ok(invocation)
    }
}

impl EngineState {
    pub(super) fn find_flow_tool(&mut self, search: FlowToolSearch) {
        let FlowToolSearch { node, by, cancel, reply } = search;
        let by = by.or_else(|| self.ports.principal.clone());
        let found = self.flow.clone();
        let found = found.as_ref().and_then(|flow| flow.flow_tools.get(&node)).map(|found| {
            let CallableFlowTool { entry, target, agent } = found;
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
            FoundFlowTool { tool, agent: Arc::clone(agent), ports: Arc::clone(&self.ports), by }
        });
        let unknown = || {
            InvokeError::Unavailable(format!(
                "The flow has no flow tool `{node}` that an agent uses. See `redflow tools list`."
            ))
        };
        // The caller may have stopped waiting.
        let _ = reply.send(found.ok_or_else(unknown));
    }
}

/// The idempotency key of a call. Keys of different callers and tools never meet.
fn key_digest(by: Option<&Principal>, node: &NodeId, key: &str) -> Digest {
    let by = by.map(Principal::as_str).unwrap_or_default();
    Digest::of(format!("{}:{by}{}:{node}{key}", by.len(), node.as_str().len()).as_bytes())
}
