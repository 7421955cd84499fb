//! Ordinary Node-RED nodes, run natively: a file each.

mod catch;
mod change;
mod chat;
mod debug;
mod inject;
mod pass;
mod property;

use redflow_ports::Adapters;

/// Adds the nodes of this crate.
pub fn register(adapters: &mut Adapters) {
    adapters.nodes.insert("inject", Box::new(inject::build));
    adapters.nodes.insert("debug", Box::new(debug::build));
    adapters.nodes.insert("catch", Box::new(catch::build));
    adapters.nodes.insert("change", Box::new(change::build));
    adapters.nodes.insert("chat-node", Box::new(chat::build));
    pass::register(adapters);
}
