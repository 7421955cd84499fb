//! The system message: Agent Core's prompt, with the tools written into it.
//!
//! Owns the text of the prompt. Never reads a template from a flow, and never expands the text of a tool.

use redflow_contract::plan::ToolSpec;

/// The exact prompt. The founding document defines it.
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

/// The schema in the prompt of a tool that has none.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// Renders the system message of an agent with these tools.
pub(crate) fn system_prompt(tools: &[ToolSpec]) -> String {
    let tools = match tools {
        [] => "(none)".to_owned(),
        tools => tools.iter().map(tool_line).collect::<Vec<_>>().join("\n"),
    };
    // Replaces only once, so that `{{tools}}` in the text of a tool stays.
    PROMPT.replacen("{{tools}}", &tools, 1)
}

/// Writes one tool on one line, even if its description has several.
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
