//! The tools of the sidecar's own MCP server: agents, flow tools, and tools of the manifest with `mcp: true`.

use super::exposed_nodes::{ExposedAgent, clean, object_schema};
use super::problem::{error_data, invalid_params};
use crate::active_flow::FlowTools;
use crate::app::App;
use crate::bridge::instance::Instance;
use crate::response::{Problem, printable};
use crate::tools::denying_rule;
use redflow_contract::code::ApiCode;
use redflow_contract::node::EffectClass;
use redflow_contract::tool::{ToolEntry, ToolOrigin, ToolState, provider_name};
use rmcp::ErrorData;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::collections::HashSet;
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

/// All tools, sorted by id: of the active flow, of the flows of Node-REDs, and of the registry.
pub(super) fn exposed_tools(app: &App) -> Vec<ExposedTool> {
    let instances = app.bridge.all();
    let connected = instances.into_iter().filter(|instance| instance.is_connected());
    let of_instances = connected.map(|instance| (instance.tools(), Some(instance)));
    let flows = std::iter::once((app.active_flow().tools, None)).chain(of_instances);
    let mut tools = Vec::new();
    for (flow, owner) in flows {
        add_flow(&mut tools, &flow, owner.as_ref());
    }
    let callable = app.tool_definitions.mcp_callable();
    let snapshot = app.tool_definitions.registry.snapshot();
    let of_registry = snapshot.tools().iter().filter(|tool| callable.contains(&tool.entry.id));
    tools.extend(of_registry.map(|tool| {
        let entry = Arc::clone(&tool.entry);
        ExposedTool { id: entry.id.clone(), target: CallTarget::Registry { entry } }
    }));
    tools.sort_by(|one, other| one.id.cmp(&other.id));
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

/// Finds a tool by its id, by the name that models have for it, or by its last part.
pub(super) fn find_tool(app: &App, name: &str) -> Result<ExposedTool, ErrorData> {
    let mut tools = exposed_tools(app);
    if let Some(place) = tools.iter().position(|tool| tool.id == name) {
        return Ok(tools.swap_remove(place));
    }
    let last_part = |id: &str| id.split_once('.').map(|(_, rest)| rest.to_owned());
    tools.retain(|tool| provider_name(&tool.id) == name || last_part(&tool.id).as_deref() == Some(name));
    match tools.pop() {
        Some(tool) if tools.is_empty() => Ok(tool),
        Some(_) => {
            let text = format!("Several tools are `{}`. Use an id of `tools/list`.", printable(name));
            Err(error_data(Problem::new(ApiCode::ToolConflict, text)))
        }
        None => {
            let text = format!("There is no tool `{}`. `tools/list` lists them.", printable(name));
            Err(error_data(Problem::new(ApiCode::NotFound, text)))
        }
    }
}

/// The tools as clients get them. Those that the policy denies to every caller are left out.
pub(super) fn list_tools(app: &App) -> Vec<Tool> {
    let snapshot = app.tool_definitions.registry.snapshot();
    let describe = |tool: ExposedTool| match tool.target {
        CallTarget::Agent { agent, .. } => Some(agent_tool(tool.id, &agent)),
        CallTarget::Flow { entry, .. } | CallTarget::Registry { entry } => {
            let is_denied = denying_rule(&snapshot.policy().rules_of(&entry)).is_some();
            (entry.state == ToolState::Ready && !is_denied).then(|| entry_tool(tool.id, &entry))
        }
    };
    exposed_tools(app).into_iter().filter_map(describe).collect()
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

/// The part of a list that a cursor names, and the cursor of the next part.
pub(super) fn page<T>(
    mut items: Vec<T>,
    cursor: Option<&str>,
    most: usize,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => cursor.parse().ok().filter(|start| *start <= items.len()).ok_or_else(|| {
            invalid_params("`cursor` is not one of this server. Read the list from its beginning.")
        })?,
    };
    let mut rest = items.split_off(start);
    let next = (rest.len() > most).then(|| (start + most).to_string());
    rest.truncate(most);
    Ok((rest, next))
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn pages_meet_without_a_gap() {
        let items: Vec<u32> = (0..5).collect();
        let first = page(items.clone(), None, 2).unwrap();
        assert_eq!(first, (vec![0, 1], Some("2".to_owned())));
        let second = page(items.clone(), first.1.as_deref(), 2).unwrap();
        assert_eq!(second, (vec![2, 3], Some("4".to_owned())));
        assert_eq!(page(items.clone(), second.1.as_deref(), 2).unwrap(), (vec![4], None));
        for wrong in ["x", "-1", "6"] {
            assert!(page(items.clone(), Some(wrong), 2).is_err(), "{wrong}");
        }
    }
}
