//! The listener: accepts connections and serves HTTP/1.1 on them.
//!
//! Owns how many connections are open, how long a request head may take, and the shutdown. Never checks the
//! caller: the service does, with the guard.
//!
//! A request that hyper cannot read gets a response with a code, and its connection is closed. A connection
//! that sent nothing is closed without a response.

use crate::connection::{Connection, final_response};
use crate::framing::refusal;
use crate::peer::PeerAddress;
use crate::settings::AccessSettings;
use futures::future::{Either, ready};
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Connections that the system queues until they are accepted.
const BACKLOG: u32 = 1024;

/// The pause after the system had no resources for a connection.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Bytes that a connection reads or writes at once. A head fits, and a body needs few steps.
const BUFFER_BYTES: usize = 128 * 1024;

/// Descriptors that connections never use. They are for files, the database and model calls.
#[cfg(unix)]
const OTHER_DESCRIPTORS: u64 = 128;

/// Raises the system's limit on open files as far as needed, and returns how many of the wanted connections
/// it allows. Some descriptors stay free for files and model calls.
#[cfg(unix)]
#[must_use]
pub fn raise_open_file_limit(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = (wanted as u64).saturating_add(OTHER_DESCRIPTORS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = match current {
        Some(current) if current < needed => {
            let raised = maximum.map_or(needed, |maximum| maximum.min(needed));
            match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
                Ok(()) => raised,
                Err(_) => current,
            }
        }
        _ => return wanted,
    };
    let allowed =
        usize::try_from(current.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or(wanted).clamp(1, wanted.max(1));
    if allowed < wanted {
        tracing::warn!(
            allowed,
            wanted,
            "the system's limit on open files allows fewer connections than configured"
        );
    }
    allowed
}

/// Returns the wanted number: this system does not report a limit on open files.
#[cfg(not(unix))]
#[must_use]
pub fn raise_open_file_limit(wanted: usize) -> usize {
    wanted
}

/// Listens at an address. Port 0 takes a free port, which the listener knows. Needs a tokio runtime.
///
/// # Errors
/// `LISTEN_FAILED`.
pub fn bind(address: SocketAddr) -> Result<TcpListener, ApiError> {
    listen(address).map_err(|why| {
        let (problem, remedy) = match why.kind() {
            ErrorKind::AddrInUse => {
                ("another program listens there", "stop it, or choose another with `--listen`")
            }
            ErrorKind::PermissionDenied => {
                ("the system does not permit it", "choose a port over 1023 with `--listen`")
            }
            ErrorKind::AddrNotAvailable => {
                ("this machine does not have that address", "choose one of its own with `--listen`")
            }
            _ => ("the system refuses", "choose another address with `--listen`"),
        };
        ApiError::new(
            ApiCode::ListenFailed,
            format!("Cannot listen at {address}: {problem} ({why}); {remedy}."),
        )
    })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for the connections of the previous process. Outside Unix this would share the
    // port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `shutdown`. Then it accepts no more connections, and lets each one finish its request. After
/// `drain` it aborts the rest, and returns how many were still open.
///
/// Upgraded sockets count as open, but only the service can close them, so it has to watch `shutdown` too.
/// `service` has to be always ready, as axum's `Router` is. Refusals of malformed requests make its body from
/// text.
pub async fn serve<S, B>(
    listener: TcpListener,
    service: S,
    settings: &AccessSettings,
    shutdown: CancellationToken,
    drain: Duration,
) -> usize
where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body + From<String> + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let max_connections = settings.max_connections.clamp(1, u32::MAX as usize >> 4);
    let permits = Arc::new(Semaphore::new(max_connections));
    let refusal_permits = Arc::new(Semaphore::new(settings.max_refusals));
    let abort = CancellationToken::new();
    let context = Arc::new(ListenContext {
        http: http_builder(settings),
        settings: settings.clone(),
        shutdown: shutdown.clone(),
        abort: abort.clone(),
    });
    while let Some((stream, peer)) = accept(&listener, &shutdown).await {
        match Arc::clone(&permits).try_acquire_owned() {
            Ok(permit) => {
                tokio::spawn(serve_connection(stream, peer, permit, service.clone(), Arc::clone(&context)));
            }
            Err(_) => {
                if let Ok(permit) = Arc::clone(&refusal_permits).try_acquire_owned() {
                    tokio::spawn(refuse_connection(stream, permit, Arc::clone(&context)));
                }
            }
        }
    }
    drop(listener);
    let all = u32::try_from(max_connections).unwrap_or(u32::MAX);
    let _ = timeout(drain, permits.acquire_many(all)).await;
    abort.cancel();
    max_connections - permits.available_permits().min(max_connections)
}

/// What all connections of a listener share.
struct ListenContext {
    http: http1::Builder,
    settings: AccessSettings,
    shutdown: CancellationToken,
    /// The time to drain is over.
    abort: CancellationToken,
}

fn http_builder(settings: &AccessSettings) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(settings.head_timeout)
        .max_header_size(settings.max_head_bytes)
        .max_headers(settings.max_headers)
        .max_buf_size(BUFFER_BYTES.max(settings.max_head_bytes))
        .half_close(false)
        .pipeline_flush(false);
    http
}

