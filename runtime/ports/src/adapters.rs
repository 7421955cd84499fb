//! Which node types this build can run, and how each is built from its properties.

use crate::{ChatModel, FlowNode, Memory, Tool};
use redflow_contract::id::NodeSummary;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node to build.
#[derive(Debug, Clone, Copy)]
pub struct NodeConfig<'a> {
    /// Which node.
    pub node: &'a NodeSummary,
    /// Its properties, checked against the schema of its type.
    pub props: &'a Map<String, Value>,
}

/// A node could not be built from its properties.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{node}` cannot be built: {reason}")]
pub struct BuildError {
    /// The node.
    pub node: String,
    /// Why.
    pub reason: String,
}

impl NodeConfig<'_> {
    /// The properties as a typed configuration.
    ///
    /// # Errors
    /// When they do not fit the type.
    pub fn typed<T: for<'de> serde::Deserialize<'de>>(&self) -> Result<T, BuildError> {
        // The library's words may quote a value, and a value may be a secret.
        serde_json::from_value(Value::Object(self.props.clone()))
            .map_err(|_| self.error(format!("its properties do not fit the type `{}`", self.node.type_name)))
    }

    /// An error about this node.
    #[must_use]
    pub fn error(&self, reason: impl Into<String>) -> BuildError {
        BuildError { node: self.node.id.to_string(), reason: reason.into() }
    }
}

/// Builds a model.
pub type ModelBuilder = fn(NodeConfig<'_>) -> Result<Arc<dyn ChatModel>, BuildError>;
/// Builds a tool.
pub type ToolBuilder = fn(NodeConfig<'_>) -> Result<Arc<dyn Tool>, BuildError>;
/// Builds a memory.
pub type MemoryBuilder = fn(NodeConfig<'_>) -> Result<Arc<dyn Memory>, BuildError>;
/// Builds an ordinary node.
pub type NodeBuilder = fn(NodeConfig<'_>) -> Result<Box<dyn FlowNode>, BuildError>;

/// The adapters of this build, by node type.
#[derive(Debug, Default)]
pub struct Adapters {
    /// Models.
    pub models: BTreeMap<&'static str, ModelBuilder>,
    /// Tools.
    pub tools: BTreeMap<&'static str, ToolBuilder>,
    /// Memories.
    pub memories: BTreeMap<&'static str, MemoryBuilder>,
    /// Ordinary nodes.
    pub nodes: BTreeMap<&'static str, NodeBuilder>,
}

impl Adapters {
    /// Whether this build can run a type: `agent-core`, which the engine runs itself, or one with an adapter.
    #[must_use]
    pub fn runs(&self, type_name: &str) -> bool {
        type_name == "agent-core"
            || self.models.contains_key(type_name)
            || self.tools.contains_key(type_name)
            || self.memories.contains_key(type_name)
            || self.nodes.contains_key(type_name)
    }
}
