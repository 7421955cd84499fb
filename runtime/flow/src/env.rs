//! `${NAME}` in properties: replaces whole properties as Node-RED does, and looks variables up from the node
//! outward.

use crate::resolved::{Env, NodeIx, ResolvedFlow};
use redflow_contract::json::{keeps_integers, size_of};
use redflow_contract::secret::{is_secret_name, is_secret_variable};
use serde_json::{Map, Value};

/// The process environment, as far as the caller shows it to a flow.
pub(crate) type ProcessEnv<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The property whose values only adapters see.
const CREDENTIALS: &str = "credentials";

/// The most variables that refer to each other in a row.
const MAX_HOPS: usize = 10;

/// Whether process variables with secret names are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessSecrets {
    /// Never: the result can reach prompts and journals.
    Hidden,
    /// In properties that hold secrets: the result stays in an adapter.
    InSecretProperties,
}

/// Resolves the properties of one node.
pub(crate) struct EnvResolver<'a> {
    pub(crate) flow: &'a ResolvedFlow,
    pub(crate) process: ProcessEnv<'a>,
    pub(crate) node: NodeIx,
    pub(crate) process_secrets: ProcessSecrets,
    /// The bytes that may still be copied from variables. After that, references stay unresolved.
    pub(crate) bytes_left: usize,
    /// Whether `bytes_left` was too small for a variable.
    pub(crate) exhausted: bool,
    /// References to process secrets that were not resolved: the property, and the variable.
    pub(crate) refused_secrets: Vec<(String, String)>,
    /// The property whose value is being resolved.
    property: String,
    /// The nearest key around that value.
    nearest_key: String,
}

/// The most bytes that one node may copy from variables when it is built.
const BYTES_PER_NODE: usize = 16 * 1024 * 1024;

impl<'a> EnvResolver<'a> {
    pub(crate) fn new(
        flow: &'a ResolvedFlow,
        process: ProcessEnv<'a>,
        node: NodeIx,
        process_secrets: ProcessSecrets,
    ) -> Self {
        Self {
            flow,
            process,
            node,
            process_secrets,
            bytes_left: BYTES_PER_NODE,
            exhausted: false,
            refused_secrets: Vec::new(),
            property: String::new(),
            nearest_key: String::new(),
        }
    }

    /// Copies a value and replaces every string `${NAME}` by the variable's value, with its type. A reference
    /// to an unknown variable stays, as in Node-RED.
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

    /// Like [`EnvResolver::resolve`], for the values of an object.
    pub(crate) fn resolve_map(&mut self, map: &Map<String, Value>) -> Map<String, Value> {
        let outer = self.nearest_key.clone();
        let mut resolved = Map::with_capacity(map.len());
        for (key, value) in map {
            self.nearest_key.clone_from(key);
            resolved.insert(key.clone(), self.resolve(value));
        }
        self.nearest_key = outer;
        resolved
    }

    /// Like [`EnvResolver::resolve`], for the properties of a node.
    pub(crate) fn resolve_props<'p>(
        &mut self,
        props: impl IntoIterator<Item = (&'p String, &'p Value)>,
    ) -> Map<String, Value> {
        let props = props.into_iter();
        let mut resolved = Map::with_capacity(props.size_hint().1.unwrap_or_default());
        for (key, value) in props {
            self.property.clone_from(key);
            self.nearest_key.clone_from(key);
            resolved.insert(key.clone(), self.resolve(value));
        }
        resolved
    }

    /// Finds the value of a variable, as the node sees it.
    pub(crate) fn lookup(&mut self, name: &str) -> Option<Value> {
        let (mut name, mut start) = (name, LookupStart::Node);
        if let Some(rest) = name.strip_prefix("$parent.") {
            (name, start) = (rest, LookupStart::Parent);
        }
        self.lookup_from(name, start, 0)
    }

    fn lookup_from(&mut self, name: &str, start: LookupStart, hops: usize) -> Option<Value> {
        let flow = self.flow;
        let node = &flow.nodes[self.node];
        let mut scope = Some(node.scope);
        match start {
            LookupStart::Node => {
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
            LookupStart::Parent => scope = flow.scopes[node.scope].parent,
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
        // Resolved values can reach prompts and journals. So a process secret goes only into a property that
        // is meant for one, such as `apiKey`, and never into `replies` or a description.
        let reads_secrets = self.process_secrets == ProcessSecrets::InSecretProperties;
        let holds_secrets = self.property == CREDENTIALS || is_secret_name(&self.nearest_key);
        let value = (self.process)(name);
        if !(reads_secrets && holds_secrets) && is_secret_variable(name, value.as_deref()) {
            if value.is_some() {
                self.refused_secrets.push((self.property.clone(), name.to_owned()));
            }
            return None;
        }
        value.map(Value::String)
    }

    /// The value of an entry, with its type.
    fn entry(&mut self, env: &Env, name: &str, hops: usize) -> Option<Value> {
        let entry = env.get(name)?;
        let value = entry.get("value").cloned().unwrap_or_default();
        let text = value.as_str();
        match entry.get("type").and_then(Value::as_str).unwrap_or("str") {
            "num" => text.map_or(Some(value.clone()), |text| read_json(text.trim())),
            "bool" => Some(text.map_or(value.clone(), |text| Value::Bool(text.eq_ignore_ascii_case("true")))),
            "json" => text.map_or(Some(value.clone()), read_json),
            "env" if hops < MAX_HOPS => {
                let target = text.map(|text| whole_reference(text).unwrap_or(text))?.to_owned();
                // A variable that refers to itself means the one further out.
                let start = if target == name { LookupStart::Parent } else { LookupStart::Node };
                self.lookup_from(&target, start, hops + 1)
            }
            // Secrets, and values that only JavaScript can compute.
            "env" | "cred" | "jsonata" | "bin" | "re" | "date" => None,
            _ => Some(value),
        }
    }
}

/// Reads JSON as Node-RED does, but never an integer as another one.
fn read_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|_| keeps_integers(text))
}

