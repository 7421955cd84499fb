//! Generates what the palette and the docs need of the node declarations.

use super::WRITTEN;
use crate::edge::{PortKind, Role};
use crate::node::declaration::{
    Choice, Initial, JsonShape, Kind, NodeDeclaration, NodeType, Palette, Place, Presence, Property,
    SecretRule, Whole,
};
use crate::node::{CONFIG_NODES, EffectClass, KEY_NODE, NODES};
use crate::phrases::PHRASES;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt::Write as _;

impl Serialize for Initial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json_of(*self).serialize(serializer)
    }
}

fn json_of(initial: Initial) -> Option<Value> {
    match initial {
        Initial::Absent => None,
        Initial::Text(text) => Some(text.into()),
        Initial::Number(number) => Some(number.into()),
        Initial::Flag(flag) => Some(flag.into()),
        Initial::Json(text) => serde_json::from_str(text).ok(),
    }
}

fn palette_nodes() -> impl Iterator<Item = (&'static NodeDeclaration, &'static Palette)> {
    NODES.iter().chain(CONFIG_NODES).filter_map(|node| Some((node, node.palette.as_ref()?)))
}

/// The node types of the palette.
#[must_use]
pub fn palette_types() -> Vec<&'static str> {
    palette_nodes().map(|(node, _)| node.node_type.name).collect()
}

/// The text of `schemas/nodes.json`: the node types of the palette, from which it builds its dialogs.
#[must_use]
pub fn nodes() -> String {
    let rows: Vec<Value> = palette_nodes().map(|(node, palette)| row(node, palette)).collect();
    serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n"
}

fn row(node: &NodeDeclaration, palette: &Palette) -> Value {
    let properties: Vec<&Property> =
        palette.properties().filter(|property| property.place != Place::Hidden).collect();
    let node_type = &node.node_type;
    json!({
        "type": node_type.name,
        "role": node_type.role,
        "config": node.config,
        "tool": node_type.tool.map(|tool| tool.name),
        "label": palette.label,
        "summary": palette.summary,
        "color": palette.color,
        "icon": palette.icon,
        "namedBy": palette.named_by,
        "input": palette.input,
        "outputs": palette.outputs,
        "properties": properties,
    })
}

/// The text of the palette's English catalogue of phrases.
#[must_use]
pub fn phrases() -> String {
    let texts: serde_json::Map<String, Value> =
        PHRASES.iter().map(|phrase| (phrase.key.to_owned(), phrase.english.into())).collect();
    serde_json::to_string_pretty(&texts).unwrap_or_default() + "\n"
}

/// The text of `node-red-bridge/src/sidecar-types.ts`.
#[must_use]
pub fn sidecar_types() -> String {
    let names = |keep: fn(&&NodeDeclaration) -> bool| -> Vec<&str> {
        NODES.iter().filter(keep).map(|node| node.node_type.name).collect()
    };
    let mut out = format!(
        "{WRITTEN}\n/** The types, and with `*` the prefixes of types, that the sidecar runs or reads. */\n"
    );
    out += &list("SIDECAR_TYPES", &names(|node| node.config || node.node_type.role != Role::Data));
    out += "\n/** The agents. */\n";
    out += &list("AGENT_TYPES", &names(|node| node.node_type.role == Role::Agent));
    out += "\n/** The outputs of each agent. */\n";
    out += &agent_ports();
    out += "\n/** The types that the sidecar runs without credentials. */\n";
    out += &list("WITHOUT_CREDENTIALS", &names(has_no_credentials));
    out += "\n/** The role of each type that agents bind, and with `*` of prefixes of types. */\n";
    out += &texts("SERVICE_ROLES", &service_roles());
    out += "\n/** The role of the nodes that a memory or a tool names, by its type and property. */\n";
    out += &named_services();
    out += "\n/** The type of the config node that a node names in `keyNode`. */\n";
    out += &texts("KEY_NODE_TYPES", &key_node_types());
    out += "\n/** The tools that change nothing, so that their nodes need no effect class. */\n";
    out += &list("READ_ONLY_TOOLS", &names(|node| node.effect == Some(EffectClass::Read)));
    out
}

