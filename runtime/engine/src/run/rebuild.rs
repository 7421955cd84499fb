//! Rebuilds the agent of a resumed run from the plan of the run, not from the current flow.
//!
//! A plan holds no secrets. They come from the current flow and environment; without them the run stays
//! suspended.

use crate::flow::BuiltFlow;
use crate::flow::agent::{BuiltAgent, BuiltTool, ToolTarget};
use crate::flow::build::{fallback_infos, flow_tool, join_models};
use crate::flow::services::session_scope;
use crate::ports::Ports;
use crate::registry::bindings::{recorded_operation, recorded_tool};
use crate::registry::wait::recorded_wait;
use redflow_contract::Message;
use redflow_contract::catalogue::lookup;
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::edge::Role;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::id::{InstanceId, NodeId, NodeSummary};
use redflow_contract::input::InputTemplates;
use redflow_contract::mcp::{MCP_CLIENT, mcp_server_of};
use redflow_contract::node::{self, declaration::Kind};
use redflow_contract::plan::{AgentPlan, AgentSpec, EncodedPlan, PlanNode, ToolSpec};
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::REDACTED;
use redflow_flow::resolve_process_env;
use redflow_machine::{Agent, CompileError, Strategies};
use redflow_ports::{
    BoxFuture, BuildError, Builder, ChatModel, Memory, ModelInfo, ModelRequest, NamedServices, NodeConfig,
    StoreError, ToolProvider,
};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A cache of the agents of resumed runs, so that a thousand runs of one plan build it once.
#[derive(Default)]
pub(crate) struct RebuiltAgents {
    compiled: Mutex<Vec<Arc<dyn Agent>>>,
    built: Mutex<Vec<RebuiltAgent>>,
}

/// An agent with the flow that its secrets come from, and the generation of the registry.
type RebuiltAgent = (Weak<BuiltFlow>, u64, Arc<BuiltAgent>);

/// Entries of each list of the cache.
const MAX_CACHED: usize = 64;

impl RebuiltAgents {
    /// Compiles a recorded spec for a machine of a version.
    pub(super) fn compile(
        &self,
        flow: Option<&BuiltFlow>,
        (spec, version): (&Arc<AgentSpec>, u32),
        strategies: &Strategies,
    ) -> Result<Arc<dyn Agent>, CompileError> {
        let is_same = |agent: &&Arc<dyn Agent>| agent.version() == version && **agent.spec() == **spec;
        let of_flow = flow.and_then(|flow| flow.agent(&spec.agent.node_id)).map(|agent| &agent.compiled);
        if let Some(same) = of_flow.filter(is_same) {
            return Ok(Arc::clone(same));
        }
        let cached = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = cached().iter().find(is_same) {
            return Ok(Arc::clone(same));
        }
        // Without the lock, so that a long compilation holds no other replay.
        let compiled = strategies.compile_version(spec, version)?;
        cache(&mut cached(), Arc::clone(&compiled));
        Ok(compiled)
    }

    /// Builds the services of a recorded plan. An agent of the flow with the same plan is reused.
    pub(super) fn build(
        &self,
        flow: Option<&Arc<BuiltFlow>>,
        (plan, providers): (&AgentPlan, PlanProviders),
        compiled: &Arc<dyn Agent>,
        ports: &Ports,
    ) -> Result<Arc<BuiltAgent>, StoreError> {
        let encoded = EncodedPlan::new(plan).map_err(|error| cannot_rebuild(&error))?;
        let same = |agent: &Arc<BuiltAgent>| {
            agent.plan.digest() == encoded.digest() && Arc::ptr_eq(agent.compiled.spec(), compiled.spec())
        };
        if let Some(agent) = flow.and_then(|flow| flow.agent(&plan.agent.node.id)).filter(|agent| same(agent))
        {
            return Ok(Arc::clone(agent));
        }
        let mut cached = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let of_flow = flow.map(Arc::downgrade).unwrap_or_default();
        let generation = ports.registry.snapshot().generation();
        let is_cached =
            |(of, known, agent): &&RebuiltAgent| of.ptr_eq(&of_flow) && *known == generation && same(agent);
        if let Some((.., agent)) = cached.iter().find(is_cached) {
            return Ok(Arc::clone(agent));
        }
        let build = || build_agent(flow.map(|flow| &**flow), (plan, providers), encoded, compiled, ports);
        let built =
            catch_unwind(AssertUnwindSafe(build)).map_err(|_| cannot_rebuild(&"a service crashed"))?;
        let agent = Arc::new(built.map_err(|error| cannot_rebuild(&error))?);
        cache(&mut cached, (of_flow, generation, Arc::clone(&agent)));
        Ok(agent)
    }

