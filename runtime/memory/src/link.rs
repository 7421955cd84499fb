//! Connections to Redis: one per server, database and user, however many nodes use it.
//!
//! A link connects when it is first used, and again when the connection was lost. It waits no longer than the
//! caller says and keeps nothing for later: what fails, fails at once.

use crate::failed;
use redflow_contract::run_error::Failure;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError};
use redis::{RedisResult, ScriptInvocation, ServerErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The links that some node holds.
#[derive(Default)]
pub(crate) struct Links(Mutex<Vec<Weak<Link>>>);

pub(crate) struct Link {
    client: Client,
    live: Mutex<Option<Live>>,
    /// Held while connecting, so that a hundred callers make one connection.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    /// Tells connections apart.
    number: Arc<()>,
}

impl Links {
    /// The link to that server, database and user; a new one if no node holds one.
    pub(crate) fn to(&self, info: ConnectionInfo) -> Option<Arc<Link>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|link| link.strong_count() > 0);
        let same = |link: &Arc<Link>| is_same(link.client.get_connection_info(), &info);
        if let Some(link) = known.iter().filter_map(Weak::upgrade).find(same) {
            return Some(link);
        }
        let client = Client::open(info).ok()?;
        let link =
            Arc::new(Link { client, live: Mutex::default(), connecting: tokio::sync::Mutex::default() });
        known.push(Arc::downgrade(&link));
        Some(link)
    }
}

/// A node with another password may be somebody else.
fn is_same(one: &ConnectionInfo, other: &ConnectionInfo) -> bool {
    let (a, b) = (one.redis_settings(), other.redis_settings());
    one.addr() == other.addr()
        && (a.db(), a.protocol()) == (b.db(), b.protocol())
        && (a.username(), a.password()) == (b.username(), b.password())
}

impl Link {
    /// Runs a script, connecting first if need be, within the limit.
    ///
    /// On a connection from before that turns out to be lost, it is run once more: the scripts do nothing twice.
    pub(crate) async fn run(
        &self,
        script: &ScriptInvocation<'_>,
        limit: Duration,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let late = |_| failed(format!("Redis did not answer within {} ms", limit.as_millis()));
        let deadline = Instant::now() + limit;
        let mut again = true;
        loop {
            let (mut live, is_new) = timeout_at(deadline, self.live()).await.map_err(late)??;
            match timeout_at(deadline, script.invoke_async(&mut live.connection)).await {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(error)) if is_lost(&error) => {
                    self.forget(&live);
                    if is_new || !again {
                        return Err(refusal(&error));
                    }
                    again = false;
                }
                Ok(Err(error)) => return Err(refusal(&error)),
                // Answers that nobody waits for any more would pile up behind the ones that follow.
                Err(elapsed) => {
                    self.forget(&live);
                    return Err(late(elapsed));
                }
            }
        }
    }

    /// The connection, and whether it was made just now.
    async fn live(&self) -> Result<(Live, bool), Failure> {
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
                failed(format!("Redis refused to open the database {db}"))
            }
            _ => refusal(&error),
        })?;
        let live = Live { connection, number: Arc::default() };
        *self.lock() = Some(live.clone());
        Ok((live, true))
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        if matches!(self.client.get_connection_info().addr(), ConnectionAddr::TcpTls { .. }) {
            // Without one the library panics. Whoever came first has chosen.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        // Every call has its own time limit.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// The next call connects anew.
    fn forget(&self, lost: &Live) {
        let mut live = self.lock();
        if live.as_ref().is_some_and(|live| Arc::ptr_eq(&live.number, &lost.number)) {
            *live = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error()
}

/// What Redis, or the way there, had against it; in our words.
fn refusal(error: &RedisError) -> Failure {
    let code = error.code().unwrap_or_default();
    match (error.kind(), code) {
        (ErrorKind::Io, _) => failed("Redis cannot be reached"),
        (ErrorKind::AuthenticationFailed, _) | (_, "WRONGPASS") => {
            failed("Redis refused the user name or the password")
        }
        (_, "NOAUTH") => failed("Redis wants a password, and the node has none"),
        (_, "NOPERM") => failed("Redis does not let this user do what a memory does"),
        (_, "LOADING") => failed("Redis is still loading its data"),
        (_, "OOM") => failed("Redis is out of memory"),
        (_, code) if !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            failed(format!("Redis refused the command with {code}"))
        }
        _ => failed("Redis gave an answer that makes no sense"),
    }
}

#[cfg(test)]
mod tests {
    use super::Links;
    use redis::{ConnectionInfo, IntoConnectionInfo};
    use std::sync::Arc;

    fn info(url: &str) -> ConnectionInfo {
        url.into_connection_info().unwrap()
    }

    #[test]
    fn a_link_is_shared_by_those_who_mean_the_same_and_gone_with_the_last() {
        let links = Links::default();
        let first = links.to(info("redis://u:p@h:1/2")).unwrap();
        assert!(Arc::ptr_eq(&first, &links.to(info("redis://u:p@h:1/2")).unwrap()));
        let others = ["redis://u:p@h:1/3", "redis://v:p@h:1/2", "redis://u:q@h:1/2", "rediss://u:p@h:1/2"];
        for url in others.into_iter().chain(["redis://u:p@i:1/2", "redis://u:p@h:2/2"]) {
            assert!(!Arc::ptr_eq(&first, &links.to(info(url)).unwrap()), "{url}");
        }
        drop(first);
        let last = links.to(info("redis://other")).unwrap();
        assert_eq!(links.0.lock().unwrap().len(), 1, "nothing is kept of those that nobody holds");
        drop(last);
    }
}
