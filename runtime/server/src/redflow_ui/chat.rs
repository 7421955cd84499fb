//! `/chat-node`: what is said in a chat.
//!
//! What a person says starts the agent like any other message; what the agent says comes into the chat through the
//! flow. Both are in the book before anybody can read of them here.

use crate::answer::{Answer, Problem, json};
use crate::body::{self, printable};
use crate::routes::Path;
use crate::sidecar::App;
use crate::starts;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use redflow_contract::chat::{ChatHistory, ChatItem, ChatSend, ChatSent, ChatSpeaker, MAX_CHAT_BYTES};
use redflow_contract::code::ApiCode;
use redflow_contract::digest::Digest;
use redflow_contract::id::NodeId;
use redflow_engine::StartOrder;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The longest id of an item that a window may choose.
const MAX_ITEM_ID: usize = 200;

pub(crate) async fn send(
    State(app): State<Arc<App>>,
    Path(id): Path,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let ChatSend { message, chat_message } = body::message(&headers, body, &app.settings).await?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    if message.trim().is_empty() || message.len() > MAX_CHAT_BYTES {
        let text = format!("`message` is a text of 1 to {MAX_CHAT_BYTES} bytes.");
        return Err(Problem::new(ApiCode::BodyInvalid, text));
    }
    let node = chat_node(&app, id)?;
    let now = app.clock.now();
    // The window knows the item by its own id. Who says it, and what, is not its to choose.
    let known = chat_message.and_then(|item| item.get("id")?.as_str().map(str::to_owned));
    let known = known.filter(|id| (1..=MAX_ITEM_ID).contains(&id.len()));
    // What is sent again because its answer was lost is not said twice.
    let key = known.as_ref().map(|id| key(&node, id, &message));
    let item_id = known.unwrap_or_else(|| app.clock.message_id());
    let item = ChatItem {
        id: item_id,
        speaker: ChatSpeaker::User,
        content: message,
        timestamp: now,
        trace_id: None,
        iteration: None,
    };
    let order = StartOrder { node: Some(node), said: Some(item), key, ..StartOrder::default() };
    let started = app.engine.start(order, &CancellationToken::new()).await.map_err(starts::problem)?;
    let refused = started.refused.into_iter().map(|report| report.agent.id);
    let agent_core_id = started.runs.into_iter().map(|(_, agent)| agent.id).chain(refused).next();
    let message = "The agent has it.".to_owned();
    Ok(json(200, &ChatSent { success: true, message, agent_core_id }))
}

pub(crate) async fn history(State(app): State<Arc<App>>, Path(id): Path) -> Answer {
    let node_id = chat_node(&app, id)?;
    let history = app.chats.said(&node_id).await?;
    let count = u32::try_from(history.len()).unwrap_or(u32::MAX);
    Ok(json(200, &ChatHistory { node_id, history, count }))
}

pub(crate) async fn clear(State(app): State<Arc<App>>, Path(id): Path, body: Body) -> Answer {
    body::none(body, &app.settings).await?;
    let node_id = chat_node(&app, id)?;
    app.chats.clear(&node_id).await?;
    let message = "The history is cleared.".to_owned();
    Ok(json(200, &ChatSent { success: true, message, agent_core_id: None }))
}

fn key(node: &NodeId, item: &str, message: &str) -> String {
    let parts = [node.as_str(), item, message];
    let text: Vec<String> = parts.iter().map(|part| format!("{}:{part}", part.len())).collect();
    format!("chat:{}", Digest::of(text.concat().as_bytes()).to_hex())
}

/// A chat node of the flow in force.
fn chat_node(app: &App, id: String) -> Result<NodeId, Problem> {
    let id = NodeId::from(id);
    if app.active_flow().chats.contains(&id) {
        return Ok(id);
    }
    let text = format!("There is no chat node `{}` in the flow in force; deploy it.", printable(id.as_str()));
    Err(Problem::new(ApiCode::NotFound, text))
}
