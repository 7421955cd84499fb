//! Builds the nodes of a checked flow.

use super::agent::{BoundProvider, BuiltAgent, BuiltTool, ProviderBindings, ProviderSource, ToolTarget};
use super::catches::CatchIndex;
use super::reach::reply_only_nodes;
use super::schedule::{MAX_SCHEDULES, Schedule};
use super::services::{FinishedServices, FlowServices, ProcessEnv, session_scope};
use super::{BuiltFlow, BuiltNode, CallableFlowTool, CallableFlowTools};
use crate::report::error_outside_run;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::edge::Role;
use redflow_contract::editor_values::text_of;
use redflow_contract::id::{InstanceId, NodeId, NodeSummary};
use redflow_contract::plan::{AgentSpec, EncodedPlan};
use redflow_contract::run_error::RunError;
use redflow_contract::tool::ToolOrigin;
use redflow_flow::{CheckedFlow, NodeIx, ProcessSecrets, ReadyAgent, ReadyProvider, ResolvedFlow, Verdict};
use redflow_machine::Strategies;
use redflow_ports::{Adapters, BuildError, ChatModel, Memory, ModelInfo, NodeConfig};
use std::collections::HashMap;
use std::sync::Arc;

/// Builds every node that this build can run. A node that cannot be built does not stop the others: an agent
/// that needs it is refused, and an ordinary node answers every message with the error.
#[must_use]
pub fn build_flow(
    checked: CheckedFlow,
    adapters: &Adapters,
    strategies: &Strategies,
    env: ProcessEnv<'_>,
) -> BuiltFlow {
    let CheckedFlow { flow, agents, .. } = checked;
    let instance = agents.iter().find_map(|agent| match &agent.verdict {
        Verdict::Ready(ready) => Some(ready.spec.agent.instance.clone()),
        Verdict::Refused { .. } => None,
    });
    let instance = instance.unwrap_or_else(InstanceId::local);
    let services = FlowServices::new(&flow, adapters, env, &instance);
    let builder = FlowBuilder { flow: &flow, adapters, strategies, env, services: &services };
    let mut built: HashMap<NodeIx, BuiltNode> = HashMap::new();
    let mut ready_agents = Vec::new();
    let mut with_injects = Vec::new();
    let mut build_errors = Vec::new();
    for agent in agents {
        with_injects.push((agent.ix, agent.injects));
        let node = match agent.verdict {
            Verdict::Ready(ready) => match builder.build_agent(agent.ix, &agent.node, &ready) {
                Ok(built) => {
                    ready_agents.push((agent.ix, built));
                    continue;
                }
                Err(error) => {
                    let tools = ready.tools.iter().map(|tool| tool.name.clone()).collect();
                    let refused = BuiltNode::Refused { error: config_error(&error), tools };
                    build_errors.push((agent.node, error));
                    refused
                }
            },
            Verdict::Refused { error, tools, .. } => BuiltNode::Refused { error, tools },
        };
        built.insert(agent.ix, node);
    }
    // Any tool may return any secret of the flow, so each agent scrubs all of them.
    let FinishedServices { memories, providers, scrubber } = services.finish();
    let scrubber = Arc::new(scrubber);
    for (ix, agent) in ready_agents {
        built.insert(ix, BuiltNode::Agent(Arc::new(BuiltAgent { scrubber: Arc::clone(&scrubber), ..agent })));
    }
    let nodes: Vec<BuiltNode> = (0..flow.nodes.len())
        .map(|ix| match built.remove(&ix) {
            Some(agent) => agent,
            None => build_ordinary(&flow, adapters, env, ix)
                .unwrap_or_else(|error| BuiltNode::Misconfigured(config_error(&error))),
        })
        .collect();
    let catches = CatchIndex::new(&flow);
    let schedules = read_schedules(&flow, &nodes, &memories, env);
    let reply_only = reply_only_nodes(&flow, &nodes);
    let flow_tools = callable_flow_tools(&nodes);
    let agents = with_injects;
    BuiltFlow {
        flow,
        nodes,
        catches,
        reply_only,
        flow_tools,
        scrubber,
        agents,
        memories,
        providers,
        build_errors,
        schedules,
    }
}

/// The flow tools of all agents.
fn callable_flow_tools(nodes: &[BuiltNode]) -> Arc<CallableFlowTools> {
    let mut found = CallableFlowTools::new();
    for node in nodes {
        let BuiltNode::Agent(agent) = node else { continue };
        for (tool, target) in agent.own_tools() {
            if tool.entry.origin == ToolOrigin::Flow {
                let callable = CallableFlowTool { entry: tool.entry, target, agent: Arc::clone(agent) };
                found.entry(NodeId::from(callable.entry.provider.as_str())).or_insert(callable);
            }
        }
    }
    Arc::new(found)
}

