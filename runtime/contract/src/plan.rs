//! What a run runs: the agent with everything it binds, as the flow has it (the plan, for audit) and with
//! environment references resolved (the spec, which the machine works by).

use crate::Message;
use crate::digest::Digest;
use crate::id::{NodeId, NodeRef, NodeSummary};
use crate::limits::RunLimits;
use crate::node_config::{EffectClass, OnUnknown, StopCondition};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The agent, its bindings and their properties: not the whole flow. Secrets are replaced before they get here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentPlan {
    /// The agent's own properties.
    pub agent: PlanNode,
    /// The model it binds.
    pub model: PlanNode,
    /// The memory it binds.
    pub memory: Option<PlanNode>,
    /// The tools it binds, in the order of their wires.
    pub tools: Vec<PlanNode>,
}

/// A node of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanNode {
    /// Which node.
    pub node: NodeSummary,
    /// Its properties as the flow has them; `${ENV}` stays symbolic.
    #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
    pub config: Message,
}

/// The agent as the machine works by it. Enters the journal with the run's first fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentSpec {
    /// The agent.
    pub agent: NodeRef,
    /// The agent's type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The agent's name; empty if none.
    pub name: String,
    /// How many model calls at most.
    pub max_iterations: u32,
    /// The tools the model may ask for, in the order it is told of them.
    pub tools: Vec<ToolSpec>,
    /// When to stop before a final answer.
    pub stop_conditions: Vec<StopCondition>,
    /// Whether prompts and previews are shown.
    pub debug: bool,
    /// Milliseconds the run may take.
    pub timeout_ms: u64,
    /// Whether a memory is bound.
    pub memory: bool,
    /// Whether anything is wired to port 4; if not, nothing is made for it.
    pub model_response_wired: bool,
    /// The bounds of the run.
    pub limits: RunLimits,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its input; null if it takes any object.
    pub input_schema: Option<Value>,
    /// The node that is the tool.
    pub node: NodeId,
    /// What its node declares of its calls; null if the tool itself decides.
    pub effect: Option<EffectClass>,
    /// Milliseconds one call may take.
    pub timeout_ms: u64,
    /// What happens when a call's outcome is unknown.
    pub on_unknown: OnUnknown,
}

/// A plan as its journals have it. Encoded once per deploy, written by every run.
#[derive(Debug, Clone)]
pub struct EncodedPlan {
    json: Arc<str>,
    digest: Digest,
}

impl EncodedPlan {
    /// Encodes a plan.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn new(plan: &AgentPlan) -> Result<Self, serde_json::Error> {
        let json = serde_json::to_string(plan)?;
        let digest = Digest::of(json.as_bytes());
        Ok(Self { json: json.into(), digest })
    }

    /// The digest a header names it by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its JSON.
    #[must_use]
    pub fn json(&self) -> &Arc<str> {
        &self.json
    }
}
