//! `chat-node`: a window in which a person talks with an agent.
//!
//! What is said there goes out to the agent; what the agent says comes in and stays in the window. It never goes out
//! again: that would be a new question to the agent.

use redflow_contract::Message;
use redflow_contract::chat::{CHAT_SENT, ChatItem, ChatSpeaker, DEFAULT_CHAT_HISTORY, MAX_CHAT_HISTORY};
use redflow_contract::id::RunId;
use redflow_ports::{BuildError, FlowNode, NodeConfig, NodeContext, NodeOutput};
use serde_json::Value;
use std::sync::Arc;

struct Chat {
    keeps: u32,
}

impl FlowNode for Chat {
    fn receive(&self, message: Arc<Message>, context: &NodeContext<'_>) -> NodeOutput {
        if let Some(Value::Object(result)) = message.get("agentResult") {
            let item = answer(result, &message, context);
            return NodeOutput { says: item.map(|item| (item, self.keeps)), ..NodeOutput::default() };
        }
        let said = question(&message, context);
        NodeOutput { says: said.map(|item| (item, self.keeps)), ..NodeOutput::send(message) }
    }
}

/// What a person said.
fn question(message: &Message, context: &NodeContext<'_>) -> Option<ChatItem> {
    let shown = message
        .get("chatMessage")
        .filter(|_| message.get("chatEvent").and_then(Value::as_str) == Some(CHAT_SENT));
    if let Some(Ok(item)) = shown.map(|shown| serde_json::from_value::<ChatItem>(shown.clone())) {
        return Some(item);
    }
    let id = message.get("_msgid").and_then(Value::as_str)?;
    let content = text(message.get("payload")?);
    let (id, speaker, timestamp) = (id.to_owned(), ChatSpeaker::User, context.now);
    Some(ChatItem { id, speaker, content, timestamp, trace_id: None, iteration: None })
}

/// What an agent said, if it is something for people: of a call of a tool only the words that came with it.
fn answer(result: &Message, message: &Message, context: &NodeContext<'_>) -> Option<ChatItem> {
    let run = result.get("traceId").and_then(Value::as_str)?;
    let number = |key: &str| result.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let words = result.get("message").and_then(Value::as_str).filter(|words| !words.is_empty());
    let words = words.map(str::to_owned);
    let payload = || message.get("payload").map(text);
    let completed = result.get("completed").and_then(Value::as_bool);
    let (content, iteration) = match completed {
        // An answer of the model, on its way.
        None if result.get("action").and_then(Value::as_str) == Some("final") => {
            (words.or_else(payload)?, number("iteration"))
        }
        None => (words?, number("iteration")),
        // The result of the run. A chat may get both: this is the same answer then, by the same id.
        Some(true) => (words.or_else(payload)?, number("iterations")),
        Some(false) => (ending(result, payload()), None),
    };
    let place = iteration.map_or_else(|| "end".to_owned(), |iteration| iteration.to_string());
    Some(ChatItem {
        id: format!("{run}-{place}"),
        speaker: ChatSpeaker::Agent,
        content,
        timestamp: context.now,
        trace_id: Some(RunId::from(run)),
        iteration: iteration.or_else(|| number("iterations")),
    })
}

