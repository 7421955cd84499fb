//! Connections. One that has answered a request that changes nothing stays open for the next one.

use crate::connector::{GuardedStream, SentFlag};
use crate::origin::Origin;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long a connection without a call stays open. Short, because a server may close it at any time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// The most connections without a call.
const MAX_IDLE: usize = crate::MAX_CALLS;

/// The most connections without a call to one origin.
const MAX_IDLE_PER_ORIGIN: usize = crate::MAX_CALLS_PER_HOST;

/// An open connection that one request at a time may use.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    pub(crate) sent: SentFlag,
}

impl Connection {
    /// Begins HTTP on a stream.
    pub(crate) async fn begin(stream: GuardedStream) -> Result<Self, hyper::Error> {
        let sent = stream.sent.clone();
        let mut http = http1::Builder::new();
        http.max_buf_size(crate::MAX_HEAD_BYTES);
        let (sender, driver) = http.handshake(stream).await?;
        // It ends when the sender and the answer are dropped, or the server closes it.
        tokio::spawn(driver);
        Ok(Self { sender, sent })
    }

    /// Sends a request, and waits for the head of its answer. The error has the request if no byte of it left.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        // An error of `ready` comes again from the request.
        let _ = self.sender.ready().await;
        self.sender.try_send_request(request).await
    }
}

/// A connection in use.
pub(crate) struct Lease {
    pub(crate) connection: Connection,
    /// Where it goes afterwards; `None` if it is for one request only.
    pub(crate) back_to: Option<(Pool, Origin)>,
}

impl Lease {
    /// Keeps the connection for another request. Its answer has been read to the end.
    pub(crate) fn give_back(self) {
        if let Some((pool, origin)) = self.back_to {
            pool.put(origin, self.connection);
        }
    }
}

/// Connections without a call. Its clones share them.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Mutex<IdleTable>>);

#[derive(Default)]
struct IdleTable {
    /// The oldest connection of an origin comes first.
    by_origin: HashMap<Origin, Vec<Idle>>,
    connections: usize,
    is_swept: bool,
}

struct Idle {
    connection: Connection,
    until: Instant,
}

impl Pool {
    /// Takes an open connection to an origin.
    pub(crate) fn take(&self, origin: &Origin) -> Option<Connection> {
        let mut table = lock(&self.0);
        let IdleTable { by_origin, connections, .. } = &mut *table;
        let idle = by_origin.get_mut(origin)?;
        let before = idle.len();
        let found = std::iter::from_fn(|| idle.pop()).find(|idle| !idle.connection.sender.is_closed());
        *connections -= before - idle.len();
        found.map(|idle| idle.connection)
    }

    /// Keeps a connection whose answer has been read, if there is room.
    pub(crate) fn put(&self, origin: Origin, connection: Connection) {
        let mut table = lock(&self.0);
        if connection.sender.is_closed() || table.connections >= MAX_IDLE {
            return;
        }
        let idle = Idle { connection, until: Instant::now() + IDLE_TIMEOUT };
        let has_room = table.by_origin.len() < MAX_IDLE;
        if let Some(open) = table.by_origin.get_mut(&origin) {
            if open.len() >= MAX_IDLE_PER_ORIGIN {
                return;
            }
            open.push(idle);
        } else if has_room {
            table.by_origin.insert(origin, vec![idle]);
        } else {
            return;
        }
        table.connections += 1;
        if !std::mem::replace(&mut table.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.0)));
        }
    }
}

/// Closes connections when their time is over, until there are none.
async fn sweep(table: Weak<Mutex<IdleTable>>) {
    let mut next = Instant::now() + IDLE_TIMEOUT;
    loop {
        sleep_until(next).await;
        let Some(table) = table.upgrade() else { return };
        let mut table = lock(&table);
        let now = Instant::now();
        table.by_origin.retain(|_, idle| {
            idle.retain(|idle| idle.until > now);
            !idle.is_empty()
        });
        table.connections = table.by_origin.values().map(Vec::len).sum();
        let Some(first) = table.by_origin.values().flatten().map(|idle| idle.until).min() else {
            table.is_swept = false;
            return;
        };
        next = first;
    }
}

fn lock(table: &Mutex<IdleTable>) -> MutexGuard<'_, IdleTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Connection, IDLE_TIMEOUT, MAX_IDLE, MAX_IDLE_PER_ORIGIN, Pool};
    use crate::connector::GuardedStream;
    use crate::host::Host;
    use crate::origin::Origin;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};
    use tokio::time::{sleep, timeout};

    fn origin(host: &str) -> Origin {
        Origin { is_https: true, host: Host::Name(host.to_owned()), port: 443 }
    }

    async fn open() -> (Connection, DuplexStream) {
        let (near, far) = duplex(64);
        (Connection::begin(GuardedStream::new(Box::new(near))).await.unwrap(), far)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_serves_its_origin_until_its_time_is_over() {
        let pool = Pool::default();
        let (connection, mut server) = open().await;
        pool.put(origin("a"), connection);
        assert!(pool.take(&Origin { is_https: false, ..origin("a") }).is_none());
        assert!(pool.take(&Origin { port: 8443, ..origin("a") }).is_none());
        assert!(pool.take(&origin("b")).is_none());
        let connection = pool.take(&origin("a")).unwrap();
        assert!(pool.take(&origin("a")).is_none(), "one request at a time uses it");
        pool.put(origin("a"), connection);
        let closed = timeout(2 * IDLE_TIMEOUT, server.read_u8()).await.unwrap();
        assert!(closed.is_err(), "the pool closed it");
        assert!(pool.take(&origin("a")).is_none());
        // The sweeper ended, and another one begins.
        let (connection, mut server) = open().await;
        pool.put(origin("a"), connection);
        assert!(timeout(2 * IDLE_TIMEOUT, server.read_u8()).await.unwrap().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_the_server_closed_is_not_used_again() {
        let pool = Pool::default();
        let (connection, server) = open().await;
        pool.put(origin("a"), connection);
        drop(server);
        sleep(Duration::from_millis(1)).await;
        assert!(pool.take(&origin("a")).is_none());
        let (connection, server) = open().await;
        drop(server);
        sleep(Duration::from_millis(1)).await;
        pool.put(origin("a"), connection);
        assert!(pool.take(&origin("a")).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_few_per_origin_and_in_all() {
        let pool = Pool::default();
        let mut servers = Vec::new();
        for host in 0..=MAX_IDLE / MAX_IDLE_PER_ORIGIN {
            for _ in 0..=MAX_IDLE_PER_ORIGIN {
                let (connection, server) = open().await;
                pool.put(origin(&host.to_string()), connection);
                servers.push(server);
            }
        }
        let count = |host: usize| std::iter::from_fn(|| pool.take(&origin(&host.to_string()))).count();
        assert_eq!(count(0), MAX_IDLE_PER_ORIGIN);
        assert_eq!(count(MAX_IDLE / MAX_IDLE_PER_ORIGIN), 0, "there was no room left");
        let (connection, _server) = open().await;
        pool.put(origin("new"), connection);
        assert!(pool.take(&origin("new")).is_some(), "there is room again");
    }
}
