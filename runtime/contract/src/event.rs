//! Events of runs, and of the flow around them. They contain more than the events of the envelope.

use crate::action::ActionKind;
use crate::chat::ChatItem;
use crate::code::{RunErrorCode, ToolCode};
use crate::envelope::StopReason;
use crate::fact::Usage;
use crate::id::{CallId, InstanceId, NodeRef, NodeSummary, Principal, RunId};
use crate::memory::{Consolidated, Forgotten};
use crate::node::BudgetKind;
use crate::run_error::{Failure, MessageError, RunError};
use crate::source::Source;
use crate::tally::RunTally;
use crate::tool::ToolInvocation;
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunEvent {
    /// The run that the event belongs to.
    pub run_id: RunId,
    /// The number of the event in its run: from 1, without gaps.
    pub seq: u32,
    /// When it happened.
    pub at: Millis,
    /// The agent of the run.
    pub agent: NodeRef,
    /// What happened.
    pub event: RunEventKind,
}

impl RunEvent {
    /// The tool whose call this event ended: its id in the registry, or its name if it is a node of its own. None
    /// for another event.
    #[must_use]
    pub fn ended_tool(&self) -> Option<&str> {
        match &self.event {
            RunEventKind::ToolReturned { id, tool, .. } => Some(id.as_ref().unwrap_or(tool)),
            _ => None,
        }
    }

    /// The call that this event ended; none for another event. A tool that is a node of its own gets this id. Only
    /// the journal has the input and the output.
    #[must_use]
    pub fn ended_call(self, own_id: &str) -> Option<ToolInvocation> {
        let Self { run_id, at, agent, event, .. } = self;
        let RunEventKind::ToolReturned {
            tool, id, call_id, success, error, code, tries, duration_ms, ..
        } = event
        else {
            return None;
        };
        Some(ToolInvocation {
            at,
            id: id.unwrap_or_else(|| own_id.to_owned()),
            tool,
            run_id: Some(run_id),
            call_id,
            agent: Some(agent),
            by: None,
            effect: None,
            input: Message::new(),
            success,
            output: None,
            error,
            code,
            duration_ms,
            tries: tries.unwrap_or(1),
        })
    }
}

/// The kinds of run events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum RunEventKind {
    /// The run started.
    RunStarted {
        /// The agent's name; empty if it has none.
        name: String,
        /// The most model calls of the run.
        max_iterations: u32,
        /// The names of the tools that the model may call.
        tools: Vec<String>,
        /// Who started the run; absent if it is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        by: Option<Principal>,
    },
    /// The memory was read.
    MemoryRecalled {
        /// The number of messages it returned.
        messages: u32,
        /// What they come from, apart from the conversation; the best first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Source>>", optional))]
        sources: Vec<Source>,
    },
    /// The conversation was deleted, because the message asked for it.
    MemoryCleared {},
    /// The memory failed; the run goes on without it.
    MemoryFailed {
        /// Why it failed.
        error: Failure,
    },
    /// The images of the message were downloaded.
    ImagesFetched {
        /// The number of images.
        images: u32,
    },
    /// A summary replaced old messages, because the conversation was long.
    Summarised {
        /// The iteration of the run, from 1.
        iteration: u32,
        /// The number of messages that it replaced.
        messages: u32,
        /// The tokens used; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        usage: Option<Usage>,
    },
    /// From now on the model can only finish.
    Concluding {
        /// The iteration of the run, from 1.
        iteration: u32,
        /// Why.
        reason: ConclusionReason,
    },
    /// The run calls the model.
    ModelCalled {
        /// The iteration of the run, from 1.
        iteration: u32,
        /// The start of what is new to the model in this run: the input, then the tool's result. Only with
        /// `debug: true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        preview: Option<String>,
    },
    /// The model answered: with a valid action of Agent Core, with tool calls, or with text.
    ModelAnswered {
        /// The iteration of the run, from 1.
        iteration: u32,
        /// The kind of the action.
        action: ActionKind,
        /// The name of the tool; absent for a final answer, and if there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        tool: Option<String>,
        /// The names of the tools, if the answer calls several.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
        tools: Vec<String>,
        /// The confidence of the model; absent if it gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        confidence: Option<f64>,
        /// The duration of the call, in milliseconds.
        duration_ms: u64,
        /// The tokens used; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        usage: Option<Usage>,
        /// The fields of the request that the provider refused, so that the call was made once more without them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
        refused: Vec<String>,
        /// The start of the answer; only with `debug: true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        preview: Option<String>,
    },
    /// A model failed, so the next fallback model was called.
    ModelFellOver {
        /// The iteration of the run, from 1.
        iteration: u32,
        /// The model that failed.
        model: String,
        /// Why it failed.
        code: RunErrorCode,
    },
    /// The run has spent 80 % of its budget.
    BudgetLow {
        /// The number of the budget.
        budget: BudgetKind,
        /// The limit.
        limit: f64,
        /// What the run has spent.
        spent: f64,
    },
    /// A call was not made, because the budget is used up. The run ends.
    BudgetReached {
        /// The number of the budget.
        budget: BudgetKind,
        /// The limit.
        limit: f64,
        /// What the run has spent.
        spent: f64,
    },
    /// The run calls a tool.
    ToolCalled {
        /// The iteration of the run, from 1.
        iteration: u32,
        /// The name of the tool.
        tool: String,
        /// The id in the registry; absent for a tool that is a node of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        id: Option<String>,
        /// The id of the call.
        call_id: CallId,
        /// The start of the input; only with `debug: true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        preview: Option<String>,
    },
    /// The tool returned a result, successful or not.
    ToolReturned {
        /// The iteration of the run, from 1.
        iteration: u32,
        /// The name of the tool.
        tool: String,
        /// The id in the registry; absent for a tool that is a node of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        id: Option<String>,
        /// The id of the call.
        call_id: CallId,
        /// Whether the call succeeded.
        success: bool,
        /// Why it failed; absent if it succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        error: Option<String>,
        /// The code of the failure; absent if it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        code: Option<ToolCode>,
        /// How often the tool was tried, if not once: 0 if the call was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        tries: Option<u32>,
        /// The duration of the call, in milliseconds.
        duration_ms: u64,
        /// The start of the output; only with `debug: true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        preview: Option<String>,
        /// What the output comes from, the best first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<Source>>", optional))]
        sources: Vec<Source>,
        /// The bytes of each image that the model gets.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<u32>>", optional))]
        image_bytes: Vec<u32>,
    },
    /// The run waits until a person gives the outcome of a call.
    WaitingForOutcome {
        /// The iteration of the run, from 1.
        iteration: u32,
        /// The name of the tool.
        tool: String,
        /// The id of the call.
        call_id: CallId,
        /// Why the outcome is unknown.
        reason: String,
    },
    /// The run ended.
    RunFinished {
        /// True only after a `final` action.
        completed: bool,
        /// Why it ended.
        stop_reason: StopReason,
        /// The number of iterations that were started.
        iterations: u32,
        /// The time from start to end, in milliseconds.
        duration_ms: u64,
        /// What the run has used; absent if an earlier version wrote the event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        tally: Option<RunTally>,
        /// The error; absent if the run did not fail.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        error: Option<RunError>,
    },
}

