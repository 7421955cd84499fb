//! Calls of flow tools outside a run.

use super::engine::Engine;
use crate::invoke::{FlowCallDetails, FlowToolRequest, InvokeError, ToolRequest};
use crate::state::flow_calls::FoundFlowTool;
use redflow_contract::digest::Digest;
use redflow_contract::id::{NodeId, Principal};
use redflow_contract::tool::ToolInvocation;
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
        let called = async {
            let FoundFlowTool { tool, agent, by } = self.flow_calls.find(&node, by, own_cancel)?;
            let ports = &self.flow_calls.ports;
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

/// The idempotency key of a call. Keys of different callers and tools never meet.
fn key_digest(by: Option<&Principal>, node: &NodeId, key: &str) -> Digest {
    let by = by.map(Principal::as_str).unwrap_or_default();
    Digest::of(format!("{}:{by}{}:{node}{key}", by.len(), node.as_str().len()).as_bytes())
}
