//! Whoever talks to the servers of the section `serve`: never what is measured, so as plain as can be.

use crate::Failure;
use crate::serve_process::TOKEN;
use futures::{SinkExt, StreamExt};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Asks for events from now on.
pub(crate) const SUBSCRIBE: &str = r#"{"type":"subscribe"}"#;

/// How every event begins.
pub(crate) const EVENT: &str = r#"{"type":"event","#;

/// What a socket reads at once: there are thousands of them in this process.
const READ_BYTES: usize = 4096;

/// A socket of events, or of a bare server.
pub(crate) struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    pub(crate) async fn open(addr: SocketAddr) -> Result<Self, Failure> {
        Self::over(TcpStream::connect(addr).await?, addr).await
    }

    /// One for which the system keeps little that was not read.
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

    pub(crate) async fn say(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.0.send(Message::text(text)).await?)
    }

    pub(crate) async fn say_all(&mut self, texts: &[Utf8Bytes]) -> Result<(), Failure> {
        for text in texts {
            self.0.feed(Message::Text(text.clone())).await?;
        }
        Ok(self.0.flush().await?)
    }

    /// The next text.
    pub(crate) async fn hear(&mut self) -> Result<Utf8Bytes, Failure> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err("a socket was closed".into()),
            }
        }
    }

    /// Asks for what happens from now on, and waits until that is so.
    pub(crate) async fn subscribe(&mut self) -> Result<(), Failure> {
        self.say(SUBSCRIBE).await?;
        // A sidecar says hello first and that all was sent last; a bare server repeats the question.
        loop {
            let text = self.hear().await?;
            if text.starts_with(r#"{"type":"caught_up""#) || text.as_str() == SUBSCRIBE {
                return Ok(());
            }
        }
    }
}

/// A connection that is asked one thing at a time.
pub(crate) struct Line {
    stream: TcpStream,
    host: String,
    buffer: Vec<u8>,
}

impl Line {
    pub(crate) async fn open(addr: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host: addr.to_string(), buffer: Vec::new() })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<String, Failure> {
        let host = &self.host;
        let text = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
        self.ask(&text).await
    }

    /// Starts something, and waits until it is over if that is wanted.
    pub(crate) async fn start(&mut self, node: &str, wait: bool) -> Result<String, Failure> {
        let payload =
            if node == crate::serve_process::AGENT { r#","payload":"What is the tax?""# } else { "" };
        let body = format!(r#"{{"node":"{node}","wait":{wait}{payload}}}"#);
        let (host, length) = (&self.host, body.len());
        let text = format!(
            "POST /api/runs HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.ask(&text).await
    }

    /// The body of the answer, if all is well.
    async fn ask(&mut self, text: &str) -> Result<String, Failure> {
        self.stream.write_all(text.as_bytes()).await?;
        let (well, end) = loop {
            if let Some(found) = whole(&self.buffer) {
                break found;
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("a connection was closed".into());
            }
        };
        let answer: Vec<u8> = self.buffer.drain(..end).collect();
        let answer = String::from_utf8(answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        if well { Ok(body.to_owned()) } else { Err(format!("{head}\n{body}").into()) }
    }
}

/// Whether all is well and how long the answer is, once it is there.
fn whole(bytes: &[u8]) -> Option<(bool, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let well = lines.next()?.split(' ').nth(1)?.starts_with('2');
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then_some(value.trim())
    });
    let end = end + length.and_then(|length| length.parse::<usize>().ok()).unwrap_or_default();
    (bytes.len() >= end).then_some((well, end))
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn an_answer_is_as_long_as_it_says() {
        let bytes = b"HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\n\r\nbodyHTTP/1.1 404 Not Found\r\n\r\n";
        assert_eq!(whole(bytes), Some((true, 48)));
        assert_eq!(whole(&bytes[..47]), None);
        assert_eq!(whole(&bytes[48..]), Some((false, 26)));
    }
}
