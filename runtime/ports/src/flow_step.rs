//! What moves in a flow, as it moves, for who looks on. Nothing of it is kept, and nothing is made if nobody looks.

use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::Transcript;

/// Tells everything that one start sets off from what others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StartId(pub u64);

/// Something that moved.
#[derive(Debug, Clone, Copy)]
pub enum FlowStep<'a> {
    /// A node was started from outside, or by itself.
    Started {
        /// The node.
        trigger: &'a NodeSummary,
    },
    /// A node got a message.
    Received {
        /// The node.
        node: &'a NodeSummary,
        /// The message.
        message: &'a Message,
    },
    /// A node sent a message, wherever its wires lead.
    Sent {
        /// The node.
        node: &'a NodeSummary,
        /// By which output.
        port: usize,
        /// The message.
        message: &'a Message,
        /// Why it is the last, and not what was wanted.
        error: Option<&'a Failure>,
    },
    /// A node is done with what it got, and sent nothing more.
    Done {
        /// The node.
        node: &'a NodeSummary,
        /// How that came about.
        outcome: StepOutcome<'a>,
    },
    /// An agent asks its model.
    ModelCalled {
        /// The run.
        service_call: &'a ServiceCall<'a>,
        /// What is sent.
        transcript: &'a Transcript,
    },
    /// The model answered, or failed.
    ModelAnswered {
        /// The run.
        service_call: &'a ServiceCall<'a>,
        /// The answer.
        answer: Result<&'a ModelAnswer, &'a Failure>,
    },
    /// An agent calls a tool that is no data node.
    ToolCalled {
        /// The run.
        service_call: &'a ServiceCall<'a>,
        /// The call.
        call: &'a ToolCall,
    },
    /// The tool returned, or nobody knows.
    ToolReturned {
        /// The run.
        service_call: &'a ServiceCall<'a>,
        /// The call.
        call: &'a ToolCall,
        /// What came of it; the reason if nobody knows.
        result: Result<&'a ToolResult, &'a str>,
    },
    /// Nothing of the start moves any more.
    Ended,
}

/// How a node is done.
#[derive(Debug, Clone, Copy)]
pub enum StepOutcome<'a> {
    /// Well.
    Completed,
    /// It failed.
    Failed(&'a Failure),
    /// It waits: for a person, or for the runtime to be there again.
    Waiting,
}

/// What an agent asks of one of its services.
#[derive(Debug, Clone, Copy)]
pub struct ServiceCall<'a> {
    /// The run.
    pub run: &'a RunId,
    /// The iteration.
    pub iteration: u32,
    /// The agent.
    pub agent: &'a NodeSummary,
    /// The model or the tool.
    pub service: &'a NodeSummary,
    /// The names of the tools the model may ask for.
    pub tools: &'a [String],
}
