//! Calls of tools outside a run: from the API and the command line.

use crate::registry::attempts::{call_again, checked_outcome, timed_out};
use crate::registry::{Permit, Registry};
use crate::run::size::result_problem;
use futures::FutureExt as _;
use redflow_contract::code::RunErrorCode;
use redflow_contract::digest::Digest;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, InstanceId, NodeId, Principal, RunId};
use redflow_contract::limits::RunLimits;
use redflow_contract::mcp::mcp_server_of;
use redflow_contract::node::EffectClass;
use redflow_contract::policy::CallSubject;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{REGISTRY_TOOL, ToolEntry, ToolInvocation, ToolRetry};
use redflow_contract::{Message, Millis};
use redflow_ports::{Clock, Measurement, Meter, ProvidedTool, ToolOutcome};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// A call of a tool outside a run.
pub struct ToolRequest<'a> {
    /// The tool.
    pub tool: &'a ProvidedTool,
    /// The input.
    pub input: Message,
    /// Who calls; none if unknown.
    pub by: Option<Principal>,
    /// The limits of its result.
    pub limits: &'a RunLimits,
    /// Removes secrets of the flow from the result.
    pub scrubber: &'a Arc<Scrubber>,
}

/// A call of a flow tool outside a run.
#[derive(Debug, Clone)]
pub struct FlowToolRequest {
    /// The node that is the tool: a `flow-tool`, or a data node that an agent uses as a tool.
    pub node: NodeId,
    /// The input.
    pub input: Message,
    /// Who calls; none for the engine's own principal.
    pub by: Option<Principal>,
    /// The same key of the same caller gives the call the same idempotency key; none for a call of its own.
    pub key: Option<String>,
}

/// What a call of a flow tool has beyond that of another tool.
#[derive(Default)]
pub(crate) struct FlowCallDetails {
    /// The agent whose tool it is.
    pub(crate) agent: Option<NodeId>,
    /// Identifies the call for the flow; none for a call of its own.
    pub(crate) idempotency_key: Option<Digest>,
}

/// Why a call outside a run was not made at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    /// The input breaks the tool's schema. The text says where.
    #[error("The input breaks the tool's schema. {0}")]
    InputInvalid(String),
    /// The definition of the tool cannot be used.
    #[error("{0}")]
    ToolInvalid(String),
    /// There is no such tool, or the engine stops.
    #[error("{0}")]
    Unavailable(String),
    /// The caller has cancelled the call. It is unknown whether it took effect.
    #[error("The call was cancelled. It is unknown whether it took effect.")]
    Cancelled,
}

impl InvokeError {
    /// The code of the error.
    #[must_use]
    pub fn code(&self) -> RunErrorCode {
        match self {
            Self::InputInvalid(_) => RunErrorCode::ToolInputInvalid,
            Self::ToolInvalid(_) => RunErrorCode::ConfigInvalid,
            Self::Unavailable(_) => RunErrorCode::ToolUnavailable,
            Self::Cancelled => RunErrorCode::Cancelled,
        }
    }
}

impl Registry {
    /// Calls a tool: policy, rate, input schema, deadline, tries, output schema, size, secrets. A refused or failed
    /// call is an invocation, too.
    ///
    /// # Errors
    /// When the input breaks the tool's schema, or the tool's definition cannot be used.
    pub async fn invoke(
        &self,
        request: ToolRequest<'_>,
        clock: &dyn Clock,
        meter: &dyn Meter,
    ) -> Result<ToolInvocation, InvokeError> {
        self.invoke_flow_tool(request, FlowCallDetails::default(), clock, meter).await
    }