/// The schedules of inject nodes, then those of memories.
fn read_schedules(
    flow: &ResolvedFlow,
    nodes: &[BuiltNode],
    memories: &[(NodeSummary, Arc<dyn Memory>)],
    env: ProcessEnv<'_>,
) -> Vec<(NodeId, Schedule)> {
    let is_inject = |ix: &NodeIx| flow.raw(*ix).type_name == "inject";
    let can_fire = |ix: &NodeIx| matches!(nodes[*ix], BuiltNode::Native(_)) && is_inject(ix);
    let read = |ix: NodeIx| {
        let schedule = Schedule::read(flow.resolved_props(ix, env, ProcessSecrets::Hidden))?;
        Some((flow.nodes[ix].id.clone(), schedule))
    };
    let mut schedules: Vec<(NodeId, Schedule)> = (0..nodes.len()).filter(can_fire).filter_map(read).collect();
    let of_memory = |(node, memory): &(NodeSummary, Arc<dyn Memory>)| {
        let crontab = memory.maintenance_times()?.schedule?;
        Some((node.id.clone(), Schedule::of_memory(&crontab)?))
    };
    schedules.extend(memories.iter().filter_map(of_memory));
    let too_many = schedules.iter_mut().skip(MAX_SCHEDULES);
    too_many.for_each(|(_, schedule)| *schedule = Schedule::over_limit());
    schedules
}

fn config_error(error: &BuildError) -> RunError {
    let code = match error.missing_key {
        Some(_) => RunErrorCode::ModelKeyMissing,
        None => RunErrorCode::ConfigInvalid,
    };
    error_outside_run(code, error.to_string())
}

struct FlowBuilder<'a> {
    flow: &'a ResolvedFlow,
    adapters: &'a Adapters,
    strategies: &'a Strategies,
    env: ProcessEnv<'a>,
    services: &'a FlowServices<'a>,
}

impl FlowBuilder<'_> {
    fn build_agent(
        &self,
        ix: NodeIx,
        node: &NodeSummary,
        ready: &ReadyAgent,
    ) -> Result<BuiltAgent, BuildError> {
        let error = |reason: String| BuildError::new(node, reason);
        let compiled = self.strategies.compile(&ready.spec).map_err(|why| error(why.to_string()))?;
        let plan = EncodedPlan::new(&ready.plan).map_err(|why| error(why.to_string()))?;
        let (flow, env, adapters) = (self.flow, self.env, self.adapters);
        let models = std::iter::once(&ready.model).chain(&ready.fallback_models);
        let models = models.map(|ix| self.services.model(*ix)).collect::<Result<Vec<_>, _>>()?;
        check_takes_tools(&models, ready).map_err(error)?;
        let fallback_models = fallback_infos(&models);
        let model = join_models(models, adapters, &ready.spec).map_err(error)?;
        let memory = ready.memory.map(|memory| self.services.memory(memory)).transpose()?;
        let tools = ready
            .tools
            .iter()
            .map(|tool| match flow.nodes[tool.ix].kind.role {
                Role::Data => flow_tool(adapters, &flow.summary(tool.ix), env),
                _ => self.services.tool(tool.ix).map(ToolTarget::Service),
            })
            .map(|target| target.map(BuiltTool::of_node))
            .collect::<Result<Vec<_>, _>>()?;
        let providers = ready.providers.iter().map(|provider| self.bind_provider(provider));
        let providers = providers.collect::<Result<Vec<_>, _>>()?;
        let providers = ProviderBindings::new(providers, ready.allowed_tools.clone(), &ready.spec);
        // Secrets stay hidden: sessions and users are shown.
        let memory_props = ready.memory.map(|ix| flow.resolved_props(ix, env, ProcessSecrets::Hidden));
        let of_memory =
            |name: &str| memory_props.as_ref().and_then(|props| text_of(props, name)).map(Arc::from);
        Ok(BuiltAgent {
            compiled,
            plan,
            model,
            fallback_models,
            model_node: flow.summary(ready.model),
            memory,
            tools,
            tool_nodes: ready.tools.iter().map(|tool| flow.summary(tool.ix)).collect(),
            scrubber: Arc::default(),
            session_id: ready.session_id.clone(),
            memory_session_id: of_memory("sessionId"),
            memory_user_id: of_memory("userId"),
            memory_node: ready.memory.map(|ix| flow.summary(ix)),
            input: ready.input.clone(),
            tab: session_scope(&ready.spec.agent.instance, flow.tab_of(ix)),
            stream_wired: ready.stream_wired,
            providers,
        })
    }

    fn bind_provider(&self, provider: &ReadyProvider) -> Result<BoundProvider, BuildError> {
        let (flow, env, adapters) = (self.flow, self.env, self.adapters);
        let node = flow.summary(provider.ix);
        let source = match &provider.ids {
            Some(ids) => ProviderSource::Registry { ids: ids.clone() },
            None if flow.nodes[provider.ix].kind.role == Role::Data => ProviderSource::Node {
                target: flow_tool(adapters, &node, env)?,
                tool_name: provider.tool_name.clone(),
            },
            None => ProviderSource::Provider(self.services.provider(provider.ix)?),
        };
        Ok(BoundProvider { node, source, on_unknown: provider.on_unknown })
    }
}

