//! Compiles the schemas of tools.
//!
//! Owns which schemas are accepted. Never fetches a schema: references must stay inside it.

use crate::strategy::CompileError;
use crate::text::{display_pointer, preview};
use crate::violation::{first_violation, violations_to_visit};
use redflow_contract::json::size_of;
use redflow_contract::plan::ToolSpec;
use redflow_json_schema::{SchemaProblem, SchemaRules, UntrustedSchema};
use serde_json::Value;

/// Compiles the input schemas of tools, in their order; none for a tool that takes any object.
///
/// # Errors
/// The first tool whose schema cannot be used.
pub fn compile_tool_schemas(
    tools: &[ToolSpec],
    rules: SchemaRules,
) -> Result<Vec<Option<UntrustedSchema>>, CompileError> {
    let compile = |tool: &ToolSpec| {
        let schema = tool.input_schema.as_ref().map(|schema| compile_schema(schema, rules)).transpose();
        schema.map_err(|reason| CompileError::InputSchema { tool: tool.name.clone(), reason })
    };
    tools.iter().map(compile).collect()
}

/// Compiles one schema. Fetches nothing. Refuses look-around and back-references in patterns, and schemas of
/// unbounded cost, because they could block a run.
///
/// # Errors
/// A phrase that tells why the schema cannot be used.
pub fn compile_schema(schema: &Value, rules: SchemaRules) -> Result<UntrustedSchema, String> {
    UntrustedSchema::compile(schema, rules).map_err(|problem| match problem {
        SchemaProblem::Cost(reason) => reason.to_owned(),
        SchemaProblem::Invalid(error) => {
            let text = error.to_string();
            let text = preview(text.lines().next().unwrap_or_default());
            match error.instance_path().as_str() {
                "" => text,
                place => format!("at `{}`, {text}", display_pointer(place)),
            }
        }
    })
}

/// A compiled schema of a tool's input or output, for calls outside the machine.
#[derive(Debug)]
pub struct ValueSchema(UntrustedSchema);

impl ValueSchema {
    /// Compiles a schema as [`compile_schema`] does.
    ///
    /// # Errors
    /// A phrase that tells why the schema cannot be used.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        compile_schema(schema, SchemaRules::Current).map(Self)
    }

    /// Where a value breaks the schema, as a sentence without the value; none if it does not.
    #[must_use]
    pub fn violation(&self, value: &Value) -> Option<String> {
        let bytes = size_of(value);
        let visit = violations_to_visit(bytes);
        let Ok(schema) = self.0.bounded(value, bytes, visit) else {
            return Some("It takes too long to check.".to_owned());
        };
        if schema.is_valid(value) {
            return None;
        }
        let violation = first_violation(schema, value, "", visit);
        Some(format!(
            "At `{}`, the value {} (rule `{}`).",
            violation.pointer, violation.complaint, violation.rule
        ))
    }
}
