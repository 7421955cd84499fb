//! The tools of the sidecar's own MCP server: agents, flow tools, and tools of the manifest with `mcp: true`.

use super::exposed_nodes::{ExposedAgent, clean, object_schema};
use crate::active_flow::FlowTools;
use crate::bridge::instance::Instance;
use crate::tools::denying_rule;
use redflow_contract::node::EffectClass;
use redflow_contract::tool::{ToolEntry, ToolOrigin, ToolState, id_part};
use redflow_engine::RegistrySnapshot;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A tool that MCP clients can call.
#[derive(Clone)]
pub(super) struct ExposedTool {
    /// Its id, by which clients call it.
    pub(super) id: String,
    pub(super) target: CallTarget,
}

/// What a call does.
#[derive(Clone)]
pub(super) enum CallTarget {
    /// Starts a run of an agent.
    Agent { agent: Arc<ExposedAgent>, owner: Option<Arc<Instance>> },
    /// Sends a message through the nodes of a flow tool.
    Flow { entry: Arc<ToolEntry>, owner: Option<Arc<Instance>> },
    /// Calls a tool of the registry.
    Registry { entry: Arc<ToolEntry> },
}

/// Bytes of the part of an id that names a Node-RED.
const MAX_INSTANCE_PART: usize = 40;

/// What the tools are made of.
#[derive(Clone)]
pub(super) struct ToolSources {
    flow: Arc<FlowTools>,
    /// The known Node-REDs, sorted by id. Also those that are not connected: their ids stay theirs.
    instances: Vec<InstanceTools>,
    registry: Arc<RegistrySnapshot>,
    /// The ids of the tools of the registry with `mcp: true`.
    callable: Arc<HashSet<String>>,
}

#[derive(Clone)]
struct InstanceTools {
    instance: Arc<Instance>,
    is_connected: bool,
    flow: Arc<FlowTools>,
}

impl ToolSources {
    pub(super) fn new(
        flow: Arc<FlowTools>,
        instances: Vec<Arc<Instance>>,
        registry: Arc<RegistrySnapshot>,
        callable: Arc<HashSet<String>>,
    ) -> Self {
        let instances = instances.into_iter().map(|instance| {
            let (is_connected, flow) = (instance.is_connected(), instance.tools());
            InstanceTools { instance, is_connected, flow }
        });
        Self { flow, instances: instances.collect(), registry, callable }
    }

    /// Whether nothing has changed. Every change makes new parts.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let is_same = |one: &InstanceTools, other: &InstanceTools| {
            Arc::ptr_eq(&one.instance, &other.instance)
                && one.is_connected == other.is_connected
                && Arc::ptr_eq(&one.flow, &other.flow)
        };
        Arc::ptr_eq(&self.flow, &other.flow)
            && self.instances.len() == other.instances.len()
            && self.instances.iter().zip(&other.instances).all(|(one, other)| is_same(one, other))
            && Arc::ptr_eq(&self.registry, &other.registry)
            && Arc::ptr_eq(&self.callable, &other.callable)
    }

    /// All tools, sorted by id: of the active flow, of the flows of Node-REDs, and of the registry.
    ///
    /// A tool keeps its id when a Node-RED disconnects: if several flows have an id, the tool of each Node-RED has the
    /// name of that Node-RED in its id.
    pub(super) fn exposed_tools(&self) -> Vec<ExposedTool> {
        let mut tools = flow_tools(&self.flow, None);
        let of_registry = self.registry.tools().iter().filter(|tool| self.callable.contains(&tool.entry.id));
        tools.extend(of_registry.map(|tool| {
            let entry = Arc::clone(&tool.entry);
            ExposedTool { id: entry.id.clone(), target: CallTarget::Registry { entry } }
        }));
        let of_instances: Vec<(&InstanceTools, Vec<ExposedTool>)> = self
            .instances
            .iter()
            .map(|known| (known, flow_tools(&known.flow, Some(&known.instance))))
            .collect();
        let mut owners: HashMap<String, usize> = HashMap::new();
        for tool in tools.iter().chain(of_instances.iter().flat_map(|(_, tools)| tools)) {
            *owners.entry(tool.id.clone()).or_default() += 1;
        }
        for (known, own) in of_instances.into_iter().filter(|(known, _)| known.is_connected) {
            tools.extend(own.into_iter().map(|mut tool| {
                if owners.get(&tool.id).is_some_and(|count| *count > 1) {
                    tool.id = format!("{}-{}", tool.id, instance_part(known.instance.id.as_str()));
                }
                tool
            }));
        }
        tools.sort_by(|one, other| one.id.cmp(&other.id));
        make_unique(&mut tools);
        tools.sort_by(|one, other| one.id.cmp(&other.id));
        tools
    }

    /// The tools as clients get them. Those that the policy denies to every caller are left out.
    pub(super) fn describe(&self, tools: &[ExposedTool]) -> Vec<Tool> {
        let describe = |tool: &ExposedTool| match &tool.target {
            CallTarget::Agent { agent, .. } => Some(agent_tool(tool.id.clone(), agent)),
            CallTarget::Flow { entry, .. } | CallTarget::Registry { entry } => {
                let is_denied = denying_rule(&self.registry.policy().rules_of(entry)).is_some();
                (entry.state == ToolState::Ready && !is_denied).then(|| entry_tool(tool.id.clone(), entry))
            }
        };
        tools.iter().filter_map(describe).collect()
    }
}