/// The next connection, or none after `shutdown`.
async fn accept(listener: &TcpListener, shutdown: &CancellationToken) -> Option<(TcpStream, PeerAddress)> {
    let mut logged = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => return None,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => return Some((stream, PeerAddress(peer.ip()))),
            // This connection failed; the next one may work.
            Err(why)
                if matches!(
                    why.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
                ) => {}
            // No descriptors or no memory are left. Other tasks need time to release some, so a retry at once
            // would only waste it.
            Err(why) => {
                if !logged {
                    tracing::error!(%why, "cannot accept connections at the moment");
                    logged = true;
                }
                tokio::select! {
                    () = shutdown.cancelled() => return None,
                    () = sleep(BACK_OFF) => {}
                }
            }
        }
    }
}

async fn serve_connection<S, B>(
    stream: TcpStream,
    peer: PeerAddress,
    permit: OwnedSemaphorePermit,
    service: S,
    context: Arc<ListenContext>,
) where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body + From<String> + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // Responses and events are small and written whole.
    let _ = stream.set_nodelay(true);
    let connection = Connection::new(stream, permit, &context.settings);
    let framing = connection.framing();
    let service = service_fn(move |mut request: Request<Incoming>| match framing.check(request.headers()) {
        Ok(()) => {
            request.extensions_mut().insert(peer);
            Either::Right(service.clone().call(request))
        }
        Err(error) => Either::Left(ready(Ok(refusal(&error)))),
    });
    let mut http = context.http.serve_connection(TokioIo::new(connection), service).with_upgrades();
    let ended = tokio::select! {
        ended = &mut http => Some(ended),
        () = context.shutdown.cancelled() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut http).graceful_shutdown();
            tokio::select! {
                ended = &mut http => ended,
                () = context.abort.cancelled() => return,
            }
        }
    };
    let Err(why) = ended else { return };
    let Some(parts) = http.into_parts() else { return };
    let response = if why.is_parse_version_h2() {
        let error = ApiError::new(ApiCode::RequestInvalid, "This is HTTP/2: use HTTP/1.1.");
        final_response("400 Bad Request", &error)
    } else if why.is_timeout() && !parts.read_buf.is_empty() {
        let error = ApiError::new(
            ApiCode::RequestTimeout,
            "The head of the request did not arrive in time: try again.",
        );
        final_response("408 Request Timeout", &error)
    } else {
        return;
    };
    let connection = parts.io.into_inner();
    if connection.can_respond() {
        close_with(&response, connection, &context).await;
    }
}

async fn refuse_connection(stream: TcpStream, permit: OwnedSemaphorePermit, context: Arc<ListenContext>) {
    let error = ApiError::new(
        ApiCode::TooManyConnections,
        format!(
            "{} connections are open, which is the limit: close some, or raise the limit in the configuration.",
            context.settings.max_connections
        ),
    );
    let response = final_response("503 Service Unavailable", &error);
    close_with(&response, Connection::new(stream, permit, &context.settings), &context).await;
}

/// Writes a last response and closes. A peer that does not read it cannot keep the permit for long.
async fn close_with(response: &[u8], mut connection: Connection, context: &ListenContext) {
    let write = async {
        connection.write_all(response).await?;
        connection.shutdown().await
    };
    tokio::select! {
        _ = timeout(context.settings.linger.saturating_mul(2), write) => {}
        () = context.abort.cancelled() => {}
    }
}
