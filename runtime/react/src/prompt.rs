//! The system message: Agent Core's prompt, with the tools written into it.
//!
//! Owns the prompt's text. Never reads a template from a flow, and never expands what it has put in.

use redflow_contract::plan::{AgentSpec, ToolSpec};

/// The prompt to the letter; the founding document is its source of truth.
const PROMPT: &str = r#"You are an execution agent.

You must decide ONE action per iteration.

Available tools:
{{tools}}

Rules:
- Use only the provided tools
- If you have enough information, return a FINAL action
- Always respond in valid JSON
- Do NOT explain your reasoning

Output format:
{
  "action": "tool" | "final",
  "tool": "tool_name_if_any",
  "input": {},
  "confidence": number,
  "message": "optional"
}"#;

/// What is said of the input of a tool that has no schema.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// The system message of an agent.
pub(crate) fn system_prompt(spec: &AgentSpec) -> String {
    let tools = match spec.tools.as_slice() {
        [] => "(none)".to_owned(),
        tools => tools.iter().map(tool_line).collect::<Vec<_>>().join("\n"),
    };
    // One replacement in the template itself: a tool that says `{{tools}}` stays as it is.
    PROMPT.replacen("{{tools}}", &tools, 1)
}

/// One tool on one line, whatever its description looks like.
fn tool_line(tool: &ToolSpec) -> String {
    let mut line = format!("- {}:", tool.name);
    for part in tool.description.lines().map(str::trim).filter(|part| !part.is_empty()) {
        line.push(' ');
        line.push_str(part);
    }
    line.push_str(" Input schema: ");
    match &tool.input_schema {
        Some(schema) => line.push_str(&schema.to_string()),
        None => line.push_str(ANY_OBJECT),
    }
    line
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