    /// Builds the providers of a recorded plan that give the run its tools, and the wait until they know their tools.
    /// There is no wait if they know them now.
    pub(super) fn build_providers(
        &self,
        flow: Option<&Arc<BuiltFlow>>,
        plan: &AgentPlan,
        compiled: &Arc<dyn Agent>,
        ports: &Ports,
    ) -> Result<(PlanProviders, Option<BoxFuture<'static, ()>>), StoreError> {
        let spec = compiled.spec();
        let ids = spec.tools.iter().filter_map(|tool| tool.id.as_deref());
        let servers: BTreeSet<String> = ids.filter_map(mcp_server_of).map(str::to_owned).collect();
        if servers.is_empty() {
            return Ok((PlanProviders::default(), None));
        }
        let secrets = RefCell::default();
        let flow = flow.map(|flow| &**flow);
        let services = PlanServices::new(flow, plan, ports, &spec.agent.instance, &secrets);
        let builders = &ports.adapters.tool_providers;
        let build = || {
            let mut providers = HashMap::new();
            for planned in plan.tools.iter().filter(|planned| {
                planned.node.type_name == MCP_CLIENT && builders.contains_key(planned.node.type_name.as_str())
            }) {
                providers.insert(planned.node.id.clone(), services.build(planned, builders)?);
            }
            Ok(providers)
        };
        let built =
            catch_unwind(AssertUnwindSafe(build)).map_err(|_| cannot_rebuild(&"a service crashed"))?;
        let by_node = built.map_err(|error: BuildError| cannot_rebuild(&error))?;
        let wait = recorded_wait(&ports.registry, servers, by_node.values().cloned().collect());
        Ok((PlanProviders { by_node, secrets: secrets.take() }, wait))
    }

    /// The agent without its services: enough to cancel a run, or to resolve its call.
    pub(super) fn without_services(
        plan: &AgentPlan,
        compiled: &Arc<dyn Agent>,
    ) -> Result<Arc<BuiltAgent>, StoreError> {
        Ok(Arc::new(BuiltAgent {
            compiled: Arc::clone(compiled),
            plan: EncodedPlan::new(plan).map_err(|error| cannot_rebuild(&error))?,
            model: Arc::new(NoModel),
            fallback_models: Vec::new(),
            model_node: plan.model.node.clone(),
            memory: None,
            tools: Vec::new(),
            tool_nodes: Vec::new(),
            scrubber: Arc::default(),
            session_id: None,
            memory_session_id: None,
            memory_user_id: None,
            memory_node: None,
            input: InputTemplates::default(),
            tab: String::new(),
            stream_wired: false,
            providers: None,
        }))
    }
}

/// The model of an agent without services; no run calls it.
struct NoModel;

static NO_INFO: std::sync::LazyLock<ModelInfo> = std::sync::LazyLock::new(ModelInfo::default);

impl ChatModel for NoModel {
    fn info(&self) -> &ModelInfo {
        &NO_INFO
    }

    fn call<'a>(&'a self, _: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        let message = "the run was driven without its services".to_owned();
        Box::pin(std::future::ready(Err(Failure { code: RunErrorCode::Internal, message })))
    }
}

