//! An agent with the services it binds.

use redflow_contract::effect::ToolCall;
use redflow_contract::id::NodeSummary;
use redflow_contract::input::InputTemplates;
use redflow_contract::manifest::NodeOperation;
use redflow_contract::mcp::mcp_prompt;
use redflow_contract::node::{EffectClass, OnUnknown};
use redflow_contract::plan::{AgentSpec, EncodedPlan};
use redflow_contract::run_error::RunError;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::ToolEntry;
use redflow_machine::{Agent, ValueSchema};
use redflow_ports::{ChatModel, Memory, ModelInfo, Tool, ToolProvider};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

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
    /// The `userId` of the memory.
    pub(crate) memory_user_id: Option<Arc<str>>,
    /// The node of the memory; none without one.
    pub(crate) memory_node: Option<NodeSummary>,
    /// What it says about the user, the time and the tags of a message.
    pub(crate) input: InputTemplates,
    pub(crate) tab: String,
    /// Whether its stream port has a wire.
    pub(crate) stream_wired: bool,
    /// The nodes that provide further tools as a run begins; none if it has none.
    pub(crate) providers: Option<Box<ProviderBindings>>,
}

impl BuiltAgent {
    /// The memory of its conversations, if it has one.
    #[must_use]
    pub fn memory(&self) -> Option<&Arc<dyn Memory>> {
        self.memory.as_ref()
    }
}

/// A tool of an agent.
#[derive(Clone)]
pub(crate) struct BuiltTool {
    pub(crate) target: ToolTarget,
    /// Its definition; none for a tool that is a node of its own.
    pub(crate) definition: Option<Arc<ToolDefinition>>,
}

/// The receiver of a tool's calls.
#[derive(Clone)]
pub(crate) enum ToolTarget {
    Service(Arc<dyn Tool>),
    /// The nodes behind the agent's tool port; the call is a message.
    Flow,
}

/// What the registry, or a provider, says of a tool.
pub(crate) struct ToolDefinition {
    pub(crate) entry: Arc<ToolEntry>,
    /// The operation, if the tool is one of a node.
    pub(crate) operation: Option<NodeOperation>,
    pub(crate) output_schema: Option<ValueSchema>,
}

impl BuiltTool {
    /// A tool that is a node of its own.
    pub(crate) fn of_node(target: ToolTarget) -> Self {
        Self { target, definition: None }
    }

    pub(crate) fn is_flow(&self) -> bool {
        matches!(self.target, ToolTarget::Flow)
    }
}

/// The providers of an agent, and the agent with their tools.
pub(crate) struct ProviderBindings {
    pub(crate) providers: Vec<BoundProvider>,
    /// The tools that the model may call; none for all.
    pub(crate) allowed: Option<Vec<String>>,
    /// The prompt of an MCP server that is the system prompt; none if the system prompt is a text.
    pub(crate) prompt: Option<McpPromptName>,
    /// The last resolution, with what it was made of.
    pub(crate) resolved: Mutex<Option<ResolvedAgent>>,
}

/// A prompt of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpPromptName {
    pub(crate) server: String,
    pub(crate) prompt: String,
}

/// What the tools and the system prompt of an agent were made of.
#[derive(PartialEq, Eq)]
pub(crate) struct ResolutionKey {
    /// The generations of the providers.
    pub(crate) generations: Vec<u64>,
    /// The text of the prompt that is the system prompt.
    pub(crate) prompt: Option<Arc<str>>,
}

/// The agent with its tools, or the reason why there is none.
pub(crate) type ResolvedAgent = (ResolutionKey, Result<Arc<BuiltAgent>, RunError>);

/// A node that provides tools.
pub(crate) struct BoundProvider {
    pub(crate) node: NodeSummary,
    pub(crate) source: ProviderSource,
    pub(crate) on_unknown: OnUnknown,
}

/// Where a node gets its tools from.
pub(crate) enum ProviderSource {
    /// Tools of the registry, by id or pattern.
    Registry { ids: Vec<String> },
    /// The operations of a Node-RED node.
    Node { target: ToolTarget, tool_name: Option<String> },
    /// A provider of its own.
    Provider(Arc<dyn ToolProvider>),
}

impl ProviderBindings {
    /// None without a provider, if the system prompt is a text.
    pub(crate) fn new(
        providers: Vec<BoundProvider>,
        allowed: Option<Vec<String>>,
        spec: &AgentSpec,
    ) -> Option<Box<Self>> {
        let named = spec.converse.as_ref().and_then(|converse| mcp_prompt(&converse.system_prompt));
        let prompt = named
            .map(|(server, prompt)| McpPromptName { server: server.to_owned(), prompt: prompt.to_owned() });
        let is_fixed = providers.is_empty() && prompt.is_none();
        let bindings = Self { providers, allowed, prompt, resolved: Mutex::default() };
        (!is_fixed).then(|| Box::new(bindings))
    }

    /// The ids and patterns of its nodes of type `registry-tool`, each with its node and its place there.
    pub(crate) fn registry_ids(&self) -> impl Iterator<Item = (&NodeSummary, usize, &str)> {
        self.providers.iter().flat_map(|provider| {
            let ids = match &provider.source {
                ProviderSource::Registry { ids } => ids.as_slice(),
                ProviderSource::Node { .. } | ProviderSource::Provider(_) => &[],
            };
            ids.iter().enumerate().map(|(place, id)| (&provider.node, place, id.as_str()))
        })
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

    /// The agent, its model and its tools.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeSummary> {
        let own = [self.summary(), self.model_node.clone()];
        own.into_iter().chain(self.tool_nodes.iter().cloned()).collect()
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
        let own = || match &self.tool(call)?.target {
            ToolTarget::Service(tool) => catch_unwind(AssertUnwindSafe(|| tool.effect(&call.input))).ok(),
            ToolTarget::Flow => None,
        };
        // An agent without its services knows what the node declares too.
        let spec = self.compiled.spec().tools.iter().find(|tool| tool.name == call.tool);
        spec.and_then(|tool| tool.effect).or_else(own).unwrap_or(EffectClass::AtMostOnce)
    }

    /// The node of the tool of a call.
    pub(crate) fn tool_node(&self, call: &ToolCall) -> Option<&NodeSummary> {
        let index = self.compiled.spec().tools.iter().position(|tool| tool.name == call.tool)?;
        self.tool_nodes.get(index)
    }

    /// The tool of a call.
    pub(crate) fn tool(&self, call: &ToolCall) -> Option<&BuiltTool> {
        let index = self.compiled.spec().tools.iter().position(|tool| tool.name == call.tool)?;
        self.tools.get(index)
    }
}
