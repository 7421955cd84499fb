//! Compiles an agent once per deploy: renders its prompt and compiles the schemas of its tools.
//!
//! All runs of the agent share the result.

use crate::MACHINE_VERSION;
use crate::action_schema::action_schemas;
use crate::prompt::system_prompt;
use crate::validate::ActionRules;
use redflow_contract::answer_kind::AnswerKind;
use redflow_contract::plan::{AgentSpec, ToolSpec};
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_json_schema::{SchemaRules, UntrustedSchema};
use redflow_machine::{CompileError, compile_tool_schemas};
use std::sync::Arc;

/// A compiled agent. All its runs share it.
pub struct CompiledAgent {
    spec: Arc<AgentSpec>,
    /// The transcript that every run starts with.
    prefix: Transcript,
    /// In the order of the spec's tools; none for a tool that takes any object.
    input_schemas: Vec<Option<UntrustedSchema>>,
    answer_kind: AnswerKind,
    version: u32,
}

impl CompiledAgent {
    /// Compiles an agent for new runs.
    ///
    /// # Errors
    /// The first tool whose schema cannot be used.
    pub fn compile(spec: Arc<AgentSpec>) -> Result<Arc<Self>, CompileError> {
        Self::compile_version(spec, MACHINE_VERSION)
    }

    /// Compiles an agent whose machine has a version of this build.
    ///
    /// # Errors
    /// The first tool whose schema cannot be used.
    pub fn compile_version(spec: Arc<AgentSpec>, version: u32) -> Result<Arc<Self>, CompileError> {
        let rules = if version == 1 { SchemaRules::Version1 } else { SchemaRules::Current };
        let input_schemas = compile_tool_schemas(&spec.tools, rules)?;
        let prefix = prompt_prefix(&spec.tools);
        let answer_kind = answer_kind(&spec.tools);
        Ok(Arc::new(Self { spec, prefix, input_schemas, answer_kind, version }))
    }

    /// The spec that it was compiled from.
    #[must_use]
    pub fn spec(&self) -> &Arc<AgentSpec> {
        &self.spec
    }

    /// The version of its machine.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// The form of its model's answers: one action.
    pub(crate) fn answer_kind(&self) -> &AnswerKind {
        &self.answer_kind
    }

    pub(crate) fn prefix(&self) -> &Transcript {
        &self.prefix
    }

    /// The rules for its model's answers.
    pub(crate) fn action_rules(&self) -> ActionRules<'_> {
        ActionRules {
            version: self.version,
            limits: &self.spec.limits,
            tools: &self.spec.tools,
            input_schemas: &self.input_schemas,
        }
    }

    /// Finds an allowed tool by name.
    pub(crate) fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.spec.tools.iter().find(|tool| tool.name == name)
    }
}

/// The transcript that every run with these tools starts with.
pub(crate) fn prompt_prefix(tools: &[ToolSpec]) -> Transcript {
    let mut prefix = Transcript::default();
    prefix.push(Arc::new(ChatMessage::new(ChatRole::System, system_prompt(tools))));
    prefix
}

/// The form of the answers of a model with these tools.
pub(crate) fn answer_kind(tools: &[ToolSpec]) -> AnswerKind {
    AnswerKind::Action(action_schemas(tools))
}

impl std::fmt::Debug for CompiledAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledAgent").field("spec", &self.spec).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "compile_tests.rs"]
pub(crate) mod tests;
