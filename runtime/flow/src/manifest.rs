//! Checks manifests of tools: everything at once, each problem with its place.
//!
//! [`shape`] compares the manifest with its JSON Schema. [`fields`] checks what a schema cannot say. Both work on the
//! JSON value, so that a wrong key does not hide other problems. No text repeats a value that may be a secret.

mod address;
mod fields;
mod mcp;
mod problems;
mod shape;

pub use problems::MAX_MANIFEST_PROBLEMS;
use problems::Problems;
use redflow_contract::Message;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::json::{push_pointer, read_typed};
use redflow_contract::manifest::{MAX_MANIFEST_TOOLS, Manifest, ManifestTool, NodeTools};
use redflow_contract::mcp::McpServer;
use redflow_contract::policy::{Policy, PolicyRule, RoleMembers};
use redflow_contract::tool::{RESERVED_PREFIXES, id_part, is_tool_id, provider_name};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Checks a whole manifest. An empty file (`null`) is a manifest without tools.
///
/// # Errors
/// Every problem, each with the code `MANIFEST_INVALID`; up to [`MAX_MANIFEST_PROBLEMS`].
pub fn check_manifest(value: &Value) -> Result<Manifest, Vec<Diagnostic>> {
    if value.is_null() {
        return Ok(Manifest::default());
    }
    let mut problems = find_problems(value);
    if problems.is_empty() {
        match read_typed(value.clone()) {
            Ok(manifest) => return Ok(manifest),
            Err(_) => problems.add(
                "",
                "whole numbers",
                "a number with a fraction",
                "Write numbers without a point.",
            ),
        }
    }
    Err(problems.into_diagnostics(""))
}

/// Checks one tool that is registered at run time.
///
/// # Errors
/// Every problem. The pointers begin in the tool.
pub fn check_tool(value: &Value) -> Result<ManifestTool, Vec<Diagnostic>> {
    let mut problems = find_problems(&json!({"tools": [value]}));
    if problems.is_empty() {
        match read_typed(value.clone()) {
            Ok(tool) => return Ok(tool),
            Err(_) => problems.add(
                "",
                "whole numbers",
                "a number with a fraction",
                "Write numbers without a point.",
            ),
        }
    }
    Err(problems.into_diagnostics("/tools/0"))
}

/// Checks an MCP server that was added by a command.
///
/// # Errors
/// Every problem. The pointers begin in the server.
pub fn check_mcp_server(value: &Value) -> Result<McpServer, Vec<Diagnostic>> {
    let mut problems = find_problems(&json!({"mcp": {ADDED_SERVER: value}}));
    if problems.is_empty() {
        match read_typed(value.clone()) {
            Ok(server) => return Ok(server),
            Err(_) => problems.add(
                "",
                "whole numbers",
                "a number with a fraction",
                "Write numbers without a point.",
            ),
        }
    }
    Err(problems.into_diagnostics(&pointer_to("/mcp", ADDED_SERVER)))
}

/// Stands for the name of an added server while it is checked. The caller checks its name.
const ADDED_SERVER: &str = "added";

/// Checks `redflow.tools` of a node package. Leaves out each operation that has a problem, and keeps the others.
#[must_use]
pub fn check_node_tools(value: &Value) -> (NodeTools, Vec<Diagnostic>) {
    let problems = find_problems(&json!({"nodes": value}));
    let wrong = problems.places(3);
    let mut tools = NodeTools::new();
    for (type_name, operations) in value.as_object().into_iter().flatten() {
        let node = pointer_to("/nodes", type_name);
        for (name, operation) in operations.as_object().into_iter().flatten() {
            let pointer = pointer_to(&node, name);
            // A problem of the whole is a problem of each part.
            let is_wrong = ["", "/nodes", &node, &pointer].into_iter().any(|place| wrong.contains(place));
            if !is_wrong && let Ok(operation) = read_typed(operation.clone()) {
                tools.entry(type_name.clone()).or_default().insert(name.clone(), operation);
            }
        }
    }
    (tools, problems.into_diagnostics("/nodes"))
}

