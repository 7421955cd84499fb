//! Why a node cannot be built.

use redflow_contract::id::NodeSummary;

/// The most characters of a node's label in an error.
pub(crate) const MAX_LABEL_CHARS: usize = 80;

/// A node could not be built from its properties.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{label}` cannot be built: {reason}")]
pub struct BuildError {
    /// The id, type and name of the node. Boxed, because builders return this error everywhere.
    pub node: Box<NodeSummary>,
    /// How people know the node: its name, else its model, else its id.
    pub label: String,
    /// What is wrong, without the values of other properties.
    pub reason: String,
    /// The environment variable for the key that a model lacks; none if something else is wrong.
    pub missing_key: Option<&'static str>,
    /// The label of the config node that the model names for its key.
    pub shared_key: Option<String>,
}

impl BuildError {
    /// An error about a node of which nothing but the summary is known.
    #[must_use]
    pub fn new(node: &NodeSummary, reason: impl Into<String>) -> Self {
        let (label, node) = (label_of(node), Box::new(node.clone()));
        Self { node, label, reason: reason.into(), missing_key: None, shared_key: None }
    }
}

/// How people know a node of which only the summary is known: its name, else its id.
#[must_use]
pub fn label_of(node: &NodeSummary) -> String {
    let label = if node.name.is_empty() { node.id.as_str() } else { &node.name };
    label.chars().take(MAX_LABEL_CHARS).collect()
}
