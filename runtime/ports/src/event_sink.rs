//! The observer of an engine: it receives events, deltas and flow steps.

use crate::flow_step::{FlowStep, StartId};
use redflow_contract::event::{FlowEvent, RunEvent};
use redflow_contract::stream::ModelDelta;

/// Receives what happens in an engine. The engine asks first whether anything is wanted, to save work.
pub trait EventSink: Send + Sync {
    /// Whether the sink wants run events. If not, the engine makes none.
    fn watches_runs(&self) -> bool;
    /// Receives an event of a run.
    fn run_event(&self, event: &RunEvent);
    /// Receives an event of the flow around the runs.
    fn flow_event(&self, event: &FlowEvent);
    /// Whether the sink wants deltas. If not, the engine makes none.
    fn watches_deltas(&self) -> bool {
        false
    }
    /// Receives a piece of a model answer.
    fn delta(&self, _delta: ModelDelta) {}
    /// Whether the sink wants flow steps. If not, the engine reports none.
    fn watches_flow_steps(&self) -> bool {
        false
    }
    /// Receives a flow step. Steps come in the order in which they happened.
    fn flow_step(&self, _start: StartId, _step: FlowStep<'_>) {}
}
