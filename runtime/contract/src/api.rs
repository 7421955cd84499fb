//! What goes over HTTP: requests and answers of `/api`. What goes over the socket of events is in `stream`.

use crate::code::{ApiCode, RunErrorCode, StoreCode};
use crate::diagnostic::{CheckReport, Diagnostic};
use crate::fact::ToolResult;
use crate::flow::Profile;
use crate::id::{CallId, NodeId, NodeSummary, RunId};
use crate::run::{RunStatus, RunSummary, WaitingCall};
use crate::run_error::RunError;
use crate::{Message, Millis};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a token may do. Each includes none of the others but `read`, which all have; `admin` includes all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Look at flows, runs, events and metrics.
    Read,
    /// Start, cancel and answer runs.
    Run,
    /// Change the flow.
    Deploy,
    /// Everything, and let browsers in.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Run, Self::Deploy, Self::Admin];

    /// As it is written everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Deploy => "deploy",
            Self::Admin => "admin",
        }
    }

    /// Whether having this one allows what needs `needed`.
    #[must_use]
    pub fn allows(self, needed: Self) -> bool {
        self == needed || self == Self::Admin || needed == Self::Read
    }
}

/// A code of any set that an answer may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(untagged)]
pub enum ProblemCode {
    /// Of the interface itself.
    Api(ApiCode),
    /// Of kept runs.
    Store(StoreCode),
    /// Of a run.
    Run(RunErrorCode),
}

impl ProblemCode {
    /// As it is written everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api(code) => code.as_str(),
            Self::Store(code) => code.as_str(),
            Self::Run(code) => code.as_str(),
        }
    }

    /// The HTTP status it is answered with.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Api(code) => code.class(),
            Self::Store(StoreCode::RunUnknown) => 404,
            Self::Store(StoreCode::RunOver | StoreCode::RunNotWaiting | StoreCode::RunBlocked) => 409,
            Self::Store(StoreCode::ResultInvalid) => 422,
            Self::Store(StoreCode::DataFull | StoreCode::DataReadOnly) => 507,
            Self::Store(_) | Self::Run(_) => 500,
        }
    }
}

/// Why a request was not done. The same everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct ApiError {
    /// The code; `redflow explain CODE` has a page on it.
    pub code: ProblemCode,
    /// What happened and how to mend it.
    pub message: String,
    /// Every problem of the flow, with `FLOW_REFUSED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<CheckReport>,
    /// The revision that is in force, with `REVISION_CONFLICT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

impl ApiError {
    /// An error.
    #[must_use]
    pub fn new(code: ApiCode, message: impl Into<String>) -> Self {
        Self { code: ProblemCode::Api(code), message: message.into(), report: None, revision: None }
    }
}

/// The flow that runs, by its tabs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FlowList {
    /// The revision in force: an opaque string.
    pub revision: String,
    /// Tabs and subflows, in the order of the file.
    pub flows: Vec<FlowSummary>,
}

/// A tab or a subflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FlowSummary {
    /// Its id.
    pub id: NodeId,
    /// `tab` or `subflow`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What people call it.
    pub label: String,
    /// Whether it is switched off.
    pub disabled: bool,
    /// How many nodes are on it.
    pub nodes: u32,
    /// The agents on it.
    pub agents: Vec<AgentState>,
}

/// An agent, and whether it may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentState {
    /// The agent.
    pub node: NodeSummary,
    /// Whether it runs; if not, it answers every message with an error.
    pub ready: bool,
    /// What the checker holds against it.
    pub problems: Vec<Diagnostic>,
}

/// Nodes of the flow as they were deployed, without credentials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deployment {
    /// The revision in force: an opaque string.
    pub revision: String,
    /// The nodes, as Node-RED writes them.
    pub flows: Vec<Value>,
}

/// Puts a flow in the place of the one that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeployRequest {
    /// The flow, in any shape Node-RED or Redflow writes. Nodes may carry `credentials`, which are kept apart and
    /// encrypted; a node without them keeps those it has.
    pub flows: Value,
    /// The revision this flow was made from. If another one is in force by now, nothing is deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Deploy whatever is in force.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
    pub force: bool,
}

/// A flow was deployed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeployAnswer {
    /// The revision in force now.
    pub revision: String,
    /// What the checker says of it: warnings and notes.
    pub report: CheckReport,
}

/// Checks a flow, and changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckRequest {
    /// The flow, in any shape Node-RED or Redflow writes.
    pub flows: Value,
    /// How strictly agents are read; as the server does if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// Starts an agent, or fires an inject node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartRequest {
    /// The agent or inject node. May be left out if the flow has one agent, or one that inject nodes are wired to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The payload. An agent needs one; an inject node has its own.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "JsonValue"))]
    pub payload: Option<Value>,
    /// Whether to answer only when everything this sets off has come to rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
    pub wait: bool,
}

/// A payload of `null` is a payload.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// What a start set off. Every run in it is kept: it goes on after a crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartAnswer {
    /// The runs, in the order they began.
    pub runs: Vec<StartedRun>,
}

/// A run that a start set off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartedRun {
    /// The run.
    pub run_id: RunId,
    /// The agent.
    pub agent: NodeSummary,
    /// Where it is.
    pub status: RunStatus,
    /// Why the agent did not even begin: such a run is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RunError>,
    /// The call it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingCall>,
    /// What left port 3, if it is over and the start waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub result: Option<Message>,
}

/// A page of runs, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// Ask for `before` this run to see older ones; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RunId>,
}

/// Ends a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelRequest {
    /// Who or why; goes into the run's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Says what came of the call a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResolveRequest {
    /// The call: an answer never goes to another one.
    pub call_id: CallId,
    /// What came of it.
    pub result: ToolResult,
}

/// A code and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CodeEntry {
    /// The code.
    pub code: String,
    /// Where it comes up.
    pub set: CodeSet,
    /// What it means, in one line.
    pub summary: String,
    /// Its page, in Markdown; only if one code was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// What to do about it, in Markdown: the section "How to mend it" of the page; only if one code was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// Where a code comes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CodeSet {
    /// Checking a flow.
    Diagnostic,
    /// The end of a run.
    Run,
    /// Kept runs and the data directory.
    Store,
    /// The interface.
    Api,
}

/// Whether the sidecar is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Health {
    /// It answers.
    pub live: bool,
    /// It takes work: its flow is in force and it is not stopping.
    pub ready: bool,
    /// Its version.
    pub version: String,
}

/// A way in for one browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignInCode {
    /// The path to open, with the code in it. It works once.
    pub path: String,
    /// When it stops working.
    pub expires_at: Millis,
}
