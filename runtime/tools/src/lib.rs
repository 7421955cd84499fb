//! Tools that agents can call, one file or folder each.

pub mod calculator;

use redflow_ports::Adapters;
use std::sync::Arc;

/// Registers the builders of all tools of this crate by their node type.
pub fn register(adapters: &mut Adapters) {
    adapters.tools.insert("calculator-tool", Arc::new(calculator::Calculator::build));
}
