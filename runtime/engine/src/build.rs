//! From a checked flow to live nodes.

use crate::catch::Catches;
use crate::schedule::{MAX_SCHEDULES, Schedule};
use crate::tool_chain::reply_only;
use redflow_contract::Message;
use redflow_contract::blank::text_of;
use redflow_contract::code::RunErrorCode;
use redflow_contract::edge::Role;
use redflow_contract::id::{InstanceId, NodeId, NodeSummary};
use redflow_contract::plan::EncodedPlan;
use redflow_contract::run_error::RunError;
use redflow_contract::scrub::Scrubber;
use redflow_flow::{CheckedFlow, NodeIx, ReadyAgent, ResolvedFlow, Verdict, Wire};
use redflow_ports::{
    Adapters, BuildError, Builder as BuildNode, ChatModel, FlowNode, Memory, NodeConfig, Tool,
};
use redflow_react::CompiledAgent;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A flow whose nodes can be driven.
pub struct BuiltFlow {
    pub(crate) flow: ResolvedFlow,
    pub(crate) nodes: Vec<BuiltNode>,
    pub(crate) catches: Catches,
    /// The nodes that only tool calls reach.
    pub(crate) reply_only: HashSet<NodeIx>,
    /// Every secret its services have.
    pub(crate) scrubber: Arc<Scrubber>,
    /// The agents in the order of the file, each with the inject nodes that are wired to it.
    pub(crate) agents: Vec<(NodeIx, Vec<NodeIx>)>,
    /// The inject nodes that fire by themselves.
    pub(crate) schedules: Vec<(NodeId, Schedule)>,
}

pub(crate) enum BuiltNode {
    /// Hands messages on: the ends of a subflow instance.
    Pass,
    Native(Box<dyn FlowNode>),
    /// An ordinary node whose properties are wrong.
    Broken(RunError),
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

/// What does the calls of a tool.
pub(crate) enum BuiltTool {
    Service(Arc<dyn Tool>),
    /// The nodes behind the agent's tool port, as messages.
    Chain,
}

impl BuiltTool {
    pub(crate) fn is_chain(&self) -> bool {
        matches!(self, Self::Chain)
    }
}

/// An agent with everything it binds, live.
pub struct BuiltAgent {
    pub(crate) compiled: Arc<CompiledAgent>,
    pub(crate) plan: EncodedPlan,
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) model_node: NodeSummary,
    pub(crate) memory: Option<Arc<dyn Memory>>,
    /// In the order of the spec's tools.
    pub(crate) tools: Vec<BuiltTool>,
    /// The same.
    pub(crate) tool_nodes: Vec<NodeSummary>,
    /// The secrets of the flow, to be kept out of what comes back.
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) session_id: Option<String>,
    pub(crate) memory_session_id: Option<Arc<str>>,
    pub(crate) tab: String,
}

impl BuiltFlow {
    /// The agent of an id, if it may run.
    pub(crate) fn agent(&self, id: &NodeId) -> Option<&Arc<BuiltAgent>> {
        match self.nodes.get(self.flow.find(id.as_str())?) {
            Some(BuiltNode::Agent(agent)) => Some(agent),
            _ => None,
        }
    }

    /// Every secret its services have.
    #[must_use]
    pub fn scrubber(&self) -> &Arc<Scrubber> {
        &self.scrubber
    }

    /// Why an agent may not run; none if it may, or there is none.
    #[must_use]
    pub fn refusal(&self, id: &NodeId) -> Option<&RunError> {
        match self.nodes.get(self.flow.find(id.as_str())?) {
            Some(BuiltNode::Refused { error, .. }) => Some(error),
            _ => None,
        }
    }

    /// The chat nodes that run.
    pub fn chat_nodes(&self) -> impl Iterator<Item = &NodeId> {
        let is_chat = |ix: &NodeIx| {
            self.flow.nodes[*ix].kind.role == Role::Chat && matches!(self.nodes[*ix], BuiltNode::Native(_))
        };
        (0..self.nodes.len()).filter(is_chat).map(|ix| &self.flow.nodes[ix].id)
    }

    /// The chat nodes a port leads to, directly or through nodes that only hand messages on.
    pub(crate) fn chats_behind(&self, from: NodeIx, port: usize) -> Vec<NodeIx> {
        let mut found = Vec::new();
        let first = self.flow.nodes[from].wires.get(port);
        self.walk(first.into_iter().flatten(), |ix| {
            let node = &self.flow.nodes[ix];
            if node.kind.role == Role::Chat {
                found.push(ix);
            }
            node.transparent || node.is_virtual
        });
        found
    }

    /// Whether messages of a node come to an agent, through whatever nodes.
    pub(crate) fn leads_to_an_agent(&self, from: NodeIx) -> bool {
        let mut found = false;
        self.walk(self.flow.nodes[from].wires.iter().flatten(), |ix| {
            found |= self.is_agent(ix);
            !found
        });
        found
    }

