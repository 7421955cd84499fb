//! Builds the services of a flow, each once, with the services that they name.

use redflow_contract::edge::Role;
use redflow_contract::id::{InstanceId, NodeSummary};
use redflow_contract::scrub::Scrubber;
use redflow_flow::{NodeIx, ProcessSecrets, ResolvedFlow};
use redflow_ports::{
    Adapters, BuildError, Builder, ChatModel, Memory, NamedServices, NodeConfig, Tool, ToolProvider, label_of,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Reads a variable of the process environment.
pub(crate) type ProcessEnv<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The services that were built or failed to build. A failure is not tried again.
type BuiltServices<T> = RefCell<HashMap<NodeIx, Result<Arc<T>, BuildError>>>;

/// A memory with its node.
pub(crate) type NodeMemory = (NodeSummary, Arc<dyn Memory>);

/// A provider of tools with its node.
pub(crate) type NodeProvider = (NodeSummary, Arc<dyn ToolProvider>);

/// What is kept of the services when all agents are built.
pub(super) struct FinishedServices {
    /// Every memory that was built, in the order of the flow.
    pub(super) memories: Vec<NodeMemory>,
    /// Every provider of tools that was built, in the order of the flow.
    pub(super) providers: Vec<NodeProvider>,
    /// The secrets of all services.
    pub(super) scrubber: Scrubber,
}

/// The services that could be built, in the order of the flow.
fn in_order<T: ?Sized>(flow: &ResolvedFlow, services: BuiltServices<T>) -> Vec<(NodeSummary, Arc<T>)> {
    let mut services: Vec<_> = services.into_inner().into_iter().collect();
    services.sort_by_key(|(ix, _)| *ix);
    services.into_iter().filter_map(|(ix, built)| Some((flow.summary(ix), built.ok()?))).collect()
}

/// The services of a flow that is being built.
pub(super) struct FlowServices<'a> {
    flow: &'a ResolvedFlow,
    adapters: &'a Adapters,
    env: ProcessEnv<'a>,
    instance: &'a InstanceId,
    models: BuiltServices<dyn ChatModel>,
    memories: BuiltServices<dyn Memory>,
    tools: BuiltServices<dyn Tool>,
    providers: BuiltServices<dyn ToolProvider>,
    secrets: RefCell<Scrubber>,
}

impl<'a> FlowServices<'a> {
    pub(super) fn new(
        flow: &'a ResolvedFlow,
        adapters: &'a Adapters,
        env: ProcessEnv<'a>,
        instance: &'a InstanceId,
    ) -> Self {
        Self {
            flow,
            adapters,
            env,
            instance,
            models: RefCell::default(),
            memories: RefCell::default(),
            tools: RefCell::default(),
            providers: RefCell::default(),
            secrets: RefCell::default(),
        }
    }

    pub(super) fn model(&self, ix: NodeIx) -> Result<Arc<dyn ChatModel>, BuildError> {
        self.build_once(&self.models, ix, &self.adapters.models)
    }

    pub(super) fn memory(&self, ix: NodeIx) -> Result<Arc<dyn Memory>, BuildError> {
        self.build_once(&self.memories, ix, &self.adapters.memories)
    }

    pub(super) fn tool(&self, ix: NodeIx) -> Result<Arc<dyn Tool>, BuildError> {
        self.build_once(&self.tools, ix, &self.adapters.tools)
    }

    pub(super) fn provider(&self, ix: NodeIx) -> Result<Arc<dyn ToolProvider>, BuildError> {
        self.build_once(&self.providers, ix, &self.adapters.tool_providers)
    }

    pub(super) fn finish(self) -> FinishedServices {
        let flow = self.flow;
        FinishedServices {
            memories: in_order(flow, self.memories),
            providers: in_order(flow, self.providers),
            scrubber: self.secrets.into_inner(),
        }
    }

    /// Builds a service once, however many nodes use it.
    fn build_once<T: ?Sized>(
        &self,
        services: &BuiltServices<T>,
        ix: NodeIx,
        builders: &BTreeMap<&'static str, Builder<Arc<T>>>,
    ) -> Result<Arc<T>, BuildError> {
        if let Some(built) = services.borrow().get(&ix) {
            return built.clone();
        }
        let node = self.flow.summary(ix);
        // The checker refuses circles. If one comes here, it ends with this error.
        let open = Err(BuildError::new(&node, "it leads back to itself"));
        services.borrow_mut().insert(ix, open);
        let built = self.build(&node, ix, builders);
        services.borrow_mut().insert(ix, built.clone());
        built
    }

    fn build<T: ?Sized>(
        &self,
        node: &NodeSummary,
        ix: NodeIx,
        builders: &BTreeMap<&'static str, Builder<Arc<T>>>,
    ) -> Result<Arc<T>, BuildError> {
        let (flow, env) = (self.flow, self.env);
        let mut props = flow.resolved_props(ix, env, ProcessSecrets::InSecretProperties);
        flow.add_shared_key(ix, &node.type_name, &mut props, env);
        self.secrets.borrow_mut().add_properties(&props);
        let add_secret = |secret: &str| self.secrets.borrow_mut().add(secret);
        let scope = session_scope(self.instance, flow.tab_of(ix));
        let config =
            NodeConfig { services: self, flow: &scope, ..NodeConfig::new(node, &props, env, &add_secret) };
        match builders.get(node.type_name.as_str()) {
            Some(builder) => builder(config).map_err(|error| {
                let key_node = flow.key_node(ix, &node.type_name, &props);
                let shared_key = key_node.map(|key_node| label_of(&flow.summary(key_node)));
                BuildError { shared_key: error.shared_key.or(shared_key), ..error }
            }),
            None => Err(config.error(format!("this build cannot run the type `{}`", node.type_name))),
        }
    }

    fn find(&self, owner: &NodeSummary, role: Role, id: &str) -> Result<NodeIx, BuildError> {
        let found = self.flow.find(owner.id.as_str());
        let found = found.and_then(|owner| self.flow.named_service(owner, role, id));
        found.ok_or_else(|| BuildError::new(owner, format!("the flow has no {} `{id}`", role.as_str())))
    }
}

impl NamedServices for FlowServices<'_> {
    fn model(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn ChatModel>, BuildError> {
        self.model(self.find(owner, Role::Model, id)?)
    }

    fn memory(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn Memory>, BuildError> {
        self.memory(self.find(owner, Role::Memory, id)?)
    }
}

/// The prefix of session keys. It names the instance, because two Node-REDs may have the same flow.
pub(crate) fn session_scope(instance: &InstanceId, tab: &str) -> String {
    if *instance == InstanceId::local() { tab.to_owned() } else { format!("{instance}/{tab}") }
}
