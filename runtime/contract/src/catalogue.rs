//! The node catalogue: the role, ports and property schemas of each node type. An unlisted type is a data
//! node.

use crate::edge::{PortKind, Role};
use serde::Serialize;

/// What the runtime knows about a node type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeType {
    /// The Node-RED type; `prefix*` stands for every type with that prefix.
    #[serde(rename = "type")]
    pub name: &'static str,
    /// The role of such a node for an agent.
    pub role: Role,
    /// The number of inputs: 0 or 1.
    pub inputs: u32,
    /// The kind of each output port, in order; null if each node has its own number of outputs.
    pub outputs: Option<&'static [PortKind]>,
    /// The names of the schemas that the properties must satisfy (see [`crate::schemas`]).
    pub schemas: &'static [&'static str],
    /// The name and input of a tool that the type fixes; null for other types.
    pub tool: Option<FixedTool>,
    /// Whether messages pass through unchanged. The checker then follows the wires behind the node.
    pub transparent: bool,
}

/// A tool whose name and input the node type fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FixedTool {
    /// The name, unless `toolName` gives another.
    pub name: &'static str,
    /// What it does, for the model, unless `description` gives another text.
    pub description: &'static str,
    /// JSON Schema of the input, as text.
    pub input_schema: &'static str,
}

const AGENT_CORE: &[PortKind] =
    &[PortKind::Model, PortKind::Tool, PortKind::Memory, PortKind::Result, PortKind::ModelResponse];
const AI_AGENT: &[PortKind] = &[PortKind::Result, PortKind::Stream];
const REPLY: &[PortKind] = &[PortKind::Reply];

const DATA: NodeType = NodeType {
    name: "*",
    role: Role::Data,
    inputs: 1,
    outputs: None,
    schemas: &[],
    tool: None,
    transparent: false,
};

