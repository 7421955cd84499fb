//! From a checked flow to live nodes.

use redflow_contract::edge::Role;
use redflow_contract::id::NodeSummary;
use redflow_contract::run_error::RunError;
use redflow_flow::{CheckedFlow, NodeIx, ReadyAgent, ResolvedFlow, Verdict};
use redflow_ports::{Adapters, BuildError, ChatModel, FlowNode, Memory, NodeConfig, Tool};
use redflow_react::{CompiledAgent, EncodedPlan};
use std::collections::HashMap;
use std::sync::Arc;

/// A flow whose nodes can be driven.
pub struct BuiltFlow {
    pub(crate) flow: ResolvedFlow,
    pub(crate) nodes: Vec<BuiltNode>,
}

pub(crate) enum BuiltNode {
    /// Hands messages on: the ends of a subflow instance.
    Pass,
    Native(Box<dyn FlowNode>),
    Agent(Arc<BuiltAgent>),
    Refused {
        error: RunError,
        tools: Vec<String>,
    },
    /// A model, memory or tool: used by agents, never by messages.
    Service,
    /// Only Node-RED can run it.
    Foreign,
}

/// An agent with everything it binds, live.
pub struct BuiltAgent {
    pub(crate) compiled: Arc<CompiledAgent>,
    pub(crate) plan: EncodedPlan,
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) memory: Option<Arc<dyn Memory>>,
    /// In the order of the spec's tools.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) session_id: Option<String>,
    pub(crate) memory_session_id: Option<String>,
    pub(crate) tab: String,
}

/// Builds every node this build can run.
///
/// # Errors
/// The first node whose adapter refuses its properties.
pub fn build_flow(checked: CheckedFlow, adapters: &Adapters) -> Result<BuiltFlow, BuildError> {
    let CheckedFlow { flow, agents, .. } = checked;
    let mut builder = Builder {
        flow: &flow,
        adapters,
        models: HashMap::new(),
        memories: HashMap::new(),
        tools: HashMap::new(),
    };
    let mut built: HashMap<NodeIx, BuiltNode> = HashMap::new();
    for agent in agents {
        let node = match agent.verdict {
            Verdict::Ready(ready) => {
                BuiltNode::Agent(Arc::new(builder.agent(agent.ix, &agent.node, &ready)?))
            }
            Verdict::Refused { error, tools, .. } => BuiltNode::Refused { error, tools },
        };
        built.insert(agent.ix, node);
    }
    let nodes = (0..flow.nodes.len())
        .map(|ix| match built.remove(&ix) {
            Some(agent) => Ok(agent),
            None => builder.ordinary(ix),
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(BuiltFlow { flow, nodes })
}

struct Builder<'a> {
    flow: &'a ResolvedFlow,
    adapters: &'a Adapters,
    models: HashMap<NodeIx, Arc<dyn ChatModel>>,
    memories: HashMap<NodeIx, Arc<dyn Memory>>,
    tools: HashMap<NodeIx, Arc<dyn Tool>>,
}

impl Builder<'_> {
    fn agent(
        &mut self,
        ix: NodeIx,
        node: &NodeSummary,
        ready: &ReadyAgent,
    ) -> Result<BuiltAgent, BuildError> {
        let wrong = |reason: String| BuildError { node: node.id.to_string(), reason };
        let compiled =
            CompiledAgent::compile(Arc::clone(&ready.spec)).map_err(|error| wrong(error.to_string()))?;
        let plan = EncodedPlan::new(&ready.plan).map_err(|error| wrong(error.to_string()))?;
        let adapters = self.adapters;
        let model =
            shared(self.flow, &mut self.models, ready.model, |name| adapters.models.get(name).copied())?;
        let memory = match ready.memory {
            Some(memory) => Some(shared(self.flow, &mut self.memories, memory, |name| {
                adapters.memories.get(name).copied()
            })?),
            None => None,
        };
        let tools = ready
            .tools
            .iter()
            .map(|tool| shared(self.flow, &mut self.tools, tool.ix, |name| adapters.tools.get(name).copied()))
            .collect::<Result<Vec<_>, _>>()?;
        let memory_session_id =
            ready.memory.and_then(|memory| self.flow.raw(memory).text("sessionId")).map(str::to_owned);
        Ok(BuiltAgent {
            compiled,
            plan,
            model,
            memory,
            tools,
            session_id: ready.session_id.clone(),
            memory_session_id,
            tab: self.flow.tab_of(ix).to_owned(),
        })
    }

    fn ordinary(&self, ix: NodeIx) -> Result<BuiltNode, BuildError> {
        let node = &self.flow.nodes[ix];
        if node.is_virtual {
            return Ok(BuiltNode::Pass);
        }
        if node.kind.role != Role::Data {
            return Ok(if node.kind.role.is_service() { BuiltNode::Service } else { BuiltNode::Foreign });
        }
        let raw = self.flow.raw(ix);
        let Some(build) = self.adapters.nodes.get(raw.type_name.as_str()) else {
            return Ok(BuiltNode::Foreign);
        };
        let summary = self.flow.summary(ix);
        build(NodeConfig { node: &summary, props: &raw.props }).map(BuiltNode::Native)
    }
}

type Build<T> = fn(NodeConfig<'_>) -> Result<Arc<T>, BuildError>;

/// A service, built once however many agents bind it.
fn shared<T: ?Sized>(
    flow: &ResolvedFlow,
    known: &mut HashMap<NodeIx, Arc<T>>,
    ix: NodeIx,
    builder: impl Fn(&str) -> Option<Build<T>>,
) -> Result<Arc<T>, BuildError> {
    if let Some(found) = known.get(&ix) {
        return Ok(Arc::clone(found));
    }
    let (raw, summary) = (flow.raw(ix), flow.summary(ix));
    let config = NodeConfig { node: &summary, props: &raw.props };
    let build = builder(&raw.type_name)
        .ok_or_else(|| config.error(format!("this build cannot run the type `{}`", raw.type_name)))?;
    let made = build(config)?;
    known.insert(ix, Arc::clone(&made));
    Ok(made)
}
