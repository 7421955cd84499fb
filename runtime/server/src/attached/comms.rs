//! Forwards `ws /comms` of the Redflow UI to the attached Node-RED: text messages of bounded size, both ways.
//!
//! Never sends a token of this sidecar to Node-RED.

use super::proxy::node_red_authorization;
use crate::app::App;
use crate::peer::{self, CloseReason, IdleTimer, Peer, UpgradeRequest};
use crate::response::{ApiResult, Problem};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::api::{ApiError, Scope};
use redflow_contract::code::ApiCode;
use redflow_contract::stream::COMMS_PROTOCOL;
use redflow_node_red::Socket;
use std::sync::Arc;

pub(crate) async fn comms(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    request: UpgradeRequest,
) -> ApiResult {
    let upgrade = peer::upgrade(&app, request)?.protocols([COMMS_PROTOCOL]);
    // The first message is for Node-RED, so the client must have authenticated before it.
    app.access.require(&caller, Scope::Read)?;
    let Some(attached) = app.attached.get() else { return Err(Problem::internal()) };
    let socket = attached.node_red.socket(node_red_authorization(&caller, &headers)).await?;
    Ok(upgrade.on_upgrade(move |client| async move {
        let mut peer = Peer::new(app, caller, client);
        let reason = forward_messages(&mut peer, socket).await;
        peer.close(reason, |_| None).await;
    }))
}

/// Forwards messages until one side has closed its socket.
async fn forward_messages(peer: &mut Peer, mut node_red: Socket) -> CloseReason {
    loop {
        if let Err(reason) = peer.check_token() {
            return reason;
        }
        let forwarded = tokio::select! {
            biased;
            event = peer.next_event(IdleTimer::Running) => match peer.handle(event).await {
                Ok(Some(text)) => node_red.send(text.as_str().to_owned()).await.ok_or_else(node_red_closed),
                Ok(None) => Ok(()),
                Err(reason) => Err(reason),
            },
            text = node_red.receive() => match text {
                Some(text) => peer.send(text).await,
                None => Err(node_red_closed()),
            },
        };
        if let Err(reason) = forwarded {
            return reason;
        }
    }
}

fn node_red_closed() -> CloseReason {
    ApiError::new(ApiCode::NodeRedUnreachable, "Node-RED closed its /comms socket.").into()
}
