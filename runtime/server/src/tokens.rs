//! The tokens of the sidecar, for callers with the scope `admin`.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::request::Path;
use crate::response::{ApiResult, json};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use redflow_access::Caller;
use redflow_contract::console::TokenRequest;
use std::sync::Arc;

/// Bytes of a body that describes a token.
const MAX_REQUEST_BYTES: usize = 4 * 1024;

pub(crate) async fn list(State(app): State<Arc<App>>, Extension(caller): Extension<Caller>) -> ApiResult {
    Ok(json(200, &app.access.list_tokens(&caller, app.clock.now())?))
}

pub(crate) async fn add(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let (request, _): (TokenRequest, _) = body::read_limited(&headers, body, &app, MAX_REQUEST_BYTES).await?;
    let work = Arc::clone(&app);
    let add = move || work.access.add_token(&caller, &request, work.clock.now());
    Ok(json(201, &app.run_blocking(add).await??))
}

pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    body: RequestBody,
) -> ApiResult {
    body::expect_none(body, &app).await?;
    let work = Arc::clone(&app);
    let remove = move || work.access.remove_token(&caller, &name);
    app.run_blocking(remove).await??;
    Ok(StatusCode::NO_CONTENT.into_response())
}