    /// Whether messages of a node come to this agent, and not through another one.
    pub(crate) fn leads_to(&self, from: NodeIx, agent: NodeIx) -> bool {
        let mut found = false;
        self.walk(self.flow.nodes[from].wires.iter().flatten(), |ix| {
            found |= ix == agent;
            !found && !self.is_agent(ix)
        });
        found
    }

    fn is_agent(&self, ix: NodeIx) -> bool {
        matches!(self.nodes[ix], BuiltNode::Agent(_) | BuiltNode::Refused { .. })
    }

    /// Visits every node behind some wires once; goes on behind those that `goes_on` says.
    fn walk<'a>(&'a self, wires: impl Iterator<Item = &'a Wire>, mut goes_on: impl FnMut(NodeIx) -> bool) {
        let mut seen = HashSet::new();
        let mut waiting: Vec<&Wire> = wires.collect();
        while let Some(wire) = waiting.pop() {
            if let Wire::To(ix) = wire
                && seen.insert(*ix)
                && goes_on(*ix)
            {
                waiting.extend(self.flow.nodes[*ix].wires.iter().flatten());
            }
        }
    }

    /// Whether the flow has this agent, refused or not.
    pub(crate) fn has_agent(&self, id: &NodeId) -> bool {
        self.flow.find(id.as_str()).is_some_and(|ix| self.is_agent(ix))
    }
}

/// Builds every node this build can run. A node that cannot be built does not stop the others: an agent that
/// needs it is refused, an ordinary node answers every message with the error.
#[must_use]
pub fn build_flow(checked: CheckedFlow, adapters: &Adapters, env: ProcessEnv<'_>) -> BuiltFlow {
    let CheckedFlow { flow, agents, .. } = checked;
    let mut builder = Builder {
        flow: &flow,
        adapters,
        env,
        models: HashMap::new(),
        memories: HashMap::new(),
        memory_sessions: HashMap::new(),
        tools: HashMap::new(),
        secrets: RefCell::default(),
    };
    let mut built: HashMap<NodeIx, BuiltNode> = HashMap::new();
    let mut ready_agents = Vec::new();
    let mut with_injects = Vec::new();
    for agent in agents {
        with_injects.push((agent.ix, agent.injects));
        let node = match agent.verdict {
            Verdict::Ready(ready) => match builder.agent(agent.ix, &agent.node, &ready) {
                Ok(built) => {
                    ready_agents.push((agent.ix, built));
                    continue;
                }
                Err(error) => {
                    let tools = ready.tools.iter().map(|tool| tool.name.clone()).collect();
                    BuiltNode::Refused { error: run_error(&error), tools }
                }
            },
            Verdict::Refused { error, tools, .. } => BuiltNode::Refused { error, tools },
        };
        built.insert(agent.ix, node);
    }
    // Any tool may come across any secret of the flow, so all agents know them all.
    let scrubber = Arc::new(builder.secrets.take());
    for (ix, agent) in ready_agents {
        built.insert(ix, BuiltNode::Agent(Arc::new(BuiltAgent { scrubber: Arc::clone(&scrubber), ..agent })));
    }
    let nodes: Vec<BuiltNode> = (0..flow.nodes.len())
        .map(|ix| match built.remove(&ix) {
            Some(agent) => agent,
            None => builder.ordinary(ix).unwrap_or_else(|error| BuiltNode::Broken(run_error(&error))),
        })
        .collect();
    let catches = Catches::new(&flow);
    let schedules = schedules(&flow, &nodes, env);
    let reply_only = reply_only(&flow, &nodes);
    BuiltFlow { flow, nodes, catches, reply_only, scrubber, agents: with_injects, schedules }
}

/// When the inject nodes of a flow fire by themselves.
fn schedules(flow: &ResolvedFlow, nodes: &[BuiltNode], env: ProcessEnv<'_>) -> Vec<(NodeId, Schedule)> {
    let is_inject = |ix: &NodeIx| flow.raw(*ix).type_name == "inject";
    let fires = |ix: &NodeIx| matches!(nodes[*ix], BuiltNode::Native(_)) && is_inject(ix);
    let read = |ix: NodeIx| {
        let schedule = Schedule::read(flow.resolved_props(ix, env, false))?;
        Some((flow.nodes[ix].id.clone(), schedule))
    };
    let mut found: Vec<(NodeId, Schedule)> = (0..nodes.len()).filter(fires).filter_map(read).collect();
    found.iter_mut().skip(MAX_SCHEDULES).for_each(|(_, schedule)| *schedule = Schedule::one_too_many());
    found
}

/// What the process environment says of a name.
type ProcessEnv<'a> = &'a dyn Fn(&str) -> Option<String>;

fn run_error(error: &BuildError) -> RunError {
    let (code, message) = (RunErrorCode::ConfigInvalid, error.to_string());
    RunError { code, message, pointer: None, rule: None, iteration: 0 }
}

