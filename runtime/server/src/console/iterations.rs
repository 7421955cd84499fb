//! `/api/runs/{id}/iterations/{number}`: one iteration of a run, with its texts.

use crate::app::App;
use crate::request::{Path, invalid, query_pairs, unknown_parameter};
use crate::response::{ApiResult, Problem, json};
use crate::runs::find_run;
use axum::extract::{Extension, RawQuery, State};
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use redflow_contract::console::{ITERATION_BYTES, TEXT_BYTES};
use redflow_contract::id::RunId;
use redflow_ports::RunRecord;
use std::sync::Arc;

pub(crate) async fn iteration(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((run, number)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> ApiResult {
    let number: Option<u32> = number.parse().ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| invalid("An iteration is a number from 1."))?;
    let mut text_bytes = TEXT_BYTES;
    for (name, value) in query_pairs(query.as_deref()) {
        match (name.as_str(), value.as_str()) {
            ("full", "" | "true") => text_bytes = ITERATION_BYTES,
            ("full", _) => return Err(invalid("`full` takes no value.")),
            (other, _) => return Err(unknown_parameter(other)),
        }
    }
    let slot = app.work_slots.computation(&caller.name).await?;
    let RunRecord { journal, .. } = find_run(&app, &RunId::from(run)).await?;
    let read = move || {
        let detail = redflow_strategies::iteration_detail(&journal, number, text_bytes)?;
        Some(json(200, &detail))
    };
    let (answer, _) = slot.run_blocking(read).await?;
    answer.ok_or_else(|| {
        let text = format!("The run has no iteration {number}. Its events name its iterations.");
        Problem::new(ApiCode::NotFound, text)
    })
}
