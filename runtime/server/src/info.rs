//! What the sidecar knows: its health, its numbers, its document, node types, edges and codes.

use crate::answer::{Answer, Problem, bytes_of, json};
use crate::body::printable;
use crate::routes::Path;
use crate::sidecar::App;
use axum::extract::State;
use axum::response::Response;
use redflow_contract::api::{CodeEntry, CodeSet, Health};
use redflow_contract::code::{self, ApiCode, DiagnosticCode, RunErrorCode, StoreCode};
use redflow_contract::{catalogue, edge, schemas};
use std::sync::Arc;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn told(app: &App) -> Health {
    Health { live: true, ready: app.is_ready(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

pub(crate) async fn health(State(app): State<Arc<App>>) -> Response {
    json(200, &told(&app))
}

pub(crate) async fn live(State(app): State<Arc<App>>) -> Response {
    json(200, &told(&app))
}

pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    let health = told(&app);
    json(if health.ready { 200 } else { 503 }, &health)
}

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    bytes_of(200, OPENMETRICS, (app.metrics)())
}

pub(crate) async fn openapi() -> Response {
    bytes_of(200, "application/json", schemas::OPENAPI)
}

pub(crate) async fn catalogue() -> Response {
    json(200, &catalogue::CATALOGUE)
}

pub(crate) async fn edges() -> Response {
    json(200, &edge::EDGE_TABLE)
}

/// Every code. One that is in several sets is told once for each.
fn entries() -> Vec<CodeEntry> {
    macro_rules! of {
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
    let first = of!(DiagnosticCode, CodeSet::Diagnostic).chain(of!(RunErrorCode, CodeSet::Run));
    first.chain(of!(StoreCode, CodeSet::Store)).chain(of!(ApiCode, CodeSet::Api)).collect()
}

pub(crate) async fn codes() -> Response {
    json(200, &entries())
}

pub(crate) async fn code(Path(asked): Path) -> Answer {
    let found = entries().into_iter().find(|entry| entry.code == asked);
    let Some(entry) = found else {
        let text = format!("There is no code `{}`; /api/codes lists them all.", printable(&asked));
        return Err(Problem::new(ApiCode::NotFound, text));
    };
    let (page, mend) = (code::page(&entry.code), code::remedy(&entry.code));
    let (page, mend) = (page.map(str::to_owned), mend.map(str::to_owned));
    Ok(json(200, &CodeEntry { page, mend, ..entry }))
}
