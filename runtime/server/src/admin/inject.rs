//! `POST /inject/{id}`: fires an inject node.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::principal::principal;
use crate::request::Path;
use crate::response::{ApiResult, Problem, printable, raw};
use crate::starts::start_problem;
use axum::extract::{Extension, State};
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use redflow_engine::StartOrder;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Responds when the runs are stored. A refused agent is no failure of this request, because the node did
/// fire; the error leaves the agent as its result.
pub(crate) async fn inject(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path,
    body: RequestBody,
) -> ApiResult {
    body::expect_none(body, &app).await?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    let active = app.active_flow();
    let Some(node) = active.injects.get(id.as_str()) else {
        let text = format!("There is no enabled inject node `{}`.", printable(&id));
        return Err(Problem::new(ApiCode::NotFound, text));
    };
    let by = Some(principal(&caller));
    let order = StartOrder { node: Some(node.clone()), by, ..StartOrder::default() };
    app.engine.start(order, &CancellationToken::new()).await.map_err(start_problem)?;
    Ok(raw(200, "text/plain; charset=utf-8", "OK"))
}
