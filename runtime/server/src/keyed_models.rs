//! Deployed models with their properties and keys, and where each key may go, for tests of models.

use redflow_contract::Message;
use redflow_contract::catalogue::{CATALOGUE, lookup};
use redflow_contract::edge::Role;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_flow::{ProcessSecrets, ResolvedFlow, key_node_type};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// The keys of deployed nodes.
pub(crate) type KeyedModels = HashMap<NodeId, StoredKeys>;

/// The keys of a deployed model or key node. It has no `Debug`, so that no log shows them.
pub(crate) struct StoredKeys {
    pub(crate) keys: Message,
    /// The models that use the keys. They go only to the addresses of these.
    pub(crate) models: Vec<Arc<KeyedModel>>,
}

/// A model with its resolved properties.
pub(crate) struct KeyedModel {
    pub(crate) node: NodeSummary,
    pub(crate) props: Message,
}

/// The keys of a flow. A node of a subflow also has an entry under its id in the subflow. The key of a key node may
/// go to the models that name it, and to the provider itself.
pub(crate) fn keyed_models(flow: &ResolvedFlow, env: &dyn Fn(&str) -> Option<String>) -> KeyedModels {
    let resolved = |ix: usize| flow.resolved_props(ix, env, ProcessSecrets::InSecretProperties);
    let mut stored = KeyedModels::new();
    for (ix, node) in flow.nodes.iter().enumerate() {
        let type_name = &flow.raw(ix).type_name;
        let Some(model) = CATALOGUE.iter().find(|row| key_node_type(row.name) == Some(type_name)) else {
            continue;
        };
        let keys = keys_of(&resolved(ix));
        let node_type = NodeSummary { type_name: model.name.to_owned(), ..flow.summary(ix) };
        let props = Message::from_iter([("credentials".to_owned(), Value::Object(keys.clone()))]);
        let provider = Arc::new(KeyedModel { node: node_type, props });
        stored.insert(node.id.clone(), StoredKeys { keys, models: vec![provider] });
    }
    for ix in 0..flow.nodes.len() {
        let raw = flow.raw(ix);
        if lookup(&raw.type_name).role != Role::Model {
            continue;
        }
        let mut props = resolved(ix);
        let key_node = flow.add_shared_key(ix, &raw.type_name, &mut props, env);
        let keys = keys_of(&props);
        let model = Arc::new(KeyedModel { node: flow.summary(ix), props });
        if let Some(shared) = key_node.and_then(|key_node| stored.get_mut(&flow.nodes[key_node].id)) {
            shared.models.push(Arc::clone(&model));
        }
        for id in [&flow.nodes[ix].id, &raw.id] {
            let own = || StoredKeys { keys: keys.clone(), models: vec![Arc::clone(&model)] };
            stored.entry(id.clone()).or_insert_with(own);
        }
    }
    stored
}

fn keys_of(props: &Message) -> Message {
    props.get("credentials").and_then(Value::as_object).cloned().unwrap_or_default()
}
