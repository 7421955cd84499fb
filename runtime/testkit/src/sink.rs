//! An event sink for engines that no client observes.

use redflow_contract::event::{FlowEvent, RunEvent};
use redflow_ports::EventSink;

/// Drops all events. The engine makes no run events for it, as with `--quiet`.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn watches_runs(&self) -> bool {
        false
    }
    fn run_event(&self, _: &RunEvent) {}
    fn flow_event(&self, _: &FlowEvent) {}
}