    /// The same with what a flow needs to know about its call.
    pub(crate) async fn invoke_flow_tool(
        &self,
        request: ToolRequest<'_>,
        details: FlowCallDetails,
        clock: &dyn Clock,
        meter: &dyn Meter,
    ) -> Result<ToolInvocation, InvokeError> {
        let FlowCallDetails { agent, idempotency_key } = details;
        let ToolRequest { tool: ProvidedTool { entry, tool }, input, by, limits, scrubber } = request;
        let called_tool = self.called_tools.compile(entry).map_err(InvokeError::ToolInvalid)?;
        let id = CallId::from(clock.run_id().as_str());
        let class = entry.effect.unwrap_or_else(|| tool.effect(&input));
        let call = ToolCall {
            run_id: RunId::from(id.as_str()),
            iteration: 0,
            call_id: id.clone(),
            tool: entry.name.clone(),
            node: NodeId::from(entry.provider.as_str()),
            input,
            idempotency_key: idempotency_key.unwrap_or_else(|| Digest::of(id.as_str().as_bytes())),
            timeout_ms: entry.timeout_ms,
            agent: agent.unwrap_or_else(|| NodeId::from("")),
            declared: entry.effect,
            operation: None,
            conversation: Default::default(),
        };
        let began = clock.now();
        let admitted = self.admit_outside(entry, class, by.as_ref(), began);
        let (result, tries) = match admitted {
            Err(refused) => (*refused, 0),
            Ok(_permit) => {
                if let Some(violation) = called_tool.input_violation(&Value::Object(call.input.clone())) {
                    return Err(InvokeError::InputInvalid(violation));
                }
                let mut tries = 1;
                let limit = Duration::from_millis(call.timeout_ms);
                let retry = if class == EffectClass::AtMostOnce { ToolRetry::default() } else { entry.retry };
                let called = call_again(retry, &mut tries, |_| tool.call(&call));
                let called = AssertUnwindSafe(tokio::time::timeout(limit, called)).catch_unwind().await;
                let crashed =
                    || ToolOutcome::Unknown { reason: "the tool crashed while it was asked".to_owned() };
                let outcome = match called {
                    Ok(outcome) => outcome.unwrap_or_else(|_| timed_out(call.timeout_ms)),
                    Err(_) => crashed(),
                };
                let result = match checked_outcome(outcome, class, Some(&called_tool.definition)) {
                    ToolOutcome::Returned(result) => result,
                    ToolOutcome::Unknown { reason } => {
                        ToolResult::failed(format!("It is unknown whether the call took effect: {reason}."))
                    }
                };
                (result, tries)
            }
        };
        let mut result = match result_problem(&result, limits) {
            Some(problem) => ToolResult::failed(format!("the tool's result {problem}")),
            None => result,
        };
        let all = self.secrets_with(scrubber);
        all.result(&mut result);
        let (at, ToolResult { success, output, error, code, .. }) = (clock.now(), result);
        let took = Duration::from_millis(at.saturating_sub(began));
        meter.record(Measurement::ToolCall { tool: &entry.name, success, took });
        if let Some(code) = code {
            meter.record(Measurement::ToolRefused { tool: &entry.name, code });
        }
        let mut invocation = ToolInvocation {
            at,
            id: entry.id.clone(),
            tool: entry.name.clone(),
            run_id: None,
            call_id: id,
            agent: None,
            by,
            effect: Some(class),
            input: call.input,
            success,
            output: output.filter(|_| success),
            error,
            code,
            duration_ms: at.saturating_sub(began),
            tries,
        };
        invocation.input.values_mut().for_each(|value| all.value(value));
        Ok(invocation)
    }

    fn admit_outside(
        &self,
        entry: &ToolEntry,
        effect: EffectClass,
        by: Option<&Principal>,
        now: Millis,
    ) -> Result<Option<Permit>, Box<ToolResult>> {
        let snapshot = self.snapshot();
        let instance = entry.instance.clone().unwrap_or_else(InstanceId::local);
        let subject = CallSubject {
            id: &entry.id,
            name: &entry.name,
            node: &entry.provider,
            node_type: entry.node_type.as_deref().unwrap_or(REGISTRY_TOOL),
            server: mcp_server_of(&entry.id),
            agent: None,
            agent_name: "",
            instance: instance.as_str(),
            session: None,
            by: by.map(Principal::as_str),
            effect,
            permissions: &entry.permissions,
        };
        self.admit(snapshot.policy(), &subject, now)
    }
}
