//! `/api/flows` and `/api/deployment`: reads, checks and deploys flows.

use crate::app::App;
use crate::body::{self, LARGE, RequestBody};
use crate::console::graph::draw_tab;
use crate::deploy;
use crate::request::Path;
use crate::response::{ApiResult, Problem, json, printable, raw};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::Response;
use redflow_access::Caller;
use redflow_contract::api::{CheckRequest, DeployRequest, Deployment};
use redflow_contract::code::ApiCode;
use redflow_contract::console::CheckAnswer;
use redflow_flow::RawFlow;
use serde_json::Value;
use std::sync::Arc;

pub(crate) async fn list(State(app): State<Arc<App>>) -> ApiResult {
    let active = app.active_flow();
    if active.nodes.len() > LARGE {
        return app.run_blocking(move || json(200, &*active.list)).await;
    }
    Ok(json(200, &*active.list))
}

/// The whole flow. Its JSON text is stored ready, so that a request need not write it again.
pub(crate) async fn deployment(State(app): State<Arc<App>>) -> Response {
    let active = app.active_flow();
    let text = format!(r#"{{"revision":"{}","flows":{}}}"#, active.revision(), active.nodes);
    raw(200, "application/json", text)
}

/// One tab or subflow: the node itself, then the nodes on it.
pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path) -> ApiResult {
    let active = app.active_flow();
    if !active.list.flows.iter().any(|flow| flow.id.as_str() == id) {
        let text = format!("There is no tab or subflow `{}`. /api/flows lists them.", printable(&id));
        return Err(Problem::new(ApiCode::NotFound, text));
    }
    let revision = active.revision().to_owned();
    app.run_blocking(move || {
        let nodes: Vec<Value> = serde_json::from_str(&active.nodes).unwrap_or_default();
        let has_id = |node: &Value, key: &str| node.get(key).and_then(Value::as_str) == Some(id.as_str());
        let (mut first, rest): (Vec<Value>, Vec<Value>) =
            nodes.into_iter().partition(|node| has_id(node, "id"));
        first.extend(rest.into_iter().filter(|node| has_id(node, "z")));
        json(200, &Deployment { revision, flows: first })
    })
    .await
}

/// The tab with the id `check`, whose path is also the path of another route.
pub(crate) async fn check_tab(app: State<Arc<App>>) -> ApiResult {
    one(app, Path("check".to_owned())).await
}

pub(crate) async fn check(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let (request, slot) = body::read_flow(&headers, body, &app).await?;
    let CheckRequest { flows, profile, graph, tab } = request;
    let (flow_builder, profile) = (app.flow_builder.clone(), profile.unwrap_or(app.settings.profile));
    let stored = app.active_flow().credentials;
    let check = move || {
        let (report, built) = match RawFlow::from_value(flows, &flow_builder.settings.flow_limits) {
            Ok(raw) => flow_builder.try_build(raw, profile, &stored),
            Err(report) => (report, None),
        };
        let built = built.filter(|_| graph);
        let graph = built.map(|built| draw_tab(built.resolved(), &report, tab.as_ref())).transpose()?;
        Ok(json(200, &CheckAnswer { report, graph }))
    };
    let slot = match slot {
        Some(slot) => slot,
        None => app.work_slots.computation(&caller.name).await?,
    };
    slot.run_blocking(check).await?.0
}

pub(crate) async fn deploy_flow(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let (request, slot): (DeployRequest, _) = body::read_flow(&headers, body, &app).await?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    // A task of its own, so that a deploy that began ends also when the client disconnects.
    let deploying = tokio::spawn(async move {
        let _slot = slot;
        deploy::deploy(&app, request).await
    });
    let deployed = deploying.await.map_err(|_| Problem::internal())??;
    Ok(json(200, &deployed))
}
