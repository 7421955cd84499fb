//! Flows: looked at, checked, deployed.

use crate::answer::{Answer, Problem, bytes_of, json};
use crate::body;
use crate::body::printable;
use crate::routes::Path;
use crate::sidecar::{App, blocking};
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use redflow_contract::api::{CheckRequest, DeployRequest, Deployment};
use redflow_contract::code::ApiCode;
use redflow_flow::RawFlow;
use serde_json::Value;
use std::sync::Arc;

pub(crate) async fn list(State(app): State<Arc<App>>) -> Response {
    json(200, &*app.active_flow().list)
}

/// The whole flow. Its text is kept as it is, and not made anew for everyone who asks.
pub(crate) async fn deployment(State(app): State<Arc<App>>) -> Response {
    let told = app.active_flow();
    let text = format!(r#"{{"revision":"{}","flows":{}}}"#, told.revision(), told.nodes);
    bytes_of(200, "application/json", text)
}

/// One tab or subflow: itself, then what is on it.
pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path) -> Answer {
    let told = app.active_flow();
    if !told.list.flows.iter().any(|flow| flow.id.as_str() == id) {
        let text = format!("There is no tab or subflow `{}`; /api/flows lists them.", printable(&id));
        return Err(Problem::new(ApiCode::NotFound, text));
    }
    let revision = told.revision().to_owned();
    blocking(move || {
        let nodes: Vec<Value> = serde_json::from_str(&told.nodes).unwrap_or_default();
        let is = |node: &Value, key: &str| node.get(key).and_then(Value::as_str) == Some(id.as_str());
        let (mut first, rest): (Vec<Value>, Vec<Value>) = nodes.into_iter().partition(|node| is(node, "id"));
        first.extend(rest.into_iter().filter(|node| is(node, "z")));
        json(200, &Deployment { revision, flows: first })
    })
    .await
}

/// A tab may be called as another route is.
pub(crate) async fn check_tab(app: State<Arc<App>>) -> Answer {
    one(app, Path("check".to_owned())).await
}

pub(crate) async fn check(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Answer {
    let (request, _turn) = body::flow(&headers, body, &app.settings).await?;
    let CheckRequest { flows, profile } = request;
    let (flow_builder, profile) = (app.flow_builder.clone(), profile.unwrap_or(app.settings.profile));
    blocking(move || {
        let raw = RawFlow::from_value(flows, &flow_builder.settings.flow_limits);
        let report = match raw.and_then(|raw| flow_builder.check(raw, profile)) {
            Ok(checked) => checked.report,
            Err(report) => report,
        };
        json(200, &report)
    })
    .await
}

pub(crate) async fn deploy(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Answer {
    let (request, turn): (DeployRequest, _) = body::flow(&headers, body, &app.settings).await?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    // What has begun is done, also when nobody waits for it any more.
    let deploying = tokio::spawn(async move {
        let _turn = turn;
        app.deploy(request).await
    });
    let answer = deploying.await.map_err(|_| Problem::internal())??;
    Ok(json(200, &answer))
}
