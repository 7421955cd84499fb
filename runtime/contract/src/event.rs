//! What observers see: the events of runs, and of the flow around them. Wider than the envelope's own events.

use crate::Millis;
use crate::action::ActionKind;
use crate::chat::ChatItem;
use crate::envelope::StopReason;
use crate::fact::Usage;
use crate::id::{CallId, InstanceId, NodeRef, NodeSummary, RunId};
use crate::run_error::{Failure, MessageError, RunError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event of one run. `seq` counts from 1 without gaps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunEvent {
    /// The run.
    pub run_id: RunId,
    /// Its place in the run.
    pub seq: u32,
    /// When.
    pub at: Millis,
    /// The agent.
    pub agent: NodeRef,
    /// What happened.
    pub event: RunEventKind,
}

/// What happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum RunEventKind {
    /// It began.
    RunStarted {
        /// The agent's name.
        name: String,
        /// How many model calls at most.
        max_iterations: u32,
        /// The tools the model may ask for.
        tools: Vec<String>,
    },
    /// The memory gave this many messages.
    MemoryRecalled {
        /// How many.
        messages: u32,
    },
    /// The memory forgot the conversation, as the message asked.
    MemoryCleared {},
    /// The memory failed; the run goes on.
    MemoryFailed {
        /// Why.
        error: Failure,
    },
    /// The model is being asked.
    ModelCalled {
        /// The iteration.
        iteration: u32,
        /// The beginning of what it has not been told before in this run: the input, then what the tool gave; only
        /// with `debug: true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        preview: Option<String>,
    },
    /// The model answered with a valid action.
    ModelAnswered {
        /// The iteration.
        iteration: u32,
        /// What it decided.
        action: ActionKind,
        /// The tool it asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        tool: Option<String>,
        /// How sure it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        confidence: Option<f64>,
        /// How long it took.
        duration_ms: u64,
        /// What it used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        usage: Option<Usage>,
        /// The beginning of the answer; only with `debug: true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        preview: Option<String>,
    },
    /// A tool is being called.
    ToolCalled {
        /// The iteration.
        iteration: u32,
        /// The tool.
        tool: String,
        /// The call.
        call_id: CallId,
        /// The beginning of the input; only with `debug: true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        preview: Option<String>,
    },
    /// A tool returned, well or badly.
    ToolReturned {
        /// The iteration.
        iteration: u32,
        /// The tool.
        tool: String,
        /// The call.
        call_id: CallId,
        /// Whether it worked.
        success: bool,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        error: Option<String>,
        /// How long it took.
        duration_ms: u64,
        /// The beginning of the output; only with `debug: true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        preview: Option<String>,
    },
    /// The run waits until someone says what happened to a call.
    WaitingForOutcome {
        /// The iteration.
        iteration: u32,
        /// The tool.
        tool: String,
        /// The call.
        call_id: CallId,
        /// How that came about.
        reason: String,
    },
    /// It ended.
    RunFinished {
        /// True only after a `final` action.
        completed: bool,
        /// Why.
        stop_reason: StopReason,
        /// How many iterations were begun.
        iterations: u32,
        /// How long it took.
        duration_ms: u64,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        error: Option<RunError>,
    },
}

/// What happened in the flow around the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum FlowEvent {
    /// A debug node shows something.
    Debug {
        /// The debug node.
        node: NodeSummary,
        /// The property shown; `msg` for the whole message.
        property: String,
        /// Its value.
        value: Value,
    },
    /// Something was said in the window of a chat node.
    Chat {
        /// The chat node.
        node: NodeSummary,
        /// What was said.
        item: ChatItem,
        /// How many items the node keeps.
        keeps: u32,
    },
    /// A reply of a data node used as a tool came when nobody waited for it, or did not say what it answers.
    ReplyDropped {
        /// The agent it came to.
        node: NodeSummary,
        /// Why it means nothing to it.
        reason: String,
    },
    /// Another flow is in force.
    Deployed {
        /// Its revision.
        revision: String,
        /// How many agents it has.
        agents: u32,
        /// How many of them are refused.
        refused: u32,
        /// The Node-RED whose flow it is; absent for that of the sidecar itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "codegen", ts(optional))]
        instance: Option<InstanceId>,
    },
    /// A flow that was deployed in the Node-RED beside was checked. It runs there, not here.
    Checked {
        /// Where that Node-RED is.
        source: String,
        /// The flow, as Node-RED names it.
        revision: String,
        /// How many errors it has.
        errors: u32,
        /// How many warnings.
        warnings: u32,
    },
    /// A message stopped at a node this build cannot run.
    NeedsNodeRed {
        /// The node.
        node: NodeSummary,
    },
    /// An agent forgot a conversation, as a message without a payload asked.
    MemoryCleared {
        /// The agent.
        node: NodeSummary,
    },
    /// An error no catch node took.
    Uncaught {
        /// The node that failed.
        node: NodeSummary,
        /// The error.
        error: MessageError,
    },
    /// The chain of agents that feed each other was cut at its limit.
    ChainCut {
        /// The agent that was not started again.
        node: NodeSummary,
        /// The limit.
        limit: u32,
    },
}
