//! `POST /internal/agent-node/tool`: the routes of `/api/tools` under one path.

use super::list::tool_list;
use super::registration::register_value;
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::response::{ApiResult, Problem};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::api::Scope;
use redflow_contract::code::ApiCode;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A body with `id` and `kind` registers a tool. An empty body, or `{"query": "PREFIX"}`, lists tools.
pub(crate) async fn internal_tool(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let body: Map<String, Value> = body::read_message(&headers, body, &app).await?;
    if body.contains_key("id") || body.contains_key("kind") {
        app.access.require(&caller, Scope::Admin)?;
        return register_value(&app, Value::Object(body)).await;
    }
    let mut keys = body.iter();
    match (keys.next(), keys.next()) {
        (None, _) => tool_list(&app, "").await,
        (Some((key, Value::String(prefix))), None) if key == "query" => tool_list(&app, prefix).await,
        _ => {
            let text =
                "The body must be the definition of a tool, an empty object, or `{\"query\": \"PREFIX\"}`.";
            Err(Problem::new(ApiCode::BodyInvalid, text))
        }
    }
}
