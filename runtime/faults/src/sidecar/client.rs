//! A blocking client of the sidecar: one connection per request, and the WebSocket of events.
//!
//! Half a response is an error: a sidecar that is killed leaves such responses behind.

use redflow_contract::bridge::BRIDGE_PROTOCOL;
use redflow_contract::stream::{COMMS_PROTOCOL, EVENTS_PROTOCOL};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::{HeaderMap, HeaderValue};
use tungstenite::{Error, HandshakeError, Message, WebSocket};
use ureq::Agent;

/// The only token that the sidecar accepts.
pub(super) const TOKEN: &str = "a-token-for-the-faults-of-the-sidecar";

/// The time limit of a request: longer than a sidecar stays alive after it stopped at a failpoint.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// How long a socket waits for a message.
const RECEIVE_LIMIT: Duration = Duration::from_millis(50);

/// How long a socket may say nothing after a hostile message.
const SILENCE: Duration = Duration::from_millis(200);

/// A whole response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// A client of the sidecar at an address.
#[derive(Debug, Clone)]
pub(super) struct Client {
    address: SocketAddr,
    agent: Agent,
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST_LIMIT))
            // A connection that is kept would belong to a sidecar that was killed.
            .max_idle_connections(0)
            .proxy(None);
        Self { address, agent: config.build().into() }
    }

    pub(super) fn get(&self, path: &str) -> Result<Response, String> {
        read(self.agent.get(self.url(path)).header("authorization", bearer()).call())
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Response, String> {
        self.post_with(path, &[], body)
    }

    /// Reads a text that is no JSON.
    pub(super) fn get_text(&self, path: &str) -> Result<String, String> {
        let response = self.agent.get(self.url(path)).header("authorization", bearer()).call();
        let response = response.and_then(|mut response| response.body_mut().read_to_string());
        response.map_err(|error| error.to_string())
    }

    /// Posts any text as JSON.
    pub(super) fn post_text(&self, path: &str, body: &str) -> Result<Response, String> {
        let request = self.agent.post(self.url(path)).header("authorization", bearer());
        read(request.content_type("application/json").send(body))
    }

    /// Sends a text as the first message of a socket. Returns the code with which the sidecar closes it, or a word for
    /// another end.
    pub(super) fn first_frame(&self, path: &str, text: &str) -> Result<String, String> {
        let protocol = match path {
            "/bridge" => BRIDGE_PROTOCOL,
            "/comms" => COMMS_PROTOCOL,
            _ => EVENTS_PROTOCOL,
        };
        let Ok(EventSocket(mut socket)) = self.open(path, protocol) else {
            return Err(format!("{path} was not opened"));
        };
        // The sidecar may close the socket before it has read all.
        let _ = socket.send(Message::text(text));
        // The editor's socket ignores what it does not know. The others answer, and a debug build needs seconds for 48 MB.
        let end = Instant::now() + if path == "/comms" { SILENCE } else { REQUEST_LIMIT };
        while Instant::now() < end {
            match socket.read() {
                Ok(Message::Close(frame)) => {
                    return Ok(frame.map_or_else(|| "closed".to_owned(), |frame| frame.reason.to_string()));
                }
                Err(Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return Ok("closed".to_owned()),
                Ok(_) => {}
            }
        }
        Ok("ignored".to_owned())
    }

    /// Starts a node with an idempotency key.
    pub(super) fn start(&self, key: &str, node: &str) -> Result<Response, String> {
        self.post_with("/api/runs", &[("idempotency-key", key)], &json!({"node": node, "payload": key}))
    }

    fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Result<Response, String> {
        let mut request = self.agent.post(self.url(path)).header("authorization", bearer());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read(request.content_type("application/json").send(body.to_string()))
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Opens the WebSocket of events.
    pub(super) fn open_events(&self) -> Result<EventSocket, ConnectError> {
        self.open("/events", EVENTS_PROTOCOL)
    }

    fn open(&self, path: &str, protocol: &'static str) -> Result<EventSocket, ConnectError> {
        let unreachable = |error: std::io::Error| ConnectError::Unreachable(error.to_string());
        let refused = |error: Error| ConnectError::Refused(error.to_string());
        let stream = TcpStream::connect(self.address).map_err(unreachable)?;
        stream.set_read_timeout(Some(REQUEST_LIMIT)).map_err(unreachable)?;
        let mut request = format!("ws://{}{path}", self.address).into_client_request().map_err(refused)?;
        set_headers(request.headers_mut(), protocol);
        let socket = match tungstenite::client(request, stream) {
            Ok((socket, _)) => socket,
            Err(HandshakeError::Failure(error @ Error::Http(_))) => return Err(refused(error)),
            // The sidecar was killed during the handshake.
            Err(error) => return Err(ConnectError::Unreachable(error.to_string())),
        };
        socket.get_ref().set_read_timeout(Some(RECEIVE_LIMIT)).map_err(unreachable)?;
        Ok(EventSocket(socket))
    }
}

fn bearer() -> String {
    format!("Bearer {TOKEN}")
}

fn set_headers(headers: &mut HeaderMap, protocol: &'static str) {
    if let Ok(bearer) = HeaderValue::try_from(bearer()) {
        headers.insert("authorization", bearer);
    }
    headers.insert("sec-websocket-protocol", HeaderValue::from_static(protocol));
}

fn read(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Response, String> {
    let mut response = response.map_err(|error| error.to_string())?;
    let bytes =
        response.body_mut().with_config().limit(u64::MAX).read_to_vec().map_err(|error| error.to_string())?;
    let body = serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", response.status()))?;
    Ok(Response { status: response.status().as_u16(), body })
}

/// Why a socket was not opened.
pub(super) enum ConnectError {
    /// No sidecar listens, or it ended during the handshake.
    Unreachable(String),
    /// The sidecar refused the socket.
    Refused(String),
}

/// What a socket received.
pub(super) enum Received {
    Message(Value),
    /// Nothing in time.
    Nothing,
    Closed,
}

/// The WebSocket of events.
pub(super) struct EventSocket(WebSocket<TcpStream>);

impl EventSocket {
    /// Subscribes to all events after a cursor, or without one to new events. A failure shows at the next
    /// [`Self::receive`].
    pub(super) fn subscribe(&mut self, after: Option<&str>) {
        let mut request = json!({"type": "subscribe"});
        if let Some(after) = after {
            request["after"] = json!(after);
        }
        let _ = self.0.send(Message::text(request.to_string()));
    }

    /// The next message. The library answers pings.
    pub(super) fn receive(&mut self) -> Result<Received, String> {
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => {
                    let message = serde_json::from_str(&text).map_err(|error| error.to_string())?;
                    return Ok(Received::Message(message));
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(Message::Close(_)) => return Ok(Received::Closed),
                Ok(other) => return Err(format!("a frame of another kind: {other:?}")),
                Err(Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(Received::Nothing);
                }
                Err(Error::Protocol(error)) if !is_reset(&error) => return Err(error.to_string()),
                Err(_) => return Ok(Received::Closed),
            }
        }
    }
}

/// A killed sidecar ends a socket without the closing handshake.
fn is_reset(error: &tungstenite::error::ProtocolError) -> bool {
    matches!(error, tungstenite::error::ProtocolError::ResetWithoutClosingHandshake)
}

#[cfg(test)]
mod tests {
    use super::Client;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    #[test]
    fn half_a_response_is_an_error() {
        let whole = "HTTP/1.1 409 Conflict\r\ncontent-length: 9\r\n\r\n{\"a\": 1 }";
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::new(listener.local_addr().unwrap());
        let cuts = (0..=whole.len()).step_by(7).chain([whole.len() - 1]);
        for cut in cuts {
            let response = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let _ = stream.read(&mut [0; 1024]).unwrap();
                    stream.write_all(&whole.as_bytes()[..cut]).unwrap();
                });
                client.get("/api/runs")
            });
            assert!(response.is_err(), "{cut}: {response:?}");
        }
        let response = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]).unwrap();
                stream.write_all(whole.as_bytes()).unwrap();
            });
            client.get("/api/runs").unwrap()
        });
        assert_eq!((response.status, response.body["a"].as_u64()), (409, Some(1)));
    }
}
