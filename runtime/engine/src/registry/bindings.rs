//! The tools that an agent gets from providers. They are resolved as a run begins.

use super::entry::own_tool;
use super::operation::operation_call;
use super::{RefusedTool, Registry, RegistrySnapshot};
use crate::flow::agent::{
    BoundProvider, BuiltAgent, BuiltTool, ProviderBindings, ProviderSource, ResolutionKey, ToolDefinition,
    ToolTarget,
};
use crate::report::error_outside_run;
use redflow_contract::code::{RunErrorCode, ToolCode};
use redflow_contract::effect::ToolCall;
use redflow_contract::id::{InstanceId, NodeRef, NodeSummary};
use redflow_contract::manifest::NodeOperation;
use redflow_contract::mcp::MCP_CLIENT;
use redflow_contract::node::{FINAL_ANSWER, FINISH_STEP};
use redflow_contract::plan::{AgentSpec, PlanNode, ToolSpec};
use redflow_contract::run_error::RunError;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{
    MAX_AGENT_TOOLS, REGISTRY_TOOL, ToolEntry, ToolOrigin, ToolRetry, matches_tool, own_tool_id,
};
use redflow_machine::{Strategies, ValueSchema};
use redflow_ports::{ProvidedTool, ToolProvider};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

/// A tool that an agent may get.
struct ToolCandidate<'a> {
    provider: &'a BoundProvider,
    entry: Arc<ToolEntry>,
    target: ToolTarget,
    operation: Option<(&'a str, &'a NodeOperation)>,
}

/// A tool in all its forms: for the machine, for calls and for observers.
type ResolvedTool = (ToolSpec, BuiltTool, NodeSummary);

impl ProviderBindings {
    fn generations(&self, snapshot: &RegistrySnapshot) -> Vec<u64> {
        let own = self.providers.iter().filter_map(|provider| match &provider.source {
            ProviderSource::Provider(provider) => Some(provider.generation()),
            ProviderSource::Registry { .. } | ProviderSource::Node { .. } => None,
        });
        std::iter::once(snapshot.generation()).chain(own).collect()
    }
}

