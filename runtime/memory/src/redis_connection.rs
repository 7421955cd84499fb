//! Connections to Redis: one per server, database and user, however many nodes use it.
//!
//! A connection opens when it is first used, and again after it was lost. It waits no longer than the time
//! limit of the caller and queues nothing for later: a call that fails, fails at once.

use crate::failure::memory_error;
use redflow_contract::phrases;
use redflow_contract::run_error::Failure;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError};
use redis::{RedisResult, ScriptInvocation, ServerErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The connections that a node uses.
#[derive(Default)]
pub(crate) struct RedisConnections(Mutex<Vec<Weak<RedisConnection>>>);

pub(crate) struct RedisConnection {
    client: Client,
    live: Mutex<Option<LiveConnection>>,
    /// Held while connecting, so that a hundred callers open one connection.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct LiveConnection {
    connection: MultiplexedConnection,
    /// Its address is the identity of the connection.
    identity: Arc<()>,
}

impl RedisConnections {
    /// The connection to this server, database and user; a new one if no node uses it.
    pub(crate) fn get_or_create(&self, info: ConnectionInfo) -> Option<Arc<RedisConnection>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|connection| connection.strong_count() > 0);
        let same = |known: &Arc<RedisConnection>| is_same(known.client.get_connection_info(), &info);
        if let Some(connection) = known.iter().filter_map(Weak::upgrade).find(same) {
            return Some(connection);
        }
        let client = Client::open(info).ok()?;
        let (live, connecting) = (Mutex::default(), tokio::sync::Mutex::default());
        let connection = Arc::new(RedisConnection { client, live, connecting });
        known.push(Arc::downgrade(&connection));
        Some(connection)
    }
}

/// Includes the password: a node with a wrong password must not use the connection of another node.
fn is_same(one: &ConnectionInfo, other: &ConnectionInfo) -> bool {
    let (a, b) = (one.redis_settings(), other.redis_settings());
    one.addr() == other.addr()
        && (a.db(), a.protocol()) == (b.db(), b.protocol())
        && (a.username(), a.password()) == (b.username(), b.password())
}

impl RedisConnection {
    /// Runs a script within the time limit, and connects first if needed.
    ///
    /// If an older connection turns out to be lost, the script runs once more: running a script twice has no
    /// further effect.
    pub(crate) async fn run_script(
        &self,
        script: &ScriptInvocation<'_>,
        limit: Duration,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let late = |_| memory_error(format!("Redis did not answer within {} ms", limit.as_millis()));
        let deadline = Instant::now() + limit;
        let mut may_retry = true;
        loop {
            let (mut live, is_new) = timeout_at(deadline, self.connection()).await.map_err(late)??;
            match timeout_at(deadline, script.invoke_async(&mut live.connection)).await {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(error)) if is_lost(&error) => {
                    self.discard(&live);
                    if is_new || !may_retry {
                        return Err(failure_of(&error));
                    }
                    may_retry = false;
                }
                Ok(Err(error)) => return Err(failure_of(&error)),
                // On the same connection later answers would wait behind the late one.
                Err(elapsed) => {
                    self.discard(&live);
                    return Err(late(elapsed));
                }
            }
        }
    }

    /// The live connection, and whether it is new.
    async fn connection(&self) -> Result<(LiveConnection, bool), Failure> {
        if let Some(live) = self.lock().clone() {
            return Ok((live, false));
        }
        let _connecting = self.connecting.lock().await;
        if let Some(live) = self.lock().clone() {
            return Ok((live, false));
        }
        let connection = self.connect().await.map_err(|error| match error.kind() {
            ErrorKind::Server(ServerErrorKind::ResponseError) => {
                let db = self.client.get_connection_info().redis_settings().db();
                memory_error(format!("Redis refused to open the database {db}"))
            }
            _ => failure_of(&error),
        })?;
        let live = LiveConnection { connection, identity: Arc::default() };
        *self.lock() = Some(live.clone());
        Ok((live, true))
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        if matches!(self.client.get_connection_info().addr(), ConnectionAddr::TcpTls { .. }) {
            // Without a provider the library panics. If the process has one already, that one stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        // Every call has its own time limit.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Makes the next call open a new connection.
    fn discard(&self, lost: &LiveConnection) {
        let mut live = self.lock();
        if live.as_ref().is_some_and(|live| Arc::ptr_eq(&live.identity, &lost.identity)) {
            *live = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<LiveConnection>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error()
}

/// The failure in our words: those of Redis may quote data.
fn failure_of(error: &RedisError) -> Failure {
    let code = error.code().unwrap_or_default();
    match (error.kind(), code) {
        (ErrorKind::Io, _) => memory_error(phrases::redis_unreachable().text),
        (ErrorKind::AuthenticationFailed, _) | (_, "WRONGPASS") => {
            memory_error("Redis refused the user name or the password")
        }
        (_, "NOAUTH") => memory_error("Redis requires a password, and the node has none"),
        (_, "NOPERM") => memory_error("Redis does not allow this user the commands that a memory needs"),
        (_, "LOADING") => memory_error("Redis is still loading its data"),
        (_, "OOM") => memory_error("Redis is out of memory"),
        (_, code) if !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            memory_error(format!("Redis refused the command with {code}"))
        }
        _ => memory_error("Redis sent an unexpected answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::RedisConnections;
    use redis::{ConnectionInfo, IntoConnectionInfo};
    use std::sync::Arc;

    fn info(url: &str) -> ConnectionInfo {
        url.into_connection_info().unwrap()
    }

    #[test]
    fn nodes_with_the_same_address_share_a_connection_until_the_last_is_dropped() {
        let connections = RedisConnections::default();
        let first = connections.get_or_create(info("redis://u:p@h:1/2")).unwrap();
        assert!(Arc::ptr_eq(&first, &connections.get_or_create(info("redis://u:p@h:1/2")).unwrap()));
        let others = ["redis://u:p@h:1/3", "redis://v:p@h:1/2", "redis://u:q@h:1/2", "rediss://u:p@h:1/2"];
        for url in others.into_iter().chain(["redis://u:p@i:1/2", "redis://u:p@h:2/2"]) {
            assert!(!Arc::ptr_eq(&first, &connections.get_or_create(info(url)).unwrap()), "{url}");
        }
        drop(first);
        let last = connections.get_or_create(info("redis://other")).unwrap();
        assert_eq!(connections.0.lock().unwrap().len(), 1, "unused connections are removed");
        drop(last);
    }
}
