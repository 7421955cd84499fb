//! Registers and removes tools at run time.

use super::find::{Lookup, find_tool, unknown_tool};
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::request::Path;
use crate::response::{ApiResult, Problem, json, printable, raw};
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::tool::{ToolEntry, ToolOrigin, provider_name};
use redflow_flow::check_tool;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The provider of tools that were registered at run time.
const REGISTERED: &str = "registered";

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
        let tool = check_tool(&value).map_err(refused)?;
        let entries = shared.tool_definitions.registry.snapshot().entries();
        if let Some(other) = entries.iter().find(|entry| conflicts(entry, &tool.id)) {
            return Err(Problem::new(
                ApiCode::ToolConflict,
                format!(
                    "The tool `{}` from `{}` has this id or name. Use another id.",
                    other.id, other.provider
                ),
            ));
        }
        shared.tool_definitions.put(&tool.id, &value)?;
        Ok(tool.id)
    };
    let id = app.run_blocking(put).await??;
    match find_tool(app, &id) {
        Lookup::Found(entry) => Ok(json(201, &*entry)),
        // The manifest has problems now, so the registry did not change.
        Lookup::Gone { .. } => Err(refused(app.tool_definitions.problems().to_vec())),
    }
}

/// Whether a tool keeps another one with this id from being registered. Models do not tell cases apart.
fn conflicts(entry: &ToolEntry, id: &str) -> bool {
    let replaces = entry.provider == REGISTERED && entry.id == id;
    !replaces && entry.name.eq_ignore_ascii_case(&provider_name(id))
}

fn refused(diagnostics: Vec<Diagnostic>) -> Problem {
    let first = diagnostics.first().map(|first| format!("{}: {}. ", first.code, first.message));
    let text = format!(
        "{}The definition has errors. `report` lists each with its remedy. Nothing was registered.",
        first.unwrap_or_default()
    );
    let report = CheckReport { diagnostics, ..CheckReport::default() };
    ApiError { report: Some(report), ..ApiError::new(ApiCode::ToolRefused, text) }.into()
}

pub(crate) async fn remove(State(app): State<Arc<App>>, Path(id): Path) -> ApiResult {
    let entry = match find_tool(&app, &id) {
        Lookup::Found(entry) => entry,
        Lookup::Gone { .. } => return Err(unknown_tool(&id)),
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
