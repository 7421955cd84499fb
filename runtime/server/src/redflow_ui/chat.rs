//! `/chat-node`: sends a message to a chat node, and reads or clears its history.
//!
//! The message of a person starts the agent like any other message. The answer comes into the chat through
//! the flow. Both are stored before a client can read them here.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::principal::principal;
use crate::request::Path;
use crate::response::{ApiResult, Problem, json, printable};
use crate::starts::start_problem;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::chat::{ChatHistory, ChatItem, ChatSend, ChatSent, ChatSpeaker, MAX_CHAT_BYTES};
use redflow_contract::code::ApiCode;
use redflow_contract::digest::Digest;
use redflow_contract::id::NodeId;
use redflow_contract::transcript::MAX_IMAGES;
use redflow_engine::{StartKey, StartOrder};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Bytes of an item id that a client may choose.
const MAX_ITEM_ID: usize = 200;

pub(crate) async fn send(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let ChatSend { message, chat_message, images } = body::read_message(&headers, body, &app).await?;
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    if message.trim().is_empty() || message.len() > MAX_CHAT_BYTES {
        let text = format!("`message` must be a text of 1 to {MAX_CHAT_BYTES} bytes.");
        return Err(Problem::new(ApiCode::BodyInvalid, text));
    }
    check_images(&images)?;
    let node = chat_node(&app, id)?;
    let now = app.clock.now();
    // The client may choose the id of the item, but neither its speaker nor its text.
    let client_id = chat_message.and_then(|item| item.get("id")?.as_str().map(str::to_owned));
    let client_id = client_id.filter(|id| (1..=MAX_ITEM_ID).contains(&id.len()));
    // With a key, a message that the client sends again has no second effect.
    let key = client_id.as_ref().map(|id| start_key(&node, id, &message, &images));
    let item_id = client_id.unwrap_or_else(|| app.clock.message_id());
    let item = ChatItem {
        id: item_id,
        speaker: ChatSpeaker::User,
        content: message,
        timestamp: now,
        trace_id: None,
        iteration: None,
    };
    let (node, chat_item, by) = (Some(node), Some(item), Some(principal(&caller)));
    let order = StartOrder { node, chat_item, images, key, by, ..StartOrder::default() };
    let started = app.engine.start(order, &CancellationToken::new()).await.map_err(start_problem)?;
    let refused = started.refused.into_iter().map(|report| report.agent.id);
    let agent_core_id = started.runs.into_iter().map(|(_, agent)| agent.id).chain(refused).next();
    let message = "The agent has received the message.".to_owned();
    Ok(json(200, &ChatSent { success: true, message, agent_core_id }))
}

pub(crate) async fn history(State(app): State<Arc<App>>, Path(id): Path) -> ApiResult {
    let node_id = chat_node(&app, id)?;
    let history = app.chats.items(&node_id).await?;
    let count = u32::try_from(history.len()).unwrap_or(u32::MAX);
    Ok(json(200, &ChatHistory { node_id, history, count }))
}

pub(crate) async fn clear(State(app): State<Arc<App>>, Path(id): Path, body: RequestBody) -> ApiResult {
    body::expect_none(body, &app).await?;
    let node_id = chat_node(&app, id)?;
    app.chats.clear(&node_id).await?;
    let message = "The history is cleared.".to_owned();
    Ok(json(200, &ChatSent { success: true, message, agent_core_id: None }))
}

/// The agent checks whether they are images.
fn check_images(images: &[String]) -> Result<(), Problem> {
    let is_data_url = |image: &String| image.starts_with("data:");
    if images.len() > MAX_IMAGES || !images.iter().all(is_data_url) {
        let text = format!("`images` must be a list of at most {MAX_IMAGES} data URLs.");
        return Err(Problem::new(ApiCode::BodyInvalid, text));
    }
    Ok(())
}

fn start_key(node: &NodeId, item: &str, message: &str, images: &[String]) -> StartKey {
    let parts = [node.as_str(), item, message].into_iter().chain(images.iter().map(String::as_str));
    let text: Vec<String> = parts.map(|part| format!("{}:{part}", part.len())).collect();
    StartKey::Chat(Digest::of(text.concat().as_bytes()))
}

/// The id of an active chat node.
fn chat_node(app: &App, id: String) -> Result<NodeId, Problem> {
    let id = NodeId::from(id);
    if app.active_flow().chats.contains_key(&id) {
        return Ok(id);
    }
    let text = format!("The active flow has no chat node `{}`. Deploy it first.", printable(id.as_str()));
    Err(Problem::new(ApiCode::NotFound, text))
}
