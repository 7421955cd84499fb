//! A flow on its way in: any shape becomes Node-RED's plain array, and credentials are taken out of it.
//!
//! Owns what Node-RED means by `credentials` in a deploy: a node without them keeps what it has, an empty value
//! removes one, and the mask an editor shows for a secret it was not told changes nothing.

use crate::raw::{RawFlow, RawNode};
use crate::redflow_format::NODE_LISTS;
use redflow_contract::Message;
use redflow_contract::catalogue::lookup;
use redflow_contract::flow::FlowShape;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::secret::{is_reference, is_secret_name};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What an editor sends for a secret it was not told.
const MASK: &str = "__PWRD__";

impl RawFlow {
    /// The same nodes as a plain array. The tab that a wrapping is becomes a node of its own, and credentials that stand
    /// beside the nodes go to the nodes they are for.
    #[must_use]
    pub fn into_array(mut self) -> Self {
        if self.shape() == FlowShape::Array {
            return self;
        }
        let mut beside = self.credentials_beside();
        for node in self.nodes_mut() {
            if let Some(beside) = beside.remove(node.id.as_str()) {
                let inline = node.props.entry("credentials").or_insert(Value::Null);
                *inline = merged(inline.take(), beside);
            }
        }
        let tab = self.wrapping_tab().and_then(tab_node);
        let known = |id: &NodeId| self.nodes().iter().any(|node| node.id == *id);
        let tab = tab.filter(|tab| !known(&tab.id));
        Self::plain(tab.into_iter().chain(self.into_nodes()).collect())
    }

    /// The nodes as JSON, as a flow file has them.
    #[must_use]
    pub fn to_json(&self) -> Vec<Value> {
        match self.export() {
            Value::Array(nodes) => nodes,
            _ => Vec::new(),
        }
    }

    /// The nodes whose credentials are not what credentials are: names and values.
    #[must_use]
    pub fn invalid_credentials(&self) -> Vec<NodeSummary> {
        let is_odd = |node: &&RawNode| {
            node.props.get("credentials").is_some_and(|own| !own.is_object() && !own.is_null())
        };
        self.nodes().iter().filter(is_odd).map(RawNode::summary).collect()
    }

    /// Takes the credentials out of the nodes, and gives what each node has from now on, given what it had. Nodes
    /// that are gone have none.
    pub fn take_credentials(&mut self, before: &BTreeMap<NodeId, Message>) -> BTreeMap<NodeId, Message> {
        let mut after = BTreeMap::new();
        for node in self.nodes_mut() {
            let mut kept = before.get(&node.id).cloned().unwrap_or_default();
            if let Some(Value::Object(sent)) = node.props.shift_remove("credentials") {
                for (name, value) in sent {
                    match &value {
                        Value::String(text) if text == MASK => {}
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

    /// Makes credentials of the keys that are written in the open in models, memories and tools, and says how many
    /// there were. Otherwise whoever looks at the flow could read them, and an editor that leaves them out would lose
    /// them. In a deploy a key that is written takes the place of the one the node has, and a `${NAME}` makes an end
    /// of it; next to credentials that are `kept` and newer, a key that is still in the file counts for nothing.
    pub fn extract_plain_keys(&mut self, kept: Option<&BTreeMap<NodeId, Message>>) -> usize {
        let mut sealed = 0;
        for node in self.nodes_mut().iter_mut().filter(|node| lookup(&node.type_name).role.is_service()) {
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
                sealed += usize::from(!names_variable);
                let own = node.props.entry("credentials").or_insert(Value::Null);
                if own.is_null() {
                    *own = Value::Object(Map::new());
                }
                if let Value::Object(own) = own
                    && !is_kept
                    && own.get(&name).is_none_or(|sent| sent == MASK)
                {
                    own.insert(name, key);
                }
            }
        }
        sealed
    }

    /// Gives nodes their credentials, to be checked and built with. Not for anybody's eyes.
    pub fn insert_credentials(&mut self, credentials: &BTreeMap<NodeId, Message>) {
        for node in self.nodes_mut() {
            if let Some(own) = credentials.get(&node.id) {
                node.props.insert("credentials".to_owned(), Value::Object(own.clone()));
            }
        }
    }
}

/// A node's credentials of both places: by name, and those in the node count. What is none stays to be found odd.
fn merged(inline: Value, beside: Value) -> Value {
    match (inline, beside) {
        (Value::Object(inline), Value::Object(mut beside)) => {
            beside.extend(inline);
            Value::Object(beside)
        }
        (inline, Value::Null) => inline,
        (Value::Object(_) | Value::Null, beside) => beside,
        (odd, _) => odd,
    }
}

/// The tab that a wrapping is, as a node; none if it does not say which.
fn tab_node(wrapping: &Map<String, Value>) -> Option<RawNode> {
    let id = wrapping.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())?;
    let mut props = Map::new();
    props.insert("id".to_owned(), Value::from(id));
    props.insert("type".to_owned(), Value::from("tab"));
    for (name, value) in wrapping {
        let was_nodes = NODE_LISTS.contains(&name.as_str()) && value.is_null();
        if !was_nodes && !["id", "type"].contains(&name.as_str()) {
            props.insert(name.clone(), value.clone());
        }
    }
    Some(RawNode { id: NodeId::from(id), type_name: "tab".to_owned(), props })
}
