//! Compiles an agent once per deploy: renders its prompt and compiles the schemas of its tools.
//!
//! Owns the rules for compiling a tool's schema. Never fetches a schema: references must stay inside it.

use crate::action_schema::action_schema;
use crate::prompt::system_prompt;
use crate::text::{display_pointer, preview};
use redflow_contract::plan::{AgentSpec, ToolSpec};
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_json_schema::{Schema, check_cost};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// A compiled agent. All its runs share it.
pub struct CompiledAgent {
    spec: Arc<AgentSpec>,
    system: Arc<ChatMessage>,
    /// The transcript that every run starts with.
    prefix: Transcript,
    /// In the order of the spec's tools; none for a tool that takes any object.
    input_schemas: Vec<Option<Schema>>,
    action_schema: Option<Box<RawValue>>,
}

/// A tool's schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the input schema of tool `{tool}` cannot be used: {reason}")]
pub struct CompileError {
    /// The tool's name.
    pub tool: String,
    /// Why the schema cannot be used.
    pub reason: String,
}

impl CompiledAgent {
    /// Compiles an agent.
    ///
    /// # Errors
    /// The first tool whose schema cannot be used.
    pub fn compile(spec: Arc<AgentSpec>) -> Result<Arc<Self>, CompileError> {
        let input_schemas = spec.tools.iter().map(compile_tool).collect::<Result<Vec<_>, _>>()?;
        let system = Arc::new(ChatMessage::new(ChatRole::System, system_prompt(&spec)));
        let mut prefix = Transcript::default();
        prefix.push(Arc::clone(&system));
        let action_schema = action_schema(&spec);
        Ok(Arc::new(Self { spec, system, prefix, input_schemas, action_schema }))
    }

    /// The spec that it was compiled from.
    #[must_use]
    pub fn spec(&self) -> &Arc<AgentSpec> {
        &self.spec
    }

    /// The system message of every run.
    #[must_use]
    pub fn system(&self) -> &Arc<ChatMessage> {
        &self.system
    }

    /// JSON Schema of its actions in the subset that every provider takes; none if a tool's schema does not
    /// fit.
    #[must_use]
    pub fn action_schema(&self) -> Option<&RawValue> {
        self.action_schema.as_deref()
    }

    pub(crate) fn prefix(&self) -> &Transcript {
        &self.prefix
    }

    /// Finds an allowed tool by name, with the schema of its input.
    pub(crate) fn tool(&self, name: &str) -> Option<(&ToolSpec, Option<&Schema>)> {
        let mut tools = self.spec.tools.iter().zip(&self.input_schemas);
        tools.find(|(tool, _)| tool.name == name).map(|(tool, schema)| (tool, schema.as_ref()))
    }
}

impl std::fmt::Debug for CompiledAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledAgent").field("spec", &self.spec).finish_non_exhaustive()
    }
}

fn compile_tool(tool: &ToolSpec) -> Result<Option<Schema>, CompileError> {
    let schema = tool.input_schema.as_ref();
    schema.map(compile_schema).transpose().map_err(|reason| CompileError { tool: tool.name.clone(), reason })
}

/// Compiles one schema. Fetches nothing. Refuses look-around and back-references in patterns, and schemas of
/// unbounded cost, because they could block a run.
///
/// # Errors
/// A phrase that tells why the schema cannot be used.
pub fn compile_schema(schema: &Value) -> Result<Schema, String> {
    check_cost(schema)?;
    Schema::compile(schema).map_err(|error| {
        let text = error.to_string();
        let text = preview(text.lines().next().unwrap_or_default());
        match error.instance_path().as_str() {
            "" => text,
            place => format!("at `{}`, {text}", display_pointer(place)),
        }
    })
}

#[cfg(test)]
#[path = "compile_tests.rs"]
pub(crate) mod tests;
