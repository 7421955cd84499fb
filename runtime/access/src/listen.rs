//! The listener: takes connections, and speaks HTTP/1.1 on them.
//!
//! Owns how many are open, how long a head may take, and how it all ends. Never looks at who asks: that is the
//! guard's, which the service calls.
//!
//! Requests the HTTP library cannot read are answered by it, or by the line, with a code; the connection is closed
//! then. A connection on which nothing has arrived is closed without a word.

use crate::connection::{Connection, answer};
use crate::framing::Gate;
use crate::settings::AccessSettings;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
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

/// Connections the system keeps until they are taken.
const BACKLOG: u32 = 1024;

/// How long no connection is taken when the system has nothing left for one.
const BACK_OFF: Duration = Duration::from_millis(100);

/// What a connection reads and writes at once: room for a head, and for bodies in few steps.
const BUFFER_BYTES: usize = 128 * 1024;

/// Descriptors that are left to everything but connections: files, the database, calls to models.
#[cfg(unix)]
const OTHER_DESCRIPTORS: u64 = 128;

/// How many connections of those wanted there can be: the system's limit on open files is raised as far as it goes, and
/// strangers never get the last of them.
#[cfg(unix)]
#[must_use]
pub fn raise_open_file_limit(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = (wanted as u64).saturating_add(OTHER_DESCRIPTORS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = match current {
        Some(current) if current < needed => {
            let raised = maximum.map_or(needed, |most| most.min(needed));
            match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
                Ok(()) => raised,
                Err(_) => current,
            }
        }
        _ => return wanted,
    };
    let room =
        usize::try_from(current.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or(wanted).clamp(1, wanted.max(1));
    if room < wanted {
        tracing::warn!(
            room,
            wanted,
            "the system's limit on open files allows fewer connections than configured"
        );
    }
    room
}

/// How many connections of those wanted there can be: this system does not say.
#[cfg(not(unix))]
#[must_use]
pub fn raise_open_file_limit(wanted: usize) -> usize {
    wanted
}

/// Listens at an address. Port 0 takes a free one: ask the listener which. Inside a tokio runtime.
///
/// # Errors
/// `LISTEN_FAILED`.
pub fn bind(address: SocketAddr) -> Result<TcpListener, ApiError> {
    listen(address).map_err(|why| {
        let (what, mend) = match why.kind() {
            ErrorKind::AddrInUse => {
                ("another program listens there", "stop it, or choose another with `--listen`")
            }
            ErrorKind::PermissionDenied => {
                ("that is not permitted", "choose a port over 1023 with `--listen`")
            }
            ErrorKind::AddrNotAvailable => {
                ("this machine does not have that address", "choose one of its own with `--listen`")
            }
            _ => ("the system refuses", "choose another address with `--listen`"),
        };
        ApiError::new(ApiCode::ListenFailed, format!("Cannot listen at {address}: {what} ({why}); {mend}."))
    })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for the last connections of the life before. Elsewhere this would share the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `shutdown`; then takes nothing more, lets every connection finish what it is at, waits for that up to
/// `drain`, and cuts the rest. Gives how many connections were still open then. Sockets, which the service has taken
/// over by an upgrade, count as open, but only the service can close them: it watches `shutdown` as well.
///
/// `service` has to be always ready, as axum's `Router` is; its body is made from text to refuse what is malformed.
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
    let most = settings.max_connections.clamp(1, u32::MAX as usize >> 4);
    let places = Arc::new(Semaphore::new(most));
    let refusals = Arc::new(Semaphore::new(settings.max_refusals));
    let cut = CancellationToken::new();
    let shared = Arc::new(Shared {
        http: http(settings),
        settings: settings.clone(),
        shutdown: shutdown.clone(),
        cut: cut.clone(),
    });
    while let Some(stream) = next(&listener, &shutdown).await {
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                tokio::spawn(attend(stream, place, service.clone(), Arc::clone(&shared)));
            }
            Err(_) => {
                if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
                    tokio::spawn(refuse(stream, place, Arc::clone(&shared)));
                }
            }
        }
    }
    drop(listener);
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let _ = timeout(drain, places.acquire_many(all)).await;
    cut.cancel();
    most - places.available_permits().min(most)
}

/// What all connections share.
struct Shared {
    http: http1::Builder,
    settings: AccessSettings,
    shutdown: CancellationToken,
    /// The patience is over.
    cut: CancellationToken,
}

fn http(settings: &AccessSettings) -> http1::Builder {
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

/// The next connection; None when it is time to stop.
async fn next(listener: &TcpListener, shutdown: &CancellationToken) -> Option<TcpStream> {
    let mut complained = false;
    loop {
        let taken = tokio::select! {
            biased;
            () = shutdown.cancelled() => return None,
            taken = listener.accept() => taken,
        };
        match taken {
            Ok((stream, _)) => return Some(stream),
            // That one is gone; the next may be well.
            Err(why)
                if matches!(
                    why.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
                ) => {}
            // No descriptors or no memory. It stays so for a while, and asking again at once would burn the time in
            // which others could give some back.
            Err(why) => {
                if !complained {
                    tracing::error!(%why, "no connection can be taken at the moment");
                    complained = true;
                }
                tokio::select! {
                    () = shutdown.cancelled() => return None,
                    () = sleep(BACK_OFF) => {}
                }
            }
        }
    }
}

async fn attend<S, B>(stream: TcpStream, place: OwnedSemaphorePermit, service: S, shared: Arc<Shared>)
where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body + From<String> + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // Answers and events are small and written whole.
    let _ = stream.set_nodelay(true);
    let line = Connection::new(stream, place, &shared.settings);
    let gate = Gate::new(service, line.length_counter());
    let mut connection = shared.http.serve_connection(TokioIo::new(line), gate).with_upgrades();
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        () = shared.shutdown.cancelled() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            tokio::select! {
                ended = &mut connection => ended,
                () = shared.cut.cancelled() => return,
            }
        }
    };
    let Err(why) = ended else { return };
    let Some(parts) = connection.into_parts() else { return };
    let last = if why.is_parse_version_h2() {
        let error = ApiError::new(ApiCode::RequestInvalid, "This is HTTP/2: speak HTTP/1.1.");
        answer("400 Bad Request", &error)
    } else if why.is_timeout() && !parts.read_buf.is_empty() {
        let error = ApiError::new(
            ApiCode::RequestTimeout,
            "The head of the request did not arrive in time: try again.",
        );
        answer("408 Request Timeout", &error)
    } else {
        return;
    };
    let line = parts.io.into_inner();
    if line.can_answer() {
        say_last(line, &last, &shared).await;
    }
}

/// Tells one that is too many that it is.
async fn refuse(stream: TcpStream, place: OwnedSemaphorePermit, shared: Arc<Shared>) {
    let error = ApiError::new(
        ApiCode::TooManyConnections,
        format!(
            "{} connections are open, and no more are taken: close some, or raise the limit in the configuration.",
            shared.settings.max_connections
        ),
    );
    let last = answer("503 Service Unavailable", &error);
    say_last(Connection::new(stream, place, &shared.settings), &last, &shared).await;
}

/// Writes a last answer and closes. Who does not take it does not keep the place for long.
async fn say_last(mut line: Connection, last: &[u8], shared: &Shared) {
    let say = async {
        line.write_all(last).await?;
        line.shutdown().await
    };
    tokio::select! {
        _ = timeout(shared.settings.linger.saturating_mul(2), say) => {}
        () = shared.cut.cancelled() => {}
    }
}
