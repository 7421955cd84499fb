//! How a run ended, as the caller of a start learns it.

use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Ending;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run::WaitingCall;
use redflow_contract::run_error::RunError;
use redflow_ports::StoreError;
use std::sync::Arc;

/// The end of one run.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// Unique in the store.
    pub run_id: RunId,
    /// The agent that ran.
    pub agent: NodeSummary,
    /// How it ended.
    pub end: RunEnd,
}

/// How a run ended, or why the engine does not drive it any further for now.
#[derive(Debug, Clone)]
pub enum RunEnd {
    /// A message left port 3.
    Finished {
        /// Whether the agent completed, stopped or failed.
        ending: Ending,
        /// The message, shared with the nodes that received it.
        message: Arc<FlowMessage>,
    },
    /// The run did not begin: the agent is refused, or a limit was reached. A message left port 3 all the
    /// same.
    Refused {
        /// The reason.
        error: RunError,
        /// The message, which carries the error.
        message: Arc<FlowMessage>,
    },
    /// The run waits until a person says what happened to this call.
    Waiting(Vec<WaitingCall>),
    /// The run is not over and continues when it is resumed. The engine stopped, or could not store or drive
    /// it.
    Suspended {
        /// The reason; none if a shutdown suspended the run.
        why: Option<StoreError>,
    },
}

/// The error of a node, or of an agent before its first iteration.
pub(crate) fn error_outside_run(code: RunErrorCode, message: String) -> RunError {
    RunError { code, message, pointer: None, rule: None, iteration: 0 }
}
