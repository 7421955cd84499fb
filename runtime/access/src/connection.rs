//! One TCP connection, and its permit among those that may be open.
//!
//! Owns what hyper leaves to its transport. It closes a connection whose peer accepts no bytes. It lingers
//! after the last response, so that a reset does not destroy it. hyper's own error responses have no body: it
//! gives them one with a code. An upgraded socket keeps its connection, and so its permit. Never reads what a
//! request means.

use crate::framing::{RequestFraming, to_json};
use crate::settings::AccessSettings;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

/// The most bytes to discard while a connection closes.
const MAX_LINGER_BYTES: usize = 1024 * 1024;

/// The status lines of hyper's own error responses, and what each means.
const BARE_ERRORS: [(&str, &str); 3] = [
    ("400 Bad Request", "The request is not well-formed HTTP/1.1: check its first line and its headers."),
    ("414 URI Too Long", "The address of the request is too long: shorten it."),
    (
        "431 Request Header Fields Too Large",
        "The head of the request is too large: send fewer or shorter headers.",
    ),
];

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
    framing: Arc<RequestFraming>,
    /// The bytes are no longer HTTP.
    upgraded: bool,
    write_stall: Duration,
    /// Runs while the peer accepts no bytes.
    stall_timer: Option<Pin<Box<Sleep>>>,
    /// What remains of the response that replaces one of hyper's own.
    replacement: Vec<u8>,
    linger: Duration,
    /// Runs while a closed connection is still read.
    linger_timer: Option<Pin<Box<Sleep>>>,
    discarded_bytes: usize,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, permit: OwnedSemaphorePermit, settings: &AccessSettings) -> Self {
        Self {
            stream,
            _permit: permit,
            framing: Arc::default(),
            upgraded: false,
            write_stall: settings.write_stall,
            stall_timer: None,
            replacement: Vec::new(),
            linger: settings.linger,
            linger_timer: None,
            discarded_bytes: 0,
        }
    }

    pub(crate) fn framing(&self) -> Arc<RequestFraming> {
        Arc::clone(&self.framing)
    }

    /// Whether a response can begin: no other one is half written, and the connection is open.
    pub(crate) fn can_respond(&self) -> bool {
        self.stall_timer.is_none() && self.replacement.is_empty() && self.linger_timer.is_none()
    }

    /// Writes, and fails when the peer accepts nothing for too long.
    fn write_or_stall(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), cx) {
            self.stall_timer = None;
            return Poll::Ready(written);
        }
        let timer = self.stall_timer.get_or_insert_with(|| Box::pin(sleep(self.write_stall)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn write_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.replacement.is_empty() {
            let mut bytes = std::mem::take(&mut self.replacement);
            let written = self.write_or_stall(cx, |stream, cx| stream.poll_write(cx, &bytes));
            if let Poll::Ready(Ok(count)) = written {
                bytes.drain(..count);
            }
            self.replacement = bytes;
            ready!(written)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        if !self.upgraded {
            self.framing.scan(&into.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.replacement.is_empty() && !self.upgraded {
            self.replacement = replace_bare_error(bytes).unwrap_or_default();
            self.upgraded = bytes.starts_with(b"HTTP/1.1 101 ");
        }
        if self.replacement.is_empty() {
            return self.write_or_stall(cx, |stream, cx| stream.poll_write(cx, bytes));
        }
        ready!(self.write_replacement(cx))?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match parts {
            // hyper writes a response without a body in one part.
            [one] => self.poll_write(cx, one),
            _ => self.write_or_stall(cx, |stream, cx| stream.poll_write_vectored(cx, parts)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Closes the sending half, then reads until the peer closes too or the linger time is over. Closing a
    /// socket with unread bytes resets it, and the peer may lose the last response.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger_timer.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.linger_timer = Some(Box::pin(sleep(self.linger)));
        }
        let mut bytes = [0; 4096];
        while self.discarded_bytes < MAX_LINGER_BYTES {
            let mut into = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(cx, &mut into) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() => {
                    self.discarded_bytes += into.filled().len();
                }
                Poll::Ready(_) => break,
                Poll::Pending => {
                    let timer = self.linger_timer.as_mut();
                    return timer.map_or(Poll::Ready(()), |timer| timer.as_mut().poll(cx)).map(Ok);
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A response with a code instead of the bare one that hyper writes when it cannot read a request.
fn replace_bare_error(bytes: &[u8]) -> Option<Vec<u8>> {
    let rest = bytes.strip_prefix(b"HTTP/1.1 ")?;
    let (status, message) = BARE_ERRORS.iter().find(|(status, _)| rest.starts_with(status.as_bytes()))?;
    let mut headers = std::str::from_utf8(rest).ok()?.strip_suffix("\r\n\r\n")?.split("\r\n").skip(1);
    let is_bare = headers.all(|header| {
        header == "connection: close" || header == "content-length: 0" || header.starts_with("date: ")
    });
    is_bare.then(|| final_response(status, &ApiError::new(ApiCode::RequestInvalid, *message)))
}

/// The bytes of a response that ends its connection.
pub(crate) fn final_response(status: &str, error: &ApiError) -> Vec<u8> {
    let body = to_json(error);
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n\
         {body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::replace_bare_error;

    #[test]
    fn only_error_responses_of_hyper_itself_get_a_body() {
        let date = "date: Mon, 01 Jan 2024 00:00:00 GMT\r\n";
        let bare = |status: &str, more: &str| {
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n{more}{date}\r\n")
                .into_bytes()
        };
        for status in ["400 Bad Request", "414 URI Too Long", "431 Request Header Fields Too Large"] {
            let response = String::from_utf8(replace_bare_error(&bare(status, "")).unwrap()).unwrap();
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
            assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
            assert!(body.contains("\"REQUEST_INVALID\""), "{body}");
        }
        assert_eq!(replace_bare_error(&bare("404 Not Found", "")), None);
        assert_eq!(replace_bare_error(&bare("400 Bad Request", "x-own: 1\r\n")), None);
        assert_eq!(replace_bare_error(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n"), None);
        assert_eq!(replace_bare_error(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n{}"), None);
        assert_eq!(replace_bare_error(&[0x81, 5, b'h']), None);
    }
}
