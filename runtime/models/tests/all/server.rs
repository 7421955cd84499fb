//! An HTTP/1.1 server that follows a script: what it does with the nth request is the nth entry's business.
//!
//! It knows no HTTP but what it needs to cut requests out of the bytes. What it has seen can be waited for.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// One thing a server does with a request.
#[derive(Clone)]
pub(crate) enum Step {
    /// These bytes, as they are.
    Send(Vec<u8>),
    /// These again and again, as fast as they are taken, until the other side has gone.
    Flood(Vec<u8>),
    /// These again and again, a little at a time, until the other side has gone.
    Drip(Vec<u8>),
    /// Nothing, until it is told to go on.
    Wait(Arc<Notify>),
    /// Nothing, until the other side has gone.
    Hold,
    /// The end of the connection, in good order.
    Close,
    /// The end of the connection, as if the machine had died.
    Reset,
}

/// What a request looked like.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Its head, in lower case but for the first line.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
    }
}

/// What a server has seen so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) connections: usize,
    pub(crate) requests: Vec<Request>,
    /// How often the other side went while it was waited for, or was being sent to.
    pub(crate) gone: usize,
    /// Bytes of floods that were taken.
    pub(crate) flooded: usize,
}

struct Shared {
    script: Mutex<VecDeque<Vec<Step>>>,
    seen: watch::Sender<Seen>,
    tls: Option<TlsAcceptor>,
}

/// A server that ends with its test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(script: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Self::start_with(script, None).await
    }

    /// One that speaks TLS, or turns to it when it is asked to `CONNECT`.
    pub(crate) async fn start_with(
        script: impl IntoIterator<Item = Vec<Step>>,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Mutex::new(script.into_iter().collect());
        let shared = Arc::new(Shared { script, seen: watch::Sender::new(Seen::default()), tls });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Seen {
        self.shared.seen.borrow().clone()
    }

    /// How many requests came.
    pub(crate) fn requests(&self) -> usize {
        self.shared.seen.borrow().requests.len()
    }

    /// Waits until it has seen something.
    pub(crate) async fn until(&self, has: impl FnMut(&Seen) -> bool) -> Seen {
        self.shared.seen.subscribe().wait_for(has).await.unwrap().clone()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // The connections end with the server.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        shared.seen.send_modify(|seen| seen.connections += 1);
        connections.spawn(connection(stream, Arc::clone(&shared)));
    }
}

async fn connection(mut stream: TcpStream, shared: Arc<Shared>) {
    stream.set_nodelay(true).unwrap();
    let Some(acceptor) = &shared.tls else {
        if serve(&mut stream, &shared).await == Ending::Reset {
            stream.set_zero_linger().unwrap();
        }
        return;
    };
    let mut first = [0_u8; 7];
    let known = stream.peek(&mut first).await.unwrap_or_default();
    if &first[..known] == b"CONNECT" {
        let Some(request) = read_request(&mut stream).await else { return };
        shared.seen.send_modify(|seen| seen.requests.push(request));
        stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
    }
    // Who does not trust the certificate goes.
    if let Ok(mut stream) = acceptor.accept(stream).await {
        serve(&mut stream, &shared).await;
    }
}

#[derive(PartialEq)]
enum Ending {
    Closed,
    Reset,
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, shared: &Shared) -> Ending {
    while let Some(request) = read_request(stream).await {
        let steps = shared.script.lock().unwrap().pop_front();
        shared.seen.send_modify(|seen| seen.requests.push(request));
        for step in steps.expect("a request nobody has reckoned with") {
            let gone = match step {
                Step::Send(bytes) => stream.write_all(&bytes).await.is_err(),
                Step::Flood(bytes) => {
                    while stream.write_all(&bytes).await.is_ok() {
                        shared.seen.send_modify(|seen| seen.flooded += bytes.len());
                    }
                    true
                }
                Step::Drip(bytes) => {
                    // Slowness is what this is about; nobody waits for it to be over.
                    let mut beat = tokio::time::interval(Duration::from_millis(5));
                    while stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok() {
                        beat.tick().await;
                    }
                    true
                }
                Step::Wait(told) => {
                    told.notified().await;
                    false
                }
                Step::Hold => {
                    while !matches!(stream.read(&mut [0; 1024]).await, Ok(0) | Err(_)) {}
                    true
                }
                Step::Close => {
                    let _ = stream.shutdown().await;
                    return Ending::Closed;
                }
                Step::Reset => return Ending::Reset,
            };
            let _ = stream.flush().await;
            if gone {
                shared.seen.send_modify(|seen| seen.gone += 1);
                return Ending::Closed;
            }
        }
    }
    Ending::Closed
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
    // Names in any case are the same; values are not.
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

/// A head, without an end.
pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("HTTP/1.1 {status} Whatever\r\n{}", lines.collect::<String>())
}

/// A whole answer of its own length.
pub(crate) fn whole(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<Step> {
    let body = body.as_ref();
    let head = format!("{}content-length: {}\r\n\r\n", head(status, headers), body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

pub(crate) fn json(body: impl AsRef<[u8]>) -> Vec<Step> {
    whole(200, &[("content-type", "application/json")], body)
}

/// The beginning of a stream.
pub(crate) fn stream_head() -> Step {
    let headers = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")];
    Step::Send(format!("{}\r\n", head(200, &headers)).into_bytes())
}

pub(crate) fn chunk(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

/// A stream from its beginning to its end, in these pieces.
pub(crate) fn stream<T: AsRef<[u8]>>(pieces: impl IntoIterator<Item = T>) -> Vec<Step> {
    let end = Step::Send(b"0\r\n\r\n".to_vec());
    let pieces = pieces.into_iter().map(|piece| Step::Send(chunk(piece)));
    std::iter::once(stream_head()).chain(pieces).chain([end]).collect()
}

/// Where nobody listens.
pub(crate) async fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
