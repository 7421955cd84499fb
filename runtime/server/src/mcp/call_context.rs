//! What a call of a tool needs of its request: the caller, the key, cancellation and progress.

use crate::app::App;
use crate::starts::MAX_KEY;
use redflow_access::Caller;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The key of the metadata of a call that makes it happen once.
const KEY: &str = "redflow/key";

/// One call of a tool.
pub(super) struct CallContext {
    pub(super) app: Arc<App>,
    pub(super) caller: Caller,
    /// The value of `_meta["redflow/key"]`.
    key: Option<Value>,
    /// Cancelled when the client cancels the call. Since 2026-07-28 a client does so by disconnecting; before, a
    /// disconnected client can come back.
    pub(super) cancelled: CancellationToken,
    progress: Option<ProgressToken>,
    peer: Peer<RoleServer>,
    _open: OpenCall,
}

impl CallContext {
    pub(super) fn new(
        app: &Arc<App>,
        caller: Caller,
        context: &RequestContext<RoleServer>,
        open_calls: &Arc<OpenCalls>,
    ) -> Self {
        let version = context.meta.protocol_version();
        let is_modern =
            version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let cancelled = if is_modern { context.ct.clone() } else { CancellationToken::new() };
        let open = open_calls.add(context.id.clone(), cancelled.clone());
        if context.ct.is_cancelled() {
            // The notification was handled before the call was added.
            cancelled.cancel();
        }
        Self {
            app: Arc::clone(app),
            caller,
            key: context.meta.get(KEY).cloned(),
            progress: context.meta.get_progress_token(),
            peer: context.peer.clone(),
            _open: open,
            cancelled,
        }
    }

    /// Whether the client sent a key.
    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// The key of the call; none if the client sent none.
    ///
    /// # Errors
    /// What a key must be.
    pub(super) fn key(&self) -> Result<Option<String>, String> {
        let is_visible = |key: &str| key.bytes().all(|byte| byte.is_ascii_graphic());
        match &self.key {
            None => Ok(None),
            Some(Value::String(key)) if (1..=MAX_KEY).contains(&key.len()) && is_visible(key) => {
                Ok(Some(key.clone()))
            }
            Some(_) => Err(format!("`_meta[\"{KEY}\"]` must be 1 to {MAX_KEY} visible ASCII characters")),
        }
    }

    /// Whether the client asked for progress.
    pub(super) fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Tells the client that an iteration has begun, if it asked for that.
    pub(super) async fn send_progress(&self, iteration: u32) {
        let Some(token) = &self.progress else { return };
        let mut progress = ProgressNotificationParam::new(token.clone(), f64::from(iteration));
        progress.message = Some(format!("iteration {iteration}"));
        // Fails if the client has disconnected, which is no problem.
        let _ = self.peer.notify_progress(progress).await;
    }
}

/// The calls of one session that are under way.
#[derive(Default)]
pub(super) struct OpenCalls(Mutex<HashMap<RequestId, CancellationToken>>);

impl OpenCalls {
    fn add(self: &Arc<Self>, id: RequestId, cancelled: CancellationToken) -> OpenCall {
        self.calls().insert(id.clone(), cancelled);
        OpenCall { calls: Arc::clone(self), id }
    }

    /// Cancels the call with this id.
    pub(super) fn cancel(&self, id: &RequestId) {
        if let Some(call) = self.calls().get(id) {
            call.cancel();
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is under way until this is dropped.
struct OpenCall {
    calls: Arc<OpenCalls>,
    id: RequestId,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.calls.calls().remove(&self.id);
    }
}