struct Builder<'a> {
    flow: &'a ResolvedFlow,
    adapters: &'a Adapters,
    env: ProcessEnv<'a>,
    models: Known<dyn ChatModel>,
    memories: Known<dyn Memory>,
    /// The `sessionId` of each memory.
    memory_sessions: HashMap<NodeIx, Option<Arc<str>>>,
    tools: Known<dyn Tool>,
    secrets: RefCell<Scrubber>,
}

impl Builder<'_> {
    fn agent(
        &mut self,
        ix: NodeIx,
        node: &NodeSummary,
        ready: &ReadyAgent,
    ) -> Result<BuiltAgent, BuildError> {
        let wrong = |reason: String| BuildError { node: node.id.to_string(), reason };
        let spec = Arc::clone(&ready.spec);
        let compiled = CompiledAgent::compile(spec).map_err(|error| wrong(error.to_string()))?;
        let plan = EncodedPlan::new(&ready.plan).map_err(|error| wrong(error.to_string()))?;
        let (flow, env, adapters) = (self.flow, self.env, self.adapters);
        let secrets = &self.secrets;
        let model = shared(flow, env, secrets, &mut self.models, ready.model, &adapters.models)?;
        let memory = match ready.memory {
            Some(memory) => Some(shared(flow, env, secrets, &mut self.memories, memory, &adapters.memories)?),
            None => None,
        };
        let tools = ready
            .tools
            .iter()
            .map(|tool| match flow.nodes[tool.ix].kind.role {
                Role::Data => flow_tool(adapters, &flow.summary(tool.ix), env),
                _ => shared(flow, env, secrets, &mut self.tools, tool.ix, &adapters.tools)
                    .map(BuiltTool::Service),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let memory_session_id = ready.memory.and_then(|memory| {
            let read = || {
                let props = flow.resolved_props(memory, env, false);
                text_of(&props, "sessionId").map(Arc::from)
            };
            self.memory_sessions.entry(memory).or_insert_with(read).clone()
        });
        Ok(BuiltAgent {
            compiled,
            plan,
            model,
            model_node: flow.summary(ready.model),
            memory,
            tools,
            tool_nodes: ready.tools.iter().map(|tool| flow.summary(tool.ix)).collect(),
            scrubber: Arc::default(),
            session_id: ready.session_id.clone(),
            memory_session_id,
            tab: scope_of(&ready.spec.agent.instance, flow.tab_of(ix)),
        })
    }

    fn ordinary(&self, ix: NodeIx) -> Result<BuiltNode, BuildError> {
        let node = &self.flow.nodes[ix];
        if node.is_virtual {
            return Ok(BuiltNode::Pass);
        }
        if !matches!(node.kind.role, Role::Data | Role::Chat) {
            return Ok(if node.kind.role.is_service() { BuiltNode::Service } else { BuiltNode::Foreign });
        }
        let Some(build) = self.adapters.nodes.get(self.flow.raw(ix).type_name.as_str()) else {
            return Ok(BuiltNode::Foreign);
        };
        // What an ordinary node holds can end up in a message, so no secret is resolved for it.
        let props = self.flow.resolved_props(ix, self.env, false);
        let config =
            NodeConfig { node: &self.flow.summary(ix), props: &props, env: self.env, takes: &|_| () };
        build(config).map(BuiltNode::Native)
    }
}

/// A data node that is a tool: its messages move here, or where the flow is.
pub(crate) fn flow_tool(
    adapters: &Adapters,
    node: &NodeSummary,
    env: ProcessEnv<'_>,
) -> Result<BuiltTool, BuildError> {
    let Some(build) = &adapters.flow_tools else { return Ok(BuiltTool::Chain) };
    build(NodeConfig { node, props: &Message::new(), env, takes: &|_| () }).map(BuiltTool::Service)
}

/// What keeps conversations of one flow apart from those of others: two Node-REDs may have the same one.
fn scope_of(instance: &InstanceId, tab: &str) -> String {
    if *instance == InstanceId::local() { tab.to_owned() } else { format!("{instance}/{tab}") }
}

/// What came of building each service.
type Known<T> = HashMap<NodeIx, Result<Arc<T>, BuildError>>;

/// A service, built once however many agents bind it, and tried only once.
fn shared<T: ?Sized>(
    flow: &ResolvedFlow,
    env: ProcessEnv<'_>,
    secrets: &RefCell<Scrubber>,
    known: &mut Known<T>,
    ix: NodeIx,
    builders: &BTreeMap<&'static str, BuildNode<Arc<T>>>,
) -> Result<Arc<T>, BuildError> {
    let make = || {
        let (node, props) = (flow.summary(ix), flow.resolved_props(ix, env, true));
        secrets.borrow_mut().add_properties(&props);
        let takes = |secret: &str| secrets.borrow_mut().add(secret);
        let config = NodeConfig { node: &node, props: &props, env, takes: &takes };
        match builders.get(node.type_name.as_str()) {
            Some(build) => build(config),
            None => Err(config.error(format!("this build cannot run the type `{}`", node.type_name))),
        }
    };
    known.entry(ix).or_insert_with(make).clone()
}
