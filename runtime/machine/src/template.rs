//! Templates in the properties of agents and memories.

use redflow_contract::Message;
use serde_json::Value;

/// Replaces `{{msg.x}}` by a property of the message and `{{json.x}}` by one of its payload; a missing one is
/// empty. One pass, so that text of the message is never expanded again.
#[must_use]
pub fn render(template: &str, message: &Message) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { break };
        out.push_str(before);
        if let Some(value) = look_up(name.trim(), message) {
            out.push_str(&text_of(value));
        }
        rest = tail;
    }
    out + rest
}

/// Whether a template reads a property of the message, or a part of it.
#[must_use]
pub fn reads_property(template: &str, property: &str) -> bool {
    let mut rest = template;
    while let Some((_, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { return false };
        let mut steps = name.trim().split('.');
        if (steps.next(), steps.next()) == (Some("msg"), Some(property)) {
            return true;
        }
        rest = tail;
    }
    false
}

fn look_up<'a>(name: &str, message: &'a Message) -> Option<&'a Value> {
    let mut steps = name.split('.');
    let start = match steps.next()? {
        "json" => message.get("payload")?,
        "msg" => message.get(steps.next()?)?,
        _ => return None,
    };
    steps.try_fold(start, |value, key| value.get(key).or_else(|| value.get(key.parse::<usize>().ok()?)))
}

/// The text of a value: a text as it is, nothing for null, any other value as JSON.
#[must_use]
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
