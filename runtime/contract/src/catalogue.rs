//! The node catalogue: type → role, ports, property schema. A type that is not listed is a data node.

use crate::edge::{PortKind, Role};
use serde::Serialize;

/// What is known of a node type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeType {
    /// The Node-RED type; `prefix*` stands for every type that begins so.
    #[serde(rename = "type")]
    pub name: &'static str,
    /// What it is to an agent.
    pub role: Role,
    /// How many inputs it has: none or one.
    pub inputs: u32,
    /// What leaves its outputs, in order; null when the node itself decides how many it has.
    pub outputs: Option<&'static [PortKind]>,
    /// The schemas its properties must satisfy, by name (see [`crate::schemas`]).
    pub schemas: &'static [&'static str],
    /// What the type fixes for a tool.
    pub tool: Option<FixedTool>,
    /// Messages pass through it unchanged, so edges are judged as if it were not there.
    pub transparent: bool,
}

/// A tool whose name and input are fixed by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FixedTool {
    /// The name it has unless `toolName` says otherwise.
    pub name: &'static str,
    /// What it does, for the model, unless `description` says otherwise.
    pub description: &'static str,
    /// JSON Schema of its input, as text.
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

/// Every type with a role of its own, and the Node-RED types whose properties we read.
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

/// What is known of a type: its own row, else the row of its prefix, else a plain data node.
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

/// The file's own furniture: no nodes that run.
pub const STRUCTURE_TYPES: [&str; 4] = ["tab", "subflow", "group", "global-config"];

#[cfg(test)]
mod tests {
    use super::{CATALOGUE, lookup};
    use crate::edge::Role;

    #[test]
    fn roles_of_types() {
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