impl BuiltAgent {
    /// The agent with the tools that its providers have now. An agent without providers is itself.
    pub(crate) fn resolve(
        self: &Arc<Self>,
        registry: &Registry,
        strategies: &Strategies,
    ) -> Result<Arc<Self>, RunError> {
        let Some(bindings) = &self.providers else { return Ok(Arc::clone(self)) };
        let snapshot = registry.snapshot();
        let prompt = bindings.prompt.as_ref().map(|name| name.read(registry)).transpose()?;
        let key = ResolutionKey { generations: bindings.generations(&snapshot), prompt };
        let mut resolved = bindings.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, agent)) = resolved.as_ref().filter(|(known, _)| *known == key) {
            return agent.clone();
        }
        let agent = self.with_tools(bindings, &snapshot, key.prompt.as_deref(), strategies);
        *resolved = Some((key, agent.clone()));
        agent
    }

    fn with_tools(
        &self,
        bindings: &ProviderBindings,
        snapshot: &RegistrySnapshot,
        prompt: Option<&str>,
        strategies: &Strategies,
    ) -> Result<Arc<Self>, RunError> {
        let base = self.compiled.spec();
        let candidates = find_candidates(bindings, snapshot, base)?;
        let chosen = self.choose(bindings, candidates)?;
        // Before their schemas are compiled, which takes time.
        check_count(chosen.len())?;
        let chosen = chosen.into_iter().map(ChosenTool::resolve).collect::<Result<Vec<_>, _>>()?;
        check_names(&chosen, base)?;
        let (mut specs, mut tools, mut tool_nodes) = (Vec::new(), Vec::new(), Vec::new());
        for (spec, tool, node) in chosen {
            specs.push(spec);
            tools.push(tool);
            tool_nodes.push(node);
        }
        let mut scrubber = Scrubber::clone(&self.scrubber);
        scrubber.add_all(snapshot.secrets());
        let mut spec = AgentSpec { tools: specs, ..AgentSpec::clone(base) };
        if let (Some(converse), Some(prompt)) = (&mut spec.converse, prompt) {
            prompt.clone_into(&mut converse.system_prompt);
            scrubber.text(&mut converse.system_prompt);
        }
        self.with_spec(spec, (tools, tool_nodes), Arc::new(scrubber), strategies)
    }

    /// The same agent with another spec, and the tools of that spec in its order.
    pub(super) fn with_spec(
        &self,
        spec: AgentSpec,
        (tools, tool_nodes): (Vec<BuiltTool>, Vec<NodeSummary>),
        scrubber: Arc<Scrubber>,
        strategies: &Strategies,
    ) -> Result<Arc<Self>, RunError> {
        let compiled =
            strategies.compile(&Arc::new(spec)).map_err(|error| config_invalid(error.to_string()))?;
        Ok(Arc::new(Self {
            compiled,
            plan: self.plan.clone(),
            model: Arc::clone(&self.model),
            fallback_models: self.fallback_models.clone(),
            model_node: self.model_node.clone(),
            memory: self.memory.clone(),
            tools,
            tool_nodes,
            scrubber,
            session_id: self.session_id.clone(),
            memory_session_id: self.memory_session_id.clone(),
            memory_user_id: self.memory_user_id.clone(),
            memory_node: self.memory_node.clone(),
            input: self.input.clone(),
            tab: self.tab.clone(),
            stream_wired: self.stream_wired,
            providers: None,
        }))
    }

    /// The tools that the model may call: in the order of `allowedTools`, else the agent's own first.
    fn choose<'a>(
        &self,
        bindings: &ProviderBindings,
        candidates: Vec<ToolCandidate<'a>>,
    ) -> Result<Vec<ChosenTool<'a>>, RunError> {
        let own = (0..self.compiled.spec().tools.len()).filter_map(|index| {
            let spec = self.compiled.spec().tools.get(index)?;
            let (tool, node) = (self.tools.get(index)?.clone(), self.tool_nodes.get(index)?.clone());
            Some(ChosenTool::Own(Box::new((spec.clone(), tool, node))))
        });
        let all = own.chain(candidates.into_iter().map(ChosenTool::Provided));
        let Some(allowed) = &bindings.allowed else { return Ok(all.collect()) };
        let mut rest: Vec<Option<ChosenTool<'_>>> = all.map(Some).collect();
        let mut chosen: Vec<ChosenTool<'_>> = Vec::new();
        for pattern in allowed {
            let mut found = pattern.ends_with('*') || chosen.iter().any(|tool| tool.is_named(pattern));
            for slot in &mut rest {
                if let Some(tool) = slot.take_if(|tool| tool.is_named(pattern)) {
                    found = true;
                    chosen.push(tool);
                }
            }
            if !found {
                return Err(unavailable(&format!(
                    "`allowedTools` names `{pattern}`, but the agent's providers have no such tool."
                )));
            }
        }
        Ok(chosen)
    }
}

/// A tool that the model may call.
enum ChosenTool<'a> {
    /// A node of its own.
    Own(Box<ResolvedTool>),
    Provided(ToolCandidate<'a>),
}

impl ChosenTool<'_> {
    fn is_named(&self, pattern: &str) -> bool {
        match self {
            Self::Own(tool) => {
                let (spec, _, node) = &**tool;
                matches_tool(pattern, &own_tool_id(&node.type_name, &spec.name), &spec.name)
            }
            Self::Provided(candidate) => matches_tool(pattern, &candidate.entry.id, &candidate.entry.name),
        }
    }

    fn resolve(self) -> Result<ResolvedTool, RunError> {
        match self {
            Self::Own(tool) => Ok(*tool),
            Self::Provided(candidate) => candidate.resolve(),
        }
    }
}

impl ToolCandidate<'_> {
    fn resolve(self) -> Result<ResolvedTool, RunError> {
        let ToolCandidate { provider, entry, target, operation } = self;
        let definition = ToolDefinition::new(&entry, operation.map(|(_, operation)| operation))?;
        let spec = ToolSpec {
            effect: entry.effect,
            timeout_ms: entry.timeout_ms,
            on_unknown: provider.on_unknown,
            id: Some(entry.id.clone()),
            operation: operation.map(|(name, _)| name.to_owned()),
            digest: Some(entry.digest),
            output_schema: entry.output_schema.clone(),
            retry: Some(entry.retry).filter(|retry| *retry != ToolRetry::default()),
            ..ToolSpec::of_node(
                entry.name.clone(),
                entry.description.clone(),
                entry.input_schema.clone(),
                provider.node.id.clone(),
            )
        };
        let tool = BuiltTool { target, definition: Some(Arc::new(definition)) };
        Ok((spec, tool, provider.node.clone()))
    }
}

