//! Registers and removes tools at run time.

use super::find::{Lookup, find_tool, unknown_tool};
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::request::Path;
use crate::response::{ApiResult, Problem, json, printable, raw};
use crate::tool_definitions::{PutError, REGISTERED};
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::tool::{ToolEntry, ToolOrigin};
use redflow_flow::check_tool;
use serde_json::{Map, Value};
use std::sync::Arc;

pub(crate) async fn register(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let body: Map<String, Value> = body::read_message(&headers, body, &app).await?;
    register_value(&app, Value::Object(body)).await
}

pub(super) async fn register_value(app: &Arc<App>, value: Value) -> ApiResult {
    let shared = Arc::clone(app);
    let put = move || {
        let tool = check_tool(&value).map_err(|problems| refused("definition", problems))?;
        shared.tool_definitions.put(&tool, &value).map_err(put_problem)?;
        Ok::<_, Problem>(tool.id)
    };
    let id = app.run_blocking(put).await??;
    match app.tool_definitions.registry.snapshot().tool(&id) {
        Some(tool) => Ok(json(201, &*tool.entry)),
        // Somebody has removed it meanwhile.
        None => Err(unknown_tool(&id)),
    }
}

fn put_problem(error: PutError) -> Problem {
    match error {
        PutError::Manifest(problems) => refused("manifest", problems),
        PutError::Conflict(other) => {
            let ToolEntry { id, provider, .. } = *other;
            let text = format!("The tool `{id}` from `{provider}` has this id or name. Use another id.");
            Problem::new(ApiCode::ToolConflict, text)
        }
        PutError::File(error) => error.into(),
    }
}

/// The error for problems of a definition, or of the manifest.
fn refused(what: &str, diagnostics: Vec<Diagnostic>) -> Problem {
    let first = diagnostics.first().map(|first| format!("{}: {}. ", first.code, first.message));
    let text = format!(
        "{}The {what} has errors. `report` lists each with its remedy. Nothing was registered.",
        first.unwrap_or_default()
    );
    let report = CheckReport { diagnostics, ..CheckReport::default() };
    ApiError { report: Some(report), ..ApiError::new(ApiCode::ToolRefused, text) }.into()
}

pub(crate) async fn remove(State(app): State<Arc<App>>, Path(id): Path) -> ApiResult {
    let registered = app.tool_definitions.registry.snapshot().find(&id).map(|tool| Arc::clone(&tool.entry));
    let entry = match (registered, find_tool(&app, &id)) {
        (Some(entry), _) => entry,
        (None, Lookup::Found(entry)) => Arc::from(entry),
        (None, Lookup::Gone { .. }) => return Err(unknown_tool(&id)),
    };
    if entry.origin != ToolOrigin::Manifest || entry.provider != REGISTERED {
        let (id, provider) = (printable(&entry.id), printable(&entry.provider));
        let text = format!("The tool `{id}` comes from `{provider}`. Remove it there.");
        return Err(Problem::new(ApiCode::ToolConflict, text));
    }
    let definitions = Arc::clone(&app.tool_definitions);
    let id = entry.id.clone();
    if app.run_blocking(move || definitions.remove(&id)).await?? {
        Ok(raw(204, "application/json", Body::empty()))
    } else {
        Err(unknown_tool(&entry.id))
    }
}
