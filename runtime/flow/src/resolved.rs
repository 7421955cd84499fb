//! A resolved flow: the nodes that run, their wires, and the scopes that hold their variables.

use crate::raw::{RawFlow, RawNode};
use redflow_contract::catalogue::NodeType;
use redflow_contract::id::{NodeId, NodeSummary};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Variables by name. Each entry is as the flow has it: `name`, `value`, `type`.
pub(crate) type Env = HashMap<String, Value>;

/// The index of a node in [`ResolvedFlow::nodes`].
pub type NodeIx = usize;

/// The target of a wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wire {
    /// The node at this index.
    To(NodeIx),
    /// A disabled node. The wire has no effect.
    Disabled,
    /// An id that no node has.
    Missing(String),
}

/// A node that runs, or the end of a subflow instance.
#[derive(Debug, Clone)]
pub struct ResolvedNode {
    /// The id; `<instance>-<node>` inside a subflow.
    pub id: NodeId,
    /// The index of its node in the file.
    pub raw: usize,
    /// The row of the catalogue for its type.
    pub kind: &'static NodeType,
    /// Whether messages pass through unchanged: junctions, link nodes, the ends of a subflow instance.
    pub transparent: bool,
    /// Whether it is an end of a subflow instance, which no file contains.
    pub is_virtual: bool,
    /// For an output of an instance: the node that stands for the instance, and the number of the output.
    pub output_of: Option<(NodeIx, usize)>,
    /// Whether it has no coordinates, so that Node-RED treats it as a config node.
    pub is_config: bool,
    /// The index of its tab or subflow instance.
    pub(crate) scope: usize,
    /// The targets of each output port; at least as many ports as the catalogue gives.
    pub wires: Vec<Vec<Wire>>,
}

/// A tab or a subflow instance, with its environment variables.
#[derive(Debug, Clone)]
pub(crate) struct EnvScope {
    pub(crate) parent: Option<usize>,
    pub(crate) id: String,
    pub(crate) name: String,
    /// Nearest first: those of the instance, then those of the subflow.
    pub(crate) env: Vec<Arc<Env>>,
    /// The prefix of ids inside: empty for tabs, else `<instance>-`.
    pub(crate) prefix: String,
}

/// A flow with subflows expanded, links joined and disabled nodes removed.
#[derive(Debug)]
pub struct ResolvedFlow {
    pub(crate) raw: RawFlow,
    /// The nodes. Other types refer to a node by its index here.
    pub nodes: Vec<ResolvedNode>,
    pub(crate) scopes: Vec<EnvScope>,
    pub(crate) by_id: HashMap<NodeId, NodeIx>,
    pub(crate) groups: HashMap<String, Group>,
    pub(crate) global_env: Env,
    pub(crate) disabled: HashSet<String>,
}

/// A group of nodes. It may have variables and may be inside another group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) raw: usize,
    pub(crate) env: Env,
}

impl ResolvedFlow {
    /// The node of the file that a resolved node comes from.
    #[must_use]
    pub fn raw(&self, ix: NodeIx) -> &RawNode {
        &self.raw.nodes()[self.nodes[ix].raw]
    }

    /// The id, type and name of a node.
    #[must_use]
    pub fn summary(&self, ix: NodeIx) -> NodeSummary {
        NodeSummary { id: self.nodes[ix].id.clone(), ..self.raw(ix).summary() }
    }

    /// Finds a node by its id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<NodeIx> {
        self.by_id.get(id).copied()
    }

    /// Finds the node that an id means inside `scope`: a node of the same scope first, then one of the whole
    /// flow.
    pub(crate) fn find_from(&self, scope: usize, id: &str) -> Wire {
        let prefix = &self.scopes[scope].prefix;
        let inner = if prefix.is_empty() { None } else { self.find(&format!("{prefix}{id}")) };
        match inner.or_else(|| self.find(id)) {
            Some(ix) => Wire::To(ix),
            None if self.disabled.contains(id) => Wire::Disabled,
            None => Wire::Missing(id.to_owned()),
        }
    }

    /// The ids of the groups around a node, nearest first.
    #[must_use]
    pub fn groups_of(&self, ix: NodeIx) -> Vec<&str> {
        let mut found = Vec::new();
        let mut next = self.raw(ix).text("g");
        while let Some(id) = next {
            if found.len() > 100 || found.contains(&id) {
                break;
            }
            found.push(id);
            next = self.groups.get(id).and_then(|group| self.raw.nodes()[group.raw].text("g"));
        }
        found
    }

    /// The nodes that report an error of a node: the node itself, then each subflow instance around it,
    /// inside out.
    #[must_use]
    pub fn reporters(&self, ix: NodeIx) -> Vec<NodeIx> {
        let mut reporters = vec![ix];
        let mut scope = &self.scopes[self.nodes[ix].scope];
        while let Some(parent) = scope.parent {
            reporters.extend(self.find(&scope.id));
            scope = &self.scopes[parent];
        }
        reporters
    }

    /// The id of the tab that a node is on, through any subflow instances.
    #[must_use]
    pub fn tab_of(&self, ix: NodeIx) -> &str {
        let mut scope = &self.scopes[self.nodes[ix].scope];
        while let Some(parent) = scope.parent {
            scope = &self.scopes[parent];
        }
        &scope.id
    }
}

/// A subflow instance whose ends are not wired yet.
pub(crate) struct Instance {
    pub(crate) template: usize,
    pub(crate) raw: usize,
    pub(crate) entry: NodeIx,
    pub(crate) outputs: Vec<NodeIx>,
    pub(crate) inner_scope: usize,
    pub(crate) outer_scope: usize,
}
