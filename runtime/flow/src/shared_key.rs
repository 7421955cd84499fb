//! Keys that several models share. A config node has the key, and models name the config node in `keyNode`.

use crate::env::{ProcessEnv, ProcessSecrets};
use crate::resolved::{NodeIx, ResolvedFlow, Wire};
use redflow_contract::editor_values::text_of;
use redflow_contract::node::declaration::Kind;
use redflow_contract::node::{self, KEY_NODE};
use redflow_contract::secret::is_reference;
use serde_json::{Map, Value};

/// The property with the key, of models and of key nodes.
const API_KEY: &str = "apiKey";

/// The type of the config nodes that a model may name in `keyNode`; none if it has no such property.
#[must_use]
pub fn key_node_type(type_name: &str) -> Option<&'static str> {
    let mut properties = node::find(type_name).property_sets.iter().flat_map(|set| set.properties);
    properties.find_map(|property| match property.kind {
        Kind::ConfigNode { of } if property.name == KEY_NODE => Some(of),
        _ => None,
    })
}

impl ResolvedFlow {
    /// The config node that a model names in `keyNode`, if it is one of the model's provider. `props` are resolved properties of
    /// the model at `ix`.
    #[must_use]
    pub fn key_node(&self, ix: NodeIx, type_name: &str, props: &Map<String, Value>) -> Option<NodeIx> {
        let (expected, id) = (key_node_type(type_name)?, text_of(props, KEY_NODE)?);
        match self.find_from(self.nodes[ix].scope, id) {
            Wire::To(key_node) if self.raw(key_node).type_name == expected => Some(key_node),
            _ => None,
        }
    }

    /// Gives a model the key of the config node that its `keyNode` names. A key of the model itself stays.
    /// `props` are resolved properties of the model at `ix`. The result must not be shown or stored. Returns the config
    /// node, if its key was taken.
    pub fn add_shared_key(
        &self,
        ix: NodeIx,
        type_name: &str,
        props: &mut Map<String, Value>,
        process: ProcessEnv<'_>,
    ) -> Option<NodeIx> {
        let key_node = self.key_node(ix, type_name, props)?;
        if key_of(props).is_some() {
            return None;
        }
        let shared = self.resolved_props(key_node, process, ProcessSecrets::InSecretProperties);
        let key = key_of(&shared)?;
        let own = props.entry("credentials").or_insert(Value::Null);
        if !own.is_object() {
            *own = Value::Object(Map::new());
        }
        own[API_KEY] = Value::from(key);
        Some(key_node)
    }
}

/// The key in the credentials, else in the properties. A reference to a variable that is not set is no key.
fn key_of(props: &Map<String, Value>) -> Option<&str> {
    let credentials = props.get("credentials").and_then(Value::as_object);
    let found = credentials.and_then(|own| text_of(own, API_KEY)).filter(|key| !is_reference(key.trim()));
    found.or_else(|| text_of(props, API_KEY).filter(|key| !is_reference(key.trim())))
}
