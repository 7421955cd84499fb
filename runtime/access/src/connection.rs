//! One connection: its socket and its place among those that may be open.
//!
//! Owns what the HTTP library leaves to its transport: a peer that takes nothing is cut off, a last answer is not
//! torn down by a reset, and the answers the library gives by itself, which have no body, get one with a code. An
//! upgrade takes the line along, so a socket keeps its place. Never reads what a request means.

use crate::framing::{self, LengthLines};
use crate::settings::AccessSettings;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

/// The most bytes that are thrown away while a connection closes.
const MAX_LINGER_BYTES: usize = 1024 * 1024;

/// The longest answer of the HTTP library's own.
const MAX_BARE_BYTES: usize = 256;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
    lengths: LengthLines,
    upgraded: bool,
    /// Runs while the peer takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
    write_stall: Duration,
    /// What is written in the place of an answer without a body, and how much of it is.
    instead: Option<(Vec<u8>, usize)>,
    /// Runs while a closed connection is still read from.
    closing: Option<Pin<Box<Sleep>>>,
    linger: Duration,
    thrown_away: usize,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, place: OwnedSemaphorePermit, settings: &AccessSettings) -> Self {
        Self {
            stream,
            _place: place,
            lengths: LengthLines::default(),
            upgraded: false,
            stall: None,
            write_stall: settings.write_stall,
            instead: None,
            closing: None,
            linger: settings.linger,
            thrown_away: 0,
        }
    }

    pub(crate) fn length_counter(&self) -> Arc<AtomicU64> {
        self.lengths.counter()
    }

    /// Whether an answer can begin here: nothing half written, and not closed.
    pub(crate) fn can_answer(&self) -> bool {
        self.stall.is_none() && self.instead.is_none() && self.closing.is_none()
    }

    /// Does a write, and cuts the peer off if it takes nothing for too long.
    fn patiently(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), cx) {
            self.stall = None;
            return Poll::Ready(written);
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(self.write_stall)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Writes what stands in the place of `bare`, to the end.
    fn write_instead(&mut self, cx: &mut Context<'_>, bare: usize) -> Poll<io::Result<usize>> {
        while let Some((answer, from)) = self.instead.take() {
            let written = self.patiently(cx, |stream, cx| stream.poll_write(cx, &answer[from..]));
            if written.is_pending() {
                self.instead = Some((answer, from));
                return Poll::Pending;
            }
            let to = from + ready!(written)?;
            self.instead = (to < answer.len()).then_some((answer, to));
        }
        Poll::Ready(Ok(bare))
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
            self.lengths.read(&into.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.instead.is_none() && !self.upgraded {
            self.instead = coded(bytes).map(|answer| (answer, 0));
            self.upgraded = bytes.starts_with(b"HTTP/1.1 101 ");
        }
        if self.instead.is_some() {
            return self.write_instead(cx, bytes.len());
        }
        self.patiently(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match parts {
            // An answer without a body is in one part.
            [one] => self.poll_write(cx, one),
            _ => self.patiently(cx, |stream, cx| stream.poll_write_vectored(cx, parts)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Says that nothing follows, and reads until the peer says the same, or for a while: to close a socket that
    /// has unread bytes resets it, and the peer may lose the answer.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.closing = Some(Box::pin(sleep(self.linger)));
        }
        let mut bytes = [0; 4096];
        while self.thrown_away < MAX_LINGER_BYTES {
            let mut into = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(cx, &mut into) {
                Poll::Ready(Ok(())) if !into.filled().is_empty() => self.thrown_away += into.filled().len(),
                Poll::Ready(_) => break,
                Poll::Pending => {
                    let over = self.closing.as_mut().map(|closing| closing.as_mut().poll(cx));
                    return if over == Some(Poll::Pending) { Poll::Pending } else { Poll::Ready(Ok(())) };
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// An answer with a body in the place of one the HTTP library gives by itself to a request it cannot read.
fn coded(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() > MAX_BARE_BYTES || !bytes.starts_with(b"HTTP/1.1 4") {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.strip_prefix("HTTP/1.1 ")?.strip_suffix("\r\n\r\n")?.split("\r\n");
    let status = lines.next()?;
    let own =
        |line: &str| line == "connection: close" || line == "content-length: 0" || line.starts_with("date: ");
    if !lines.all(own) {
        return None;
    }
    let why = match status.split(' ').next()? {
        "400" => "The request is not well-formed HTTP/1.1: look at its first line and its headers.",
        "414" => "The address of the request is too long: shorten it.",
        "431" => "The head of the request is too large: send fewer or shorter headers.",
        _ => return None,
    };
    Some(answer(status, &ApiError::new(ApiCode::RequestInvalid, why)))
}

/// A whole answer, after which the connection is closed.
pub(crate) fn answer(status: &str, error: &ApiError) -> Vec<u8> {
    let body = framing::json(error);
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n\
         {body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::coded;

    #[test]
    fn only_answers_of_the_library_itself_get_a_body() {
        let date = "date: Mon, 01 Jan 2024 00:00:00 GMT\r\n";
        let bare = |status: &str, more: &str| {
            format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n{more}{date}\r\n")
                .into_bytes()
        };
        for status in ["400 Bad Request", "414 URI Too Long", "431 Request Header Fields Too Large"] {
            let answer = String::from_utf8(coded(&bare(status, "")).unwrap()).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}");
            assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
            assert!(body.contains("\"REQUEST_INVALID\""), "{body}");
        }
        assert_eq!(coded(&bare("404 Not Found", "")), None);
        assert_eq!(coded(&bare("400 Bad Request", "x-own: 1\r\n")), None);
        assert_eq!(coded(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n"), None);
        assert_eq!(coded(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n{}"), None);
        assert_eq!(coded(&[0x81, 5, b'h']), None);
    }
}
