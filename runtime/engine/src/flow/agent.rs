//! An agent with the services it binds.

use redflow_contract::effect::ToolCall;
use redflow_contract::id::NodeSummary;
use redflow_contract::node::EffectClass;
use redflow_contract::plan::EncodedPlan;
use redflow_contract::scrub::Scrubber;
use redflow_machine::Agent;
use redflow_ports::{ChatModel, Memory, ModelInfo, Tool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A compiled agent with its model, memory and tools.
pub struct BuiltAgent {
    pub(crate) compiled: Arc<dyn Agent>,
    pub(crate) plan: EncodedPlan,
    /// The model, joined with the fallback models.
    pub(crate) model: Arc<dyn ChatModel>,
    /// The fallback models, in their order.
    pub(crate) fallback_models: Vec<ModelInfo>,
    pub(crate) model_node: NodeSummary,
    pub(crate) memory: Option<Arc<dyn Memory>>,
    /// In the order of the spec's tools.
    pub(crate) tools: Vec<BuiltTool>,
    /// In the order of the spec's tools.
    pub(crate) tool_nodes: Vec<NodeSummary>,
    /// Removes the secrets of the flow from what services return.
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) session_id: Option<String>,
    pub(crate) memory_session_id: Option<Arc<str>>,
    pub(crate) tab: String,
    /// Whether its stream port has a wire.
    pub(crate) stream_wired: bool,
}

/// The receiver of a tool's calls.
pub(crate) enum BuiltTool {
    Service(Arc<dyn Tool>),
    /// The nodes behind the agent's tool port; the call is a message.
    Flow,
}

impl BuiltTool {
    pub(crate) fn is_flow(&self) -> bool {
        matches!(self, Self::Flow)
    }
}

impl BuiltAgent {
    pub(crate) fn summary(&self) -> NodeSummary {
        let spec = self.compiled.spec();
        NodeSummary {
            id: spec.agent.node_id.clone(),
            type_name: spec.type_name.clone(),
            name: spec.name.clone(),
        }
    }

    /// The n-th model: 0 is the agent's own, then the fallback models follow.
    pub(crate) fn model_info(&self, index: usize) -> &ModelInfo {
        let fallback = index.checked_sub(1).and_then(|index| self.fallback_models.get(index));
        fallback.unwrap_or_else(|| self.model.info())
    }

    pub(crate) fn tool_names(&self) -> Vec<String> {
        self.compiled.spec().tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// The effect class of a call: what its node declares, else what the tool says. A call of an unknown tool
    /// is never made, so the strictest class is right for it.
    pub(crate) fn effect_class(&self, call: &ToolCall) -> EffectClass {
        let own = || match self.tool(call)? {
            BuiltTool::Service(tool) => catch_unwind(AssertUnwindSafe(|| tool.effect(&call.input))).ok(),
            BuiltTool::Flow => None,
        };
        // An agent without its services knows what the node declares too.
        let spec = self.compiled.spec().tools.iter().find(|tool| tool.name == call.tool);
        spec.and_then(|tool| tool.effect).or_else(own).unwrap_or(EffectClass::AtMostOnce)
    }

    /// The tool of a call.
    pub(crate) fn tool(&self, call: &ToolCall) -> Option<&BuiltTool> {
        let index = self.compiled.spec().tools.iter().position(|tool| tool.name == call.tool)?;
        self.tools.get(index)
    }
}
