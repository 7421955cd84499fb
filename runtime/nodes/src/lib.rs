//! Ordinary Node-RED nodes, run natively: a file each.

mod catch;
mod debug;
mod inject;
mod pass;

use redflow_ports::Adapters;

/// Adds the nodes of this crate.
pub fn register(adapters: &mut Adapters) {
    adapters.nodes.insert("inject", inject::build);
    adapters.nodes.insert("debug", debug::build);
    adapters.nodes.insert("catch", catch::build);
    for (type_name, builder) in pass::TYPES {
        adapters.nodes.insert(type_name, builder);
    }
}