/// Where a lookup starts.
#[derive(Clone, Copy)]
enum LookupStart {
    Node,
    Parent,
}

impl ResolvedFlow {
    /// The value of an environment variable, as a node sees it. Reads `process` last, and never for a secret.
    #[must_use]
    pub fn env_value(
        &self,
        ix: NodeIx,
        name: &str,
        process: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Value> {
        EnvResolver::new(self, process, ix, ProcessSecrets::Hidden).lookup(name)
    }

    /// The properties of a node with every whole `${NAME}` resolved, as Node-RED does when it builds the
    /// node.
    #[must_use]
    pub fn resolved_props(
        &self,
        ix: NodeIx,
        process: &dyn Fn(&str) -> Option<String>,
        process_secrets: ProcessSecrets,
    ) -> Map<String, Value> {
        EnvResolver::new(self, process, ix, process_secrets).resolve_props(&self.raw(ix).props)
    }

    /// Resolves other properties than the node's own, such as those of an earlier plan, with the variables of
    /// the node.
    #[must_use]
    pub fn resolve_at(
        &self,
        ix: NodeIx,
        props: &Map<String, Value>,
        process: &dyn Fn(&str) -> Option<String>,
    ) -> Map<String, Value> {
        EnvResolver::new(self, process, ix, ProcessSecrets::InSecretProperties).resolve_props(props)
    }
}

/// Copies properties and resolves every whole `${NAME}` from the process environment alone, for a service
/// without its flow. Process secrets go only into properties that hold secrets.
#[must_use]
pub fn resolve_process_env(props: &Map<String, Value>, process: ProcessEnv<'_>) -> Map<String, Value> {
    fn resolve(nearest_key: &str, value: &Value, process: ProcessEnv<'_>) -> Value {
        match value {
            Value::String(text) => {
                let found = whole_reference(text).and_then(|name| Some((name, process(name)?)));
                let holds_secrets = nearest_key == CREDENTIALS || is_secret_name(nearest_key);
                let found =
                    found.filter(|(name, found)| holds_secrets || !is_secret_variable(name, Some(found)));
                found.map_or_else(|| value.clone(), |(_, found)| Value::String(found))
            }
            Value::Array(items) => items.iter().map(|item| resolve(nearest_key, item, process)).collect(),
            Value::Object(map) => {
                // All of the credentials may hold secrets.
                let key = |key| if nearest_key == CREDENTIALS { CREDENTIALS } else { key };
                map.iter().map(|(name, value)| (name.clone(), resolve(key(name), value, process))).collect()
            }
            other => other.clone(),
        }
    }
    props.iter().map(|(key, value)| (key.clone(), resolve(key, value, process))).collect()
}

/// The name in `${NAME}` or the old `$(NAME)`; none if the text is anything else.
pub(crate) fn whole_reference(text: &str) -> Option<&str> {
    let inner = match text.strip_prefix("${") {
        Some(rest) => rest.strip_suffix('}')?,
        None => text.strip_prefix("$(")?.strip_suffix(')')?,
    };
    (!inner.is_empty() && !inner.contains(char::is_whitespace)).then_some(inner)
}
