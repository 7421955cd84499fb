//! `/redflow/persistent-storage`, and which credentials a node has.
//!
//! Keys are names and nothing else: what is called like a file is in the same drawer as the rest. Secrets go in and do
//! not come out.

use super::masked::{MASK, is_sealed, shown, unmasked};
use super::stored::{Items, given};
use crate::answer::{Answer, Problem, bytes_of, json};
use crate::body::{self, printable};
use crate::routes::Path;
use crate::sidecar::{App, blocking};
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use redflow_contract::code::ApiCode;
use redflow_contract::id::NodeId;
use redflow_contract::{Message, schemas};
use serde_json::{Value, json};
use std::sync::Arc;

/// Bytes of a body with values to store: all there is room for, twice.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// The JSON Schema of `agent-core`.
pub(crate) async fn schema() -> Answer {
    let text = schemas::find("agent-core.react").ok_or_else(Problem::internal)?;
    Ok(bytes_of(200, "application/json", text))
}

pub(crate) async fn all(State(app): State<Arc<App>>) -> Answer {
    let items = app.flow_builder.stored.items();
    blocking(move || {
        let told = items.iter().filter(|(key, _)| !is_sealed(key));
        let shown: Message = told.map(|(key, value)| (key.clone(), shown(key, value))).collect();
        json(200, &shown)
    })
    .await
}

pub(crate) async fn item(State(app): State<Arc<App>>, Path(key): Path) -> Answer {
    let items = app.flow_builder.stored.items();
    let value = items.get(&key).filter(|_| !is_sealed(&key)).ok_or_else(|| unknown(&key))?;
    Ok(json(200, &json!({"key": key, "value": shown(&key, value)})))
}

pub(crate) async fn put(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Answer {
    let (sent, turn) = body::within::<Message>(&headers, body, &app.settings, MAX_BODY_BYTES).await?;
    let updated: Vec<String> = sent.keys().cloned().collect();
    let change = move |items: &mut Items| {
        for (key, value) in sent {
            // The mask of something that is not there says nothing.
            if let Some(value) = unmasked(value, items.get(&key)) {
                items.insert(key, value);
            }
        }
        Ok(())
    };
    changed(app, turn, change).await?;
    Ok(json(200, &json!({"success": true, "updated": updated})))
}

pub(crate) async fn delete(State(app): State<Arc<App>>, Path(key): Path, body: Body) -> Answer {
    body::none(body, &app.settings).await?;
    let deleted = key.clone();
    let change = move |items: &mut Items| items.remove(&key).map(drop).ok_or_else(|| unknown(&key));
    changed(app, None, change).await?;
    Ok(json(200, &json!({"success": true, "deleted": deleted})))
}

/// What has begun is done, also when nobody waits for it any more.
async fn changed(
    app: Arc<App>,
    turn: body::Turn,
    change: impl FnOnce(&mut Items) -> Result<(), Problem> + Send + 'static,
) -> Result<(), Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    let changing = tokio::spawn(async move {
        let _turn = turn;
        app.store(change).await
    });
    changing.await.map_err(|_| Problem::internal())?
}

fn unknown(key: &str) -> Problem {
    Problem::new(ApiCode::NotFound, format!("Nothing is stored as `{}`.", printable(key)))
}

pub(crate) async fn node_credentials(State(app): State<Arc<App>>, Path(id): Path) -> Answer {
    let (shared, masked) = masked(&app, id.clone()).await?;
    let mut answer = json!({"nodeId": id, "data": masked});
    if let Some(shared) = shared {
        answer["credentialId"] = Value::from(shared);
    }
    Ok(json(200, &answer))
}

pub(crate) async fn credential_flags(State(app): State<Arc<App>>, Path(id): Path) -> Answer {
    Ok(json(200, &masked(&app, id).await?.1))
}

/// The credentials a node has, each masked, and the id of those it shares with others.
async fn masked(app: &App, id: String) -> Result<(Option<String>, Message), Problem> {
    let (told, items) = (app.active_flow(), app.flow_builder.stored.items());
    blocking(move || {
        let nodes: Vec<Value> = serde_json::from_str(&told.nodes).unwrap_or_default();
        let is_it = |node: &&Value| node.get("id").and_then(Value::as_str) == Some(id.as_str());
        let named = nodes.iter().find(is_it).and_then(|node| node.get("credentialId")?.as_str());
        let (shared, stored) = given(&items, &id, named.filter(|id| !id.is_empty()));
        let mut names = told.credentials.get(&NodeId::from(id.as_str())).cloned().unwrap_or_default();
        names.extend(stored);
        if names.is_empty() {
            let text = format!("The node `{}` has no credentials here.", printable(&id));
            return Err(Problem::new(ApiCode::NotFound, text));
        }
        names.values_mut().for_each(|value| *value = Value::from(MASK));
        Ok((shared, names))
    })
    .await?
}
