//! Lists, shows and calls tools.

use super::find::{CallableTool, ToolChoice, all_tools, find_callable, find_entry};
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::principal::principal;
use crate::request::Path;
use crate::response::{ApiResult, Problem, json};
use axum::extract::{Extension, RawQuery, State};
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::Message;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{CallId, Principal};
use redflow_contract::tool::ToolInvocation;
use redflow_contract::tool_api::{ToolCallRequest, ToolList};
use redflow_engine::{InvokeError, ToolRequest};
use std::sync::Arc;

pub(crate) async fn list(State(app): State<Arc<App>>) -> ApiResult {
    tool_list(&app, "").await
}

/// The tools whose ids begin with a prefix.
pub(super) async fn tool_list(app: &App, prefix: &str) -> ApiResult {
    let snapshot = app.tool_definitions.registry.snapshot();
    let mut tools = all_tools(app, &snapshot);
    tools.retain(|tool| tool.id.starts_with(prefix));
    let problems = app.tool_definitions.problems().to_vec();
    let (generation, policy) = (snapshot.generation(), snapshot.policy().written().to_vec());
    app.run_blocking(move || json(200, &ToolList { tools, generation, problems, policy })).await
}

pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path, RawQuery(query): RawQuery) -> ApiResult {
    let entry = find_entry(&app, &id, &ToolChoice::parse(query.as_deref())?)?;
    Ok(json(200, &entry))
}

pub(crate) async fn call(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let choice = ToolChoice::parse(query.as_deref())?;
    let ToolCallRequest { input } = body::read_message(&headers, body, &app).await?;
    let call = call_tool(&app, &id, &choice, input, principal(&caller)).await?;
    Ok(json(200, &call))
}

/// Calls a tool when fewer than the most calls are under way, and adds the call to the log.
pub(crate) async fn call_tool(
    app: &Arc<App>,
    id: &str,
    choice: &ToolChoice,
    input: Message,
    by: Principal,
) -> Result<ToolInvocation, Problem> {
    let permit = Arc::clone(&app.tool_calls).acquire_owned().await.map_err(|_| Problem::internal())?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    let (callable, app) = (find_callable(app, id, choice)?, Arc::clone(app));
    // A task of its own: a call is finished and logged even if the client disconnects.
    let task = tokio::spawn(async move {
        let call = invoke(&app, &callable, input, by).await;
        drop(permit);
        call
    });
    task.await.map_err(|_| Problem::internal())?
}

/// Makes a call and adds it to the log.
async fn invoke(
    app: &App,
    CallableTool { tool, scrubber }: &CallableTool,
    input: Message,
    by: Principal,
) -> Result<ToolInvocation, Problem> {
    let (registry, began) = (&app.tool_definitions.registry, app.clock.now());
    let stopped = ToolInvocation {
        at: began,
        id: tool.entry.id.clone(),
        tool: tool.entry.name.clone(),
        run_id: None,
        call_id: CallId::from(app.clock.run_id().as_str()),
        agent: None,
        by: Some(by.clone()),
        effect: tool.entry.effect,
        input: input.clone(),
        success: false,
        output: None,
        error: Some("It is unknown whether the call took effect: the sidecar stopped.".to_owned()),
        code: None,
        duration_ms: 0,
        tries: 1,
    };
    let limits = &app.settings.run_limits;
    let request = ToolRequest { tool, input, by: Some(by), limits, scrubber };
    let (call, result) = tokio::select! {
        biased;
        call = registry.invoke(request, &*app.clock, &*app.meter) => {
            let call = call.map_err(|error| invoke_problem(&error))?;
            (call.clone(), Ok(call))
        }
        () = app.stop.cancelled() => {
            let at = app.clock.now();
            let mut call = ToolInvocation { at, duration_ms: at.saturating_sub(began), ..stopped };
            let secrets = registry.secrets_with(scrubber);
            call.input.values_mut().for_each(|value| secrets.value(value));
            (call, Err(Problem::stopping()))
        }
    };
    app.hub.log.append(call.at, FlowEvent::ToolInvoked { call: Box::new(call) });
    result
}

fn invoke_problem(error: &InvokeError) -> Problem {
    let (code, message) = (ProblemCode::Run(error.code()), error.to_string());
    ApiError { code, message, report: None, revision: None }.into()
}
