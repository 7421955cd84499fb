//! An HTTP/1.1 server that follows a script: the nth entry says what it does with the nth request.
//!
//! It parses only as much HTTP as it needs to split requests. Tests can wait for what it has seen.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// One step of the response to a request.
#[derive(Clone)]
pub(crate) enum Step {
    /// Sends these bytes unchanged.
    Send(Vec<u8>),
    /// Repeats these bytes as fast as possible, until the client disconnects.
    Flood(Vec<u8>),
    /// Repeats these bytes slowly, until the client disconnects.
    Drip(Vec<u8>),
    /// Waits for this notification.
    Wait(Arc<Notify>),
    /// Sends nothing until the client disconnects.
    Hang,
    /// Closes the connection properly.
    Close,
    /// Resets the connection, as after a crash.
    Reset,
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The request line, then the headers with names in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(header, _)| *header == name).map(|(_, value)| value).next()
    }
}

/// What a server has seen so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) connections: usize,
    pub(crate) requests: Vec<Request>,
    /// How often a client disconnected during a step.
    pub(crate) disconnects: usize,
    /// Bytes of floods that clients received.
    pub(crate) flooded: usize,
}

struct ServerState {
    script: Mutex<VecDeque<Vec<Step>>>,
    seen: watch::Sender<Seen>,
    tls: Option<TlsAcceptor>,
}

/// Stops when it is dropped.
pub(crate) struct ScriptedServer {
    pub(crate) address: SocketAddr,
    state: Arc<ServerState>,
    task: JoinHandle<()>,
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ScriptedServer {
    pub(crate) async fn start(script: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Self::start_with_tls(script, None).await
    }

    /// With TLS from the start, or after a `CONNECT`.
    pub(crate) async fn start_with_tls(
        script: impl IntoIterator<Item = Vec<Step>>,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Mutex::new(script.into_iter().collect());
        let state = Arc::new(ServerState { script, seen: watch::Sender::new(Seen::default()), tls });
        let task = tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Seen {
        self.state.seen.borrow().clone()
    }

    pub(crate) fn request_count(&self) -> usize {
        self.state.seen.borrow().requests.len()
    }

    /// Waits until the condition is true.
    pub(crate) async fn wait_until(&self, condition: impl FnMut(&Seen) -> bool) -> Seen {
        self.state.seen.subscribe().wait_for(condition).await.unwrap().clone()
    }
}

async fn accept(listener: TcpListener, state: Arc<ServerState>) {
    // The set closes all connections when the server stops.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        state.seen.send_modify(|seen| seen.connections += 1);
        connections.spawn(handle_connection(stream, Arc::clone(&state)));
    }
}

async fn handle_connection(mut stream: TcpStream, state: Arc<ServerState>) {
    stream.set_nodelay(true).unwrap();
    let Some(acceptor) = &state.tls else {
        if serve(&mut stream, &state).await == EndOfConnection::Reset {
            stream.set_zero_linger().unwrap();
        }
        return;
    };
    let mut first = [0_u8; 7];
    let length = stream.peek(&mut first).await.unwrap_or_default();
    if &first[..length] == b"CONNECT" {
        let Some(request) = read_request(&mut stream).await else { return };
        state.seen.send_modify(|seen| seen.requests.push(request));
        stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
    }
    // A client that does not trust the certificate disconnects.
    if let Ok(mut stream) = acceptor.accept(stream).await {
        serve(&mut stream, &state).await;
    }
}

#[derive(PartialEq)]
enum EndOfConnection {
    Closed,
    Reset,
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, state: &ServerState) -> EndOfConnection {
    while let Some(request) = read_request(stream).await {
        let steps = state.script.lock().unwrap().pop_front();
        state.seen.send_modify(|seen| seen.requests.push(request));
        for step in steps.expect("a request that the script does not expect") {
            let disconnected = match step {
                Step::Send(bytes) => stream.write_all(&bytes).await.is_err(),
                Step::Flood(bytes) => {
                    while stream.write_all(&bytes).await.is_ok() {
                        state.seen.send_modify(|seen| seen.flooded += bytes.len());
                    }
                    true
                }
                Step::Drip(bytes) => {
                    // The test is about slowness, and does not wait for the end.
                    let mut interval = tokio::time::interval(Duration::from_millis(5));
                    while stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok() {
                        interval.tick().await;
                    }
                    true
                }
                Step::Wait(notify) => {
                    notify.notified().await;
                    false
                }
                Step::Hang => {
                    while !matches!(stream.read(&mut [0; 1024]).await, Ok(0) | Err(_)) {}
                    true
                }
                Step::Close => {
                    let _ = stream.shutdown().await;
                    return EndOfConnection::Closed;
                }
                Step::Reset => return EndOfConnection::Reset,
            };
            let _ = stream.flush().await;
            if disconnected {
                state.seen.send_modify(|seen| seen.disconnects += 1);
                return EndOfConnection::Closed;
            }
        }
    }
    EndOfConnection::Closed
}

async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut body = bytes.split_off(end);
    let text = String::from_utf8(bytes).unwrap();
    let (first, rest) = text.split_once("\r\n").unwrap();
    // Header names are case-insensitive; values are not.
    let lines = rest.lines().filter_map(|line| line.split_once(':'));
    let lines = lines.map(|(name, value)| format!("{}: {}\n", name.to_ascii_lowercase(), value.trim()));
    let request = Request { head: format!("{first}\n{}", lines.collect::<String>()), body: Vec::new() };
    let length: usize = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request { body, ..request })
}

/// A response head without the final empty line.
pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("HTTP/1.1 {status} Whatever\r\n{}", lines.collect::<String>())
}

/// A whole response with its content length.
pub(crate) fn response(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let head = format!("{}content-length: {}\r\n\r\n", head(status, headers), body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

pub(crate) fn json(body: impl AsRef<[u8]>) -> Vec<Step> {
    response(200, &[("content-type", "application/json")], body)
}

/// The head of a streamed response.
pub(crate) fn stream_head() -> Step {
    let headers = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")];
    Step::Send(format!("{}\r\n", head(200, &headers)).into_bytes())
}

pub(crate) fn chunk(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// A whole streamed response in these parts.
pub(crate) fn stream<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Vec<Step> {
    let end = Step::Send(b"0\r\n\r\n".to_vec());
    let parts = parts.into_iter().map(|part| Step::Send(chunk(part)));
    std::iter::once(stream_head()).chain(parts).chain([end]).collect()
}

/// An address without a listener.
pub(crate) async fn unused_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