/// The name of a Node-RED as a part of an id.
fn instance_part(instance: &str) -> String {
    let mut part = id_part(instance);
    part.truncate(MAX_INSTANCE_PART);
    part
}

/// The tools of one flow, each with another id.
fn flow_tools(flow: &FlowTools, owner: Option<&Arc<Instance>>) -> Vec<ExposedTool> {
    let mut tools = Vec::new();
    add_flow(&mut tools, flow, owner);
    make_unique(&mut tools);
    tools
}

fn add_flow(tools: &mut Vec<ExposedTool>, flow: &FlowTools, owner: Option<&Arc<Instance>>) {
    let agents = flow.exposed.agents.iter().filter(|agent| flow.agents.contains_key(&agent.node.id));
    tools.extend(agents.map(|agent| {
        let target = CallTarget::Agent { agent: Arc::clone(agent), owner: owner.cloned() };
        ExposedTool { id: format!("agent.{}", agent.name), target }
    }));
    let is_shown = |entry: &ToolEntry| {
        entry.origin == ToolOrigin::Flow && !flow.exposed.hidden.contains(entry.provider.as_str())
    };
    tools.extend(flow.own.iter().filter(|own| is_shown(&own.entry)).map(|own| {
        let target = CallTarget::Flow { entry: Arc::clone(&own.entry), owner: owner.cloned() };
        ExposedTool { id: own.entry.id.clone(), target }
    }));
}

/// Adds `-2`, `-3` and so on to the ids of tools with the same id.
fn make_unique(tools: &mut [ExposedTool]) {
    let mut taken: HashSet<String> = HashSet::with_capacity(tools.len());
    for tool in tools {
        let mut number = 2;
        let mut id = tool.id.clone();
        while taken.contains(&id) {
            id = format!("{}-{number}", tool.id);
            number += 1;
        }
        taken.insert(id.clone());
        tool.id = id;
    }
}

fn agent_tool(id: String, agent: &ExposedAgent) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "input": {"type": ["string", "object"], "description": "The message for the agent."},
            "sessionId": {"type": "string", "description": "Calls with the same value are one conversation."},
        },
        "required": ["input"],
        "additionalProperties": false,
    });
    let mut tool = Tool::new(id, agent.description.clone(), to_object(schema));
    tool.title = Some(agent.node.name.clone()).filter(|name| !name.is_empty());
    tool.output_schema.clone_from(&agent.output_schema);
    tool.annotations = Some(annotations(None));
    tool
}

fn entry_tool(id: String, entry: &ToolEntry) -> Tool {
    let any_object = || to_object(json!({"type": "object"}));
    let schema = entry.input_schema.as_ref().and_then(object_schema);
    let mut tool = Tool::new(id, clean(&entry.description), schema.unwrap_or_else(|| Arc::new(any_object())));
    tool.title = Some(entry.title.clone()).filter(|title| !title.is_empty());
    tool.output_schema = entry.output_schema.as_ref().and_then(object_schema);
    tool.annotations = Some(annotations(entry.effect));
    tool
}

fn annotations(effect: Option<EffectClass>) -> ToolAnnotations {
    let mut hints = ToolAnnotations::new();
    hints.read_only_hint = Some(effect == Some(EffectClass::Read));
    hints.idempotent_hint = Some(matches!(effect, Some(EffectClass::Read | EffectClass::Idempotent)));
    hints
}

fn to_object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}
