//! `${NAME}` in properties: Node-RED's whole-property substitution, and its lookup chain from the node outward.

use crate::resolve::{NodeIx, ResolvedFlow};
use redflow_contract::json::size_of;
use redflow_contract::secret::is_secret_name;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Variables by name, each entry as the flow has it: `name`, `value`, `type`.
pub(crate) type Env = HashMap<String, Value>;

/// The process environment, as far as the caller lets a flow see it.
pub(crate) type ProcessEnv<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Variables that name variables, at most.
const MAX_HOPS: usize = 10;

/// Resolves the properties of one node.
pub(crate) struct EnvResolver<'a> {
    pub(crate) flow: &'a ResolvedFlow,
    pub(crate) process: ProcessEnv<'a>,
    pub(crate) node: NodeIx,
    /// Whether process variables that look like secrets may be read: only for what never leaves an adapter.
    pub(crate) secrets: bool,
    /// Bytes that may still be copied from variables; once they are used up, references stay as they are.
    pub(crate) bytes_left: usize,
    /// Whether they were used up.
    pub(crate) exhausted: bool,
    /// Secrets that were asked for and not read: the property, and the variable.
    pub(crate) refused: Vec<(String, String)>,
    /// The property that is being resolved.
    property: String,
    /// The nearest key around the value that is being resolved.
    holder: String,
}

/// What one node may copy from variables when it is made.
const BYTES_PER_NODE: usize = 16 * 1024 * 1024;

impl<'a> EnvResolver<'a> {
    pub(crate) fn new(flow: &'a ResolvedFlow, process: ProcessEnv<'a>, node: NodeIx, secrets: bool) -> Self {
        Self {
            flow,
            process,
            node,
            secrets,
            bytes_left: BYTES_PER_NODE,
            exhausted: false,
            refused: Vec::new(),
            property: String::new(),
            holder: String::new(),
        }
    }

