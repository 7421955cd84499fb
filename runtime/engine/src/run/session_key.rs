//! The key of the conversation that a message belongs to.

use redflow_contract::Message;
use redflow_contract::memory::session_name;
use redflow_machine::template::{render, text_of};

/// The `sessionId` of the agent, else of the message, else of the memory, else `default`; prefixed by the
/// flow.
pub(crate) fn session_key(
    flow: &str,
    agent: Option<&str>,
    message: &Message,
    memory: Option<&str>,
) -> String {
    let own = agent.map(|template| render(template, message)).filter(|text| !text.is_empty());
    let sent = || message.get("sessionId").map(text_of).filter(|text| !text.is_empty());
    let default = || memory.map(|template| render(template, message)).filter(|text| !text.is_empty());
    let session = own.or_else(sent).or_else(default).unwrap_or_else(|| "default".to_owned());
    // The first colon separates the two, so the flow's part must not have one.
    let flow = flow.replace('%', "%25").replace(':', "%3A");
    format!("{flow}:{}", session_name(&session))
}

#[cfg(test)]
mod tests {
    use super::session_key;
    use serde_json::json;

    #[test]
    fn the_agent_wins_over_the_message_and_the_memory() {
        let message = json!({"sessionId": 7, "user": {"name": "Ada {{msg.topic}}"}, "topic": "t", "payload": {"id": [5]}});
        let message = message.as_object().unwrap();
        let empty = serde_json::Map::new();
        let rows = [
            (Some("fixed"), message, Some("mem"), "f:fixed"),
            (Some("{{msg.user.name}}-{{ json.id.0 }}"), message, None, "f:Ada {{msg.topic}}-5"),
            (Some("{{msg.gone}}"), message, Some("mem"), "f:7"),
            (None, message, Some("mem"), "f:7"),
            (None, &empty, Some("mem"), "f:mem"),
            (None, &empty, None, "f:default"),
            (Some("{{open"), &empty, None, "f:{{open"),
            (Some("{{other.x}}"), &empty, None, "f:default"),
        ];
        for (agent, message, memory, expected) in rows {
            assert_eq!(session_key("f", agent, message, memory), expected);
        }
        assert_eq!(session_key("a:b%", None, &empty, Some("c:d")), "a%3Ab%25:c:d");
        let long = "x".repeat(257);
        assert_eq!(session_key("f", Some(&long), &empty, None).len(), 2 + 64);
        assert_eq!(session_key("f", Some(&long[1..]), &empty, None).len(), 2 + 256);
    }
}