/// Why an agent for one thing must finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ConclusionReason {
    /// The conversation has 90 % of the tokens that it may have.
    Tokens,
    /// One iteration is left.
    Iterations,
}

/// An event of the flow around the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum FlowEvent {
    /// A debug node shows a value.
    Debug {
        /// The debug node.
        node: NodeSummary,
        /// The property that is shown; `msg` for the whole message.
        property: String,
        /// The value of the property.
        value: Value,
    },
    /// A chat node has a new message.
    Chat {
        /// The chat node.
        node: NodeSummary,
        /// The message.
        item: ChatItem,
        /// How many messages the node keeps.
        keeps: u32,
    },
    /// A reply of a flow tool was dropped: no call waits for it, or it names no call.
    ReplyDropped {
        /// The agent that it arrived at.
        node: NodeSummary,
        /// Why it was dropped.
        reason: String,
    },
    /// A tool was called outside a run.
    ToolInvoked {
        /// The call.
        call: Box<ToolInvocation>,
    },
    /// Another flow became active.
    Deployed {
        /// The revision of that flow.
        revision: String,
        /// The number of agents in it.
        agents: u32,
        /// How many of these agents are refused.
        refused: u32,
        /// The Node-RED that owns the flow; absent for the sidecar's own flow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        instance: Option<InstanceId>,
    },
    /// A flow that was deployed in the attached Node-RED was checked. It runs there, not here.
    Checked {
        /// The address of that Node-RED.
        source: String,
        /// The revision of the flow, as Node-RED names it.
        revision: String,
        /// The number of errors.
        errors: u32,
        /// The number of warnings.
        warnings: u32,
    },
    /// A message stopped at a node that this build cannot run.
    NeedsNodeRed {
        /// The node where it stopped.
        node: NodeSummary,
    },
    /// An agent deleted a conversation, because a message without a payload asked for it.
    MemoryCleared {
        /// The agent that deleted it.
        node: NodeSummary,
    },
    /// A memory consolidated what runs had added.
    MemoryConsolidated {
        /// The memory.
        node: NodeSummary,
        /// What it did.
        consolidated: Consolidated,
        /// Why it failed; absent if it succeeded. What it did before is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        error: Option<Failure>,
    },
    /// Data of a user, a session or a source was removed. The event does not say whose.
    MemoryForgotten {
        /// What was removed.
        forgotten: Forgotten,
    },
    /// An event of a run that was forgotten.
    Erased {},
    /// An error that no Catch node took.
    Uncaught {
        /// The node that failed.
        node: NodeSummary,
        /// The error as `msg.error` has it.
        error: MessageError,
    },
    /// A cascade of agents that feed each other reached its limit.
    #[serde(rename = "chain_cut")]
    CascadeCut {
        /// The agent that was not started again.
        node: NodeSummary,
        /// The limit that was reached.
        limit: u32,
    },
}