    /// A copy of a value with every `${NAME}` that is a whole string replaced by the variable's value, with
    /// its type. What is not known stays as it is written, as in Node-RED.
    pub(crate) fn resolve(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => match whole_reference(text).and_then(|name| self.lookup(name)) {
                Some(found) => match self.bytes_left.checked_sub(size_of(&found)) {
                    Some(left) => {
                        self.bytes_left = left;
                        found
                    }
                    None => {
                        self.exhausted = true;
                        value.clone()
                    }
                },
                None => value.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.resolve(item)).collect(),
            Value::Object(map) => Value::Object(self.resolve_map(map)),
            other => other.clone(),
        }
    }

    /// The same for an object's values.
    pub(crate) fn resolve_map(&mut self, map: &Map<String, Value>) -> Map<String, Value> {
        let outer = self.holder.clone();
        let mut resolved = Map::with_capacity(map.len());
        for (key, value) in map {
            self.holder.clone_from(key);
            resolved.insert(key.clone(), self.resolve(value));
        }
        self.holder = outer;
        resolved
    }

    /// The same for a node's properties, remembering which one is looked at.
    pub(crate) fn resolve_props(&mut self, props: &Map<String, Value>) -> Map<String, Value> {
        let mut resolved = Map::with_capacity(props.len());
        for (key, value) in props {
            self.property.clone_from(key);
            self.holder.clone_from(key);
            resolved.insert(key.clone(), self.resolve(value));
        }
        resolved
    }

    /// The value of a variable as the node sees it.
    pub(crate) fn lookup(&mut self, name: &str) -> Option<Value> {
        let (mut name, mut start) = (name, Start::Node);
        if let Some(rest) = name.strip_prefix("$parent.") {
            (name, start) = (rest, Start::Parent);
        }
        self.lookup_from(name, start, 0)
    }

    fn lookup_from(&mut self, name: &str, start: Start, hops: usize) -> Option<Value> {
        let flow = self.flow;
        let node = &flow.nodes[self.node];
        let mut scope = Some(node.scope);
        match start {
            Start::Node => {
                match name {
                    "NR_NODE_ID" => return Some(Value::from(node.id.as_str())),
                    "NR_NODE_NAME" => {
                        return Some(Value::from(flow.raw(self.node).text("name").unwrap_or("")));
                    }
                    _ => {}
                }
                for group in flow.groups_of(self.node) {
                    let env = flow.groups.get(group).map(|group| &group.env);
                    if let Some(found) = env.and_then(|env| self.entry(env, name, hops)) {
                        return Some(found);
                    }
                }
            }
            Start::Parent => scope = flow.scopes[node.scope].parent,
        }
        while let Some(ix) = scope {
            let current = &flow.scopes[ix];
            match name {
                "NR_FLOW_ID" if current.parent.is_none() => return Some(Value::from(current.id.as_str())),
                "NR_FLOW_NAME" if current.parent.is_none() => {
                    return Some(Value::from(current.name.as_str()));
                }
                "NR_SUBFLOW_ID" if current.parent.is_some() => return Some(Value::from(current.id.as_str())),
                "NR_SUBFLOW_NAME" if current.parent.is_some() => {
                    return Some(Value::from(current.name.as_str()));
                }
                _ => {}
            }
            if let Some(found) = current.env.iter().find_map(|env| self.entry(env, name, hops)) {
                return Some(found);
            }
            scope = current.parent;
        }
        if let Some(found) = self.entry(&flow.global_env, name, hops) {
            return Some(found);
        }
        // What is resolved here can reach prompts and journals, so a secret must not come this way.
        // It may come only into a property that is made to hold one, such as `apiKey`, and never into
        // `replies` or a description.
        let holds_secrets = self.secrets && is_secret_name(&self.holder);
        if !holds_secrets && is_secret_name(name) {
            if (self.process)(name).is_some() {
                self.refused.push((self.property.clone(), name.to_owned()));
            }
            return None;
        }
        (self.process)(name).map(Value::String)
    }

    /// A variable's value, with its type.
    fn entry(&mut self, env: &Env, name: &str, hops: usize) -> Option<Value> {
        let entry = env.get(name)?;
        let value = entry.get("value").cloned().unwrap_or_default();
        let text = value.as_str();
        match entry.get("type").and_then(Value::as_str).unwrap_or("str") {
            "num" => text.map_or(Some(value.clone()), |text| serde_json::from_str(text.trim()).ok()),
            "bool" => Some(text.map_or(value.clone(), |text| Value::Bool(text.eq_ignore_ascii_case("true")))),
            "json" => text.map_or(Some(value.clone()), |text| serde_json::from_str(text).ok()),
            "env" if hops < MAX_HOPS => {
                let target = text.map(|text| whole_reference(text).unwrap_or(text))?.to_owned();
                // A variable that names itself means the one further out.
                let start = if target == name { Start::Parent } else { Start::Node };
                self.lookup_from(&target, start, hops + 1)
            }
            // Secrets, and what only JavaScript can work out.
            "env" | "cred" | "jsonata" | "bin" | "re" | "date" => None,
            _ => Some(value),
        }
    }
}

#[derive(Clone, Copy)]
enum Start {
    Node,
    Parent,
}

/// A copy of properties with every whole `${NAME}` resolved from the process environment alone: for a service
/// whose flow is not at hand. Secrets come only into properties that hold secrets, as everywhere.
#[must_use]
pub fn resolve_process_env(props: &Map<String, Value>, process: ProcessEnv<'_>) -> Map<String, Value> {
    fn resolve(holder: &str, value: &Value, process: ProcessEnv<'_>) -> Value {
        match value {
            Value::String(text) => {
                let name =
                    whole_reference(text).filter(|name| is_secret_name(holder) || !is_secret_name(name));
                name.and_then(process).map_or_else(|| value.clone(), Value::String)
            }
            Value::Array(items) => items.iter().map(|item| resolve(holder, item, process)).collect(),
            Value::Object(map) => Value::Object(resolve_process_env(map, process)),
            other => other.clone(),
        }
    }
    props.iter().map(|(key, value)| (key.clone(), resolve(key, value, process))).collect()
}

/// The name in `${NAME}` or the old `$(NAME)`, if the text is that and nothing else.
pub(crate) fn whole_reference(text: &str) -> Option<&str> {
    let inner = match text.strip_prefix("${") {
        Some(rest) => rest.strip_suffix('}')?,
        None => text.strip_prefix("$(")?.strip_suffix(')')?,
    };
    (!inner.is_empty() && !inner.contains(char::is_whitespace)).then_some(inner)
}
