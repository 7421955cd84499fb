//! The event log: what happened in runs and flows, durable, in order, with a position for each event.

pub(crate) mod body;
pub(crate) mod log;
pub(crate) mod queue;
pub(crate) mod ring;
pub(crate) mod rows;
