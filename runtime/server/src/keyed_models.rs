//! The deployed model nodes that have keys, for tests of models.

use redflow_contract::Message;
use redflow_contract::catalogue::lookup;
use redflow_contract::edge::Role;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_flow::{ProcessSecrets, ResolvedFlow};
use std::collections::HashMap;

/// The deployed model nodes that have keys, with their resolved properties.
pub(crate) type KeyedModels = HashMap<NodeId, KeyedModel>;

/// A deployed model node that has keys. It has no `Debug`, so that no log shows them.
pub(crate) struct KeyedModel {
    pub(crate) node: NodeSummary,
    pub(crate) props: Message,
}

/// The model nodes of a flow that have keys. A node of a subflow also has an entry under its id in the subflow.
pub(crate) fn keyed_models(flow: &ResolvedFlow, env: &dyn Fn(&str) -> Option<String>) -> KeyedModels {
    let mut models = KeyedModels::new();
    for ix in 0..flow.nodes.len() {
        let raw = flow.raw(ix);
        if lookup(&raw.type_name).role != Role::Model || !raw.props.contains_key("credentials") {
            continue;
        }
        for id in [&flow.nodes[ix].id, &raw.id] {
            models.entry(id.clone()).or_insert_with(|| KeyedModel {
                node: flow.summary(ix),
                props: flow.resolved_props(ix, env, ProcessSecrets::InSecretProperties),
            });
        }
    }
    models
}
