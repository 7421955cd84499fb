//! `chat-node`: a window in which a person writes to an agent.
//!
//! The node sends a person's text to the agent and shows the agent's answers. It never sends an answer on:
//! that would be a new question to the agent.

use redflow_contract::Message;
use redflow_contract::chat::{CHAT_SENT, ChatItem, ChatSpeaker, DEFAULT_CHAT_HISTORY, MAX_CHAT_HISTORY};
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::RunId;
use redflow_contract::json::read_typed;
use redflow_ports::{BuildError, FlowNode, NodeConfig, NodeContext, NodeOutput};
use serde_json::Value;
use std::sync::Arc;

struct Chat {
    /// How many items the window keeps.
    max_history: u32,
}

impl FlowNode for Chat {
    fn receive(&self, message: Arc<FlowMessage>, context: &NodeContext<'_>) -> NodeOutput {
        // A piece of an answer: the whole one follows.
        if message.get("stream").is_some_and(|stream| stream.get("runId").is_some()) {
            return NodeOutput::default();
        }
        if let Some(Value::Object(result)) = message.get("agentResult") {
            let item = agent_item(result, &message, context);
            return NodeOutput { chat: item.map(|item| (item, self.max_history)), ..NodeOutput::default() };
        }
        let item = user_item(&message, context);
        NodeOutput { chat: item.map(|item| (item, self.max_history)), ..NodeOutput::send(message) }
    }
}

/// The item of a person's text.
fn user_item(message: &Message, context: &NodeContext<'_>) -> Option<ChatItem> {
    let sent = message
        .get("chatMessage")
        .filter(|_| message.get("chatEvent").and_then(Value::as_str) == Some(CHAT_SENT));
    if let Some(Ok(item)) = sent.map(|sent| read_typed::<ChatItem>(sent.clone())) {
        return Some(item);
    }
    let id = message.get("_msgid").and_then(Value::as_str)?;
    let content = display_text(message.get("payload")?);
    let (id, speaker, timestamp) = (id.to_owned(), ChatSpeaker::User, context.now);
    Some(ChatItem { id, speaker, content, timestamp, trace_id: None, iteration: None })
}

/// The item of an agent's answer. A tool call is shown only if it comes with a text.
fn agent_item(result: &Message, message: &Message, context: &NodeContext<'_>) -> Option<ChatItem> {
    let run = result.get("traceId").and_then(Value::as_str)?;
    let number = |key: &str| result.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let text = result.get("message").and_then(Value::as_str).filter(|text| !text.is_empty());
    let text = text.map(str::to_owned);
    let payload = || message.get("payload").map(display_text);
    let completed = result.get("completed").and_then(Value::as_bool);
    let (content, iteration) = match completed {
        // A model response of a run that is not over.
        None if result.get("action").and_then(Value::as_str) == Some("final") => {
            (text.or_else(payload)?, number("iteration"))
        }
        None => (text?, number("iteration")),
        // The result of the run. A chat that gets both shows one item, because the ids are equal.
        Some(true) => (text.or_else(payload)?, number("iterations")),
        Some(false) => (ending_text(result, payload()), None),
    };
    let suffix = iteration.map_or_else(|| "end".to_owned(), |iteration| iteration.to_string());
    Some(ChatItem {
        id: format!("{run}-{suffix}"),
        speaker: ChatSpeaker::Agent,
        content,
        timestamp: context.now,
        trace_id: Some(RunId::from(run)),
        iteration: iteration.or_else(|| number("iterations")),
    })
}

/// The reason why a run ended without an answer.
fn ending_text(result: &Message, payload: Option<String>) -> String {
    let field =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    match result.get("error") {
        Some(error) => format!("{}: {}", field(error, "code"), field(error, "message")),
        None => {
            let why = result.get("stopReason").and_then(Value::as_str).unwrap_or("stopped");
            payload.map_or_else(|| format!("({why})"), |payload| format!("{payload}\n({why})"))
        }
    }
}

fn display_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

