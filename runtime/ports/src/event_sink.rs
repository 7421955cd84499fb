//! The observer of an engine: it receives events, deltas and flow steps.

use crate::flow_step::{FlowStep, StartId};
use crate::model::ModelWait;
use redflow_contract::event::{FlowEvent, RunEvent};
use redflow_contract::id::{NodeRef, RunId};
use redflow_contract::stream::ModelDelta;

/// Receives what happens in an engine. The engine asks first whether anything is wanted, to save work.
///
/// ```
/// use redflow_contract::event::{FlowEvent, RunEvent};
/// use redflow_ports::EventSink;
/// use std::sync::Mutex;
///
/// /// Collects the revisions of deployed flows.
/// #[derive(Default)]
/// struct Revisions(Mutex<Vec<String>>);
///
/// impl EventSink for Revisions {
///     fn watches_runs(&self) -> bool {
///         false
///     }
///
///     fn run_event(&self, _event: &RunEvent) {}
///
///     fn flow_event(&self, event: &FlowEvent) {
///         if let FlowEvent::Deployed { revision, .. } = event {
///             self.0.lock().unwrap().push(revision.clone());
///         }
///     }
/// }
///
/// let sink = Revisions::default();
/// let revision = "r1".to_owned();
/// sink.flow_event(&FlowEvent::Deployed { revision, agents: 2, refused: 0, instance: None });
/// assert_eq!(*sink.0.lock().unwrap(), ["r1"]);
/// assert!(!sink.watches_deltas());
/// ```
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
    /// Receives that the model of a run waits, or waits no longer. It is never stored.
    fn model_waiting(&self, _run: &RunId, _agent: &NodeRef, _iteration: u32, _reason: Option<ModelWait>) {}
    /// Whether the sink wants flow steps. If not, the engine reports none.
    fn watches_flow_steps(&self) -> bool {
        false
    }
    /// Receives a flow step. Steps come in the order in which they happened.
    fn flow_step(&self, _start: StartId, _step: FlowStep<'_>) {}
}
