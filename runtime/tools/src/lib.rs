//! Tools an agent can call, a file each.

pub mod calculator;

use redflow_ports::Adapters;
use std::sync::Arc;

/// Adds the tools of this crate.
pub fn register(adapters: &mut Adapters) {
    adapters.tools.insert("calculator-tool", Arc::new(calculator::Calculator::build));
}
