//! The tries of one call, and the check of its output.

use crate::flow::agent::ToolDefinition;
use redflow_contract::code::ToolCode;
use redflow_contract::fact::ToolResult;
use redflow_contract::node::EffectClass;
use redflow_contract::tool::ToolRetry;
use redflow_ports::ToolOutcome;
use serde_json::Value;
use std::time::Duration;

/// The longest time between two tries.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// Calls until a call does not fail, or the tries are used up. `tries` counts them, also if this future is dropped.
pub(crate) async fn call_again<F: Future<Output = ToolOutcome>>(
    retry: ToolRetry,
    tries: &mut u32,
    mut call: impl FnMut(u32) -> F,
) -> ToolOutcome {
    let mut wait = Duration::from_millis(retry.backoff_ms);
    loop {
        let outcome = call(*tries).await;
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

/// The reason of a call that took too long. Stored in journals.
pub(crate) fn timed_out(timeout_ms: u64) -> ToolOutcome {
    ToolOutcome::Unknown { reason: format!("the tool did not answer within {timeout_ms} ms") }
}

/// The outcome as its class and the schema of its output allow it.
pub(crate) fn checked_outcome(
    outcome: ToolOutcome,
    class: EffectClass,
    definition: Option<&ToolDefinition>,
) -> ToolOutcome {
    match (outcome, class) {
        // These calls may be repeated, so an unknown outcome is an ordinary failure.
        (ToolOutcome::Unknown { reason }, EffectClass::Read | EffectClass::Idempotent) => {
            ToolOutcome::Returned(ToolResult::failed(reason))
        }
        (ToolOutcome::Returned(result), _) => ToolOutcome::Returned(checked_output(definition, result)),
        (outcome, _) => outcome,
    }
}

fn checked_output(definition: Option<&ToolDefinition>, result: ToolResult) -> ToolResult {
    let schema = definition.and_then(|definition| definition.output_schema.as_ref());
    let Some(schema) = schema.filter(|_| result.success) else { return result };
    match schema.violation(result.output.as_ref().unwrap_or(&Value::Null)) {
        None => result,
        Some(violation) => {
            let text = format!("The call was made, but its output breaks the tool's schema. {violation}");
            ToolResult::refused(ToolCode::ToolOutputInvalid, text)
        }
    }
}
