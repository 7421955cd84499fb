//! The tools of the sidecar's own MCP server: agents, flow tools, and tools of the manifest with `mcp: true`.

use super::exposed_nodes::{ExposedAgent, clean, object_schema};
use super::tool_names::{NameOrigin, distinct_names};
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
    /// The name that clients see. Every model provider takes it.
    pub(super) name: String,
    /// Its id with dots. Calls may use it too.
    pub(super) id: String,
    pub(super) origin: NameOrigin,
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

    /// All tools, sorted by name: of the active flow, of the flows of Node-REDs, and of the registry.
    ///
    /// A tool keeps its id and its name when a Node-RED disconnects: if several flows have an id, the tool of each
    /// Node-RED has the name of that Node-RED in its id.
    pub(super) fn exposed_tools(&self) -> Vec<ExposedTool> {
        let mut tools = flow_tools(&self.flow, None);
        let of_registry = self.registry.tools().iter().filter(|tool| self.callable.contains(&tool.entry.id));
        tools.extend(of_registry.map(|tool| {
            let entry = Arc::clone(&tool.entry);
            let origin = NameOrigin::new(entry.id.clone(), true, entry.id.clone());
            ExposedTool::new(origin, CallTarget::Registry { entry })
        }));
        let of_instances: Vec<(&InstanceTools, Vec<ExposedTool>)> = self
            .instances
            .iter()
            .map(|known| (known, flow_tools(&known.flow, Some(&known.instance))))
            .collect();
        let flows = || std::iter::once(&tools).chain(of_instances.iter().map(|(_, tools)| tools));
        let is_shared =
            |owners: &HashMap<String, usize>, id: &str| owners.get(id).is_some_and(|count| *count > 1);
        let owners_of_ids = count_owners(flows(), |tool| &tool.id);
        let owners_of_bases = count_owners(flows(), |tool| &tool.origin.base);
        for (known, own) in of_instances.into_iter().filter(|(known, _)| known.is_connected) {
            let part = instance_part(known.instance.id.as_str());
            tools.extend(own.into_iter().map(|mut tool| {
                if is_shared(&owners_of_ids, &tool.id) {
                    tool.id = format!("{}-{part}", tool.id);
                }
                if is_shared(&owners_of_bases, &tool.origin.base) {
                    tool.origin.base = format!("{}-{part}", tool.origin.base);
                }
                tool
            }));
        }
        tools.sort_by(|one, other| one.id.cmp(&other.id));
        make_unique(&mut tools);
        let names = distinct_names(&tools.iter().map(|tool| &tool.origin).collect::<Vec<_>>());
        for (tool, name) in tools.iter_mut().zip(names) {
            tool.name = name;
        }
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        tools
    }

    /// The tools as clients get them. Those that the policy denies to every caller are left out.
    pub(super) fn describe(&self, tools: &[ExposedTool]) -> Vec<Tool> {
        let describe = |tool: &ExposedTool| match &tool.target {
            CallTarget::Agent { agent, .. } => Some(agent_tool(tool.name.clone(), agent)),
            CallTarget::Flow { entry, .. } | CallTarget::Registry { entry } => {
                let is_denied = denying_rule(&self.registry.policy().rules_of(entry)).is_some();
                (entry.state == ToolState::Ready && !is_denied).then(|| entry_tool(tool.name.clone(), entry))
            }
        };
        tools.iter().filter_map(describe).collect()
    }
}

impl ExposedTool {
    /// A tool before its id and its name are made unique.
    fn new(origin: NameOrigin, target: CallTarget) -> Self {
        Self { name: String::new(), id: origin.base.clone(), origin, target }
    }
}

/// How many flows have each key.
fn count_owners<'a>(
    flows: impl Iterator<Item = &'a Vec<ExposedTool>>,
    key: impl Fn(&'a ExposedTool) -> &'a str,
) -> HashMap<String, usize> {
    let mut owners = HashMap::new();
    for flow in flows {
        let keys: HashSet<&str> = flow.iter().map(&key).collect();
        keys.into_iter().for_each(|key| *owners.entry(key.to_owned()).or_default() += 1);
    }
    owners
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
    // Node-REDs may have copies of a flow, with the same ids of nodes.
    let identity = |node: &str| {
        let instance = owner.map_or("", |instance| instance.id.as_str());
        format!("{}:{instance}{node}", instance.len())
    };
    tools.extend(agents.map(|agent| {
        let target = CallTarget::Agent { agent: Arc::clone(agent), owner: owner.cloned() };
        let base = format!("agent.{}", agent.name);
        ExposedTool::new(
            NameOrigin::new(base, agent.has_exact_name, identity(agent.node.id.as_str())),
            target,
        )
    }));
    let is_shown = |entry: &ToolEntry| {
        entry.origin == ToolOrigin::Flow && !flow.exposed.hidden.contains(entry.provider.as_str())
    };
    tools.extend(flow.own.iter().filter(|own| is_shown(&own.entry)).map(|own| {
        let target = CallTarget::Flow { entry: Arc::clone(&own.entry), owner: owner.cloned() };
        ExposedTool::new(NameOrigin::new(own.entry.id.clone(), true, identity(&own.entry.provider)), target)
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

fn agent_tool(name: String, agent: &ExposedAgent) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "input": {"type": ["string", "object"], "description": "The message for the agent."},
            "sessionId": {"type": "string", "description": "Calls with the same value are one conversation."},
        },
        "required": ["input"],
        "additionalProperties": false,
    });
    let mut tool = Tool::new(name, agent.description.clone(), to_object(schema));
    tool.title = Some(agent.node.name.clone()).filter(|name| !name.is_empty());
    tool.output_schema.clone_from(&agent.output_schema);
    tool.annotations = Some(annotations(None));
    tool
}

fn entry_tool(name: String, entry: &ToolEntry) -> Tool {
    let any_object = || to_object(json!({"type": "object"}));
    let schema = entry.input_schema.as_ref().and_then(object_schema);
    let mut tool =
        Tool::new(name, clean(&entry.description), schema.unwrap_or_else(|| Arc::new(any_object())));
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
