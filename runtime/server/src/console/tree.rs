//! `/api/runs/{id}/tree`: the runs that a run has started, and those that they have started.

use crate::app::App;
use crate::request::{Path, query_pairs, unknown_parameter};
use crate::response::{ApiResult, json};
use crate::runs::{parse_limit, unknown_run};
use axum::extract::{RawQuery, State};
use redflow_contract::id::RunId;
use redflow_ports::TreeQuery;
use std::sync::Arc;

/// Runs on a page: the default and the maximum.
const MAX_PAGE: usize = 500;

pub(crate) async fn tree(
    State(app): State<Arc<App>>,
    Path(run): Path,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let mut tree = TreeQuery { run: RunId::from(run), after: None, limit: MAX_PAGE };
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "after" => tree.after = Some(RunId::from(value)),
            "limit" => tree.limit = parse_limit(&name, &value, MAX_PAGE)?,
            other => return Err(unknown_parameter(other)),
        }
    }
    let run = tree.run.clone();
    let found = app.run_reader.tree(tree).await?;
    found.map(|tree| json(200, &tree)).ok_or_else(|| unknown_run(&run))
}
