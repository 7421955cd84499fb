//! Tools an agent can call, a file each.

pub mod calculator;

use redflow_ports::Adapters;

/// Adds the tools of this crate.
pub fn register(adapters: &mut Adapters) {
    adapters.tools.insert("calculator-tool", Box::new(calculator::Calculator::build));
}
