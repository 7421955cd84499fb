//! Calls a tool of a run: deadline, tries, and the check of the output. The policy was asked before.

use super::effect_context::{EffectContext, outcome_fact};
use super::outgoing::{FlowToolCaller, call_flow_tool};
use crate::flow::agent::{BuiltTool, ToolTarget};
use crate::registry::attempts::{call_again, checked_outcome, timed_out};
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{CallId, EffectId};
use redflow_contract::node::EffectClass;
use redflow_ports::ToolOutcome;
use std::time::Duration;

/// Calls the tool of an agent and gives the fact.
pub(super) async fn call_tool(id: EffectId, call: &ToolCall, context: EffectContext<'_>) -> Fact {
    let EffectContext { agent, ports, .. } = context;
    let Some(tool) = agent.tool(call) else {
        let outcome = ToolOutcome::Returned(ToolResult::failed("the tool is gone"));
        return outcome_fact(id, (outcome, 1), agent, ports);
    };
    let class = agent.effect_class(call);
    let definition = tool.definition.as_deref();
    let prepared = definition.and_then(|definition| definition.prepare(call));
    let call = prepared.as_ref().unwrap_or(call);
    let retry = definition.map(|definition| definition.entry.retry).unwrap_or_default();
    let limit = Duration::from_millis(call.timeout_ms);
    let mut tries = 1;
    let outcome = if retry.max == 0 || class == EffectClass::AtMostOnce {
        tokio::time::timeout(limit, call_once(tool, call, context)).await
    } else {
        // Boxed, because most tools are tried once.
        let tried = Box::pin(call_again(retry, &mut tries, |attempt| try_call(tool, call, context, attempt)));
        tokio::time::timeout(limit, tried).await
    };
    let outcome = outcome.unwrap_or_else(|_| timed_out(call.timeout_ms));
    outcome_fact(id, (checked_outcome(outcome, class, definition), tries), agent, ports)
}

/// Makes one of several tries. The host of a flow makes a call of the same id only once, so each further try of an
/// operation has an id of its own.
async fn try_call(
    tool: &BuiltTool,
    call: &ToolCall,
    context: EffectContext<'_>,
    attempt: u32,
) -> ToolOutcome {
    if attempt == 1 || call.operation.is_none() {
        return call_once(tool, call, context).await;
    }
    let call_id = CallId::from(format!("{}:{attempt}", call.call_id));
    let again = ToolCall { call_id, ..call.clone() };
    call_once(tool, &again, context).await
}

async fn call_once(tool: &BuiltTool, call: &ToolCall, context: EffectContext<'_>) -> ToolOutcome {
    match &tool.target {
        ToolTarget::Service(tool) => tool.call(call).await,
        ToolTarget::Flow => {
            let caller = FlowToolCaller::Run(call.run_id.clone());
            call_flow_tool(caller, &context.agent.compiled.spec().agent.node_id, call, context.outgoing).await
        }
    }
}
