//! The models and memories that a memory or a tool names in its properties.

use crate::resolved::{NodeIx, ResolvedFlow, Wire};
use redflow_contract::edge::Role;
use redflow_contract::editor_values::text_of;
use redflow_contract::node::declaration::{Kind, Presence};
use redflow_contract::node::find;
use serde_json::{Map, Value};

/// A property that names a model or a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceProperty {
    /// The name of the property.
    pub name: &'static str,
    /// The role of the node that it names.
    pub role: Role,
    /// Whether it must have a value.
    pub required: bool,
}

/// The properties by which nodes of a type name models and memories. Agents name theirs in another way.
pub fn service_properties(type_name: &str) -> impl Iterator<Item = ServiceProperty> {
    let declaration = find(type_name);
    let is_named = matches!(declaration.node_type.role, Role::Memory | Role::Tool);
    let properties = declaration.property_sets.iter().flat_map(|set| set.properties);
    properties.filter(move |_| is_named).filter_map(|property| match property.kind {
        Kind::Service { role } => {
            let required = property.presence == Presence::Required;
            Some(ServiceProperty { name: property.name, role, required })
        }
        _ => None,
    })
}

/// The ids of the models and memories that a node names.
pub(crate) fn service_names<'a>(
    type_name: &str,
    props: &'a Map<String, Value>,
) -> impl Iterator<Item = (ServiceProperty, &'a str)> {
    service_properties(type_name).filter_map(|property| Some((property, text_of(props, property.name)?)))
}

impl ResolvedFlow {
    /// Finds the model or memory that a node names by its id.
    #[must_use]
    pub fn named_service(&self, owner: NodeIx, role: Role, id: &str) -> Option<NodeIx> {
        match self.find_from(self.nodes[owner].scope, id) {
            Wire::To(ix) if self.nodes[ix].kind.role == role && ix != owner => Some(ix),
            _ => None,
        }
    }
}
