//! Ordinary Node-RED nodes, run natively: a file each.

mod catch;
mod debug;
mod inject;
mod pass;

use redflow_ports::Adapters;

/// Adds the nodes of this crate.
pub fn register(adapters: &mut Adapters) {
    adapters.nodes.insert("inject", Box::new(inject::build));
    adapters.nodes.insert("debug", Box::new(debug::build));
    adapters.nodes.insert("catch", Box::new(catch::build));
    pass::register(adapters);
}
