//! Ordinary Node-RED nodes that the runtime runs itself, one file each.
//!
//! A node receives a message and returns what to send. It never waits and does no I/O: a node is not a task, and a
//! hop is not a channel.

mod catch;
mod change;
mod chat;
mod debug;
mod inject;
mod pass;
mod property;

use redflow_ports::Adapters;
use std::sync::Arc;

/// Registers the builders of all nodes of this crate by their Node-RED type.
pub fn register(adapters: &mut Adapters) {
    adapters.nodes.insert("inject", Arc::new(inject::build));
    adapters.nodes.insert("debug", Arc::new(debug::build));
    adapters.nodes.insert("catch", Arc::new(catch::build));
    adapters.nodes.insert("change", Arc::new(change::build));
    adapters.nodes.insert("chat-node", Arc::new(chat::build));
    pass::register(adapters);
}
