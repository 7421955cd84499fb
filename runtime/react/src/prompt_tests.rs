use super::system_prompt;
use crate::compile::tests::{expression_schema, spec};
use pretty_assertions::assert_eq;

#[test]
fn the_prompt_is_exact() {
    let spec = spec(&[
        ("calculator", "Evaluates an arithmetic expression.", Some(expression_schema())),
        ("notes", "Keeps\n  notes.\n", None),
        ("echo", "", Some(serde_json::json!({"z": 1, "a": [true, null]}))),
    ]);
    let expected = r#"You are an execution agent.

You must decide ONE action per iteration.

Available tools:
- calculator: Evaluates an arithmetic expression. Input schema: {"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"],"additionalProperties":false}
- notes: Keeps notes. Input schema: {"type":"object"}
- echo: Input schema: {"z":1,"a":[true,null]}

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
    assert_eq!(system_prompt(&spec.tools), expected);
}

#[test]
fn the_prompt_without_tools_says_none() {
    assert!(system_prompt(&spec(&[]).tools).contains("Available tools:\n(none)\n\nRules:"));
}

#[test]
fn a_tool_cannot_expand_the_list_of_tools() {
    let prompt = system_prompt(&spec(&[("a", "Says {{tools}}.", None), ("b", "", None)]).tools);
    assert!(prompt.contains("\n- a: Says {{tools}}. Input schema: "), "{prompt}");
    assert_eq!(prompt.matches("- b:").count(), 1);
}
