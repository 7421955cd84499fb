//! `/inject`: fires an inject node.

use crate::answer::{Answer, Problem, bytes_of};
use crate::body::{self, printable};
use crate::routes::Path;
use crate::sidecar::App;
use crate::starts::problem;
use axum::body::Body;
use axum::extract::State;
use redflow_contract::code::ApiCode;
use redflow_engine::StartOrder;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Answers when the runs it set off are kept. An agent that is refused says so where its answers go, not here: the node
/// did fire.
pub(crate) async fn inject(State(app): State<Arc<App>>, Path(id): Path, body: Body) -> Answer {
    body::none(body, &app.settings).await?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    let told = app.active_flow();
    let Some(node) = told.injects.get(id.as_str()) else {
        let text = format!("There is no inject node `{}` that is switched on.", printable(&id));
        return Err(Problem::new(ApiCode::NotFound, text));
    };
    let order = StartOrder { node: Some(node.clone()), ..StartOrder::default() };
    app.engine.start(order, &CancellationToken::new()).await.map_err(problem)?;
    Ok(bytes_of(200, "text/plain; charset=utf-8", "OK"))
}
