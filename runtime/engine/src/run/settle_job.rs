//! Work for a memory after runs.

use redflow_contract::id::NodeSummary;
use redflow_contract::scrub::Scrubber;
use redflow_ports::{Memory, SettleReason};
use std::sync::Arc;

/// A memory that shall work on a conversation.
#[derive(Clone)]
pub(crate) struct SettleJob {
    pub(crate) node: NodeSummary,
    pub(crate) memory: Arc<dyn Memory>,
    /// The session key; none for all conversations.
    pub(crate) session: Option<Arc<str>>,
    pub(crate) reason: SettleReason,
    /// Removes the secrets of its flow from errors.
    pub(crate) scrubber: Arc<Scrubber>,
}
