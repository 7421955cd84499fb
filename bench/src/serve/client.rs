//! The clients of the servers. The benchmarks never measure them.

use super::server::{AGENT, TOKEN};
use crate::Failure;
use crate::world::runtime;
use futures::{SinkExt, StreamExt};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Subscribes to new events.
pub(crate) const SUBSCRIBE: &str = r#"{"type":"subscribe"}"#;

/// The beginning of every event.
pub(crate) const EVENT: &str = r#"{"type":"event","#;

/// The read buffer of a socket. It is small because this process has thousands of them.
const READ_BYTES: usize = 4096;

/// The time limit of any work of a client.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// Runs the work of a client. A stopped server must not block it forever.
pub(super) fn with_time_limit<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let limited = async { tokio::time::timeout(TIME_LIMIT, work).await };
    runtime()?.block_on(limited).map_err(|_| "a server did not answer")?
}

/// A socket of a sidecar's events, or of a bare server.
pub(crate) struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    pub(crate) async fn open(addr: SocketAddr) -> Result<Self, Failure> {
        Self::over(TcpStream::connect(addr).await?, addr).await
    }

    /// A socket with a small receive buffer in the system.
    pub(crate) async fn open_narrow(addr: SocketAddr) -> Result<Self, Failure> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4096)?;
        Self::over(socket.connect(addr).await?, addr).await
    }

    async fn over(stream: TcpStream, addr: SocketAddr) -> Result<Self, Failure> {
        stream.set_nodelay(true)?;
        let mut request = format!("ws://{addr}/events").into_client_request()?;
        request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {TOKEN}"))?);
        let config = WebSocketConfig::default().read_buffer_size(READ_BYTES);
        Ok(Self(client_async_with_config(request, stream, Some(config)).await?.0))
    }

    pub(crate) async fn send(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.0.send(Message::text(text)).await?)
    }

    pub(crate) async fn send_all(&mut self, texts: &[Utf8Bytes]) -> Result<(), Failure> {
        for text in texts {
            self.0.feed(Message::Text(text.clone())).await?;
        }
        Ok(self.0.flush().await?)
    }

    /// The next text.
    pub(crate) async fn receive(&mut self) -> Result<Utf8Bytes, Failure> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err("a socket was closed".into()),
            }
        }
    }

    /// Subscribes to new events and waits for the confirmation.
    pub(crate) async fn subscribe(&mut self) -> Result<(), Failure> {
        self.send(SUBSCRIBE).await?;
        // A sidecar sends `hello` first and `caught_up` last. A bare server sends the request back.
        loop {
            let text = self.receive().await?;
            if text.starts_with(r#"{"type":"caught_up""#) || text.as_str() == SUBSCRIBE {
                return Ok(());
            }
        }
    }
}

/// An HTTP connection for one request at a time.
pub(crate) struct HttpConnection {
    stream: TcpStream,
    host: String,
    buffer: Vec<u8>,
}

impl HttpConnection {
    pub(crate) async fn open(addr: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host: addr.to_string(), buffer: Vec::new() })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<String, Failure> {
        let host = &self.host;
        let text = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
        self.send(&text).await
    }

    /// Starts a node and does not wait for its end.
    pub(crate) async fn start(&mut self, node: &str) -> Result<String, Failure> {
        self.post_start(&format!(r#"{{"node":"{node}","wait":false}}"#)).await
    }

    /// Starts a node and waits for its end.
    pub(crate) async fn start_and_wait(&mut self, node: &str) -> Result<String, Failure> {
        let payload = if node == AGENT { r#","payload":"What is the tax?""# } else { "" };
        self.post_start(&format!(r#"{{"node":"{node}","wait":true{payload}}}"#)).await
    }

    async fn post_start(&mut self, body: &str) -> Result<String, Failure> {
        let (host, length) = (&self.host, body.len());
        let text = format!(
            "POST /api/runs HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.send(&text).await
    }

    /// Sends a request and gives the body of a successful response.
    async fn send(&mut self, text: &str) -> Result<String, Failure> {
        self.stream.write_all(text.as_bytes()).await?;
        let (is_success, end) = loop {
            if let Some(found) = parse_response(&self.buffer) {
                break found;
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("a connection was closed".into());
            }
        };
        let response: Vec<u8> = self.buffer.drain(..end).collect();
        let response = String::from_utf8(response)?;
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
        if is_success { Ok(body.to_owned()) } else { Err(format!("{head}\n{body}").into()) }
    }
}

/// Whether a response is a success, and its length, once it is complete.
fn parse_response(bytes: &[u8]) -> Option<(bool, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let is_success = lines.next()?.split(' ').nth(1)?.starts_with('2');
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then_some(value.trim())
    });
    let end = end + length.and_then(|length| length.parse::<usize>().ok()).unwrap_or_default();
    (bytes.len() >= end).then_some((is_success, end))
}

#[cfg(test)]
mod tests {
    use super::parse_response;

    #[test]
    fn parses_a_response_once_it_is_complete() {
        let bytes = b"HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\nbodyHTTP/1.1 404 Not Found\r\n\r\n";
        assert_eq!(parse_response(bytes), Some((true, 48)));
        assert_eq!(parse_response(&bytes[..47]), None);
        assert_eq!(parse_response(&bytes[48..]), Some((false, 26)));
    }
}
