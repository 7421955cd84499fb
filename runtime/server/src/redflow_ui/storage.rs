//! `/redflow/persistent-storage` and the routes that list the credentials of a node.
//!
//! A key is only a name: one that looks like a path names no file. Responses never contain a secret.

use super::masking::{mask_item, restore_masked};
use super::stored_items::{Items, merge_credentials, node_items, stored_credentials};
use crate::active_flow::{ActiveFlow, FlowBuilder, PreparedFlow};
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::deploy::{replace_active, report_changed_agents};
use crate::request::Path;
use crate::response::{ApiResult, Problem, json, printable, raw};
use crate::work_slots::BodySlot;
use axum::extract::State;
use axum::http::HeaderMap;
use redflow_contract::code::ApiCode;
use redflow_contract::id::NodeId;
use redflow_contract::secret::{PASSWORD_MASK, is_encrypted_key};
use redflow_contract::{Message, schemas};
use redflow_flow::RawFlow;
use serde_json::{Value, json};
use std::sync::Arc;

/// Bytes of a body with items: twice the bytes that can be stored.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// The JSON Schema of `agent-core`.
pub(crate) async fn schema() -> ApiResult {
    let text = schemas::find("agent-core.react").ok_or_else(Problem::internal)?;
    Ok(raw(200, "application/json", text))
}

pub(crate) async fn all(State(app): State<Arc<App>>) -> ApiResult {
    let items = app.flow_builder.stored_items.items();
    app.run_blocking(move || {
        let readable = items.iter().filter(|(key, _)| !is_encrypted_key(key));
        let masked: Message = readable.map(|(key, value)| (key.clone(), mask_item(key, value))).collect();
        json(200, &masked)
    })
    .await
}

pub(crate) async fn item(State(app): State<Arc<App>>, Path(key): Path) -> ApiResult {
    let items = app.flow_builder.stored_items.items();
    app.run_blocking(move || {
        let value = items.get(&key).filter(|_| !is_encrypted_key(&key)).ok_or_else(|| unknown_key(&key))?;
        Ok(json(200, &json!({"key": key, "value": mask_item(&key, value)})))
    })
    .await?
}

pub(crate) async fn put(State(app): State<Arc<App>>, headers: HeaderMap, body: RequestBody) -> ApiResult {
    let (sent, slot) = body::read_limited::<Message>(&headers, body, &app, MAX_BODY_BYTES).await?;
    let updated: Vec<String> = sent.keys().cloned().collect();
    let change = move |items: &mut Items| {
        for (key, value) in sent {
            // A mask without a stored value is ignored.
            if let Some(value) = restore_masked(value, items.get(&key)) {
                items.insert(key, value);
            }
        }
        Ok(())
    };
    change_items(app, slot, change).await?;
    Ok(json(200, &json!({"success": true, "updated": updated})))
}

pub(crate) async fn delete(State(app): State<Arc<App>>, Path(key): Path, body: RequestBody) -> ApiResult {
    body::expect_none(body, &app).await?;
    let deleted = key.clone();
    let change = move |items: &mut Items| items.remove(&key).map(drop).ok_or_else(|| unknown_key(&key));
    change_items(app, None, change).await?;
    Ok(json(200, &json!({"success": true, "deleted": deleted})))
}

/// Changes the items in a task of its own, so that a change that began ends also when the client disconnects.
async fn change_items(
    app: Arc<App>,
    slot: BodySlot,
    change: impl FnOnce(&mut Items) -> Result<(), Problem> + Send + 'static,
) -> Result<(), Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    let changing = tokio::spawn(async move {
        let _slot = slot;
        apply_change(&app, change).await
    });
    changing.await.map_err(|_| Problem::internal())?
}

/// Changes the items. If credentials change, the active flow is built again with them. It stays the same
/// flow, and its runs go on.
async fn apply_change<C>(app: &App, change: C) -> Result<(), Problem>
where
    C: FnOnce(&mut Items) -> Result<(), Problem> + Send + 'static,
{
    let _lock = app.deploy_lock.lock().await;
    let (flow_builder, active_flow) = (app.flow_builder.clone(), app.active_flow());
    let work = move || {
        let before = flow_builder.stored_items.items();
        let mut items = (*before).clone();
        change(&mut items)?;
        flow_builder.stored_items.replace(items)?;
        rebuild_flow(&flow_builder, &active_flow, &before)
    };
    if let Some(mut prepared) = app.work_slots.run_deploy(work).await?? {
        app.flow_builder.add_notices(&mut prepared).await;
        let PreparedFlow { active, built, .. } = prepared;
        let before = replace_active(app, active.clone(), built).await;
        report_changed_agents(app, &before, &active);
    }
    Ok(())
}

/// Builds the active flow with the stored credentials, if those of a node have changed.
fn rebuild_flow(
    flow_builder: &FlowBuilder,
    active_flow: &ActiveFlow,
    before: &Items,
) -> Result<Option<PreparedFlow>, Problem> {
    let after = flow_builder.stored_items.items();
    if node_items(before) == node_items(&after) {
        return Ok(None);
    }
    let own = &active_flow.credentials;
    let raw = RawFlow::parse(active_flow.nodes.as_bytes(), &flow_builder.settings.flow_limits)
        .map_err(|_| Problem::internal())?;
    if merge_credentials(before, &raw, own) == merge_credentials(&after, &raw, own) {
        return Ok(None);
    }
    flow_builder.prepare(raw, own).map(Some).map_err(|_| Problem::internal())
}

fn unknown_key(key: &str) -> Problem {
    Problem::new(ApiCode::NotFound, format!("There is no stored item `{}`.", printable(key)))
}

pub(crate) async fn node_credentials(State(app): State<Arc<App>>, Path(id): Path) -> ApiResult {
    let (shared, masked) = masked_credentials(&app, id.clone()).await?;
    let mut response = json!({"nodeId": id, "data": masked});
    if let Some(shared) = shared {
        response["credentialId"] = Value::from(shared);
    }
    Ok(json(200, &response))
}

pub(crate) async fn credential_flags(State(app): State<Arc<App>>, Path(id): Path) -> ApiResult {
    Ok(json(200, &masked_credentials(&app, id).await?.1))
}

/// The names of the credentials of a node with masked values, and the id of the shared ones among them.
async fn masked_credentials(app: &App, id: String) -> Result<(Option<String>, Message), Problem> {
    let (active, items) = (app.active_flow(), app.flow_builder.stored_items.items());
    let work = move || {
        let nodes: Vec<Value> = serde_json::from_str(&active.nodes).unwrap_or_default();
        let has_id = |node: &&Value| node.get("id").and_then(Value::as_str) == Some(id.as_str());
        let credential_id = nodes.iter().find(has_id).and_then(|node| node.get("credentialId")?.as_str());
        let (shared, stored) = stored_credentials(&items, &id, credential_id.filter(|id| !id.is_empty()));
        let mut names = active.credentials.get(&NodeId::from(id.as_str())).cloned().unwrap_or_default();
        names.extend(stored);
        if names.is_empty() {
            let text = format!("The node `{}` has no stored credentials.", printable(&id));
            return Err(Problem::new(ApiCode::NotFound, text));
        }
        names.values_mut().for_each(|value| *value = Value::from(PASSWORD_MASK));
        Ok((shared, names))
    };
    app.run_blocking(work).await?
}
