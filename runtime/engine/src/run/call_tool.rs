//! Calls a tool: deadline, tries, and the schema of the output. The policy was asked before.

use super::effect_context::{EffectContext, outcome_fact};
use super::outgoing::call_flow_tool;
use crate::flow::agent::{BuiltTool, ToolTarget};
use redflow_contract::code::ToolCode;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::EffectId;
use redflow_contract::node::EffectClass;
use redflow_contract::tool::ToolRetry;
use redflow_ports::ToolOutcome;
use serde_json::Value;
use std::time::Duration;

/// The longest time between two tries.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Calls the tool of an agent and gives the fact.
pub(super) async fn call_tool(id: EffectId, call: &ToolCall, context: EffectContext<'_>) -> Fact {
    let EffectContext { agent, ports, .. } = context;
    let Some(tool) = agent.tool(call) else {
        let outcome = ToolOutcome::Returned(ToolResult::failed("the tool is gone"));
        return outcome_fact(id, (outcome, 1), agent, ports);
    };
    let class = agent.effect_class(call);
    let prepared = tool.definition.as_ref().and_then(|definition| definition.prepare(call));
    let call = prepared.as_ref().unwrap_or(call);
    let retry = tool.definition.as_ref().map(|definition| definition.entry.retry).unwrap_or_default();
    let limit = Duration::from_millis(call.timeout_ms);
    let mut tries = 1;
    let outcome = if retry.max == 0 || class == EffectClass::AtMostOnce {
        tokio::time::timeout(limit, call_once(tool, call, context)).await
    } else {
        // Boxed, because most tools are tried once.
        let tried = Box::pin(call_again(tool, call, context, (retry, &mut tries)));
        tokio::time::timeout(limit, tried).await
    };
    let outcome = outcome.unwrap_or_else(|_| ToolOutcome::Unknown {
        reason: format!("the tool did not answer within {} ms", call.timeout_ms),
    });
    let outcome = match (outcome, class) {
        // These calls may be repeated, so an unknown outcome is an ordinary failure.
        (ToolOutcome::Unknown { reason }, EffectClass::Read | EffectClass::Idempotent) => {
            ToolOutcome::Returned(ToolResult::failed(reason))
        }
        (ToolOutcome::Returned(result), _) => ToolOutcome::Returned(checked_output(tool, result)),
        (outcome, _) => outcome,
    };
    outcome_fact(id, (outcome, tries), agent, ports)
}

async fn call_once(tool: &BuiltTool, call: &ToolCall, context: EffectContext<'_>) -> ToolOutcome {
    match &tool.target {
        ToolTarget::Service(tool) => tool.call(call).await,
        ToolTarget::Flow => {
            call_flow_tool(&context.agent.compiled.spec().agent.node_id, call, context.outgoing).await
        }
    }
}

/// Calls until a call does not fail, or the tries are used up. `tries` counts them, also if this future is dropped.
async fn call_again(
    tool: &BuiltTool,
    call: &ToolCall,
    context: EffectContext<'_>,
    (retry, tries): (ToolRetry, &mut u32),
) -> ToolOutcome {
    let mut wait = Duration::from_millis(retry.backoff_ms);
    loop {
        let outcome = call_once(tool, call, context).await;
        if *tries > retry.max || !is_worth_another_try(&outcome) {
            return outcome;
        }
        tokio::time::sleep(wait.min(MAX_BACKOFF)).await;
        wait = wait.saturating_mul(2);
        *tries += 1;
    }
}

/// A refused call would be refused again.
fn is_worth_another_try(outcome: &ToolOutcome) -> bool {
    match outcome {
        ToolOutcome::Returned(result) => !result.success && result.code.is_none(),
        ToolOutcome::Unknown { .. } => true,
    }
}

/// Checks the output of a successful call.
fn checked_output(tool: &BuiltTool, result: ToolResult) -> ToolResult {
    let schema = tool.definition.as_ref().and_then(|definition| definition.output_schema.as_ref());
    let Some(schema) = schema.filter(|_| result.success) else { return result };
    match schema.violation(result.output.as_ref().unwrap_or(&Value::Null)) {
        None => result,
        Some(violation) => {
            let text = format!("The call was made, but its output breaks the tool's schema. {violation}");
            ToolResult::refused(ToolCode::ToolOutputInvalid, text)
        }
    }
}
