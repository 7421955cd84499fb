//! A test client that sends exact bytes: HTTP by hand, WebSockets with the library.

use futures::{SinkExt as _, StreamExt as _};
use redflow_contract::stream::{EventsMessage, EventsRequest, StreamEvent};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// The time limit of every wait in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// Asserts the status and gives the body.
    pub(crate) fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Asserts that the response is an error with this status and code.
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{self:?}");
        assert!(!self.json()["message"].as_str().unwrap_or_default().is_empty());
    }
}

/// Sends bytes and reads until the server closes the connection.
pub(crate) async fn raw(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    // The server may close the connection before everything was sent.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    answer
}

/// Parses an HTTP response.
pub(crate) fn reply(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| {
        panic!("no answer: {}", String::from_utf8_lossy(bytes));
    });
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let rest = &bytes[end + 4..];
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunk(rest) } else { rest.to_vec() };
    Reply { status, head, body }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        rest = &rest[end + 2..];
        if size == 0 || rest.len() < size {
            break;
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
    body
}

/// An HTTP request.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) addr: SocketAddr,
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(addr: SocketAddr, method: &str, path: &str) -> Self {
        let headers =
            vec![("host".to_owned(), addr.to_string()), ("connection".to_owned(), "close".to_owned())];
        Self { addr, line: format!("{method} {path} HTTP/1.1"), headers, body: Vec::new() }
    }

    /// Sets a header, replacing an earlier value.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(self, value: Value) -> Self {
        self.header("content-type", "application/json").bytes(value.to_string().into_bytes())
    }

    pub(crate) fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = bytes.into();
        let length = self.body.len().to_string();
        self.header("content-length", &length)
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        let mut bytes = (text + "\r\n").into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    pub(crate) async fn send(self) -> Reply {
        reply(&raw(self.addr, &self.text()).await)
    }
}

/// A WebSocket, by default to `/events`.
pub(crate) struct Socket {
    pub(crate) stream: WebSocketStream<TcpStream>,
}

impl Socket {
    /// Opens `/events`.
    ///
    /// # Errors
    /// The response, if the server refuses.
    pub(crate) async fn try_open(addr: SocketAddr, headers: &[(&str, &str)]) -> Result<Self, Reply> {
        Self::try_open_at(addr, "/events", headers).await
    }

    /// Opens a socket at a path.
    ///
    /// # Errors
    /// The response, if the server refuses.
    pub(crate) async fn try_open_at(
        addr: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, Reply> {
        let mut request = http::Request::builder()
            .uri(format!("ws://{addr}{path}"))
            .header("host", addr.to_string())
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        for (name, value) in headers {
            request.headers_mut().unwrap().insert(
                http::HeaderName::try_from(*name).unwrap(),
                http::HeaderValue::try_from(*value).unwrap(),
            );
        }
        let tcp = TcpStream::connect(addr).await.unwrap();
        match timeout(PATIENCE, client_async(request.body(()).unwrap(), tcp)).await.unwrap() {
            Ok((stream, _)) => Ok(Self { stream }),
            Err(Error::Http(answer)) => Err(Reply {
                status: answer.status().as_u16(),
                head: String::new(),
                body: answer.into_body().unwrap_or_default(),
            }),
            Err(why) => panic!("{why}"),
        }
    }

    /// Opens `/events` with a token and receives `hello`.
    pub(crate) async fn open(addr: SocketAddr, token: &str) -> Self {
        let bearer = format!("Bearer {token}");
        let mut socket = Self::try_open(addr, &[("authorization", &bearer)]).await.unwrap();
        assert!(matches!(socket.hear().await, EventsMessage::Hello { .. }));
        socket
    }

    pub(crate) async fn say(&mut self, request: &EventsRequest) {
        self.send(Message::text(serde_json::to_string(request).unwrap())).await;
    }

    pub(crate) async fn send(&mut self, message: Message) {
        self.stream.send(message).await.unwrap();
    }

    pub(crate) async fn subscribe(&mut self, after: Option<&str>) {
        let after = after.map(str::to_owned);
        self.say(&EventsRequest::Subscribe { after, runs: None, types: None, deltas: false }).await;
    }

    /// Receives the next message; none if the socket is closed.
    pub(crate) async fn next(&mut self) -> Option<EventsMessage> {
        loop {
            match timeout(PATIENCE, self.stream.next()).await.unwrap()?.ok()? {
                Message::Text(text) => {
                    return Some(serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}")));
                }
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    pub(crate) async fn hear(&mut self) -> EventsMessage {
        self.next().await.unwrap()
    }

    /// Receives the next event.
    pub(crate) async fn event(&mut self) -> (String, StreamEvent) {
        loop {
            match self.hear().await {
                EventsMessage::Event { cursor, event } => return (cursor, *event),
                EventsMessage::CaughtUp { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Receives events up to and including the first that matches.
    pub(crate) async fn until(
        &mut self,
        wanted: impl Fn(&StreamEvent) -> bool,
    ) -> Vec<(String, StreamEvent)> {
        let mut events = Vec::new();
        loop {
            let (cursor, event) = self.event().await;
            let last = wanted(&event);
            events.push((cursor, event));
            if last {
                return events;
            }
        }
    }
}
