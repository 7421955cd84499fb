//! `GET /api/instances`: the known Node-REDs.

use crate::app::App;
use crate::response::{ApiResult, json};
use axum::extract::State;
use redflow_contract::bridge::InstanceList;
use std::sync::Arc;

pub(crate) async fn list(State(app): State<Arc<App>>) -> ApiResult {
    let instances = app.bridge.all().iter().map(|instance| instance.state()).collect();
    Ok(json(200, &InstanceList { instances }))
}