fn cache<T>(cached: &mut Vec<T>, new: T) {
    if cached.len() >= MAX_CACHED {
        cached.remove(0);
    }
    cached.push(new);
}

fn cannot_rebuild(why: &dyn std::fmt::Display) -> StoreError {
    let message = format!("the run cannot continue with its plan: {why}");
    StoreError::new(StoreCode::RunBlocked, message)
}

fn build_agent(
    flow: Option<&BuiltFlow>,
    (plan, mut providers): (&AgentPlan, PlanProviders),
    encoded: EncodedPlan,
    compiled: &Arc<dyn Agent>,
    ports: &Ports,
) -> Result<BuiltAgent, BuildError> {
    let adapters = &ports.adapters;
    // Any tool may return any secret of the flow.
    let secrets = RefCell::new(flow.map(|flow| Scrubber::clone(&flow.scrubber)).unwrap_or_default());
    let models = [&plan.model].into_iter().chain(&plan.fallback_models);
    let services = PlanServices::new(flow, plan, ports, &compiled.spec().agent.instance, &secrets);
    let models = models.map(|node| services.build(node, &adapters.models));
    let models: Vec<Arc<dyn ChatModel>> = models.collect::<Result<_, _>>()?;
    let fallback_models = fallback_infos(&models);
    let model = join_models(models, adapters, compiled.spec())
        .map_err(|reason| BuildError::new(&plan.agent.node, reason))?;
    let memory = plan.memory.as_ref();
    let memory = memory.map(|node| services.build(node, &adapters.memories)).transpose()?;
    let planned = |id: &NodeId| {
        let node = plan.tools.iter().find(|tool| tool.node.id == *id);
        let missing = || {
            let node = NodeSummary { id: id.clone(), type_name: String::new(), name: String::new() };
            BuildError::new(&node, "the plan does not have it")
        };
        node.ok_or_else(missing)
    };
    let planned = compiled.spec().tools.iter().map(|spec| planned(&spec.node));
    let planned = planned.collect::<Result<Vec<_>, _>>()?;
    let snapshot = ports.registry.snapshot();
    secrets.borrow_mut().add_all(snapshot.secrets());
    secrets.borrow_mut().add_all(&providers.secrets);
    let mut tool = |(spec, planned): (&ToolSpec, &&PlanNode)| {
        let target = match lookup(&planned.node.type_name).role {
            Role::Data => flow_tool(adapters, &planned.node, &ports.env)?,
            _ if spec.id.is_some() => {
                let builders = &adapters.tool_providers;
                let is_provider = builders.contains_key(planned.node.type_name.as_str());
                let provider = match providers.by_node.get(&planned.node.id).cloned() {
                    Some(known) => Some(known),
                    None if is_provider => {
                        let built = services.build(planned, builders)?;
                        providers.by_node.insert(planned.node.id.clone(), Arc::clone(&built));
                        Some(built)
                    }
                    None => None,
                };
                return Ok(recorded_tool(spec, &planned.node, &snapshot, provider.as_deref()));
            }
            _ => ToolTarget::Service(services.build(planned, &adapters.tools)?),
        };
        Ok(match &spec.operation {
            Some(_) => {
                recorded_operation(spec, (planned, target), &snapshot, &compiled.spec().agent.instance)
            }
            None => BuiltTool::of_node(target),
        })
    };
    let tools =
        compiled.spec().tools.iter().zip(&planned).map(&mut tool).collect::<Result<_, BuildError>>()?;
    let tool_nodes = planned.iter().map(|planned| planned.node.clone()).collect();
    Ok(BuiltAgent {
        compiled: Arc::clone(compiled),
        plan: encoded,
        model,
        fallback_models,
        model_node: plan.model.node.clone(),
        memory,
        tools,
        tool_nodes,
        scrubber: Arc::new(secrets.take()),
        // The session of the run is in its journal.
        session_id: None,
        memory_session_id: None,
        memory_user_id: None,
        memory_node: plan.memory.as_ref().map(|memory| memory.node.clone()),
        input: InputTemplates::default(),
        tab: String::new(),
        // Only the current flow has wires.
        stream_wired: flow
            .and_then(|flow| flow.agent(&plan.agent.node.id))
            .is_some_and(|agent| agent.stream_wired),
        providers: None,
    })
}

