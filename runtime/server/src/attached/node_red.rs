//! The attached Node-RED and its last known state.

use redflow_contract::attached::AttachedState;
use redflow_node_red::NodeRed;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) struct AttachedNodeRed {
    pub(super) node_red: NodeRed,
    state: Mutex<AttachedState>,
    /// Whether requests of the Redflow UI are forwarded to it.
    pub(crate) forwards: bool,
}

impl AttachedNodeRed {
    pub(super) fn new(node_red: NodeRed, forwards: bool) -> Self {
        let state = AttachedState {
            url: node_red.url().to_owned(),
            connected: false,
            version: None,
            revision: None,
            checked_at: None,
            report: None,
            error: None,
        };
        Self { node_red, state: Mutex::new(state), forwards }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, AttachedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
