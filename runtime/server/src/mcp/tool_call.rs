//! Calls of tools of the registry, and of flow tools. The log has each call.

use super::call_context::CallContext;
use super::content::{failure, invocation_result};
use super::problem::error_data;
use crate::bridge::instance::Instance;
use crate::principal::principal;
use crate::response::Problem;
use crate::starts::MAX_KEY;
use crate::tools::{ToolChoice, call_tool};
use redflow_contract::Message;
use redflow_contract::api::ProblemCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeId;
use redflow_contract::tool::ToolEntry;
use redflow_engine::{FlowToolRequest, InvokeError};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Calls a tool of the registry, as `POST /api/tools/{id}/call` does.
pub(super) async fn call_registry_tool(
    entry: &ToolEntry,
    input: Message,
    call: &CallContext,
) -> Result<CallToolResult, ErrorData> {
    let called =
        call_tool(&call.app, &entry.id, &ToolChoice::default(), input, principal(&call.caller)).await;
    match called {
        Ok(invocation) => Ok(invocation_result(invocation)),
        // The model can mend its input.
        Err(problem) if matches!(problem.0.code, ProblemCode::Run(_)) => {
            Ok(failure(problem.0.code.as_str(), &problem.0.message))
        }
        Err(problem) => Err(error_data(problem)),
    }
}

/// Sends a message through the nodes of a flow tool, and waits for the reply.
pub(super) async fn call_flow_tool(
    entry: &ToolEntry,
    owner: Option<&Arc<Instance>>,
    input: Message,
    call: &CallContext,
) -> Result<CallToolResult, ErrorData> {
    let app = &call.app;
    let permit = Arc::clone(&app.tool_calls).acquire_owned().await;
    let _permit = permit.map_err(|_| error_data(Problem::internal()))?;
    if app.stop.is_cancelled() {
        return Err(error_data(Problem::stopping()));
    }
    let key = call.key.as_ref().and_then(Value::as_str).filter(|key| (1..=MAX_KEY).contains(&key.len()));
    let request = FlowToolRequest {
        node: NodeId::from(entry.provider.as_str()),
        input,
        by: Some(principal(&call.caller)),
        key: key.map(str::to_owned),
    };
    let cancel = CancellationToken::new();
    let engine = owner.map_or(&app.engine, |instance| instance.engine());
    let called = engine.call_flow_tool(request, &cancel);
    let called = tokio::select! {
        called = called => called,
        () = call.cancelled.cancelled() => Err(InvokeError::Cancelled),
        () = app.stop.cancelled() => return Err(error_data(Problem::stopping())),
    };
    match called {
        Ok(invocation) => {
            let event = FlowEvent::ToolInvoked { call: Box::new(invocation.clone()) };
            app.hub.log.append(invocation.at, event);
            Ok(invocation_result(invocation))
        }
        Err(error) => Ok(failure(error.code().as_str(), &error.to_string())),
    }
}
