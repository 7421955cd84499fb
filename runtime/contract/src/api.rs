//! The requests and answers of `/api`. The messages of the event socket are in `stream`.

use crate::Millis;
use crate::code::{ApiCode, ArchiveCode, RunErrorCode, StoreCode};
use crate::diagnostic::{CheckReport, Diagnostic};
use crate::fact::ToolResult;
use crate::flow::Profile;
use crate::flow_message::FlowMessage;
use crate::id::{CallId, NodeId, NodeSummary, RunId};
use crate::run::{RunStatus, RunSummary, WaitingCall};
use crate::run_error::RunError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a token allows. Every scope includes `read`; `admin` includes all scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Read flows, runs, events and metrics.
    Read,
    /// Start, cancel and answer runs.
    Run,
    /// Change the flow.
    Deploy,
    /// Everything, including sign-in codes for browsers.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Run, Self::Deploy, Self::Admin];

    /// The scope as tokens and messages write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Deploy => "deploy",
            Self::Admin => "admin",
        }
    }

    /// Whether a token with this scope may do what needs `needed`.
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
    /// A code of the HTTP interface.
    Api(ApiCode),
    /// A code of stored runs.
    Store(StoreCode),
    /// A code of a run.
    Run(RunErrorCode),
    /// A code of the archive.
    Archive(ArchiveCode),
}

impl ProblemCode {
    /// The code as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api(code) => code.as_str(),
            Self::Store(code) => code.as_str(),
            Self::Run(code) => code.as_str(),
            Self::Archive(code) => code.as_str(),
        }
    }

    /// The HTTP status of an answer with this code.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Api(code) => code.class(),
            Self::Store(StoreCode::RunUnknown) => 404,
            Self::Store(StoreCode::RunOver | StoreCode::RunNotWaiting | StoreCode::RunBlocked) => 409,
            Self::Store(StoreCode::ResultInvalid)
            | Self::Run(RunErrorCode::ToolInputInvalid | RunErrorCode::ConfigInvalid) => 422,
            Self::Store(StoreCode::DataFull | StoreCode::DataReadOnly) => 507,
            Self::Store(_) | Self::Run(RunErrorCode::Internal) => 500,
            Self::Run(_) => 502,
            Self::Archive(code) => code.http_status(),
        }
    }
}

/// Why a request failed. Every error answer has this form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(deny_unknown_fields)]
pub struct ApiError {
    /// The code; `redflow explain CODE` has a page on it.
    pub code: ProblemCode,
    /// What happened and what to do about it.
    pub message: String,
    /// Every problem of the flow; only with `FLOW_REFUSED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<CheckReport>,
    /// The revision of the active flow; only with `REVISION_CONFLICT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

impl ApiError {
    /// Makes an error without report and revision.
    #[must_use]
    pub fn new(code: ApiCode, message: impl Into<String>) -> Self {
        Self { code: ProblemCode::Api(code), message: message.into(), report: None, revision: None }
    }
}

/// The active flow, by its tabs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FlowList {
    /// The revision of the active flow: an opaque string.
    pub revision: String,
    /// Tabs and subflows, in the order of the file.
    pub flows: Vec<FlowSummary>,
}

/// A tab or a subflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FlowSummary {
    /// The node id of the tab or subflow.
    pub id: NodeId,
    /// `tab` or `subflow`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The name its owner gave it.
    pub label: String,
    /// Whether it is disabled.
    pub disabled: bool,
    /// The number of nodes on it.
    pub nodes: u32,
    /// The agents on it.
    pub agents: Vec<AgentState>,
}

/// An agent, and whether it may run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentState {
    /// The id, type and name of the agent.
    pub node: NodeSummary,
    /// Whether it can run. If not, it answers every message with an error.
    pub ready: bool,
    /// The problems that refuse it; empty if it can run.
    pub problems: Vec<Diagnostic>,
    /// The memory of its conversations; absent if it has none or cannot run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<NodeSummary>,
}

/// Nodes of the deployed flow, without credentials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deployment {
    /// The revision of the active flow: an opaque string.
    pub revision: String,
    /// The nodes, as Node-RED writes them.
    pub flows: Vec<Value>,
}

