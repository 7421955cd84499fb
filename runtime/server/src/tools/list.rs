//! Lists, shows and calls tools.

use super::find::{CallableTool, Lookup, all_tools, find_callable, find_tool, unknown_tool};
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::principal::principal;
use crate::request::Path;
use crate::response::{ApiResult, Problem, json};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::event::FlowEvent;
use redflow_contract::tool_api::{ToolCallRequest, ToolList};
use redflow_engine::{InvokeError, ToolRequest};
use std::sync::Arc;

pub(crate) async fn list(State(app): State<Arc<App>>) -> ApiResult {
    tool_list(&app, "").await
}

/// The tools whose ids begin with a prefix.
pub(super) async fn tool_list(app: &App, prefix: &str) -> ApiResult {
    let generation = app.tool_definitions.registry.snapshot().generation();
    let mut tools = all_tools(app);
    tools.retain(|tool| tool.id.starts_with(prefix));
    let problems = app.tool_definitions.problems().to_vec();
    app.run_blocking(move || json(200, &ToolList { tools, generation, problems })).await
}

pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path) -> ApiResult {
    match find_tool(&app, &id) {
        Lookup::Found(entry) => Ok(json(200, &*entry)),
        Lookup::Gone { .. } => Err(unknown_tool(&id)),
    }
}

pub(crate) async fn call(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let ToolCallRequest { input } = body::read_message(&headers, body, &app).await?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    let CallableTool { tool, scrubber } = find_callable(&app, &id)?;
    let limits = &app.settings.run_limits;
    let request =
        ToolRequest { tool: &tool, input, by: Some(principal(&caller)), limits, scrubber: &scrubber };
    let call = app.tool_definitions.registry.invoke(request, &*app.clock, &*app.meter);
    let call = tokio::select! {
        call = call => call.map_err(|error| invoke_problem(&error))?,
        () = app.stop.cancelled() => return Err(Problem::stopping()),
    };
    app.hub.log.append(call.at, FlowEvent::ToolInvoked { call: Box::new(call.clone()) });
    Ok(json(200, &call))
}

fn invoke_problem(error: &InvokeError) -> Problem {
    let (code, message) = (ProblemCode::Run(error.code()), error.to_string());
    ApiError { code, message, report: None, revision: None }.into()
}
