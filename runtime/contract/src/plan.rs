//! The plan and the spec of an agent. The plan has the agent and its bindings as the flow has them, for
//! audit. The spec has every environment reference resolved; the machine works by it.

use crate::Message;
use crate::digest::Digest;
use crate::id::{NodeId, NodeRef, NodeSummary};
use crate::limits::RunLimits;
use crate::node::{Budget, EffectClass, OnUnknown, OutputFormat, StopCondition, ToolChoice};
use crate::tool::ToolRetry;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The agent, its bindings and their properties; not the whole flow. Secrets are already replaced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentPlan {
    /// The agent with its own properties.
    pub agent: PlanNode,
    /// The model that it binds.
    pub model: PlanNode,
    /// The models that are called if the first one fails, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<PlanNode>>", optional))]
    pub fallback_models: Vec<PlanNode>,
    /// The memory that it binds; null if none.
    pub memory: Option<PlanNode>,
    /// The tools that it binds, in the order of their wires.
    pub tools: Vec<PlanNode>,
    /// The models and memories that its memory and its tools name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "codegen", ts(as = "Option<Vec<PlanNode>>", optional))]
    pub services: Vec<PlanNode>,
}

/// A node of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanNode {
    /// The id, type and name of the node.
    pub node: NodeSummary,
    /// The properties as the flow has them; `${ENV}` stays unresolved.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub config: Message,
}

/// The agent as the machine uses it. The first fact of a run contains it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentSpec {
    /// The id of the agent, with its Node-RED.
    pub agent: NodeRef,
    /// The node type of the agent.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The agent's name; empty if it has none.
    pub name: String,
    /// The strategy of its machine; absent for Agent Core's, `react`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub strategy: Option<String>,
    /// The settings of an AI Agent; absent for Agent Core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub converse: Option<ConverseSpec>,
    /// What a run may spend; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub budget: Option<Budget>,
    /// The most model calls of a run.
    pub max_iterations: u32,
    /// The tools that the model may call, in the order of the prompt.
    pub tools: Vec<ToolSpec>,
    /// When to stop before a final answer.
    pub stop_conditions: Vec<StopCondition>,
    /// Whether outputs and events contain prompts and previews.
    pub debug: bool,
    /// The longest duration of a run, in milliseconds.
    pub timeout_ms: u64,
    /// Whether a memory is bound.
    pub memory: bool,
    /// Whether port 4 has a wire. If not, the machine makes no message for it.
    pub model_response_wired: bool,
    /// The limits of a run.
    pub limits: RunLimits,
}

/// The settings of an AI Agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConverseSpec {
    /// What the model is told first in every call.
    pub system_prompt: String,
    /// The template of the user's message; empty for the payload.
    pub user_message: String,
    /// Whether the model may call tools.
    pub tool_choice: ToolChoice,
    /// What the payload of the result is.
    pub output_format: OutputFormat,
    /// JSON Schema of the answer; absent if any answer is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub output_schema: Option<Value>,
    /// The most tool calls at the same time.
    pub parallel_tools: u32,
    /// The template of the images; absent if the agent takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub images: Option<String>,
    /// The one task of the agent; absent for an AI Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub task: Option<TaskSpec>,
}

/// The task of an agent that does one thing. With tools its model gives the result by calling `finish_step`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskSpec {
    /// What the agent does.
    pub kind: TaskKind,
    /// The most tokens of the conversation. At 70 % old messages are summed up; at 90 % the agent must finish.
    pub max_token_limit: u32,
}

/// What an agent for one thing does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Reaches an objective, also with tools.
    Objective,
    /// Extracts values from a text.
    Extract,
    /// Finds the category of a text.
    Classify,
    /// Sums a text up. The result must not be longer than the text.
    Summarize,
}

/// A tool as the model knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolSpec {
    /// The name that the model calls it by.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// JSON Schema of the input; null if the tool takes any object.
    pub input_schema: Option<Value>,
    /// The node of the tool.
    pub node: NodeId,
    /// The effect class that the node declares; null if the tool decides per call.
    pub effect: Option<EffectClass>,
    /// The longest duration of one call, in milliseconds.
    pub timeout_ms: u64,
    /// What happens if the outcome of a call is unknown.
    pub on_unknown: OnUnknown,
    /// The id in the registry; absent for a tool that is a node of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub id: Option<String>,
    /// The operation of the node; absent if the tool is no operation of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub operation: Option<String>,
    /// SHA-256 of the definition in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub digest: Option<Digest>,
    /// JSON Schema of the output; absent if any output is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub output_schema: Option<Value>,
    /// How often a failed call is made again; absent for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub retry: Option<ToolRetry>,
    /// Whether the provider must keep to the input schema; absent for the provider's own rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "codegen", ts(optional))]
    pub strict: Option<bool>,
}

impl ToolSpec {
    /// A tool that is a node of its own, without a schema of its output.
    #[must_use]
    pub fn of_node(name: String, description: String, input_schema: Option<Value>, node: NodeId) -> Self {
        Self {
            name,
            description,
            input_schema,
            node,
            effect: None,
            timeout_ms: crate::limits::DEFAULT_TOOL_TIMEOUT_MS,
            on_unknown: OnUnknown::default(),
            id: None,
            operation: None,
            digest: None,
            output_schema: None,
            retry: None,
            strict: None,
        }
    }
}

/// A plan as journals contain it. It is encoded once per deploy and written by every run.
#[derive(Debug, Clone)]
pub struct EncodedPlan {
    json: Arc<str>,
    digest: Digest,
}

impl EncodedPlan {
    /// Encodes a plan.
    ///
    /// # Errors
    /// When the plan cannot be written as JSON.
    pub fn new(plan: &AgentPlan) -> Result<Self, serde_json::Error> {
        let json = serde_json::to_string(plan)?;
        let digest = Digest::of(json.as_bytes());
        Ok(Self { json: json.into(), digest })
    }

    /// The digest that the journal's header names.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The plan as compact JSON.
    #[must_use]
    pub fn json(&self) -> &Arc<str> {
        &self.json
    }
}
