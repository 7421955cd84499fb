//! What the calls of services share: what they need, and the fact of a tool's outcome.

use super::outgoing::Outgoing;
use super::size::result_problem;
use super::stream::RunStream;
use crate::flow::agent::BuiltAgent;
use crate::observe::FlowObserver;
use crate::ports::Ports;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{EffectId, RunId};
use redflow_contract::image::fit_images;
use redflow_contract::transcript::MAX_IMAGES;
use redflow_ports::ToolOutcome;
use std::time::Duration;
use tokio::sync::mpsc;

/// What an effect of a run needs.
#[derive(Clone, Copy)]
pub(super) struct EffectContext<'a> {
    pub(super) run: &'a RunId,
    pub(super) agent: &'a BuiltAgent,
    pub(super) ports: &'a Ports,
    pub(super) observer: &'a FlowObserver,
    pub(super) outgoing: &'a mpsc::Sender<Outgoing>,
    pub(super) stream: Option<&'a RunStream>,
    /// The time that the run has left.
    pub(super) time_left: Duration,
    /// The session of the run; none without one, and for an effect that is performed beside others.
    pub(super) session: Option<&'a str>,
}

/// The fact of an outcome after these tries.
pub(super) fn outcome_fact(
    id: EffectId,
    (outcome, tries): (ToolOutcome, u32),
    agent: &BuiltAgent,
    ports: &Ports,
) -> Fact {
    let at = ports.clock.now();
    match outcome {
        ToolOutcome::Returned(result) => {
            // The model sees a failed call and can ask for less.
            let mut result = match result_problem(&result, &agent.compiled.spec().limits) {
                Some(problem) => ToolResult::failed(format!("the tool's result {problem}")),
                None => result,
            };
            if !result.images.is_empty() {
                keep_visible_images(&mut result, agent);
            }
            Fact::ToolReturned { at, effect: id, result, tries }
        }
        ToolOutcome::Unknown { reason } => Fact::ToolOutcomeUnknown { at, effect: id, reason },
    }
}

/// Keeps the images that the model of the agent gets, and tells it about the others. The texts are stored in journals.
fn keep_visible_images(result: &mut ToolResult, agent: &BuiltAgent) {
    if !result.success {
        return result.images.clear();
    }
    let info = agent.model.info();
    let takes_images = agent.compiled.spec().converse.is_some() && info.vision;
    if takes_images {
        let count = result.images.len();
        result.images.retain(|image| !info.refused_images.contains(&image.mime));
        let refused = count - result.images.len();
        if refused > 0 {
            let formats: Vec<&str> = info.refused_images.iter().map(|format| format.as_str()).collect();
            let formats = formats.join(", ");
            result.add_note(&format!(
                "Images left out: {refused}, because the model or a fallback model takes no {formats}."
            ));
        }
    }
    let (most, reason) = if takes_images {
        (MAX_IMAGES, "the images of one result are too many or too large")
    } else {
        (0, "this agent or one of its models takes no images")
    };
    match fit_images(&mut result.images, most) {
        0 => {}
        count => result.add_note(&format!("Images left out: {count}, because {reason}.")),
    }
}
