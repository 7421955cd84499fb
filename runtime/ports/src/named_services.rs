//! The models and memories that a node names in its properties.

use crate::build_error::BuildError;
use crate::memory::Memory;
use crate::model::ChatModel;
use redflow_contract::id::NodeSummary;
use std::sync::Arc;

/// Builds the services that a node names. Each is built once.
pub trait NamedServices {
    /// The model with this id.
    ///
    /// # Errors
    /// When there is none, or it cannot be built.
    fn model(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn ChatModel>, BuildError>;

    /// The memory with this id.
    ///
    /// # Errors
    /// When there is none, or it cannot be built.
    fn memory(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn Memory>, BuildError>;
}

/// No services.
#[derive(Debug, Clone, Copy)]
pub struct NoServices;

impl NamedServices for NoServices {
    fn model(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn ChatModel>, BuildError> {
        Err(BuildError::new(owner, format!("there is no model `{id}`")))
    }

    fn memory(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn Memory>, BuildError> {
        Err(BuildError::new(owner, format!("there is no memory `{id}`")))
    }
}
