//! Work for a memory after runs.

use redflow_contract::id::NodeSummary;
use redflow_contract::scrub::Scrubber;
use redflow_ports::{MaintenanceReason, Memory};
use std::sync::Arc;

/// A memory that shall work on a conversation.
#[derive(Clone)]
pub(crate) struct MaintenanceJob {
    pub(crate) node: NodeSummary,
    pub(crate) memory: Arc<dyn Memory>,
    /// The session key; none for all conversations.
    pub(crate) session: Option<Arc<str>>,
    pub(crate) reason: MaintenanceReason,
    /// Removes the secrets of its flow from errors.
    pub(crate) scrubber: Arc<Scrubber>,
}
