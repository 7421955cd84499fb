//! HTTP and the socket of events, by hand: one request per connection, one frame per message.
//!
//! Owns the bytes. Half an answer is no answer: a peer that is killed leaves such things behind.

use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What is sent with every request, and what the sidecar is told to expect.
pub(super) const TOKEN: &str = "a-token-for-the-faults-of-the-sidecar";

/// How long a request may take; more than a sidecar that was stopped dead is left alone.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a socket waits for something to be said.
const QUIET: Duration = Duration::from_millis(50);

/// Heads of answers are small.
const MAX_HEAD: usize = 16 * 1024;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// An answer that arrived whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// Somebody who talks to the sidecar at an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client(pub(super) SocketAddr);

impl Client {
    pub(super) fn get(self, path: &str) -> Result<Answer, String> {
        self.ask("GET", path, "", "")
    }

    pub(super) fn post(self, path: &str, body: &Value) -> Result<Answer, String> {
        self.ask("POST", path, "Content-Type: application/json\r\n", &body.to_string())
    }

    /// A start with a key.
    pub(super) fn start(self, key: &str, node: &str) -> Result<Answer, String> {
        let headers = format!("Content-Type: application/json\r\nIdempotency-Key: {key}\r\n");
        self.ask("POST", "/api/runs", &headers, &json!({"node": node, "payload": key}).to_string())
    }

    fn ask(self, method: &str, path: &str, headers: &str, body: &str) -> Result<Answer, String> {
        let length = body.len();
        let headers = format!("{headers}Connection: close\r\nContent-Length: {length}\r\n");
        let mut stream = self.connect(PATIENCE)?;
        let request = self.head(method, path, &headers) + body;
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let (head, begin) = split(&bytes).ok_or("half a head")?;
        let length: usize =
            field(&head, "content-length").and_then(|text| text.parse().ok()).ok_or("no length")?;
        let body = bytes.get(begin..).filter(|body| body.len() == length).ok_or("half a body")?;
        let body = serde_json::from_slice(body).map_err(|error| format!("{head}: {error}"))?;
        Ok(Answer { status: status(&head)?, body })
    }

    /// Opens a socket of events.
    pub(super) fn socket(self) -> Result<Socket, Refusal> {
        // The example of the protocol's own document, so that the answer is known.
        let headers = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: redflow.events.v1\r\n";
        let gone = |error: std::io::Error| Refusal::Gone(error.to_string());
        let mut stream = self.connect(PATIENCE).map_err(Refusal::Gone)?;
        stream.write_all(self.head("GET", "/events", headers).as_bytes()).map_err(gone)?;
        let mut bytes = Vec::new();
        let (head, begin) = loop {
            if let Some(found) = split(&bytes) {
                break found;
            }
            let mut more = [0; 4096];
            match stream.read(&mut more).map_err(gone)? {
                0 => return Err(Refusal::Gone("closed before the answer".to_owned())),
                _ if bytes.len() > MAX_HEAD => return Err(Refusal::Refused("an endless head".to_owned())),
                read => bytes.extend_from_slice(&more[..read]),
            }
        };
        if field(&head, "sec-websocket-accept").as_deref() != Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") {
            return Err(Refusal::Refused(head));
        }
        stream.set_read_timeout(Some(QUIET)).map_err(gone)?;
        bytes.drain(..begin);
        Ok(Socket { stream, bytes })
    }

    fn connect(self, patience: Duration) -> Result<TcpStream, String> {
        let stream = TcpStream::connect(self.0).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(patience)).map_err(|error| error.to_string())?;
        Ok(stream)
    }

    fn head(self, method: &str, path: &str, headers: &str) -> String {
        let host = self.0;
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n{headers}\r\n")
    }
}

/// Where the head of an answer ends, if it does.
fn split(bytes: &[u8]) -> Option<(String, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((String::from_utf8_lossy(&bytes[..end]).into_owned(), end + 4))
}

fn status(head: &str) -> Result<u16, String> {
    let word = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    word.ok_or_else(|| format!("no status: {head}"))
}

fn field(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}

/// Why there is no socket.
pub(super) enum Refusal {
    /// Nobody is there, or no longer.
    Gone(String),
    /// Somebody is there and says no.
    Refused(String),
}