fn build_ordinary(
    flow: &ResolvedFlow,
    adapters: &Adapters,
    env: ProcessEnv<'_>,
    ix: NodeIx,
) -> Result<BuiltNode, BuildError> {
    let node = &flow.nodes[ix];
    if node.is_virtual {
        return Ok(BuiltNode::Pass);
    }
    if !matches!(node.kind.role, Role::Data | Role::Chat) {
        return Ok(if node.kind.role.is_service() { BuiltNode::Service } else { BuiltNode::NodeRedOnly });
    }
    let Some(build) = adapters.nodes.get(flow.raw(ix).type_name.as_str()) else {
        return Ok(BuiltNode::NodeRedOnly);
    };
    // The properties of an ordinary node can enter a message, so no secret is resolved for it.
    let props = flow.resolved_props(ix, env, ProcessSecrets::Hidden);
    let node = flow.summary(ix);
    build(NodeConfig::new(&node, &props, env, &|_| ())).map(BuiltNode::Native)
}

/// A data node that is a tool. Its messages move in this engine, or in the host that owns the flow.
pub(crate) fn flow_tool(
    adapters: &Adapters,
    node: &NodeSummary,
    env: ProcessEnv<'_>,
) -> Result<ToolTarget, BuildError> {
    let Some(build) = &adapters.flow_tools else { return Ok(ToolTarget::Flow) };
    build(NodeConfig::new(node, &Message::new(), env, &|_| ())).map(ToolTarget::Service)
}

/// Checks that every model takes tools, if the agent gives it some. Agent Core describes its tools in the prompt.
fn check_takes_tools(models: &[Arc<dyn ChatModel>], ready: &ReadyAgent) -> Result<(), String> {
    if ready.spec.converse.is_none() || (ready.tools.is_empty() && ready.providers.is_empty()) {
        return Ok(());
    }
    match models.iter().find(|model| !model.info().tools) {
        None => Ok(()),
        Some(model) => Err(format!(
            "the agent has tools, but the model `{}` takes none; choose another model, or set `capabilities` of its node to \
             {{\"tools\": true}} if it does",
            model.info().model
        )),
    }
}

/// What the fallback models are, given an agent's own model and these.
pub(crate) fn fallback_infos(models: &[Arc<dyn ChatModel>]) -> Vec<ModelInfo> {
    models.iter().skip(1).map(|model| model.info().clone()).collect()
}

/// One model of an agent's own model and its fallback models.
pub(crate) fn join_models(
    mut models: Vec<Arc<dyn ChatModel>>,
    adapters: &Adapters,
    spec: &AgentSpec,
) -> Result<Arc<dyn ChatModel>, String> {
    let has_cost = spec.budget.is_some_and(|budget| budget.cost.is_some());
    if let Some(model) = models.iter().find(|model| has_cost && !model.info().priced) {
        let ModelInfo { provider, model, .. } = model.info();
        let advice = match *provider {
            "scripted" => "add `usage.cost` to its replies",
            _ => {
                "set `inputPrice` and `outputPrice` at its node, or add it to `[prices]` in the configuration"
            }
        };
        return Err(format!(
            "its budget limits the `cost`, but the model `{model}` has no known price: {advice}, or limit `tokens` \
             instead"
        ));
    }
    match (models.len(), adapters.model_chain) {
        (0 | 1, _) => models.pop().ok_or_else(|| "it has no model".to_owned()),
        (_, Some(join)) => Ok(join(models)),
        (_, None) => Err("this build has no fallback models".to_owned()),
    }
}
