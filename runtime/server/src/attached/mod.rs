//! A Node-RED without the bridge: its flow is checked after every deploy, and requests of the Redflow UI that
//! are for Node-RED are forwarded to it.
//!
//! Never runs its flow: without the bridge there are no credentials and no messages, and Node-RED runs it
//! already.

mod comms;
mod follow;
pub(crate) mod node_red;
mod proxy;

pub(crate) use comms::comms;
pub(crate) use proxy::{forward, forward_unknown, is_admin_route};

use crate::app::App;
use crate::response::{ApiResult, Problem, json};
use axum::extract::State;
use node_red::AttachedNodeRed;
use redflow_contract::code::ApiCode;
use redflow_node_red::NodeRed;
use std::sync::Arc;

/// Follows a Node-RED until the sidecar stops. Only the first call has an effect.
pub(crate) fn attach(app: &Arc<App>, node_red: NodeRed) {
    let forwards = app.settings.access.redflow_ui.is_some();
    let attached = Arc::new(AttachedNodeRed::new(node_red, forwards));
    if app.attached.set(Arc::clone(&attached)).is_ok() {
        let app = Arc::clone(app);
        tokio::spawn(async move {
            let stop = app.stop.clone();
            stop.run_until_cancelled(follow::follow(&app, &attached)).await;
        });
    }
}

/// `GET /api/beside`.
pub(crate) async fn state(State(app): State<Arc<App>>) -> ApiResult {
    let Some(attached) = app.attached.get() else {
        let text = "No Node-RED is attached to this sidecar. Start it with `--node-red URL`.";
        return Err(Problem::new(ApiCode::NotFound, text));
    };
    let state = attached.state().clone();
    Ok(json(200, &state))
}
