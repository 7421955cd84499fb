//! The flow as the engine drives it: its nodes are built, and its Catch nodes and schedules are indexed.

pub(crate) mod agent;
pub(crate) mod build;
pub(crate) mod catches;
pub(crate) mod choose_start;
mod mcp_notices;
mod reach;
pub(crate) mod schedule;
pub(crate) mod services;

use agent::{BuiltAgent, ToolTarget};
use catches::CatchIndex;
use redflow_contract::edge::{PortKind, Role};
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::run_error::RunError;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::ToolEntry;
use redflow_flow::{NodeIx, ResolvedFlow};
use redflow_ports::{BuildError, FlowNode, Memory, Tool, ToolProvider};
use schedule::Schedule;
use services::NodeProvider;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A tool that is a node of a flow.
#[derive(Clone)]
pub struct FlowTool {
    /// What the registry shows of it.
    pub entry: Arc<ToolEntry>,
    /// Makes its calls; none for a flow that is used as a tool, which `Engine::call_flow_tool` calls.
    pub tool: Option<Arc<dyn Tool>>,
}

/// A flow that agents use as a tool, for callers outside a run. The flow replies to the agent.
pub(crate) struct CallableFlowTool {
    pub(crate) entry: Arc<ToolEntry>,
    pub(crate) target: ToolTarget,
    pub(crate) agent: Arc<BuiltAgent>,
}

/// Flow tools, each by the node that is the tool.
pub(crate) type CallableFlowTools = HashMap<NodeId, CallableFlowTool>;

/// A flow whose nodes are built; `Engine::deploy` takes one.
pub struct BuiltFlow {
    pub(crate) flow: ResolvedFlow,
    /// By the index of the node in `flow`.
    pub(crate) nodes: Vec<BuiltNode>,
    pub(crate) catches: CatchIndex,
    /// The nodes that only calls of flow tools reach. What they send to an agent is a reply or is dropped.
    pub(crate) reply_only: HashSet<NodeIx>,
    /// By the node that is the tool. Of several agents that use it, the first one.
    pub(crate) flow_tools: Arc<CallableFlowTools>,
    pub(crate) scrubber: Arc<Scrubber>,
    /// The agents in the order of the file, each with the inject nodes that are wired to it.
    pub(crate) agents: Vec<(NodeIx, Vec<NodeIx>)>,
    /// The memories that agents bind, or that other services name, in the order of the flow.
    pub(crate) memories: Vec<(NodeSummary, Arc<dyn Memory>)>,
    /// The nodes that provide tools and that agents bind, in the order of the flow.
    pub(crate) providers: Vec<NodeProvider>,
    /// The agents with a service that cannot be built.
    pub(crate) build_errors: Vec<(NodeSummary, BuildError)>,
    /// The inject nodes with a schedule.
    pub(crate) schedules: Vec<(NodeId, Schedule)>,
}

pub(crate) enum BuiltNode {
    /// Hands messages on: an end of a subflow instance.
    Pass,
    Native(Box<dyn FlowNode>),
    /// An ordinary node with wrong properties.
    Misconfigured(RunError),
    Agent(Arc<BuiltAgent>),
    Refused {
        error: RunError,
        tools: Vec<String>,
    },
    /// A model, memory or tool: agents use it, messages never reach it.
    Service,
    /// Only Node-RED can run it.
    NodeRedOnly,
}

impl BuiltFlow {
    /// The agent with this id, unless it is refused.
    pub(crate) fn agent(&self, id: &NodeId) -> Option<&Arc<BuiltAgent>> {
        match self.nodes.get(self.flow.find(id.as_str())?) {
            Some(BuiltNode::Agent(agent)) => Some(agent),
            _ => None,
        }
    }

    /// Knows every secret that the services of the flow hold.
    #[must_use]
    pub fn scrubber(&self) -> &Arc<Scrubber> {
        &self.scrubber
    }

    /// The nodes and wires.
    #[must_use]
    pub fn resolved(&self) -> &ResolvedFlow {
        &self.flow
    }

    /// The agents that pass the checker and are refused, because a service of theirs cannot be built.
    #[must_use]
    pub fn build_errors(&self) -> &[(NodeSummary, BuildError)] {
        &self.build_errors
    }

    /// The chat nodes that this build runs, in the order of the flow, each with an agent that its messages reach.
    pub fn chat_nodes(&self) -> impl Iterator<Item = (&NodeId, Option<NodeSummary>)> {
        let is_chat = |ix: &NodeIx| {
            self.flow.nodes[*ix].kind.role == Role::Chat && matches!(self.nodes[*ix], BuiltNode::Native(_))
        };
        let chats = (0..self.nodes.len()).filter(is_chat);
        chats.map(|ix| (&self.flow.nodes[ix].id, self.agent_behind(ix).map(|agent| self.flow.summary(agent))))
    }

    /// The tools of its agents that are nodes of their own, sorted by id. A flow tool has no
    /// receiver here: `Engine::call_flow_tool` calls it.
    #[must_use]
    pub fn tools(&self) -> Vec<FlowTool> {
        let agents = self.nodes.iter().filter_map(|node| match node {
            BuiltNode::Agent(agent) => Some(agent),
            _ => None,
        });
        let mut tools: Vec<FlowTool> =
            agents.flat_map(|agent| agent.own_tools().map(|(tool, _)| tool)).collect();
        tools.sort_by(|one, other| {
            (&one.entry.id, &one.entry.provider).cmp(&(&other.entry.id, &other.entry.provider))
        });
        tools.dedup_by(|one, other| one.entry.provider == other.entry.provider);
        tools
    }

    /// The memories that agents bind, or that other services name, in the order of the flow.
    #[must_use]
    pub fn memories(&self) -> &[(NodeSummary, Arc<dyn Memory>)] {
        &self.memories
    }

    /// The nodes that provide tools and that agents bind, in the order of the flow.
    #[must_use]
    pub fn providers(&self) -> &[(NodeSummary, Arc<dyn ToolProvider>)] {
        &self.providers
    }

    /// The agents that are not refused, by their ids.
    pub fn agents(&self) -> impl Iterator<Item = (&NodeId, &Arc<BuiltAgent>)> {
        self.nodes.iter().filter_map(|node| match node {
            BuiltNode::Agent(agent) => Some((&agent.compiled.spec().agent.node_id, agent)),
            _ => None,
        })
    }

    /// Whether the flow has this agent, refused or not.
    pub(crate) fn has_agent(&self, id: &NodeId) -> bool {
        self.flow.find(id.as_str()).is_some_and(|ix| self.nodes[ix].is_agent())
    }

    /// The output of an agent that carries messages of this kind.
    pub(crate) fn output_port(&self, agent: NodeIx, kind: PortKind) -> Option<usize> {
        let ports = self.flow.nodes[agent].kind.outputs.unwrap_or_default();
        ports.iter().position(|port| *port == kind)
    }
}

impl BuiltNode {
    pub(crate) fn is_agent(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Refused { .. })
    }
}
