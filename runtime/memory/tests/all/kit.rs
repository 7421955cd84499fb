//! Builds memories as the engine does, and short conversations.

use redflow_contract::code::RunErrorCode;
use redflow_contract::id::NodeSummary;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, RequestedCall};
use redflow_memory::{MemorySettings, register};
use redflow_ports::{Adapters, Memory, NodeConfig};
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
    let config = NodeConfig { node: &node, props, env: &variable, on_secret: &|_| () };
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
    let call = RequestedCall { id: id.to_owned(), name: "x".to_owned(), arguments: "{}".to_owned() };
    ChatMessage { tool_calls: vec![call], ..assistant("") }
}

pub(crate) fn tool_result(id: &str) -> ChatMessage {
    ChatMessage { tool_call_id: Some(id.to_owned()), ..ChatMessage::new(ChatRole::Tool, id) }
}

/// Appends a question and an answer, both with the name of the run as text.
pub(crate) async fn append_turn(memory: &Arc<dyn Memory>, session: &str, run: &str) -> Result<(), Failure> {
    memory.append(session, &run.into(), &[user(run), assistant(run)]).await
}

/// The texts of the user messages.
pub(crate) async fn user_texts(memory: &Arc<dyn Memory>, session: &str) -> Vec<String> {
    let messages = memory.recall(session).await.unwrap();
    messages.into_iter().filter(|one| one.role == ChatRole::User).map(|one| one.content).collect()
}

pub(crate) fn failure(message: &str) -> Failure {
    Failure { code: RunErrorCode::MemoryError, message: message.to_owned() }
}
