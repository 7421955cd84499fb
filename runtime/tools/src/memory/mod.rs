//! `memory-tool`: lets an agent search a long memory, and add to it.

mod calls;
mod definitions;

use calls::MemoryCall;
use definitions::{Operation, entry};
use redflow_contract::node::{MemoryToolConfig, ToolConfig};
use redflow_contract::tool::id_part;
use redflow_ports::{BuildError, NodeConfig, ProvidedTool, ToolProvider};
use std::sync::Arc;

/// What the names of the tools begin with, if the node does not say.
const DEFAULT_NAME: &str = "memory";

/// The tools of one long memory.
pub struct MemoryTools(Vec<ProvidedTool>);

impl MemoryTools {
    /// Builds the tools from the properties of their node.
    ///
    /// # Errors
    /// When the node names no memory, or one that is no long memory.
    pub fn build(config: NodeConfig<'_>) -> Result<Arc<dyn ToolProvider>, BuildError> {
        let node: MemoryToolConfig = config.typed_with_options()?;
        let tool: ToolConfig = config.typed()?;
        let memory = config.memory(node.memory.as_deref())?;
        let memory = memory.ok_or_else(|| config.error("`memory` names no long memory: choose one"))?;
        let entries = memory.entries().ok_or_else(|| {
            config.error("`memory` names a memory without entries: choose a node of the type `long-memory`")
        })?;
        let prefix = tool.tool_name.map(|name| id_part(name.trim())).filter(|name| !name.is_empty());
        let prefix = prefix.unwrap_or_else(|| DEFAULT_NAME.to_owned());
        let provided = |operation: Operation| ProvidedTool {
            entry: Arc::new(entry(operation, &prefix, config.node)),
            tool: Arc::new(MemoryCall { operation, entries: Arc::clone(&entries) }),
        };
        Ok(Arc::new(Self(Operation::ALL.into_iter().map(provided).collect())))
    }
}

impl ToolProvider for MemoryTools {
    fn generation(&self) -> u64 {
        0
    }

    fn tools(&self) -> Vec<ProvidedTool> {
        self.0.clone()
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
