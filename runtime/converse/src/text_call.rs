//! Finds tool calls that a model has written as text instead of calling the tool. Small local models do so.
//!
//! Such a call is never made, because the model may only quote it. The agent tells the model to call the tool.

use crate::answer_form::fence_content;
use crate::compile::CompiledAgent;
use serde_json::{Map, Value};

/// The most bytes of a text that are searched.
const MAX_BYTES: usize = 16 * 1024;

/// The keys under which models write the name of a tool, and its input.
const NAME_KEYS: [&str; 4] = ["name", "tool", "function", "tool_name"];
const INPUT_KEYS: [&str; 5] = ["arguments", "parameters", "input", "args", "parameters_json"];

/// The tool that a text calls: the text, or a fenced or tagged part of it, is an object with the name and the input
/// of a tool.
pub(crate) fn find_text_call<'a>(agent: &'a CompiledAgent, text: &str) -> Option<&'a str> {
    if text.len() > MAX_BYTES || !text.contains('{') {
        return None;
    }
    parts(text).find_map(|part| {
        let value: Value = serde_json::from_str(part.trim()).ok()?;
        let calls = match &value {
            Value::Array(calls) => calls.as_slice(),
            call => std::slice::from_ref(call),
        };
        calls.iter().find_map(|call| called_tool(agent, call.as_object()?))
    })
}

/// The text itself, what is between fences, and what is between `<tool_call>` tags.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let fenced = text.split("```").skip(1).step_by(2).map(fence_content);
    let tagged =
        text.split("<tool_call>").skip(1).map(|part| part.split("</tool_call>").next().unwrap_or(part));
    std::iter::once(text).chain(fenced).chain(tagged)
}

fn called_tool<'a>(agent: &'a CompiledAgent, call: &Map<String, Value>) -> Option<&'a str> {
    // `{"function": {"name": …, "arguments": …}}`, as the wire format has it.
    let call = call.get("function").and_then(Value::as_object).unwrap_or(call);
    let name = NAME_KEYS.iter().find_map(|key| call.get(*key)?.as_str())?;
    INPUT_KEYS.iter().find(|key| call.contains_key(**key))?;
    agent.tool_names().find(|tool| *tool == name)
}
