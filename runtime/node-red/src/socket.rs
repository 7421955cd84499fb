//! `/comms`: the WebSocket on which Node-RED sends notifications to its editor.
//!
//! Owns the handshake, the bounds and the few notifications that matter here. The handshake uses the same
//! HTTP client as all other requests, and so the same proxies and certificates.

use crate::client::{NodeRed, explain};
use futures::{SinkExt as _, StreamExt as _};
use http::header::{
    AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderValue, StatusCode};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use reqwest::Upgraded;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

/// Node-RED sends up to fifty notifications in one message.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// How long the handshake and each message to Node-RED may take. Node-RED does not respond to an unknown
/// upgrade.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long Node-RED may send nothing before it gets a ping, and how long it may take to respond. It sends a
/// heartbeat every 15 s.
const PING_INTERVAL: Duration = Duration::from_secs(25);

const DEPLOY_TOPIC: &str = "notification/runtime-deploy";

/// An open `/comms`, for the text messages of Node-RED.
pub struct Socket {
    inner: WebSocketStream<Upgraded>,
    pinged: bool,
}

/// An open `/comms`, parsed into the events that matter here.
pub struct Comms {
    socket: Socket,
}

/// A notification of Node-RED.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommsEvent {
    /// A flow was deployed, with this revision if Node-RED names it.
    Deployed(Option<String>),
    /// Node-RED refused the token, or required one.
    Refused,
    /// Any other notification.
    Other,
}

impl NodeRed {
    /// Opens `/comms`. Sends no credential except the given one.
    ///
    /// # Errors
    /// `NODE_RED_UNREACHABLE`, `NODE_RED_REFUSED`.
    pub async fn socket(&self, authorization: Option<&HeaderValue>) -> Result<Socket, ApiError> {
        let Some(url) = crate::address::join(&self.base, "/comms", None) else {
            return Err(self.not_node_red("its address cannot be used"));
        };
        let key = generate_key();
        let mut request = self
            .client
            .get(url)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let opened = timeout(SEND_TIMEOUT, async {
            let response = request.send().await.map_err(|error| match error.is_connect() {
                true => self.unreachable(explain(&error)),
                // Node-RED closes the connection of an unknown upgrade.
                false => self.no_comms(),
            })?;
            let status = response.status();
            if status == StatusCode::NOT_FOUND {
                return Err(self.no_comms());
            }
            if status != StatusCode::SWITCHING_PROTOCOLS {
                return Err(self.refused(status, b""));
            }
            let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT);
            if accepted.is_none_or(|accepted| *accepted != derive_accept_key(key.as_bytes())) {
                return Err(self.not_node_red("its WebSocket handshake is wrong"));
            }
            response.upgrade().await.map_err(|error| self.unreachable(explain(&error)))
        });
        let upgraded = opened.await.unwrap_or_else(|_| Err(self.no_comms()))?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let inner = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(limits)).await;
        Ok(Socket { inner, pinged: false })
    }

    /// Opens `/comms` for events. Sends the token of this process if Node-RED requires a login.
    ///
    /// # Errors
    /// As for [`NodeRed::socket`].
    pub async fn comms(&self) -> Result<Comms, ApiError> {
        let token = match &self.token {
            Some(token) if self.requires_login().await? => Some(token),
            _ => None,
        };
        let mut socket = self.socket(None).await?;
        // Without a token, Node-RED accepts the client after its first message.
        let first = match token {
            Some(token) => json!({"auth": token.expose_secret()}),
            None => json!({"subscribe": DEPLOY_TOPIC}),
        };
        if socket.send(first.to_string()).await.is_none() {
            return Err(self.unreachable("it closed its /comms"));
        }
        Ok(Comms { socket })
    }

    /// The error for a `/comms` that refused the token, or required one.
    #[must_use]
    pub fn comms_refused(&self) -> ApiError {
        self.refused(StatusCode::UNAUTHORIZED, b"")
    }

    fn no_comms(&self) -> ApiError {
        let text = format!(
            "Node-RED at {} does not open its /comms. Is the editor disabled (`disableEditor`)?",
            self.base
        );
        ApiError::new(ApiCode::NodeRedRefused, text)
    }
}

impl Comms {
    /// The events of the next message. None when the socket is closed or Node-RED stopped responding.
    pub async fn next(&mut self) -> Option<Vec<CommsEvent>> {
        Some(parse_events(&self.socket.receive().await?))
    }
}

impl Socket {
    /// The next text message. None when the socket is closed, Node-RED stopped responding, or a message is
    /// too large.
    pub async fn receive(&mut self) -> Option<String> {
        loop {
            match timeout(PING_INTERVAL, self.inner.next()).await {
                Ok(Some(Ok(message))) => {
                    self.pinged = false;
                    match message {
                        Message::Text(text) => return Some(text.as_str().to_owned()),
                        Message::Close(_) => return None,
                        // The library sends the pong with the next write.
                        Message::Ping(_) => self.write(None).await?,
                        _ => {}
                    }
                }
                Ok(Some(Err(_)) | None) => return None,
                Err(_) if self.pinged => return None,
                Err(_) => {
                    self.pinged = true;
                    self.write(Some(Message::Ping(bytes::Bytes::new()))).await?;
                }
            }
        }
    }

    /// Sends a text message. None if Node-RED does not accept it in time.
    pub async fn send(&mut self, text: String) -> Option<()> {
        self.write(Some(Message::Text(text.into()))).await
    }

    /// Only flushes without a message.
    async fn write(&mut self, message: Option<Message>) -> Option<()> {
        let written = async {
            match message {
                Some(message) => self.inner.send(message).await,
                None => self.inner.flush().await,
            }
        };
        timeout(SEND_TIMEOUT, written).await.ok()?.ok()
    }
}

/// A message that cannot be parsed is another event: any palette may send on this socket.
fn parse_events(text: &str) -> Vec<CommsEvent> {
    match serde_json::from_str(text) {
        Ok(Value::Array(notifications)) => notifications.iter().map(parse_event).collect(),
        Ok(Value::Object(reply)) if reply.get("auth").and_then(Value::as_str) == Some("fail") => {
            vec![CommsEvent::Refused]
        }
        _ => vec![CommsEvent::Other],
    }
}

fn parse_event(notification: &Value) -> CommsEvent {
    if notification.get("topic").and_then(Value::as_str) != Some(DEPLOY_TOPIC) {
        return CommsEvent::Other;
    }
    let revision = notification.pointer("/data/revision").and_then(Value::as_str);
    CommsEvent::Deployed(revision.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::{CommsEvent, parse_events};

    #[test]
    fn finds_deploys_and_refusals_among_other_messages() {
        let events = parse_events(
            r#"[{"topic":"hb","data":1},{"topic":"notification/runtime-deploy","data":{"revision":"abc"}},
                {"topic":"notification/runtime-deploy"},7,null]"#,
        );
        let deployed = |rev: Option<&str>| CommsEvent::Deployed(rev.map(str::to_owned));
        assert_eq!(
            events,
            [CommsEvent::Other, deployed(Some("abc")), deployed(None), CommsEvent::Other, CommsEvent::Other]
        );
        assert_eq!(parse_events(r#"{"auth":"fail"}"#), [CommsEvent::Refused]);
        for other in [r#"{"auth":"ok"}"#, "", "no JSON", "[[[", "null"] {
            assert_eq!(parse_events(other), [CommsEvent::Other], "{other}");
        }
    }
}