/// Replaces the active flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeployRequest {
    /// The flow, in any shape that Node-RED or Redflow writes. Nodes may carry `credentials`, which are
    /// stored apart and encrypted. A node without `credentials` keeps the ones it has.
    pub flows: Value,
    /// The revision this flow was made from. If another revision is active by now, nothing is deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Deploy even if another revision is active by now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
    pub force: bool,
}

/// The answer to a deploy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeployAnswer {
    /// The revision of the new active flow.
    pub revision: String,
    /// The warnings and notes of the checker.
    pub report: CheckReport,
}

/// Checks a flow and changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckRequest {
    /// The flow, in any shape that Node-RED or Redflow writes.
    pub flows: Value,
    /// How strictly agents are read; absent for the server's own setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Whether the answer has a drawing of the flow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>"))]
    pub graph: bool,
    /// The tab or subflow to draw; absent for the first tab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tab: Option<NodeId>,
}

/// Starts an agent, or fires an inject node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartRequest {
    /// The agent or inject node. May be absent if the flow has one agent, or one agent that inject nodes are
    /// wired to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The payload. An agent needs one; an inject node has its own.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "JsonValue"))]
    pub payload: Option<Value>,
    /// Images for `msg.images`, at most four: data URLs or https addresses. Only for an agent with a payload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>", optional))]
    pub images: Vec<String>,
    /// Whether to answer only when the whole cascade of this start has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>", optional))]
    pub wait: bool,
}

/// Keeps a payload of `null` apart from no payload.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// The runs that a start caused. Each is stored and survives a crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartAnswer {
    /// The runs, in the order they started.
    pub runs: Vec<StartedRun>,
}

/// A run that a start caused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartedRun {
    /// The id of the run.
    pub run_id: RunId,
    /// The agent that runs.
    pub agent: NodeSummary,
    /// The status at the time of the answer.
    pub status: RunStatus,
    /// Why the agent did not start; absent if it did. Such a run is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RunError>,
    /// The call whose outcome the run waits for; absent if it waits for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingCall>,
    /// The message that left the result port; only if the run has ended and the start waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "codegen",
        ts(type = "{ [key: string]: JsonValue }"),
        schemars(with = "Option<crate::Message>")
    )]
    pub result: Option<FlowMessage>,
}

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunList {
    /// The runs of this page.
    pub runs: Vec<RunSummary>,
    /// Pass it as `before` to get the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RunId>,
    /// When the last run started that was looked at, if the search stopped there. Older runs may match: go on with
    /// `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_to: Option<Millis>,
}

/// Cancels a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelRequest {
    /// Who cancels, or why; becomes part of the run's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Gives the outcome of the call that a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResolveRequest {
    /// The call. The outcome is never used for another call.
    pub call_id: CallId,
    /// The outcome of the call.
    pub result: ToolResult,
}

/// A code and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CodeEntry {
    /// The code as text.
    pub code: String,
    /// Where the code occurs.
    pub set: CodeSet,
    /// What it means, in one line.
    pub summary: String,
    /// The section of the code in the documentation, in Markdown; only in the answer for one code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// What to do about it, in Markdown: the part "How to fix it" of the section. Only in the answer for one
    /// code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// Where a code occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CodeSet {
    /// In the check of a flow.
    Diagnostic,
    /// At the end of a run.
    Run,
    /// In the result of a tool call.
    Tool,
    /// With stored runs and the data directory.
    Store,
    /// With knowledge bases and the archive.
    Archive,
    /// In the HTTP interface and the sockets.
    Api,
}

/// Whether the sidecar is healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Health {
    /// Always true: the sidecar answers.
    pub live: bool,
    /// Whether it takes work: it has an active flow and does not stop.
    pub ready: bool,
    /// The version of the sidecar.
    pub version: String,
}

/// A link that signs in one browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignInCode {
    /// The path to open, with the one-time code in it.
    pub path: String,
    /// When the code expires.
    pub expires_at: Millis,
}