/// The providers of a plan that are built, by the ids of their nodes, with their secrets.
#[derive(Default)]
pub(super) struct PlanProviders {
    by_node: HashMap<NodeId, Arc<dyn ToolProvider>>,
    secrets: Scrubber,
}

type Builders<T> = BTreeMap<&'static str, Builder<Arc<T>>>;

/// The most services in a row of which each names the next one.
const MAX_DEPTH: usize = 16;

/// Builds the services of a plan, and those that they name.
struct PlanServices<'a> {
    flow: Option<&'a BuiltFlow>,
    plan: &'a AgentPlan,
    ports: &'a Ports,
    instance: &'a InstanceId,
    secrets: &'a RefCell<Scrubber>,
    /// How many services are being built, each for the one before.
    depth: Cell<usize>,
}

impl<'a> PlanServices<'a> {
    fn new(
        flow: Option<&'a BuiltFlow>,
        plan: &'a AgentPlan,
        ports: &'a Ports,
        instance: &'a InstanceId,
        secrets: &'a RefCell<Scrubber>,
    ) -> Self {
        Self { flow, plan, ports, instance, secrets, depth: Cell::new(0) }
    }
}

impl PlanServices<'_> {
    fn build<T: ?Sized>(&self, planned: &PlanNode, builders: &Builders<T>) -> Result<Arc<T>, BuildError> {
        let Self { flow, ports, secrets, .. } = self;
        let node = &planned.node;
        let mut props = planned.config.clone();
        let position = flow.and_then(|flow| Some((&flow.flow, flow.flow.find(node.id.as_str())?)));
        // A node of another type has other secrets.
        let current = position.filter(|(flow, ix)| flow.raw(*ix).type_name == node.type_name);
        let current = current.map(|(flow, ix)| &flow.raw(ix).props);
        let has_moved = current.is_some_and(|current| !have_same_address(&node.type_name, &props, current));
        let moved = || {
            let reason = "its address in the flow has changed since the run began, and its key is now for the new one; \
                          cancel the run, or set the address back";
            BuildError::new(node, reason)
        };
        if let Some(name) = restore_secrets(&mut props, current.filter(|_| !has_moved)) {
            if has_moved {
                return Err(moved());
            }
            let reason = format!("the secret in `{name}` is not recorded, and the flow does not have it");
            return Err(BuildError::new(node, reason));
        }
        let props = match position {
            Some((flow, ix)) => {
                let mut props = flow.resolve_at(ix, &props, &ports.env);
                if has_moved && flow.key_node(ix, &node.type_name, &props).is_some() {
                    return Err(moved());
                }
                flow.add_shared_key(ix, &node.type_name, &mut props, &ports.env);
                props
            }
            None => resolve_process_env(&props, &ports.env),
        };
        secrets.borrow_mut().add_properties(&props);
        let add_secret = |secret: &str| secrets.borrow_mut().add(secret);
        let scope = position.map(|(flow, ix)| session_scope(self.instance, flow.tab_of(ix)));
        let scope = scope.unwrap_or_default();
        let config = NodeConfig {
            services: self,
            flow: &scope,
            ..NodeConfig::new(node, &props, &ports.env, &add_secret)
        };
        match builders.get(node.type_name.as_str()) {
            Some(build) => build(config),
            None => Err(config.error(format!("this build cannot run the type `{}`", node.type_name))),
        }
    }

    /// Builds a service that another one names.
    fn build_named<T: ?Sized>(
        &self,
        owner: &NodeSummary,
        id: &str,
        builders: &Builders<T>,
    ) -> Result<Arc<T>, BuildError> {
        let missing = || BuildError::new(owner, format!("the plan does not have `{id}`"));
        if self.depth.get() == MAX_DEPTH {
            return Err(BuildError::new(owner, "too many services name each other"));
        }
        let plan = self.plan;
        let models = std::iter::once(&plan.model).chain(&plan.fallback_models);
        let all = models.chain(&plan.memory).chain(&plan.services);
        let is_fitting = |planned: &&PlanNode| {
            builders.contains_key(planned.node.type_name.as_str()) && planned.node.id != owner.id
        };
        let fitting: Vec<&PlanNode> = all.filter(is_fitting).collect();
        // Inside a subflow instance the id of a node begins with that of the instance.
        let own_id = |planned: &&&PlanNode| planned.node.id.as_str() == id;
        let inner = format!("-{id}");
        let is_inner = |planned: &&&PlanNode| {
            let prefix = planned.node.id.as_str().strip_suffix(&inner);
            prefix.is_some_and(|prefix| owner.id.as_str().starts_with(&format!("{prefix}-")))
        };
        // A node of the same instance comes first, as in the flow.
        let planned = fitting.iter().find(is_inner).or_else(|| fitting.iter().find(own_id));
        let planned = *planned.ok_or_else(missing)?;
        self.depth.set(self.depth.get() + 1);
        let built = self.build(planned, builders);
        self.depth.set(self.depth.get() - 1);
        built
    }
}

