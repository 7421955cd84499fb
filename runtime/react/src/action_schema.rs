//! The JSON Schema of an agent's actions, for providers with structured output.
//!
//! The schema only narrows the answers of a model. Every answer is still validated.

use redflow_contract::plan::ToolSpec;
use redflow_json_schema::strict_object;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The schema of the actions with these tools; none if a tool's schema is outside the subset.
pub(crate) fn action_schema(tools: &[ToolSpec]) -> Option<Box<RawValue>> {
    let inputs: Option<Vec<Value>> =
        tools.iter().map(|tool| strict_object(tool.input_schema.as_ref()?)).collect();
    let (inputs, null) = (inputs?, json!({"type": "null"}));
    let (actions, tool, input) = if inputs.is_empty() {
        (json!(["final"]), null.clone(), null)
    } else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let tool = json!({"anyOf": [{"type": "string", "enum": names}, &null]});
        let inputs: Vec<Value> = inputs.into_iter().chain([null]).collect();
        (json!(["tool", "final"]), tool, json!({"anyOf": inputs}))
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": actions},
            "tool": tool,
            "input": input,
            "confidence": {"type": "number"},
            "message": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["action", "tool", "input", "confidence", "message"],
        "additionalProperties": false,
    });
    to_raw_value(&schema).ok()
}

#[cfg(test)]
#[path = "action_schema_tests.rs"]
mod tests;
