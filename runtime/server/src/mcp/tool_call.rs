//! Calls of tools of the registry, and of flow tools. The log has each call that may have had an effect.

use super::call_context::CallContext;
use super::content::{failure, invocation_result};
use super::problem::error_data;
use crate::app::App;
use crate::bridge::instance::Instance;
use crate::principal::principal;
use crate::response::Problem;
use crate::tools::{ToolChoice, call_tool};
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{CallId, NodeId};
use redflow_contract::tool::{ToolEntry, ToolInvocation};
use redflow_contract::{Message, Millis};
use redflow_engine::{FlowToolRequest, InvokeError};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Calls a tool of the registry, as `POST /api/tools/{id}/call` does.
pub(super) async fn call_registry_tool(
    entry: &ToolEntry,
    input: Message,
    call: &CallContext,
) -> Result<CallToolResult, ErrorData> {
    if call.has_key() {
        let text = "`_meta[\"redflow/key\"]` is for agents and flow tools. This tool cannot keep a repeated call from \
                    happening twice: leave the key out.";
        return Ok(failure("TOOL_INPUT_INVALID", text));
    }
    let called =
        call_tool(&call.app, &entry.id, &ToolChoice::default(), input, principal(&call.caller)).await;
    match called {
        Ok(invocation) => Ok(invocation_result(&invocation)),
        // The model can fix its input.
        Err(problem) if matches!(problem.0.code, ProblemCode::Run(_)) => {
            Ok(failure(problem.0.code.as_str(), &problem.0.message))
        }
        Err(problem) => Err(error_data(problem)),
    }
}

/// Sends a message through the nodes of a flow tool, and waits for the reply.
pub(super) async fn call_flow_tool(
    entry: &Arc<ToolEntry>,
    owner: Option<&Arc<Instance>>,
    input: Message,
    call: &CallContext,
) -> Result<CallToolResult, ErrorData> {
    let key = match call.key() {
        Ok(key) => key,
        Err(text) => return Ok(failure("TOOL_INPUT_INVALID", &text)),
    };
    let app = &call.app;
    let permit = tokio::select! {
        biased;
        () = app.stop.cancelled() => return Err(error_data(Problem::stopping())),
        () = call.cancelled.cancelled() => {
            let text = "The client cancelled the call before it began.";
            return Err(error_data(Problem::new(ApiCode::RequestInvalid, text)));
        }
        permit = Arc::clone(&app.tool_calls).acquire_owned() => permit,
    };
    let permit = permit.map_err(|_| error_data(Problem::internal()))?;
    let request = FlowToolRequest {
        node: NodeId::from(entry.provider.as_str()),
        input,
        by: Some(principal(&call.caller)),
        key,
    };
    let flow_call = FlowCall {
        app: Arc::clone(app),
        entry: Arc::clone(entry),
        owner: owner.cloned(),
        request,
        cancelled: call.cancelled.clone(),
    };
    // A task of its own: a call is logged even if its session ends meanwhile.
    let task = tokio::spawn(async move {
        let result = flow_call.make().await;
        drop(permit);
        result
    });
    task.await.map_err(|_| error_data(Problem::internal()))?
}

/// A call of a flow tool that has begun.
struct FlowCall {
    app: Arc<App>,
    entry: Arc<ToolEntry>,
    owner: Option<Arc<Instance>>,
    request: FlowToolRequest,
    cancelled: CancellationToken,
}

impl FlowCall {
    async fn make(self) -> Result<CallToolResult, ErrorData> {
        let app = &self.app;
        let began = app.clock.now();
        let engine = self.owner.as_ref().map_or(&app.engine, |instance| instance.engine());
        let called = tokio::select! {
            biased;
            called = engine.call_flow_tool(self.request.clone(), &self.cancelled) => called,
            () = app.stop.cancelled() => {
                let reason = "It is unknown whether the call took effect: the sidecar stopped.";
                self.append(self.unfinished(began, reason));
                return Err(error_data(Problem::stopping()));
            }
        };
        match called {
            Ok(invocation) => {
                let result = invocation_result(&invocation);
                self.append(invocation);
                Ok(result)
            }
            Err(error) => {
                // Every other error comes before the call.
                if error == InvokeError::Cancelled {
                    self.append(self.unfinished(began, &error.to_string()));
                }
                Ok(failure(error.code().as_str(), &error.to_string()))
            }
        }
    }

    fn append(&self, call: ToolInvocation) {
        self.app.hub.log.append(call.at, FlowEvent::ToolInvoked { call: Box::new(call) });
    }

    /// The call as the log has it if its outcome is unknown. The secrets of the flow and of the registry are removed.
    fn unfinished(&self, began: Millis, reason: &str) -> ToolInvocation {
        let app = &self.app;
        let at = app.clock.now();
        let flow = self.owner.as_ref().map_or_else(|| app.active_flow().tools, |instance| instance.tools());
        let secrets = app.tool_definitions.registry.secrets_with(&flow.scrubber);
        let mut input = self.request.input.clone();
        input.values_mut().for_each(|value| secrets.value(value));
        ToolInvocation {
            at,
            id: self.entry.id.clone(),
            tool: self.entry.name.clone(),
            run_id: None,
            call_id: CallId::from(app.clock.run_id().as_str()),
            agent: None,
            by: self.request.by.clone(),
            effect: self.entry.effect,
            input,
            success: false,
            output: None,
            error: Some(reason.to_owned()),
            code: None,
            duration_ms: at.saturating_sub(began),
            tries: 1,
        }
    }
}