impl ToolDefinition {
    /// Compiles the schema of the output. The client of MCP servers has checked an output before it cut it to the size of
    /// results. What is left of a long one no longer follows the schema.
    pub(crate) fn new(entry: &Arc<ToolEntry>, operation: Option<&NodeOperation>) -> Result<Self, RunError> {
        let checked_here = entry.output_schema.as_ref().filter(|_| entry.origin != ToolOrigin::Mcp);
        let output_schema = checked_here.map(ValueSchema::compile).transpose();
        let output_schema = output_schema.map_err(|reason| {
            config_invalid(format!("The output schema of the tool `{}` cannot be used: {reason}.", entry.id))
        })?;
        Ok(Self { entry: Arc::clone(entry), operation: operation.cloned(), output_schema })
    }

    /// The call as the tool gets it: with the message of its node, if it is an operation.
    pub(crate) fn prepare(&self, call: &ToolCall) -> Option<ToolCall> {
        let operation = self.operation.as_ref()?;
        let operation = Some(Arc::new(operation_call(operation, &call.input)));
        Some(ToolCall { operation, ..call.clone() })
    }
}

/// All tools of an agent's providers, in the order of its wires; those of one provider by id.
fn find_candidates<'a>(
    bindings: &'a ProviderBindings,
    snapshot: &'a RegistrySnapshot,
    spec: &AgentSpec,
) -> Result<Vec<ToolCandidate<'a>>, RunError> {
    let mut found = Vec::new();
    for provider in &bindings.providers {
        let candidate = |tool: &ProvidedTool| {
            let target = ToolTarget::Service(Arc::clone(&tool.tool));
            ToolCandidate { provider, entry: Arc::clone(&tool.entry), target, operation: None }
        };
        match &provider.source {
            ProviderSource::Registry { ids } => {
                let mut known = HashSet::new();
                for pattern in ids {
                    let tools = matching(snapshot, pattern);
                    if tools.is_empty() && !pattern.ends_with('*') {
                        return Err(unavailable(&format!("The registry has no tool `{pattern}`.")));
                    }
                    let new = tools.into_iter().filter(|tool| known.insert(tool.entry.id.as_str()));
                    found.extend(new.map(candidate));
                }
            }
            ProviderSource::Node { target, tool_name } => {
                let type_name = provider.node.type_name.as_str();
                let operations = snapshot.operations(&spec.agent.instance, type_name);
                for (name, operation) in operations.into_iter().flatten() {
                    let prefix = tool_name.as_deref().unwrap_or(type_name);
                    let entry = super::entry_of_operation(type_name, name, operation, prefix);
                    found.push(ToolCandidate {
                        provider,
                        entry: Arc::new(entry),
                        target: target.clone(),
                        operation: Some((name, operation)),
                    });
                }
            }
            ProviderSource::Provider(own) => found.extend(own.tools().iter().map(candidate)),
        }
    }
    Ok(found)
}

/// The tools that a pattern names, by id.
fn matching<'a>(snapshot: &'a RegistrySnapshot, pattern: &str) -> Vec<&'a ProvidedTool> {
    let tools = snapshot.tools();
    match pattern.strip_suffix('*') {
        Some(prefix) => {
            let first = tools.partition_point(|tool| tool.entry.id.as_str() < prefix);
            tools[first..].iter().take_while(|tool| tool.entry.id.starts_with(prefix)).collect()
        }
        None => snapshot.find(pattern).into_iter().collect(),
    }
}

/// A tool of a recorded run, as its provider has it now. If it is gone or has changed, its calls fail.
pub(crate) fn recorded_tool(
    spec: &ToolSpec,
    node: &NodeSummary,
    snapshot: &RegistrySnapshot,
    provider: Option<&dyn ToolProvider>,
) -> BuiltTool {
    let id = spec.id.as_deref().unwrap_or_default();
    let of_provider = || provider?.tools().into_iter().find(|tool| tool.entry.id == id);
    let of_registry = || snapshot.tool(id).cloned();
    let found = match node.type_name.as_str() {
        REGISTRY_TOOL => of_registry(),
        // Such a node may name a server of the manifest.
        MCP_CLIENT => of_provider().or_else(of_registry),
        _ => of_provider(),
    };
    let found = found.map(|tool| (tool.entry, ToolTarget::Service(tool.tool)));
    recorded(spec, found, None)
}

