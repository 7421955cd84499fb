//! AttachedNodeRed a Node-RED that has no bridge: its flow is followed and checked, and what of the Redflow UI's one address is
//! Node-RED's goes on to it.
//!
//! Owns what is known of that Node-RED. Never runs its flow: without the bridge there are no credentials and no
//! messages, and Node-RED runs it already.

mod comms;
mod follow;
mod proxy;

pub(crate) use comms::comms;
pub(crate) use proxy::{forward, is_node_reds, unknown};

use crate::answer::{Answer, Problem, json};
use crate::sidecar::App;
use axum::extract::State;
use redflow_contract::attached::AttachedState;
use redflow_contract::code::ApiCode;
use redflow_node_red::NodeRed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A Node-RED, and what is known of it.
pub(crate) struct AttachedNodeRed {
    pub(crate) node_red: NodeRed,
    state: Mutex<AttachedState>,
    /// Whether requests of the Redflow UI go on to it.
    pub(crate) forwards: bool,
}

impl AttachedNodeRed {
    fn state(&self) -> MutexGuard<'_, AttachedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows a Node-RED from now on, until the sidecar stops. Only the first one counts.
pub(crate) fn begin(app: &Arc<App>, node_red: NodeRed) {
    let state = AttachedState {
        url: node_red.url().to_owned(),
        connected: false,
        version: None,
        revision: None,
        checked_at: None,
        report: None,
        error: None,
    };
    let forwards = app.settings.access.redflow_ui.is_some();
    let beside = Arc::new(AttachedNodeRed { node_red, state: Mutex::new(state), forwards });
    if app.beside.set(Arc::clone(&beside)).is_ok() {
        let app = Arc::clone(app);
        tokio::spawn(async move {
            let stop = app.stop.clone();
            stop.run_until_cancelled(follow::follow(&app, &beside)).await;
        });
    }
}

/// `GET /api/beside`.
pub(crate) async fn beside(State(app): State<Arc<App>>) -> Answer {
    let Some(beside) = app.beside.get() else {
        let text = "This sidecar stands beside no Node-RED: start it with `--node-red URL`.";
        return Err(Problem::new(ApiCode::NotFound, text));
    };
    let state = beside.state().clone();
    Ok(json(200, &state))
}
