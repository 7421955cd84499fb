//! Facts about the sidecar: health, metrics, the OpenAPI document, node types, edges and codes.

use crate::app::App;
use crate::request::Path;
use crate::response::{ApiResult, Problem, json, printable, raw};
use axum::extract::State;
use axum::response::Response;
use redflow_contract::api::{CodeEntry, CodeSet, Health};
use redflow_contract::code::{self, ApiCode, ArchiveCode, DiagnosticCode, RunErrorCode, StoreCode, ToolCode};
use redflow_contract::console::ConfigView;
use redflow_contract::{catalogue, edge, schemas};
use std::sync::Arc;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn current_health(app: &App) -> Health {
    Health { live: true, ready: app.is_ready(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

pub(crate) async fn health(State(app): State<Arc<App>>) -> Response {
    json(200, &current_health(&app))
}

pub(crate) async fn live(State(app): State<Arc<App>>) -> Response {
    json(200, &current_health(&app))
}

pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let health = current_health(&app);
    json(if health.ready { 200 } else { 503 }, &health)
}

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    raw(200, OPENMETRICS, (app.render_metrics)())
}

pub(crate) async fn config(State(app): State<Arc<App>>) -> Response {
    json(200, &ConfigView { settings: app.settings.config.clone() })
}

pub(crate) async fn openapi() -> Response {
    raw(200, "application/json", schemas::openapi())
}

pub(crate) async fn catalogue() -> Response {
    json(200, &catalogue::CATALOGUE)
}

pub(crate) async fn edges() -> Response {
    json(200, &edge::EDGE_TABLE)
}

/// All codes. A code of several sets has one entry for each set.
fn entries() -> Vec<CodeEntry> {
    macro_rules! entries_of {
        ($type:ty, $set:expr) => {
            <$type>::ALL.iter().map(|code| CodeEntry {
                code: code.as_str().to_owned(),
                set: $set,
                summary: code.summary().to_owned(),
                page: None,
                mend: None,
            })
        };
    }
    let diagnostics = entries_of!(DiagnosticCode, CodeSet::Diagnostic);
    let runs = diagnostics.chain(entries_of!(RunErrorCode, CodeSet::Run));
    let calls = runs.chain(entries_of!(ToolCode, CodeSet::Tool));
    let stored =
        calls.chain(entries_of!(StoreCode, CodeSet::Store)).chain(entries_of!(ArchiveCode, CodeSet::Archive));
    stored.chain(entries_of!(ApiCode, CodeSet::Api)).collect()
}

pub(crate) async fn codes() -> Response {
    json(200, &entries())
}

pub(crate) async fn code(Path(name): Path) -> ApiResult {
    let found = entries().into_iter().find(|entry| entry.code == name);
    let Some(entry) = found else {
        let text = format!("There is no code `{}`. /api/codes lists all codes.", printable(&name));
        return Err(Problem::new(ApiCode::NotFound, text));
    };
    let (page, mend) = (code::page(&entry.code), code::remedy(&entry.code));
    let (page, mend) = (page.map(str::to_owned), mend.map(str::to_owned));
    Ok(json(200, &CodeEntry { page, mend, ..entry }))
}
