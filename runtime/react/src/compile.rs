//! An agent made ready to run: its prompt rendered and its tools' schemas compiled, once per deploy.
//!
//! Owns the rules a tool's schema is compiled by. Never fetches a schema: a reference must be inside it.

use crate::action_schema::action_schema;
use crate::prompt::system_prompt;
use crate::wording::{preview, shown_pointer};
use jsonschema::{PatternOptions, Validator};
use redflow_contract::plan::{AgentSpec, ToolSpec};
use redflow_contract::schema_cost::check_cost;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// An agent, ready to run. Runs share it.
pub struct CompiledAgent {
    spec: Arc<AgentSpec>,
    system: Arc<ChatMessage>,
    /// The transcript every run begins with.
    prefix: Transcript,
    /// In the order of the spec's tools; none where any object will do.
    validators: Vec<Option<Validator>>,
    action_schema: Option<Box<RawValue>>,
}

/// A tool's schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the input schema of tool `{tool}` cannot be used: {reason}")]
pub struct CompileError {
    /// The tool's name.
    pub tool: String,
    /// Why.
    pub reason: String,
}

impl CompiledAgent {
    /// Renders the prompt and compiles the schemas.
    ///
    /// # Errors
    /// The first tool whose schema cannot be used.
    pub fn compile(spec: Arc<AgentSpec>) -> Result<Arc<Self>, CompileError> {
        let validators = spec.tools.iter().map(compile_tool).collect::<Result<Vec<_>, _>>()?;
        let system = Arc::new(ChatMessage::new(ChatRole::System, system_prompt(&spec)));
        let mut prefix = Transcript::default();
        prefix.push(Arc::clone(&system));
        let action_schema = action_schema(&spec);
        Ok(Arc::new(Self { spec, system, prefix, validators, action_schema }))
    }

    /// The agent as it was given.
    #[must_use]
    pub fn spec(&self) -> &Arc<AgentSpec> {
        &self.spec
    }

    /// The system message.
    #[must_use]
    pub fn system(&self) -> &Arc<ChatMessage> {
        &self.system
    }

    /// JSON Schema of its actions in the subset every provider takes; none if a tool's schema does not fit.
    #[must_use]
    pub fn action_schema(&self) -> Option<&RawValue> {
        self.action_schema.as_deref()
    }

    pub(crate) fn prefix(&self) -> &Transcript {
        &self.prefix
    }

    /// The allowed tool of this name, with the validator of its input.
    pub(crate) fn tool(&self, name: &str) -> Option<(&ToolSpec, Option<&Validator>)> {
        let mut tools = self.spec.tools.iter().zip(&self.validators);
        tools.find(|(tool, _)| tool.name == name).map(|(tool, validator)| (tool, validator.as_ref()))
    }
}

impl std::fmt::Debug for CompiledAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledAgent").field("spec", &self.spec).finish_non_exhaustive()
    }
}

fn compile_tool(tool: &ToolSpec) -> Result<Option<Validator>, CompileError> {
    let schema = tool.input_schema.as_ref();
    schema.map(compile_schema).transpose().map_err(|reason| CompileError { tool: tool.name.clone(), reason })
}

/// Compiles one schema: nothing is fetched, and patterns are matched in linear time, so look-around and
/// back-references are refused here instead of hanging a run, as are schemas that are applied without end.
///
/// # Errors
/// A phrase that says why the schema cannot be used.
pub fn compile_schema(schema: &Value) -> Result<Validator, String> {
    check_cost(schema)?;
    let options = jsonschema::options().offline().with_pattern_options(PatternOptions::regex());
    options.build(schema).map_err(|error| {
        let text = error.to_string();
        let text = preview(text.lines().next().unwrap_or_default());
        match error.instance_path().as_str() {
            "" => text,
            place => format!("at `{}`, {text}", shown_pointer(place)),
        }
    })
}

#[cfg(test)]
#[path = "compile_tests.rs"]
pub(crate) mod tests;