pub(crate) fn build(config: NodeConfig<'_>) -> Result<Box<dyn FlowNode>, BuildError> {
    // An editor may write the number as text. Anything else counts as missing.
    let max_history = match config.props.get("maxHistory") {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse::<u64>().ok(),
        _ => None,
    };
    let max_history = max_history.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
    let max_history = max_history.unwrap_or(DEFAULT_CHAT_HISTORY).min(MAX_CHAT_HISTORY);
    Ok(Box::new(Chat { max_history }))
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
        let config = NodeConfig::new(&node, props, &|_| None, &|_| ());
        let context = NodeContext { now: 7, env: &|_| None, payload: None };
        super::build(config).unwrap().receive(Arc::new(message.as_object().unwrap().clone().into()), &context)
    }

    #[test]
    fn sends_and_shows_the_text_of_a_person() {
        let item = json!({"id": "m1", "type": "user", "content": "hello", "timestamp": 3});
        let sent =
            json!({"_msgid": "1", "payload": "hello", "chatEvent": "message_sent", "chatMessage": item});
        let output = receive(&json!({"maxHistory": "5"}), &sent);
        assert_eq!(serde_json::to_value(&output.chat.as_ref().unwrap().0).unwrap(), item);
        assert_eq!(output.chat.unwrap().1, 5);
        assert_eq!(Value::Object((**output.messages[0].1).clone()), sent);
        // A message of another node is shown by its payload.
        let other = receive(&json!({}), &json!({"_msgid": "1", "payload": {"a": 1}}));
        let (item, max_history) = other.chat.unwrap();
        assert_eq!((item.id.as_str(), item.content.as_str(), item.timestamp), ("1", "{\n  \"a\": 1\n}", 7));
        assert_eq!((max_history, other.messages.len()), (100, 1));
        // A `chatMessage` of another shape is ignored.
        let malformed = receive(
            &json!({}),
            &json!({"_msgid": "1", "payload": "x", "chatEvent": "message_sent", "chatMessage": 1}),
        );
        assert_eq!(malformed.chat.unwrap().0.content, "x");
    }

    #[test]
    fn neither_shows_nor_sends_a_piece_of_an_answer() {
        let stream = json!({"type": "text", "runId": "r", "iteration": 1, "attempt": 1, "seq": 1});
        let output = receive(&json!({}), &json!({"_msgid": "1", "payload": "Hel", "stream": stream}));
        assert!(output.messages.is_empty() && output.chat.is_none() && output.error.is_none());
        // Another `stream` is a person's own property.
        let output = receive(&json!({}), &json!({"_msgid": "1", "payload": "hello", "stream": true}));
        assert_eq!((output.messages.len(), output.chat.unwrap().0.content.as_str()), (1, "hello"));
    }

    #[test]
    fn shows_answers_and_sends_nothing() {
        let answer = |result: Value, payload: Value| {
            let output =
                receive(&json!({}), &json!({"_msgid": "1", "payload": payload, "agentResult": result}));
            assert!(output.messages.is_empty() && output.error.is_none());
            output.chat.map(|(item, _)| (item.id, item.content, item.iteration))
        };
        let item = |id: &str, content: &str, iteration| Some((id.to_owned(), content.to_owned(), iteration));
        let response = |action: &str, message: Value| json!({"traceId": "r", "iteration": 2, "action": action, "message": message});
        let end = |completed: bool, more: Value| {
            let mut result =
                json!({"traceId": "r", "iterations": 2, "completed": completed, "message": null});
            result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            result
        };
        let rows = [
            (response("final", json!("done")), json!({}), item("r-2", "done", Some(2))),
            (
                response("final", Value::Null),
                json!({"action": "final"}),
                item("r-2", "{\n  \"action\": \"final\"\n}", Some(2)),
            ),
            (response("tool", json!("I look it up")), json!({}), item("r-2", "I look it up", Some(2))),
            (response("tool", Value::Null), json!({"action": "tool"}), None),
            (response("tool", json!("")), json!({}), None),
            (end(true, json!({"message": "done"})), json!("done"), item("r-2", "done", Some(2))),
            (
                end(
                    false,
                    json!({"stopReason": "error", "error": {"code": "INVALID_JSON", "message": "no object"}}),
                ),
                json!({}),
                item("r-end", "INVALID_JSON: no object", Some(2)),
            ),
            (
                end(false, json!({"stopReason": "iteration_limit"})),
                json!(4),
                item("r-end", "4\n(iteration_limit)", Some(2)),
            ),
            (json!({"message": "no run"}), json!("x"), None),
        ];
        for (result, payload, expected) in rows {
            assert_eq!(answer(result.clone(), payload), expected, "{result}");
        }
    }

    #[test]
    fn limits_the_history() {
        for (props, expected) in [
            (json!({}), 100),
            (json!({"maxHistory": 7}), 7),
            (json!({"maxHistory": "7"}), 7),
            (json!({"maxHistory": 0}), 100),
            (json!({"maxHistory": -1}), 100),
            (json!({"maxHistory": "many"}), 100),
            (json!({"maxHistory": 1_000_000}), 1000),
        ] {
            let output = receive(&props, &json!({"_msgid": "1", "payload": "x"}));
            assert_eq!(output.chat.unwrap().1, expected, "{props}");
        }
    }
}
