//! What the console reads: its session, parts of runs, sums of what was used, and drawings of flows.

use crate::Millis;
use crate::api::Scope;
use crate::diagnostic::{CheckReport, Diagnostic};
use crate::edge::{EdgeKind, Role};
use crate::fact::{FailedModel, Usage};
use crate::id::{CallId, InstanceId, NodeId, RunId};
use crate::node::EffectClass;
use crate::replay::StoreProblem;
use crate::run::RunSummary;
use serde::{Deserialize, Serialize};

/// A page of the console that this sidecar serves. A page without a word here does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// What needs attention, and the agents.
    Home,
    /// The runs.
    Runs,
    /// Calls whose outcome a person must give.
    Inbox,
    /// The drawing of a flow.
    Flow,
    /// The check of a pasted flow.
    Check,
    /// Cost, tokens and failures by day.
    Usage,
    /// The models that agents bind.
    Models,
    /// The tools of the registry.
    Tools,
    /// The MCP servers: their state, their tools, approvals and sign-ins.
    Mcp,
    /// The knowledge bases: their documents, and a search.
    Knowledge,
    /// The long memories: their entries, a search, and what waits for a review.
    Memory,
    /// Language, tokens and configuration.
    Settings,
}

impl Feature {
    /// Every page, in the order of the menu.
    pub const ALL: [Self; 12] = [
        Self::Home,
        Self::Runs,
        Self::Inbox,
        Self::Flow,
        Self::Check,
        Self::Usage,
        Self::Models,
        Self::Tools,
        Self::Mcp,
        Self::Knowledge,
        Self::Memory,
        Self::Settings,
    ];
}

/// Who is signed in, and what this sidecar offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Session {
    /// The name of the token, or of the token that opened the session.
    pub name: String,
    /// What it allows. Scopes that another one includes are listed too.
    pub scopes: Vec<Scope>,
    /// The pages of the console.
    pub features: Vec<Feature>,
    /// The version of the sidecar.
    pub version: String,
}

/// Signs a browser in with a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignInRequest {
    /// The token.
    pub token: String,
}

/// A text that may be cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CutText {
    /// The text, or its beginning.
    pub text: String,
    /// The bytes of the whole text; absent if `text` is the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub bytes: Option<u64>,
}

/// The most bytes of each text of an [`IterationDetail`]. A longer one is cut.
pub const TEXT_BYTES: usize = 64 * 1024;

/// The most bytes of all texts of an [`IterationDetail`] together.
pub const ITERATION_BYTES: usize = 4 * 1024 * 1024;

/// What happened in one iteration of a run, with its texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IterationDetail {
    /// The number of the iteration, from 1.
    pub iteration: u32,
    /// When the model was called; absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_at: Option<Millis>,
    /// The time until the answer was known, in milliseconds; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub duration_ms: Option<u64>,
    /// What is new to the model: the input in the first iteration, then the results of tools.
    pub prompt: CutText,
    /// The answer of the model with its tool calls; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<CutText>,
    /// The confidence of the answer; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The model that answered, as its provider names it; absent if it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of the request; absent if it sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The tokens and the cost; absent if the provider reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The models that failed before this answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<FailedModel>>"))]
    pub fell_over: Vec<FailedModel>,
    /// The fields of the request that the provider refused, so that the call was made once more without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<String>>"))]
    pub refused: Vec<String>,
    /// The tool calls, oldest first. A call that was not made is not in the journal.
    pub calls: Vec<CallDetail>,
    /// The payload that left the agent, if the run ended in this iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<CutText>,
    /// The start of the provider's response as it was sent; absent without `debug` on the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<CutText>,
}

/// A tool call of an iteration, with its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallDetail {
    /// The id of the call.
    pub call_id: CallId,
    /// The name of the tool.
    pub tool: String,
    /// The id of the tool in the registry; absent for a tool that is a node of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The effect class of the call; absent if it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    /// When the run asked for the call; absent if it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Millis>,
    /// The time until the result was known, in milliseconds; absent while it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub duration_ms: Option<u64>,
    /// How often the tool was tried; absent while it is unknown, and if a person gave the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// The input.
    pub input: CutText,
    /// Whether the call succeeded; absent while it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// The output, or why the call failed; absent while it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CutText>,
}

/// The most lines of a [`JournalPage`].
pub const JOURNAL_PAGE_LINES: usize = 200;

/// The most bytes of all lines of a [`JournalPage`].
pub const JOURNAL_PAGE_BYTES: usize = 1024 * 1024;

/// Lines of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JournalPage {
    /// The number of the first line, from 1.
    pub from: u32,
    /// The lines, each as it is stored.
    pub lines: Vec<String>,
    /// The bytes of the only line, if it is longer than a page, so that `lines` has its beginning; absent if all
    /// lines are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub cut: Option<u64>,
    /// All lines of the journal.
    pub total: u32,
    /// Pass it as `from` to get the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
    /// Why the journal is not complete; absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<StoreProblem>,
}

/// A run below another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TreeRun {
    /// The run. Its `parent` is the run above it.
    pub run: RunSummary,
    /// How far it is below the first run, from 1.
    pub depth: u32,
}