/// Why a run ended without an answer.
fn ending(result: &Message, payload: Option<String>) -> String {
    let of = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match result.get("error") {
        Some(error) => format!("{}: {}", of(error, "code"), of(error, "message")),
        None => {
            let why = result.get("stopReason").and_then(Value::as_str).unwrap_or("stopped");
            payload.map_or_else(|| format!("({why})"), |payload| format!("{payload}\n({why})"))
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

pub(crate) fn build(config: NodeConfig<'_>) -> Result<Box<dyn FlowNode>, BuildError> {
    // An editor may write the number as text; what is none is what is left out.
    let keeps = match config.props.get("maxHistory") {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse::<u64>().ok(),
        _ => None,
    };
    let keeps = keeps.and_then(|keeps| u32::try_from(keeps).ok()).filter(|keeps| *keeps > 0);
    let keeps = keeps.unwrap_or(DEFAULT_CHAT_HISTORY).min(MAX_CHAT_HISTORY);
    Ok(Box::new(Chat { keeps }))
}

#[cfg(test)]
mod tests {
    use redflow_contract::id::NodeSummary;
    use redflow_ports::{NodeConfig, NodeContext, NodeOutput};
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn receive(props: &Value, message: &Value) -> NodeOutput {
        let node = NodeSummary { id: "c".into(), type_name: "chat-node".to_owned(), name: String::new() };
        let props = props.as_object().unwrap();
        let config = NodeConfig { node: &node, props, env: &|_| None, takes: &|_| () };
        let context = NodeContext { now: 7, env: &|_| None, payload: None };
        super::build(config).unwrap().receive(Arc::new(message.as_object().unwrap().clone()), &context)
    }

    #[test]
    fn what_a_person_says_goes_out_and_stays() {
        let item = json!({"id": "m1", "type": "user", "content": "hello", "timestamp": 3});
        let sent =
            json!({"_msgid": "1", "payload": "hello", "chatEvent": "message_sent", "chatMessage": item});
        let output = receive(&json!({"maxHistory": "5"}), &sent);
        assert_eq!(serde_json::to_value(&output.says.as_ref().unwrap().0).unwrap(), item);
        assert_eq!(output.says.unwrap().1, 5);
        assert_eq!(Value::Object((*output.sends[0].1).clone()), sent);
        // From another node it is said in its own words.
        let other = receive(&json!({}), &json!({"_msgid": "1", "payload": {"a": 1}}));
        let (said, keeps) = other.says.unwrap();
        assert_eq!((said.id.as_str(), said.content.as_str(), said.timestamp), ("1", "{\n  \"a\": 1\n}", 7));
        assert_eq!((keeps, other.sends.len()), (100, 1));
        // A shape that is no item of a chat is not taken for one.
        let odd = receive(
            &json!({}),
            &json!({"_msgid": "1", "payload": "x", "chatEvent": "message_sent", "chatMessage": 1}),
        );
        assert_eq!(odd.says.unwrap().0.content, "x");
    }

    #[test]
    fn what_an_agent_says_stays_and_goes_nowhere() {
        let answer = |result: Value, payload: Value| {
            let output =
                receive(&json!({}), &json!({"_msgid": "1", "payload": payload, "agentResult": result}));
            assert!(output.sends.is_empty() && output.error.is_none());
            output.says.map(|(item, _)| (item.id, item.content, item.iteration))
        };
        let said = |id: &str, content: &str, iteration| Some((id.to_owned(), content.to_owned(), iteration));
        let on_4 = |action: &str, message: Value| json!({"traceId": "r", "iteration": 2, "action": action, "message": message});
        let on_3 = |completed: bool, more: Value| {
            let mut result =
                json!({"traceId": "r", "iterations": 2, "completed": completed, "message": null});
            result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            result
        };
        let rows = [
            (on_4("final", json!("done")), json!({}), said("r-2", "done", Some(2))),
            (
                on_4("final", Value::Null),
                json!({"action": "final"}),
                said("r-2", "{\n  \"action\": \"final\"\n}", Some(2)),
            ),
            (on_4("tool", json!("I look it up")), json!({}), said("r-2", "I look it up", Some(2))),
            (on_4("tool", Value::Null), json!({"action": "tool"}), None),
            (on_4("tool", json!("")), json!({}), None),
            (on_3(true, json!({"message": "done"})), json!("done"), said("r-2", "done", Some(2))),
            (
                on_3(
                    false,
                    json!({"stopReason": "error", "error": {"code": "INVALID_JSON", "message": "no object"}}),
                ),
                json!({}),
                said("r-end", "INVALID_JSON: no object", Some(2)),
            ),
            (
                on_3(false, json!({"stopReason": "iteration_limit"})),
                json!(4),
                said("r-end", "4\n(iteration_limit)", Some(2)),
            ),
            (json!({"message": "no run"}), json!("x"), None),
        ];
        for (result, payload, expected) in rows {
            assert_eq!(answer(result.clone(), payload), expected, "{result}");
        }
    }

    #[test]
    fn how_much_is_kept_is_bounded() {
        for (given, kept) in [
            (json!({}), 100),
            (json!({"maxHistory": 7}), 7),
            (json!({"maxHistory": "7"}), 7),
            (json!({"maxHistory": 0}), 100),
            (json!({"maxHistory": -1}), 100),
            (json!({"maxHistory": "many"}), 100),
            (json!({"maxHistory": 1_000_000}), 1000),
        ] {
            let output = receive(&given, &json!({"_msgid": "1", "payload": "x"}));
            assert_eq!(output.says.unwrap().1, kept, "{given}");
        }
    }
}
