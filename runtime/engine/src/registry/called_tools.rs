//! What calls outside a run use again and again: compiled schemas, and the secrets of a flow and of the registry
//! together. To make them takes longer than a call.

use crate::flow::agent::ToolDefinition;
use redflow_contract::digest::Digest;
use redflow_contract::scrub::Scrubber;
use redflow_contract::tool::{ToolEntry, ToolState};
use redflow_machine::ValueSchema;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most tools that are kept.
const MAX_KEPT: usize = 256;

/// A tool with its compiled schemas.
pub(crate) struct CalledTool {
    pub(crate) definition: ToolDefinition,
    input_schema: Option<ValueSchema>,
}

impl CalledTool {
    fn compile(entry: &Arc<ToolEntry>) -> Result<Self, String> {
        let definition = ToolDefinition::new(entry, None).map_err(|error| error.message)?;
        let input_schema = entry.input_schema.as_ref().map(ValueSchema::compile).transpose()?;
        Ok(Self { definition, input_schema })
    }

    /// Where the input breaks the schema; none if it does not.
    pub(crate) fn input_violation(&self, input: &Value) -> Option<String> {
        self.input_schema.as_ref()?.violation(input)
    }
}

/// Tools by the digests of their definitions, which have the schemas.
#[derive(Default)]
pub(crate) struct CalledTools(Mutex<HashMap<Digest, Arc<CalledTool>>>);

impl CalledTools {
    /// Compiles the schemas of a tool, unless they are kept.
    ///
    /// # Errors
    /// Why a schema cannot be used.
    pub(crate) fn compile(&self, entry: &Arc<ToolEntry>) -> Result<Arc<CalledTool>, String> {
        // Another tool of an MCP server may have the digest of a definition, and no schema of it.
        if entry.state != ToolState::Ready {
            return CalledTool::compile(entry).map(Arc::new);
        }
        if let Some(compiled) = self.kept().get(&entry.digest) {
            return Ok(Arc::clone(compiled));
        }
        let compiled = Arc::new(CalledTool::compile(entry)?);
        let mut kept = self.kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(entry.digest, Arc::clone(&compiled));
        Ok(compiled)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Digest, Arc<CalledTool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The secrets of the flow whose tool was called last, joined with those of the registry.
#[derive(Default)]
pub(super) struct JoinedSecrets(Mutex<Option<Joined>>);

struct Joined {
    flow: Arc<Scrubber>,
    /// The generation of the registry.
    generation: u64,
    all: Arc<Scrubber>,
}

impl JoinedSecrets {
    /// Knows the secrets of this flow and those of the registry in this generation.
    pub(super) fn join(
        &self,
        flow: &Arc<Scrubber>,
        registry: &Arc<Scrubber>,
        generation: u64,
    ) -> Arc<Scrubber> {
        if registry.is_empty() {
            return Arc::clone(flow);
        }
        if flow.is_empty() {
            return Arc::clone(registry);
        }
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(known) if known.generation == generation && Arc::ptr_eq(&known.flow, flow) => {
                Arc::clone(&known.all)
            }
            _ => {
                let mut all = Scrubber::clone(flow);
                all.add_all(registry);
                let all = Arc::new(all);
                *last = Some(Joined { flow: Arc::clone(flow), generation, all: Arc::clone(&all) });
                all
            }
        }
    }
}

#[cfg(test)]
#[path = "called_tools_tests.rs"]
mod tests;