/// The runs that a run has started, and those that they have started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunTree {
    /// The runs: each after its parent, those of one parent in the order in which they started.
    pub runs: Vec<TreeRun>,
    /// Pass it as `after` to get the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<RunId>,
}

/// What sums are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StatsBy {
    /// The agent.
    Agent,
    /// The model, as its provider names it.
    Model,
    /// The tool.
    Tool,
    /// The code of failed runs.
    Code,
}

/// Sums of what was used, by UTC day and by one more key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stats {
    /// The first day, such as `2026-11-16`.
    pub from: String,
    /// The last day.
    pub to: String,
    /// What the sums are grouped by.
    pub by: StatsBy,
    /// The keys with the largest sums, the largest first. Rows name them by their position.
    pub keys: Vec<StatsKey>,
    /// The sums that are not 0, by day and then by key.
    pub rows: Vec<StatsRow>,
    /// The time of the oldest failure that was counted, if not all were; only by code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_to: Option<Millis>,
}

/// A key of sums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatsKey {
    /// The id of an agent, the name of a model, the id or the name of a tool, or a code. Empty for all other keys
    /// together.
    pub key: String,
    /// The Node-RED of an agent; absent for other keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// The name for people; absent if the key is the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The sums of one day and one key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatsRow {
    /// The day in UTC.
    pub day: String,
    /// The position of the key in `keys`.
    pub key: u32,
    /// Runs that ended. A run with several models counts for the one that answered last. Grouped by tool: 0.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub runs: u64,
    /// Those of them that failed; grouped by tool, the calls that failed.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub failed: u64,
    /// Calls of models; grouped by tool, calls of the tool.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub calls: u64,
    /// Tokens that models read.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub input_tokens: u64,
    /// Tokens that models wrote.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub output_tokens: u64,
    /// The part of `inputTokens` that came from providers' caches.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub cached_tokens: u64,
    /// The cost; absent if no price is known. It has no part for the calls of `unpricedCalls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The answered calls of models whose price is not known; absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "codegen", ts(type = "number", optional))]
    pub unpriced_calls: u64,
    /// The time of the calls, in milliseconds; grouped by code, the time of the runs.
    #[cfg_attr(feature = "codegen", ts(type = "number"))]
    pub ms: u64,
}

/// A flow as a drawing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FlowGraph {
    /// The tabs and subflows of the whole file, in its order.
    pub tabs: Vec<GraphTab>,
    /// The nodes of the drawn tab. Config nodes that agents bind are among them, without a place.
    pub nodes: Vec<GraphNode>,
    /// The wires between them.
    pub wires: Vec<GraphWire>,
    /// The problems of these nodes.
    pub diagnostics: Vec<Diagnostic>,
    /// Nodes that are not in `nodes`, because there are too many.
    pub omitted: u32,
    /// Tabs, wires and problems that are not listed, because there are too many.
    pub omitted_parts: u32,
}

/// The answer to a check of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
pub struct CheckAnswer {
    /// The problems of the flow.
    #[serde(flatten)]
    pub report: CheckReport,
    /// The drawing that was asked for; absent if the whole flow is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<FlowGraph>,
}

/// A tab or a subflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GraphTab {
    /// Its node id.
    pub id: NodeId,
    /// The name its owner gave it.
    pub label: String,
    /// Whether it is a subflow.
    pub is_subflow: bool,
    /// The number of nodes on it.
    pub nodes: u32,
    /// Whether `nodes` of the graph are its nodes.
    pub is_drawn: bool,
}

/// A node of a drawing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GraphNode {
    /// Its id.
    pub id: NodeId,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its name; empty if it has none.
    pub name: String,
    /// What it is to agents.
    pub role: Role,
    /// Its place in the editor, of its centre; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// As `x`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
    /// The number of its outputs.
    pub outputs: u32,
    /// Whether it is disabled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<bool>"))]
    pub disabled: bool,
}

/// A wire of a drawing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GraphWire {
    /// The node at its beginning.
    pub from: NodeId,
    /// The output of that node; absent for a binding by a property.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// The node at its end.
    pub to: NodeId,
    /// What it is for. A key that a model names is `data`.
    pub kind: EdgeKind,
}

/// The tokens of the sidecar, without the tokens themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenList {
    /// The tokens, by name.
    pub tokens: Vec<TokenEntry>,
}

/// A token in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenEntry {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// When it was made; absent for the main token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub created_at: Option<Millis>,
    /// Whether this request was made with it.
    pub is_own: bool,
}

/// Makes a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenRequest {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
}

/// A new token. It cannot be read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewToken {
    /// Its name.
    pub name: String,
    /// The token.
    pub token: String,
}

/// The settings of the sidecar that are not secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigView {
    /// The settings, each with its place in the file, such as `http.proxy`.
    pub settings: Vec<ConfigEntry>,
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigEntry {
    /// Its place in the file.
    pub key: String,
    /// Its value; a secret is replaced.
    pub value: String,
    /// Whether it is set, and not the default.
    pub is_set: bool,
}