fn agent_ports() -> String {
    let mut out = String::from("export const AGENT_PORTS: Readonly<Record<string, readonly string[]>> = {\n");
    for NodeType { name, role, outputs, .. } in NODES.iter().map(|node| &node.node_type) {
        if let (Role::Agent, Some(outputs)) = (role, outputs) {
            let ports: Vec<String> = outputs.iter().map(|port| format!("{:?}", port.as_str())).collect();
            let _ = writeln!(out, "  {name:?}: [{}],", ports.join(", "));
        }
    }
    out + "};\n"
}

fn service_roles() -> Vec<(&'static str, &'static str)> {
    let types = NODES.iter().map(|node| &node.node_type);
    types.filter(|row| row.role.is_service()).map(|row| (row.name, row.role.as_str())).collect()
}

fn properties(node: &NodeDeclaration) -> impl Iterator<Item = &'static Property> {
    node.property_sets.iter().flat_map(|set| set.properties)
}

fn named_services() -> String {
    let mut out = String::from(
        "export const NAMED_SERVICES: Readonly<Record<string, Readonly<Record<string, string>>>> = {\n",
    );
    for node in NODES.iter().filter(|node| matches!(node.node_type.role, Role::Memory | Role::Tool)) {
        let named: Vec<String> = properties(node)
            .filter_map(|property| match property.kind {
                Kind::Service { role } => Some(format!("{}: {:?}", property.name, role.as_str())),
                _ => None,
            })
            .collect();
        if !named.is_empty() {
            let _ = writeln!(out, "  {:?}: {{ {} }},", node.node_type.name, named.join(", "));
        }
    }
    out + "};\n"
}

fn key_node_types() -> Vec<(&'static str, &'static str)> {
    let key_node = |node: &NodeDeclaration| {
        properties(node).find_map(|property| match property.kind {
            Kind::ConfigNode { of } if property.name == KEY_NODE => Some((node.node_type.name, of)),
            _ => None,
        })
    };
    NODES.iter().filter_map(key_node).collect()
}

/// Whether the sidecar runs nodes of this type and needs no credentials for it.
fn has_no_credentials(node: &&NodeDeclaration) -> bool {
    let is_flow_tool = node.node_type.outputs.is_some_and(|ports| ports.contains(&PortKind::FlowTool));
    matches!(node.node_type.role, Role::Agent | Role::Chat) || is_flow_tool
}

fn list(name: &str, values: &[&str]) -> String {
    let rows: String = values.iter().map(|value| format!("  {value:?},\n")).collect();
    format!("export const {name}: readonly string[] = [\n{rows}];\n")
}

fn texts(name: &str, values: &[(&str, &str)]) -> String {
    let rows: String = values.iter().map(|(key, value)| format!("  {key:?}: {value:?},\n")).collect();
    format!("export const {name}: Readonly<Record<string, string>> = {{\n{rows}}};\n")
}

/// The text of `docs/nodes.md`.
#[must_use]
pub fn docs() -> String {
    let mut out = String::from(
        "<!-- Written by `cargo xtask codegen`. Do not edit. -->\n\n# Node types\n\nThe properties of every node type \
         that Redflow reads. A property without a default is empty in a new node.\nA *secret* is in Node-RED's \
         credentials, never in the flow. A value may also be `${NAME}`, an environment variable; only secrets may use \
         variables with secret names.\n",
    );
    let _ =
        writeln!(out, "\n## What runs without Node-RED\n\n{}, and subflows made of them.", native_types());
    for (node, palette) in palette_nodes() {
        let properties: Vec<&Property> = palette.properties().collect();
        section(&mut out, node, Some(palette), &properties);
    }
    out += "\n## Types of other palettes\n\nThe runtime reads these properties of nodes that our palette does not have.\n";
    for node in NODES.iter().filter(|node| node.palette.is_none() && !node.property_sets.is_empty()) {
        let properties: Vec<&Property> = node.property_sets.iter().flat_map(|set| set.properties).collect();
        section(&mut out, node, None, &properties);
    }
    out
}