fn find_problems(value: &Value) -> Problems {
    let mut problems = Problems::default();
    let count = count_tools(value);
    if count > MAX_MANIFEST_TOOLS {
        let expected = format!("at most {MAX_MANIFEST_TOOLS} tools and operations");
        problems.add("", &expected, &count.to_string(), "Remove some of them.");
        return problems;
    }
    shape::check(value, &mut problems);
    let mut ids = ToolIds::default();
    let tools = value.get("tools").and_then(Value::as_array);
    for (index, tool) in tools.into_iter().flatten().enumerate() {
        let Some(tool) = tool.as_object() else { continue };
        let pointer = format!("/tools/{index}");
        if let Some(id) = tool.get("id").and_then(Value::as_str) {
            ids.check(&mut problems, &format!("{pointer}/id"), id);
        }
        fields::check_http_tool(&mut problems, &pointer, tool);
    }
    for (type_name, operations) in value.get("nodes").and_then(Value::as_object).into_iter().flatten() {
        let pointer = pointer_to("/nodes", type_name);
        for (name, operation) in operations.as_object().into_iter().flatten() {
            let pointer = pointer_to(&pointer, name);
            if name.is_empty() || *name != id_part(name) {
                let expected = "the name of an operation: letters, digits, `_` and `-`";
                problems.add(&pointer, expected, &format!("`{name}`"), "Rename the operation.");
            } else {
                ids.check(&mut problems, &pointer, &format!("{}.{name}", id_part(type_name)));
            }
            if let Some(operation) = operation.as_object() {
                fields::check_operation(&mut problems, &pointer, operation);
            }
        }
    }
    if let Some(servers) = value.get("mcp").and_then(Value::as_object) {
        mcp::check_servers(&mut problems, servers);
    }
    check_policy(value, &mut problems);
    problems
}

fn count_tools(value: &Value) -> usize {
    let tools = value.get("tools").and_then(Value::as_array).map_or(0, Vec::len);
    let nodes = value.get("nodes").and_then(Value::as_object).into_iter().flatten();
    tools + nodes.filter_map(|(_, operations)| operations.as_object()).map(Message::len).sum::<usize>()
}

/// The ids so far, by the name that models use, with their places. Models do not tell apart names that differ only by
/// case.
#[derive(Default)]
struct ToolIds(HashMap<String, String>);

impl ToolIds {
    fn check(&mut self, problems: &mut Problems, pointer: &str, id: &str) {
        let found = format!("`{id}`");
        if !is_tool_id(id) {
            let expected = "an id such as `weather.current`: parts of letters, digits, `_` and `-`, joined by dots, up \
                            to 128 bytes";
            return problems.add(pointer, expected, &found, "Change the id.");
        }
        let first = id.split('.').next().unwrap_or_default();
        // Models know a tool of an MCP server as `mcp__SERVER__TOOL`.
        let is_mcp = provider_name(id).to_ascii_lowercase().starts_with("mcp__");
        if is_mcp || RESERVED_PREFIXES.iter().any(|prefix| prefix.eq_ignore_ascii_case(first)) {
            let expected = "an id that does not begin with `builtin.`, `flow.`, `agent.` or `mcp.`";
            problems.add(pointer, expected, &found, "Begin the id with another word.");
        }
        match self.0.entry(provider_name(id).to_ascii_lowercase()) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(pointer.to_owned());
            }
            std::collections::hash_map::Entry::Occupied(place) => {
                let found = format!("{found}, which models cannot tell from the one at {}", place.get());
                problems.add(pointer, "an id that no other tool has", &found, "Change one of the two ids.");
            }
        }
    }
}

/// Checks the policy. A rule or role of a wrong shape is reported already, so a valid one stands in for it.
fn check_policy(value: &Value, problems: &mut Problems) {
    let any_rule = || PolicyRule { deny: Some(vec!["*".to_owned()]), ..PolicyRule::default() };
    let rules = value.get("policy").and_then(Value::as_array);
    let rules: Vec<PolicyRule> = rules
        .into_iter()
        .flatten()
        .map(|rule| read_typed(rule.clone()).unwrap_or_else(|_| any_rule()))
        .collect();
    let roles = value.get("roles").and_then(Value::as_object);
    let read_role =
        |(name, role): (&String, &Value)| (name.clone(), read_typed(role.clone()).unwrap_or_default());
    let roles: BTreeMap<String, RoleMembers> = roles.into_iter().flatten().map(read_role).collect();
    for problem in Policy::new(&rules, &roles).err().into_iter().flatten() {
        problems.add(&problem.pointer, &problem.expected, &problem.found, "Change the rule or the role.");
    }
}

/// The text of a property; none if it is absent or no text.
fn text<'a>(object: &'a Message, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

fn pointer_to(parent: &str, key: &str) -> String {
    let mut pointer = parent.to_owned();
    push_pointer(&mut pointer, key);
    pointer
}
