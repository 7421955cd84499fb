//! Calls of operations of nodes: the message that the node receives, and the result in the message that returns.

use redflow_contract::Message;
use redflow_contract::effect::OperationCall;
use redflow_contract::manifest::NodeOperation;
use serde_json::Value;

/// The property of the returned message that is the result, if the operation names none.
const DEFAULT_RESULT: &str = "payload";

/// The message of a call with this input.
pub(crate) fn operation_call(operation: &NodeOperation, input: &Message) -> OperationCall {
    let mut msg = Message::new();
    for (name, template) in operation.msg.iter().flatten() {
        msg.insert(name.clone(), fill(template, input));
    }
    msg.entry("payload").or_insert_with(|| Value::Object(input.clone()));
    OperationCall { msg, result: operation.result.clone().unwrap_or_else(|| DEFAULT_RESULT.to_owned()) }
}

/// The result of a call in the message that returned; null if the message does not have it.
pub(crate) fn operation_result(result: &str, message: &Message) -> Value {
    let mut steps = result.split('.');
    let first = steps.next().and_then(|name| message.get(name));
    let found = first.and_then(|value| steps.try_fold(value, step));
    found.cloned().unwrap_or_default()
}

fn step<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).or_else(|| value.get(name.parse::<usize>().ok()?))
}

/// Replaces `{{input.x}}`: alone by the value itself, within a text by its text. Values of the input are never
/// filled again.
fn fill(template: &Value, input: &Message) -> Value {
    match template {
        Value::String(text) => fill_text(text, input),
        Value::Array(items) => items.iter().map(|item| fill(item, input)).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), fill(value, input))).collect(),
        other => other.clone(),
    }
}

fn fill_text(text: &str, input: &Message) -> Value {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { break };
        let value = look_up(name.trim(), input);
        if before.is_empty() && tail.is_empty() && out.is_empty() {
            return value.cloned().unwrap_or_default();
        }
        out.push_str(before);
        match value {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => out.push_str(text),
            Some(other) => out.push_str(&other.to_string()),
        }
        rest = tail;
    }
    Value::String(out + rest)
}

fn look_up<'a>(name: &str, input: &'a Message) -> Option<&'a Value> {
    let mut steps = name.strip_prefix("input.")?.split('.');
    let first = input.get(steps.next()?)?;
    steps.try_fold(first, step)
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;