impl NamedServices for PlanServices<'_> {
    fn model(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn ChatModel>, BuildError> {
        self.build_named(owner, id, &self.ports.adapters.models)
    }

    fn memory(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn Memory>, BuildError> {
        self.build_named(owner, id, &self.ports.adapters.memories)
    }
}

/// Whether a node of this type sends its requests to the same address with both.
fn have_same_address(type_name: &str, planned: &Message, current: &Message) -> bool {
    let declared = node::find(type_name).property_sets.iter().flat_map(|set| set.properties);
    let mut addresses = declared.filter(|property| matches!(property.kind, Kind::Address { .. }));
    // A name may also be written as `baseUrl`.
    let value = |props: &Message, name: &str| {
        let found = props.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone()).filter(|value| *value != "")
    };
    addresses.all(|property| value(planned, property.name) == value(current, property.name))
}

/// Puts secrets back into the properties of a plan. Returns the name of the first one that is missing.
fn restore_secrets(props: &mut Message, current: Option<&Message>) -> Option<String> {
    // A deploy moves secret properties into the credentials of the node.
    let credentials = current.and_then(|current| current.get("credentials"));
    for (name, value) in props {
        let now = current.and_then(|current| current.get(name)).or_else(|| credentials?.get(name));
        if let Some(missing) = restore_value(value, now) {
            return Some(if missing.is_empty() { name.clone() } else { format!("{name}.{missing}") });
        }
    }
    None
}

fn restore_value(value: &mut Value, now: Option<&Value>) -> Option<String> {
    let length = value.as_array().map_or(0, Vec::len);
    match value {
        Value::String(text) if text == REDACTED => match now {
            Some(now) => {
                *value = now.clone();
                None
            }
            None => Some(String::new()),
        },
        Value::Object(map) => restore_secrets(map, now.and_then(Value::as_object)),
        // In a list of another length, items cannot be matched.
        Value::Array(items) => items.iter_mut().enumerate().find_map(|(index, item)| {
            let now = now.filter(|now| now.as_array().is_some_and(|now| now.len() == length));
            let missing = restore_value(item, now.and_then(|now| now.get(index)))?;
            Some(if missing.is_empty() { index.to_string() } else { format!("{index}.{missing}") })
        }),
        _ => None,
    }
}
