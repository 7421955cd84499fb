//! Ordinary Node-RED nodes that the runtime runs itself, one file each.

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
