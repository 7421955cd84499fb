//! The agents of a flow that MCP clients can call, as they were when the flow was deployed.

use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::node::OutputFormat;
use redflow_contract::plan::ConverseSpec;
use redflow_contract::tool::id_part;
use redflow_flow::{CheckedAgent, CheckedFlow, RawNode, Verdict};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// Characters of a description.
const MAX_DESCRIPTION: usize = 1_024;

/// Characters of a name.
const MAX_NAME: usize = 100;

/// The property that takes a node out: `false`.
const PROPERTY: &str = "mcp";

/// What MCP clients see of a flow.
#[derive(Default)]
pub(crate) struct ExposedNodes {
    /// The agents that are not refused, in the order of the flow.
    pub(crate) agents: Vec<Arc<ExposedAgent>>,
    /// The nodes that MCP clients must not call.
    pub(crate) hidden: HashSet<NodeId>,
}

/// An agent that MCP clients can call.
#[derive(Debug)]
pub(crate) struct ExposedAgent {
    pub(crate) node: NodeSummary,
    /// Its name as a part of an id.
    pub(crate) name: String,
    /// Whether the name has each character of the node's name, or `-` for a space.
    pub(crate) has_exact_name: bool,
    pub(crate) description: String,
    /// JSON Schema of its answer, if that is always an object.
    pub(crate) output_schema: Option<Arc<Map<String, Value>>>,
}

impl ExposedNodes {
    pub(crate) fn new(checked: &CheckedFlow) -> Self {
        let raw = |ix| checked.flow.raw(ix);
        let is_hidden = |ix: &usize| raw(*ix).props.get(PROPERTY) == Some(&Value::Bool(false));
        let hidden = (0..checked.flow.nodes.len()).filter(is_hidden);
        let hidden: HashSet<NodeId> = hidden.map(|ix| checked.flow.nodes[ix].id.clone()).collect();
        let shown = checked.agents.iter().filter(|agent| !hidden.contains(&agent.node.id));
        let agents = shown.filter_map(|agent| expose(agent, raw(agent.ix))).map(Arc::new).collect();
        Self { agents, hidden }
    }
}

fn expose(agent: &CheckedAgent, raw: &RawNode) -> Option<ExposedAgent> {
    let Verdict::Ready(ready) = &agent.verdict else { return None };
    let node = agent.node.clone();
    let label = if node.name.trim().is_empty() { node.id.as_str() } else { node.name.trim() };
    let model = ready.plan.model.config.get("model").and_then(Value::as_str).unwrap_or_default();
    let text = match raw.text("info").map(str::trim) {
        Some(info) if !info.is_empty() => format!("{label}: {info}"),
        _ if model.is_empty() => format!("{label}: an agent."),
        _ => format!("{label}: an agent with the model {model}."),
    };
    // Other payloads do not follow the schema: a text, or an object around the answer.
    let follows_schema = |converse: &&ConverseSpec| converse.output_format == OutputFormat::Json;
    let converse = ready.spec.converse.as_ref().filter(follows_schema);
    let output_schema = converse.and_then(|converse| object_schema(converse.output_schema.as_ref()?));
    Some(ExposedAgent {
        name: id_part(&label.chars().take(MAX_NAME).collect::<String>()),
        has_exact_name: label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ')),
        description: clean(&text),
        output_schema,
        node,
    })
}

/// A schema that only objects follow, as MCP demands it of schemas; none if it is another one.
pub(super) fn object_schema(schema: &Value) -> Option<Arc<Map<String, Value>>> {
    let schema = schema.as_object()?;
    (schema.get("type").and_then(Value::as_str) == Some("object")).then(|| Arc::new(schema.clone()))
}

/// The beginning of a text, without control characters.
pub(super) fn clean(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c });
    printable.take(MAX_DESCRIPTION).collect()
}

#[cfg(test)]
mod tests {
    use super::{MAX_DESCRIPTION, clean, object_schema};
    use serde_json::json;

    #[test]
    fn a_description_is_short_and_has_no_control_characters() {
        assert_eq!(clean("a\u{7}b\nc\r"), "a b\nc ");
        assert_eq!(clean(&"é".repeat(2_000)).chars().count(), MAX_DESCRIPTION);
    }

    #[test]
    fn only_a_schema_of_objects_is_one_of_mcp() {
        assert!(object_schema(&json!({"type": "object", "properties": {}})).is_some());
        for other in [json!({"type": "string"}), json!({"type": ["object", "null"]}), json!(true), json!({})]
        {
            assert!(object_schema(&other).is_none(), "{other}");
        }
    }
}
