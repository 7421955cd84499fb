//! Builds memories as the engine does, and short conversations.

use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::id::NodeSummary;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts, RequestedCall};
use redflow_memory::{MemorySettings, register};
use redflow_ports::{Adapters, Memory, NodeConfig, Recall, Turn};
use serde_json::Value;
use std::sync::Arc;

/// The adapters of one process.
pub(crate) fn process(settings: MemorySettings) -> Adapters {
    let mut adapters = Adapters::default();
    register(&mut adapters, settings);
    adapters
}

/// Builds a node. The error is the reason why it could not be built.
pub(crate) fn try_build(
    adapters: &Adapters,
    type_name: &str,
    id: &str,
    props: &Value,
    env: &[(&str, &str)],
) -> Result<Arc<dyn Memory>, String> {
    let node = NodeSummary { id: id.into(), type_name: type_name.to_owned(), name: String::new() };
    let variable =
        |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let props = props.as_object().unwrap();
    let config = NodeConfig::new(&node, props, &variable, &|_| ());
    adapters.memories[type_name](config).map_err(|error| error.reason)
}

pub(crate) fn build(adapters: &Adapters, type_name: &str, id: &str, props: Value) -> Arc<dyn Memory> {
    try_build(adapters, type_name, id, &props, &[]).unwrap()
}

pub(crate) fn user(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::User, text)
}

pub(crate) fn assistant(text: &str) -> ChatMessage {
    ChatMessage::new(ChatRole::Assistant, text)
}

pub(crate) fn tool_call(id: &str) -> ChatMessage {
    tool_calls(&[id])
}

/// Calls of one answer.
fn tool_calls(ids: &[&str]) -> ChatMessage {
    let call =
        |id: &&str| RequestedCall { id: (*id).to_owned(), name: "x".to_owned(), arguments: "{}".to_owned() };
    ChatMessage { tool_calls: ids.iter().map(call).collect(), ..assistant("") }
}

pub(crate) fn tool_result(id: &str) -> ChatMessage {
    ChatMessage { tool_call_id: Some(id.to_owned()), ..ChatMessage::new(ChatRole::Tool, id) }
}

/// Appends a turn of which nothing else is known.
pub(crate) async fn append(
    memory: &Arc<dyn Memory>,
    session: &str,
    run: &str,
    messages: &[ChatMessage],
) -> Result<(), Failure> {
    memory.append(Turn::new(session, &run.into(), messages)).await
}

/// Appends a question and an answer of a user, both with the name of the run as text.
pub(crate) async fn append_of(
    memory: &Arc<dyn Memory>,
    session: &str,
    run: &str,
    user_name: &str,
    tags: &[&str],
) {
    let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let (run_id, messages) = (run.into(), [user(run), assistant(run)]);
    let turn = Turn { user: Some(user_name), tags: &tags, ..Turn::new(session, &run_id, &messages) };
    memory.append(turn).await.unwrap();
}

/// The recalled messages.
pub(crate) async fn recall(memory: &Arc<dyn Memory>, session: &str) -> Result<Vec<ChatMessage>, Failure> {
    memory.recall(Recall::new(session)).await.map(|recalled| recalled.turns)
}

/// Appends a question and an answer, both with the name of the run as text.
pub(crate) async fn append_turn(memory: &Arc<dyn Memory>, session: &str, run: &str) -> Result<(), Failure> {
    append(memory, session, run, &[user(run), assistant(run)]).await
}

/// The texts of the user messages.
pub(crate) async fn user_texts(memory: &Arc<dyn Memory>, session: &str) -> Vec<String> {
    let messages = recall(memory, session).await.unwrap();
    messages.into_iter().filter(|one| one.role == ChatRole::User).map(|one| one.content).collect()
}

pub(crate) fn failure(message: &str) -> Failure {
    Failure { code: RunErrorCode::MemoryError, message: message.to_owned() }
}

/// Checks that a memory of at most six messages keeps turns with parallel calls whole, and without reasoning.
pub(crate) async fn check_parallel_calls(memory: &Arc<dyn Memory>) {
    let turn = |text: &str| {
        vec![user(text), tool_calls(&["a", "b"]), tool_result("b"), tool_result("a"), assistant(text)]
    };
    append_turn(memory, "f:calls", "old").await.unwrap();
    let parts = vec![serde_json::json!({"thinking": "Hm.", "signature": "sig"})];
    let opaque = OpaqueParts::new("anthropic-messages", parts);
    let with_reasoning =
        turn("1").into_iter().map(|message| ChatMessage { reasoning: Some(opaque.clone()), ..message });
    append(memory, "f:calls", "1", &with_reasoning.collect::<Vec<_>>()).await.unwrap();
    assert_eq!(recall(memory, "f:calls").await.unwrap(), turn("1"), "two and five messages are too many");
    append_turn(memory, "f:calls", "2").await.unwrap();
    let recalled = recall(memory, "f:calls").await.unwrap();
    assert_eq!(recalled, [user("2"), assistant("2")], "no part of a turn stays");
    // Turns with an unanswered call, with a call id twice and with a result twice.
    let mut broken = [turn("3"), turn("4"), turn("5")];
    broken[0].remove(2);
    broken[1][1] = tool_calls(&["a", "a"]);
    broken[2][2] = tool_result("a");
    for (index, turn) in broken.iter().enumerate() {
        append(memory, "f:broken", &index.to_string(), turn).await.unwrap();
        assert_eq!(recall(memory, "f:broken").await.unwrap(), [], "{turn:?}");
    }
    // Other turns may have the same ids. A turn longer than the limit stays whole.
    let mut long = turn("6");
    long.extend([tool_calls(&["c", "d"]), tool_result("c"), tool_result("d"), assistant("6")]);
    append(memory, "f:calls", "6", &long).await.unwrap();
    assert_eq!(recall(memory, "f:calls").await.unwrap(), long);
}
