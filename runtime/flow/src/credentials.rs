//! Credentials in a deploy: turns any shape into Node-RED's plain array, and moves the credentials out of it.
//!
//! Owns what `credentials` of a node mean in a deploy, as in Node-RED: a node without them keeps the ones it
//! has, an empty value removes one, and the mask changes nothing.

use crate::raw::{NODE_LISTS, RawFlow, RawNode};
use redflow_contract::Message;
use redflow_contract::flow::FlowShape;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::node::find;
use redflow_contract::secret::{PASSWORD_MASK, is_reference, is_secret_name};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

impl RawFlow {
    /// Turns the flow into a plain array. A wrapper tab becomes a node, and credentials beside the nodes move
    /// into their nodes.
    #[must_use]
    pub fn into_array(mut self) -> Self {
        if self.shape() == FlowShape::Array {
            return self;
        }
        let mut separate = self.separate_credentials();
        for node in self.nodes_mut() {
            if let Some(separate) = separate.remove(node.id.as_str()) {
                let inline = node.props.entry("credentials").or_insert(Value::Null);
                *inline = merge_credentials(inline.take(), separate);
            }
        }
        let tab = self.wrapper_tab().and_then(tab_node);
        let known = |id: &NodeId| self.nodes().iter().any(|node| node.id == *id);
        let tab = tab.filter(|tab| !known(&tab.id));
        Self::plain(tab.into_iter().chain(self.into_nodes()).collect())
    }

    /// The nodes as JSON, as a flow file has them. Empty if the flow is not a plain array.
    #[must_use]
    pub fn to_json(&self) -> Vec<Value> {
        match self.export() {
            Value::Array(nodes) => nodes,
            _ => Vec::new(),
        }
    }

    /// The nodes whose `credentials` are not an object of names and values.
    #[must_use]
    pub fn invalid_credentials(&self) -> Vec<NodeSummary> {
        let is_invalid = |node: &&RawNode| {
            node.props.get("credentials").is_some_and(|own| !own.is_object() && !own.is_null())
        };
        self.nodes().iter().filter(is_invalid).map(RawNode::summary).collect()
    }

    /// Removes the credentials from the nodes, and returns the new credentials of each node. `before` has the
    /// old ones; those of removed nodes are dropped.
    pub fn take_credentials(&mut self, before: &BTreeMap<NodeId, Message>) -> BTreeMap<NodeId, Message> {
        let mut after = BTreeMap::new();
        for node in self.nodes_mut() {
            let mut kept = before.get(&node.id).cloned().unwrap_or_default();
            if let Some(Value::Object(sent)) = node.props.shift_remove("credentials") {
                for (name, value) in sent {
                    match &value {
                        Value::String(text) if text == PASSWORD_MASK => {}
                        Value::Null => drop(kept.shift_remove(&name)),
                        Value::String(text) if text.is_empty() => drop(kept.shift_remove(&name)),
                        _ => drop(kept.insert(name, value)),
                    }
                }
            }
            if !kept.is_empty() {
                after.insert(node.id.clone(), kept);
            }
        }
        after
    }

    /// Moves plain keys of models, memories, tools and key nodes into their credentials, and returns the number of moved
    /// keys. Otherwise every reader of the flow could read them, and an editor that leaves them out would
    /// lose them.
    ///
    /// In a deploy, a plain key replaces the stored one, and a `${NAME}` removes it. With `kept` credentials,
    /// which are newer than the file, a plain key in the file does not replace them.
    pub fn extract_plain_keys(&mut self, kept: Option<&BTreeMap<NodeId, Message>>) -> usize {
        let mut moved = 0;
        for node in self.nodes_mut().iter_mut().filter(|node| find(&node.type_name).has_secrets()) {
            let is_key = |(name, value): &(&String, &Value)| {
                name.as_str() != "credentials"
                    && is_secret_name(name)
                    && value.as_str().is_some_and(|text| !text.is_empty())
            };
            let names: Vec<String> = node.props.iter().filter(is_key).map(|(name, _)| name.clone()).collect();
            for name in names {
                let is_kept =
                    kept.is_some_and(|kept| kept.get(&node.id).is_some_and(|own| own.contains_key(&name)));
                let names_variable = node.text(&name).is_some_and(is_reference);
                let key = match names_variable {
                    true if kept.is_some() => continue,
                    true => Value::Null,
                    false => node.props.shift_remove(&name).unwrap_or_default(),
                };
                moved += usize::from(!names_variable);
                let own = node.props.entry("credentials").or_insert(Value::Null);
                if own.is_null() {
                    *own = Value::Object(Map::new());
                }
                if let Value::Object(own) = own
                    && !is_kept
                    && own.get(&name).is_none_or(|sent| sent == PASSWORD_MASK)
                {
                    own.insert(name, key);
                }
            }
        }
        moved
    }

    /// Adds credentials that a node does not bring itself, to check the flow. Those that it brings stay, also
    /// masked and empty ones.
    pub fn add_missing_credentials(&mut self, stored: &BTreeMap<NodeId, Message>) {
        for node in self.nodes_mut() {
            let Some(stored) = stored.get(&node.id) else { continue };
            let own = node.props.entry("credentials").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(own) = own {
                for (name, value) in stored {
                    own.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
    }

    /// Puts the credentials into their nodes, to check and build them. The result must not be shown or
    /// stored.
    pub fn insert_credentials(&mut self, credentials: &BTreeMap<NodeId, Message>) {
        for node in self.nodes_mut() {
            if let Some(own) = credentials.get(&node.id) {
                node.props.insert("credentials".to_owned(), Value::Object(own.clone()));
            }
        }
    }
}

/// Merges a node's credentials by name; those in the node win. Keeps an invalid value, so that it is
/// reported.
fn merge_credentials(inline: Value, separate: Value) -> Value {
    match (inline, separate) {
        (Value::Object(inline), Value::Object(mut separate)) => {
            separate.extend(inline);
            Value::Object(separate)
        }
        (inline, Value::Null) => inline,
        (Value::Object(_) | Value::Null, separate) => separate,
        (invalid, _) => invalid,
    }
}

/// The wrapper tab as a node; none if it has no id.
fn tab_node(wrapper: &Map<String, Value>) -> Option<RawNode> {
    let id = wrapper.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())?;
    let mut props = Map::new();
    props.insert("id".to_owned(), Value::from(id));
    props.insert("type".to_owned(), Value::from("tab"));
    for (name, value) in wrapper {
        let was_node_list = NODE_LISTS.contains(&name.as_str()) && value.is_null();
        if !was_node_list && !["id", "type"].contains(&name.as_str()) {
            props.insert(name.clone(), value.clone());
        }
    }
    Some(RawNode { id: NodeId::from(id), type_name: "tab".to_owned(), props })
}