/// An operation of a recorded run, as the registry has it now. If it is gone or has changed, its calls fail.
pub(crate) fn recorded_operation(
    spec: &ToolSpec,
    (planned, target): (&PlanNode, ToolTarget),
    snapshot: &RegistrySnapshot,
    instance: &InstanceId,
) -> BuiltTool {
    let (type_name, name) = (planned.node.type_name.as_str(), spec.operation.as_deref().unwrap_or_default());
    let operation = snapshot.operations(instance, type_name).and_then(|operations| operations.get(name));
    let entry = operation.map(|operation| super::entry_of_operation(type_name, name, operation, type_name));
    recorded(spec, entry.map(|entry| (Arc::new(entry), target)), operation)
}

fn recorded(
    spec: &ToolSpec,
    found: Option<(Arc<ToolEntry>, ToolTarget)>,
    operation: Option<&NodeOperation>,
) -> BuiltTool {
    let id = spec.id.as_deref().unwrap_or_default();
    let refuse = |code, text| BuiltTool::of_node(ToolTarget::Service(Arc::new(RefusedTool::new(code, text))));
    let Some((entry, target)) = found else {
        let text = format!("The tool `{id}` is no longer there.");
        return refuse(ToolCode::ToolUnavailable, text);
    };
    let definition =
        ToolDefinition::new(&entry, operation).ok().filter(|_| spec.digest == Some(entry.digest));
    match definition {
        Some(definition) => BuiltTool { target, definition: Some(Arc::new(definition)) },
        None => {
            let text = format!("The tool `{id}` has changed since the run began.");
            refuse(ToolCode::ToolChanged, text)
        }
    }
}

fn check_count(count: usize) -> Result<(), RunError> {
    if count > MAX_AGENT_TOOLS {
        return Err(config_invalid(format!(
            "The agent has {count} tools; at most {MAX_AGENT_TOOLS} are allowed. Name fewer in `allowedTools` or in \
             the `ids` of its registry-tool."
        )));
    }
    Ok(())
}

/// The name of the tool that a model gives its answer with. An agent adds it, so no other tool may have it.
fn answer_tool(spec: &AgentSpec) -> Option<&'static str> {
    let converse = spec.converse.as_ref()?;
    match (&converse.task, &converse.output_schema) {
        (Some(_), _) => Some(FINISH_STEP),
        (None, Some(_)) => Some(FINAL_ANSWER),
        (None, None) => None,
    }
}

/// A model confuses names that differ only in case, so they are the same name here.
fn check_names(tools: &[ResolvedTool], agent: &AgentSpec) -> Result<(), RunError> {
    if let Some(name) = answer_tool(agent)
        && let Some((spec, ..)) = tools.iter().find(|(spec, ..)| spec.name.eq_ignore_ascii_case(name))
    {
        let tool = spec.id.as_deref().unwrap_or(&spec.name);
        return Err(config_invalid(format!(
            "The tool `{tool}` is called `{name}`, the name of the tool that the model gives its answer with. Take it \
             away from the agent, or give it another name."
        )));
    }
    let mut names = HashSet::new();
    let double = tools.iter().find(|(spec, ..)| !names.insert(spec.name.to_ascii_lowercase()));
    match double {
        Some((spec, ..)) => Err(config_invalid(format!(
            "Two tools of the agent are called `{}`. Set another `toolName` on the node of one of them, or leave one \
             out of `allowedTools`.",
            spec.name
        ))),
        None => Ok(()),
    }
}

pub(super) fn unavailable(text: &str) -> RunError {
    let hint = "See `redflow tools list`.";
    error_outside_run(RunErrorCode::ToolUnavailable, format!("{text} {hint}"))
}

pub(super) fn config_invalid(text: String) -> RunError {
    error_outside_run(RunErrorCode::ConfigInvalid, text)
}

impl BuiltAgent {
    /// The tools that the model may call now, with those of its providers.
    ///
    /// # Errors
    /// Why its runs cannot begin now.
    pub fn tool_entries(
        self: &Arc<Self>,
        registry: &Registry,
        strategies: &Strategies,
    ) -> Result<Vec<ToolEntry>, RunError> {
        let agent = self.resolve(registry, strategies)?;
        let AgentSpec { tools, agent: NodeRef { instance, .. }, .. } = &**agent.compiled.spec();
        let parts = tools.iter().zip(&agent.tools).zip(&agent.tool_nodes);
        let entry = |((spec, tool), node): ((&ToolSpec, &BuiltTool), &NodeSummary)| match &tool.definition {
            Some(definition) => (*definition.entry).clone(),
            None => (*own_tool(spec, tool, node, instance).entry).clone(),
        };
        Ok(parts.map(entry).collect())
    }
}
