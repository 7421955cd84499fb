//! `/comms`: the socket on which Node-RED tells its editor what happens.
//!
//! Owns the handshake, the bounds and the few words of it that matter here. The handshake is a request of the same HTTP
//! client as all others, so proxies and certificates count for it as well.

use crate::client::{NodeRed, why};
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

/// Bytes of a message of Node-RED: fifty notices of its nodes.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// How long the handshake and each message to Node-RED may take. An upgrade that nobody takes is not answered.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long Node-RED may say nothing before it is asked whether it is there; it has as long again to answer. It says
/// something every 15 s by itself.
const SILENCE: Duration = Duration::from_secs(25);

/// What a deploy is told on.
const DEPLOYED: &str = "notification/runtime-deploy";

/// A socket to Node-RED.
pub struct Socket {
    inner: WebSocketStream<Upgraded>,
    asked: bool,
}

/// What Node-RED tells of deploys.
pub struct Comms {
    socket: Socket,
}

/// What was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommsEvent {
    /// A flow has been deployed; what Node-RED calls it, if it says so.
    DeployedFlow(Option<String>),
    /// The token was refused, or there was none.
    Refused,
    /// Something else.
    Other,
}

impl NodeRed {
    /// Opens `/comms` and shows nothing but what is given.
    ///
    /// # Errors
    /// `NODE_RED_UNREACHABLE`, `NODE_RED_REFUSED`.
    pub async fn socket(&self, authorization: Option<&HeaderValue>) -> Result<Socket, ApiError> {
        let Some(url) = crate::address::below(&self.base, "/comms", None) else {
            return Err(self.foreign("its address cannot be used"));
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
        let opened = timeout(PATIENCE, async {
            let response = request.send().await.map_err(|error| match error.is_connect() {
                true => self.unreachable(why(&error)),
                // Node-RED cuts off an upgrade that nobody takes.
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
                return Err(self.foreign("it does not open a socket as it should"));
            }
            response.upgrade().await.map_err(|error| self.unreachable(why(&error)))
        });
        let upgraded = opened.await.unwrap_or_else(|_| Err(self.no_comms()))?;
        let bounds = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let inner = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(bounds)).await;
        Ok(Socket { inner, asked: false })
    }

    /// Opens `/comms` to hear of deploys, with this process' token where Node-RED asks who somebody is.
    ///
    /// # Errors
    /// As for [`NodeRed::socket`].
    pub async fn comms(&self) -> Result<Comms, ApiError> {
        let shows = match &self.token {
            Some(token) if self.wants_users().await? => Some(token),
            _ => None,
        };
        let mut socket = self.socket(None).await?;
        // Whoever may look without a token is let in when it says something.
        let first = match shows {
            Some(token) => json!({"auth": token.expose_secret()}),
            None => json!({"subscribe": DEPLOYED}),
        };
        if socket.say(first.to_string()).await.is_none() {
            return Err(self.unreachable("its /comms was closed"));
        }
        Ok(Comms { socket })
    }

    /// That `/comms` refused the token, or that there was none.
    #[must_use]
    pub fn comms_refused(&self) -> ApiError {
        self.refused(StatusCode::UNAUTHORIZED, b"")
    }

    fn no_comms(&self) -> ApiError {
        let text = format!("Node-RED at {} does not open its /comms, as with `disableEditor`.", self.base);
        ApiError::new(ApiCode::NodeRedRefused, text)
    }
}

impl Comms {
    /// The next thing that is told; none when the socket is closed or Node-RED says nothing any more.
    pub async fn next(&mut self) -> Option<Vec<CommsEvent>> {
        Some(heard(&self.socket.hear().await?))
    }
}

impl Socket {
    /// The next text; none when it is closed, Node-RED says nothing any more, or says too much at once.
    pub async fn hear(&mut self) -> Option<String> {
        loop {
            match timeout(SILENCE, self.inner.next()).await {
                Ok(Some(Ok(message))) => {
                    self.asked = false;
                    match message {
                        Message::Text(text) => return Some(text.as_str().to_owned()),
                        Message::Close(_) => return None,
                        // The library answers pings with what is written next.
                        Message::Ping(_) => self.put(None).await?,
                        _ => {}
                    }
                }
                Ok(Some(Err(_)) | None) => return None,
                Err(_) if self.asked => return None,
                Err(_) => {
                    self.asked = true;
                    self.put(Some(Message::Ping(bytes::Bytes::new()))).await?;
                }
            }
        }
    }

    /// Says something; none if it is not taken in time.
    pub async fn say(&mut self, text: String) -> Option<()> {
        self.put(Some(Message::Text(text.into()))).await
    }

    async fn put(&mut self, message: Option<Message>) -> Option<()> {
        let written = async {
            match message {
                Some(message) => self.inner.send(message).await,
                None => self.inner.flush().await,
            }
        };
        timeout(PATIENCE, written).await.ok()?.ok()
    }
}

/// What matters of a message. What cannot be read means nothing: a palette may say anything here.
fn heard(text: &str) -> Vec<CommsEvent> {
    match serde_json::from_str(text) {
        Ok(Value::Array(notices)) => notices.iter().map(notice).collect(),
        Ok(Value::Object(said)) if said.get("auth").and_then(Value::as_str) == Some("fail") => {
            vec![CommsEvent::Refused]
        }
        _ => vec![CommsEvent::Other],
    }
}

fn notice(notice: &Value) -> CommsEvent {
    if notice.get("topic").and_then(Value::as_str) != Some(DEPLOYED) {
        return CommsEvent::Other;
    }
    let revision = notice.pointer("/data/revision").and_then(Value::as_str);
    CommsEvent::DeployedFlow(revision.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::{CommsEvent, heard};

    #[test]
    fn deploys_and_refusals_are_heard_among_all_else() {
        let told = heard(
            r#"[{"topic":"hb","data":1},{"topic":"notification/runtime-deploy","data":{"revision":"abc"}},
                {"topic":"notification/runtime-deploy"},7,null]"#,
        );
        let deployed = |rev: Option<&str>| CommsEvent::DeployedFlow(rev.map(str::to_owned));
        assert_eq!(
            told,
            [CommsEvent::Other, deployed(Some("abc")), deployed(None), CommsEvent::Other, CommsEvent::Other]
        );
        assert_eq!(heard(r#"{"auth":"fail"}"#), [CommsEvent::Refused]);
        for other in [r#"{"auth":"ok"}"#, "", "no JSON", "[[[", "null"] {
            assert_eq!(heard(other), [CommsEvent::Other], "{other}");
        }
    }
}
