//! Flow steps: messages and service calls as they move. Live only, never stored, and made only for observers.

use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::Transcript;
use serde_json::Value;

/// Identifies a start within one engine. All steps of its cascade carry this id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StartId(pub u64);

/// One step of a cascade.
#[derive(Debug, Clone, Copy)]
pub enum FlowStep<'a> {
    /// A node was started by a request, or by its own schedule.
    Started {
        /// The node that was started.
        trigger: &'a NodeSummary,
    },
    /// A node received a message.
    Received {
        /// The receiver.
        node: &'a NodeSummary,
        /// The message as it arrived.
        message: &'a Message,
    },
    /// A node sent a message, with or without wires on the port.
    Sent {
        /// The sender.
        node: &'a NodeSummary,
        /// The output port, from 0.
        port: usize,
        /// The message as it left.
        message: &'a Message,
        /// The failure that this message reports; none if the node succeeded.
        error: Option<&'a Failure>,
        /// Whether this is an answer of an agent that a chat behind the port shows.
        in_chat: bool,
    },
    /// A node finished with its input and sends nothing more.
    Done {
        /// The node that finished.
        node: &'a NodeSummary,
        /// How it finished.
        outcome: StepOutcome<'a>,
    },
    /// An agent calls its model.
    ModelCalled {
        /// The agent, its run and the model.
        service_call: &'a ServiceCall<'a>,
        /// The conversation that is sent.
        transcript: &'a Transcript,
    },
    /// The model answered, or the call failed.
    ModelAnswered {
        /// The agent, its run and the model.
        service_call: &'a ServiceCall<'a>,
        /// The answer, or why there is none.
        answer: Result<&'a ModelAnswer, &'a Failure>,
    },
    /// An agent calls a tool that is not a data node.
    ToolCalled {
        /// The agent, its run and the tool.
        service_call: &'a ServiceCall<'a>,
        /// The call with its input.
        call: &'a ToolCall,
    },
    /// The tool returned, or the outcome of the call is unknown.
    ToolReturned {
        /// The agent, its run and the tool.
        service_call: &'a ServiceCall<'a>,
        /// The call with its input.
        call: &'a ToolCall,
        /// The result, or why the outcome is unknown.
        result: Result<&'a ToolResult, &'a str>,
    },
    /// The cascade is over: none of its messages moves any more.
    Ended,
}

/// How a node finished with its input.
#[derive(Debug, Clone, Copy)]
pub enum StepOutcome<'a> {
    /// It succeeded.
    Completed,
    /// It succeeded: it is a debug node that shows this value.
    Shown(&'a Value),
    /// It failed with this error.
    Failed(&'a Failure),
    /// It waits: for a person's answer, or until the runtime is available again.
    Waiting,
}

/// A call of an agent to its model or to one of its tools.
#[derive(Debug, Clone, Copy)]
pub struct ServiceCall<'a> {
    /// The run that makes the call.
    pub run: &'a RunId,
    /// The iteration of the run, from 1.
    pub iteration: u32,
    /// The agent of the run.
    pub agent: &'a NodeSummary,
    /// The model or the tool that is called.
    pub service: &'a NodeSummary,
    /// The names of the tools that the model may call.
    pub tools: &'a [String],
    /// The deployment that is called; none if it is not a model at Azure.
    pub deployment: Option<&'a str>,
}