fn native_types() -> String {
    let native = NODES.iter().filter(|node| node.native);
    native.map(|node| format!("`{}`", node.node_type.name)).collect::<Vec<_>>().join(", ")
}

fn section(out: &mut String, node: &NodeDeclaration, palette: Option<&Palette>, properties: &[&Property]) {
    let _ = write!(out, "\n{} `{}`\n\n", if palette.is_some() { "##" } else { "###" }, node.node_type.name);
    if let Some(palette) = palette {
        let role = if node.config { "config node" } else { node.node_type.role.as_str() };
        let _ = writeln!(out, "*{}*, {role}. {}\n", palette.label, palette.summary);
    }
    if properties.is_empty() {
        *out += "It has no properties but its name.\n";
        return;
    }
    *out += "| property | value | default | meaning |\n|---|---|---|---|\n";
    for property in properties {
        let default = match json_of(property.default) {
            Some(value) if value != "" => {
                format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            }
            _ => String::new(),
        };
        let cells = [format!("`{}`", property.name), value_of(property), default, property.help.to_owned()];
        let _ = writeln!(out, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
}

/// The values of a property, in words.
fn value_of(property: &Property) -> String {
    let words = match property.kind {
        Kind::Line { max: Some(max) } => format!("text, at most {max} characters"),
        Kind::Line { max: None } => "text".into(),
        Kind::Block => "text of several lines".into(),
        Kind::Whole(Whole { min, max, .. }) => match (min, max) {
            (Some(min), Some(max)) => format!("whole number from {min} to {max}"),
            (Some(min), None) => format!("whole number from {min}"),
            _ => "whole number".into(),
        },
        Kind::Decimal { min, max } => format!("number from {min} to {max}"),
        Kind::Flag | Kind::OptionalFlag { .. } => "`true` or `false`".into(),
        Kind::Choice { choices } => one_of(choices),
        Kind::Json { shape: JsonShape::List | JsonShape::ContextSpans | JsonShape::Categories, .. } => {
            "JSON list".into()
        }
        Kind::Json { shape: JsonShape::ToolIds, .. } => "list of ids and patterns of tools".into(),
        Kind::Json { .. } => "JSON object".into(),
        Kind::Texts { most } => format!("at most {most} texts, with commas or as a list"),
        Kind::Address { .. } => "HTTP address".into(),
        Kind::RedisAddress => "Redis address".into(),
        Kind::HostPorts { most } => format!("at most {most} `HOST:PORT`, with commas"),
        Kind::Day => "day".into(),
        Kind::ToolName { .. } => "1 to 64 letters, digits, `_` or `-`".into(),
        Kind::Secret { rule: SecretRule::Bytes, .. } => "secret, 32 bytes in base64".into(),
        Kind::Secret { .. } => "secret".into(),
        Kind::ConfigNode { of } => format!("id of a `{of}`"),
        Kind::NodeIds => "ids of nodes".into(),
        Kind::Service { role } => format!("id of a {}", role.as_str()),
        Kind::Services { role } => format!("ids of {}s", role.as_str()),
        Kind::AllowedTools => "list of names".into(),
        Kind::StopConditions => "list of conditions".into(),
        Kind::Other => "any value".into(),
    };
    if property.presence == Presence::Required { format!("{words}; required") } else { words }
}

fn one_of(choices: &[Choice]) -> String {
    let values: Vec<String> = choices
        .iter()
        .filter(|choice| !choice.value.is_empty())
        .map(|choice| format!("`{}`", choice.value))
        .collect();
    values.join(", ")
}
