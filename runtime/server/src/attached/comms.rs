//! `/comms` of the Node-RED beside, for the Redflow UI: text by text in both directions, each bounded.
//!
//! Owns nothing but the passing on. What is said is Node-RED's and the caller's; our token is not among it.

use super::proxy::for_node_red;
use crate::answer::{Answer, Problem};
use crate::peer::{self, End, Peer};
use crate::sidecar::App;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
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
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer {
    let upgrade = peer::upgrade(&app, asked)?.protocols([COMMS_PROTOCOL]);
    // What is said first is for Node-RED, so whoever comes in has shown before who it is.
    app.access.require(&caller, Scope::Read)?;
    let Some(beside) = app.beside.get() else { return Err(Problem::internal()) };
    let socket = beside.node_red.socket(for_node_red(&caller, &headers)).await?;
    Ok(upgrade.on_upgrade(move |ours| async move {
        let mut peer = Peer::new(app, caller, ours);
        let end = pass_on(&mut peer, socket).await;
        peer.close(end, |_| None).await;
    }))
}

/// Until one of both has gone.
async fn pass_on(peer: &mut Peer, mut node_red: Socket) -> End {
    loop {
        if let Err(end) = peer.check_token() {
            return end;
        }
        let passed = tokio::select! {
            biased;
            sign = peer.sign(true) => match peer.take(sign).await {
                Ok(Some(text)) => node_red.say(text.as_str().to_owned()).await.ok_or_else(gone),
                Ok(None) => Ok(()),
                Err(end) => Err(end),
            },
            text = node_red.hear() => match text {
                Some(text) => peer.say(text).await,
                None => Err(gone()),
            },
        };
        if let Err(end) = passed {
            return end;
        }
    }
}

fn gone() -> End {
    ApiError::new(ApiCode::NodeRedUnreachable, "Node-RED closed its /comms.").into()
}