/// What a socket gives.
pub(super) enum Heard {
    Said(Value),
    /// Nothing for a while.
    Quiet,
    Gone,
}

/// A socket of events.
pub(super) struct Socket {
    stream: TcpStream,
    /// What has arrived and is not read yet: perhaps half a frame.
    bytes: Vec<u8>,
}

impl Socket {
    /// Asks for everything after a cursor; without one for what happens from now on.
    pub(super) fn subscribe(&mut self, after: Option<&str>) -> bool {
        let mut request = json!({"type": "subscribe"});
        if let Some(after) = after {
            request["after"] = json!(after);
        }
        self.send(TEXT, request.to_string().as_bytes())
    }

    /// The next message.
    pub(super) fn next(&mut self) -> Result<Heard, String> {
        loop {
            match take_frame(&mut self.bytes)? {
                Some((TEXT, text)) => {
                    return serde_json::from_slice(&text).map(Heard::Said).map_err(|error| error.to_string());
                }
                Some((PING, data)) => {
                    // Whether it can be sent is seen when it is read from.
                    self.send(PONG, &data);
                }
                Some((PONG, _)) => {}
                Some((CLOSE, _)) => return Ok(Heard::Gone),
                Some((other, _)) => return Err(format!("a frame of kind {other}")),
                None => {
                    let mut more = [0; 16 * 1024];
                    match self.stream.read(&mut more) {
                        Ok(0) => return Ok(Heard::Gone),
                        Ok(read) => self.bytes.extend_from_slice(&more[..read]),
                        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                            return Ok(Heard::Quiet);
                        }
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(_) => return Ok(Heard::Gone),
                    }
                }
            }
        }
    }

    /// Sends a frame; false if nobody takes it. Always masked, with zeros: the sidecar does not mind.
    fn send(&mut self, kind: u8, data: &[u8]) -> bool {
        let mut frame = vec![0x80 | kind];
        match u8::try_from(data.len()) {
            Ok(length @ 0..=125) => frame.push(0x80 | length),
            _ => {
                let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
                frame.push(0x80 | 126);
                frame.extend_from_slice(&length.to_be_bytes());
            }
        }
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(data);
        self.stream.write_all(&frame).is_ok()
    }
}

/// Takes a whole frame out of what has arrived, if there is one: its kind and its data.
fn take_frame(bytes: &mut Vec<u8>) -> Result<Option<(u8, Vec<u8>)>, String> {
    let &[first, second, ..] = bytes.as_slice() else { return Ok(None) };
    if first & 0xf0 != 0x80 || second & 0x80 != 0 {
        return Err(format!("a frame that begins with {first:#x} {second:#x}"));
    }
    let (begin, length) = match second {
        126 => match bytes.get(2..4) {
            Some(long) => (4, long.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))),
            None => return Ok(None),
        },
        127 => match bytes.get(2..10) {
            Some(long) => (10, long.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))),
            None => return Ok(None),
        },
        short => (2, usize::from(short)),
    };
    let Some(data) = bytes.get(begin..begin + length) else { return Ok(None) };
    let data = data.to_vec();
    bytes.drain(..begin + length);
    Ok(Some((first & 0x0f, data)))
}

#[cfg(test)]
mod tests {
    use super::take_frame;

    #[test]
    fn frames_are_taken_whole_or_not_at_all() {
        let mut long = vec![0x81, 126, 1, 0];
        long.extend_from_slice(&[b'x'; 256]);
        let frames: [(&[u8], u8, usize); 3] =
            [(&[0x81, 2, b'h', b'i'], 1, 2), (&[0x89, 0], 9, 0), (&long, 1, 256)];
        for (bytes, kind, length) in frames {
            for cut in 0..bytes.len() {
                assert_eq!(take_frame(&mut bytes[..cut].to_vec()), Ok(None), "{cut}");
            }
            let mut more = [bytes, &[0x88]].concat();
            let (found, data) = take_frame(&mut more).unwrap().unwrap();
            assert_eq!((found, data.len(), more.as_slice()), (kind, length, &[0x88][..]));
        }
        for wrong in [[0x01, 0], [0xc1, 0], [0x81, 0x80]] {
            assert!(take_frame(&mut wrong.to_vec()).is_err(), "{wrong:?}");
        }
    }
}