const fn service(name: &'static str, role: Role, schemas: &'static [&'static str]) -> NodeType {
    NodeType { name, role, inputs: 1, outputs: Some(REPLY), schemas, tool: None, transparent: false }
}

const fn data(name: &'static str, inputs: u32, schemas: &'static [&'static str]) -> NodeType {
    NodeType { name, inputs, schemas, ..DATA }
}

const fn transparent(name: &'static str, inputs: u32, schemas: &'static [&'static str]) -> NodeType {
    NodeType { transparent: true, ..data(name, inputs, schemas) }
}

const TOOL: &[&str] = &["node.tool"];
const MEMORY: &[&str] = &["node.memory"];

/// Every type with a role of its own, and the Node-RED types whose properties the runtime reads.
pub const CATALOGUE: &[NodeType] = &[
    NodeType {
        name: "agent-core",
        role: Role::Agent,
        inputs: 1,
        outputs: Some(AGENT_CORE),
        schemas: &["agent-core.react", "node.agent-binding"],
        tool: None,
        transparent: false,
    },
    NodeType {
        name: "ai-agent",
        role: Role::Agent,
        inputs: 1,
        outputs: Some(AI_AGENT),
        schemas: &["node.agent-binding"],
        tool: None,
        transparent: false,
    },
    service("scripted-model", Role::Model, &["node.scripted-model"]),
    service("openai-model", Role::Model, &["node.openai-model"]),
    service("anthropic-model", Role::Model, &["node.anthropic-model"]),
    service("model.azure.openai", Role::Model, &["node.azure-model"]),
    service("ollama-model", Role::Model, &["node.ollama-model"]),
    service("model.*", Role::Model, &[]),
    service("buffer-memory", Role::Memory, &["node.buffer-memory"]),
    service("window-memory", Role::Memory, &["node.window-memory"]),
    service("redis-memory", Role::Memory, &["node.redis-memory"]),
    service("memory.*", Role::Memory, MEMORY),
    NodeType {
        tool: Some(FixedTool {
            name: "calculator",
            description: "Evaluates an arithmetic expression: + - * / ^, parentheses, decimals.",
            input_schema: r#"{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}"#,
        }),
        ..service("calculator-tool", Role::Tool, TOOL)
    },
    NodeType {
        tool: Some(FixedTool {
            name: "http_request",
            description: "Makes one HTTP request and returns status, headers and body.",
            input_schema: r#"{"type":"object","properties":{"url":{"type":"string"},"method":{"type":"string","enum":["GET","POST","PUT","DELETE"]},"headers":{"type":"object"},"body":{}},"required":["url","method"]}"#,
        }),
        ..service("http-request-tool", Role::Tool, TOOL)
    },
    NodeType {
        tool: Some(FixedTool {
            name: "knowledge_base_search",
            description: "Searches the knowledge base for passages close in meaning to the query.",
            input_schema: r#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["query"]}"#,
        }),
        ..service("knowledge-base-tool", Role::Tool, TOOL)
    },
    NodeType { outputs: Some(&[PortKind::FlowTool]), ..service("flow-tool", Role::Tool, TOOL) },
    service("tool.*", Role::Tool, TOOL),
    NodeType {
        name: "chat-node",
        role: Role::Chat,
        inputs: 1,
        outputs: Some(&[PortKind::Chat]),
        schemas: &[],
        tool: None,
        transparent: false,
    },
    data("flow-tool-return", 1, &[]),
    data("inject", 0, &["node.inject"]),
    data("change", 1, &["node.change"]),
    data("debug", 1, &["node.debug"]),
    data("comment", 0, &[]),
    data("catch", 0, &["node.catch"]),
    transparent("junction", 1, &[]),
    transparent("link in", 0, &["node.link"]),
    transparent("link out", 1, &["node.link"]),
    data("tab", 0, &["node.tab"]),
    data("subflow", 0, &["node.subflow"]),
    data("group", 0, &["node.group"]),
    data("global-config", 0, &["node.group"]),
];

/// Finds a type: its own row, else the row of its prefix, else a plain data node.
#[must_use]
pub fn lookup(type_name: &str) -> &'static NodeType {
    let exact = CATALOGUE.iter().find(|row| row.name == type_name);
    let by_prefix = || {
        CATALOGUE
            .iter()
            .find(|row| row.name.strip_suffix('*').is_some_and(|prefix| type_name.starts_with(prefix)))
    };
    exact.or_else(by_prefix).unwrap_or(&DATA)
}

/// Types that structure a flow and never run as nodes.
pub const STRUCTURE_TYPES: [&str; 4] = ["tab", "subflow", "group", "global-config"];

#[cfg(test)]
mod tests {
    use super::{CATALOGUE, lookup};
    use crate::edge::Role;

    #[test]
    fn finds_the_role_of_a_type() {
        let rows = [
            ("agent-core", Role::Agent),
            ("ai-agent", Role::Agent),
            ("scripted-model", Role::Model),
            ("model.azure.openai", Role::Model),
            ("memory.anything", Role::Memory),
            ("redis-memory", Role::Memory),
            ("tool.mine", Role::Tool),
            ("flow-tool", Role::Tool),
            ("flow-tool-return", Role::Data),
            ("chat-node", Role::Chat),
            ("function", Role::Data),
            ("model", Role::Data),
            ("*", Role::Data),
        ];
        for (name, role) in rows {
            assert_eq!(lookup(name).role, role, "{name}");
        }
    }

    #[test]
    fn every_named_schema_exists_and_fixed_schemas_are_json() {
        for row in CATALOGUE {
            for name in row.schemas {
                assert!(crate::schemas::find(name).is_some(), "{}: schema {name}", row.name);
            }
            if let Some(tool) = row.tool {
                let schema: serde_json::Value = serde_json::from_str(tool.input_schema).unwrap();
                assert_eq!(schema["type"], "object", "{}", row.name);
            }
        }
    }
}
