//! The sessions of MCP clients, for versions of the protocol before 2026-07-28: whose they are, how many there are, and
//! when they end.
//!
//! A session belongs to the token that opened it. Every request of it is checked like any other request; the session
//! gives no rights.

use super::quota::{CallerQuota, QuotaError, QuotaPermit};
use crate::response::Problem;
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Sessions that are open at the same time. One token has at most half of them.
pub(crate) const MAX_SESSIONS: usize = 256;

/// Requests of one session that are under way at the same time.
pub(crate) const MAX_REQUESTS: usize = 64;

/// How long a session lives without a request and without an open stream.
pub(crate) const MAX_IDLE: Duration = Duration::from_secs(10 * 60);

/// The open sessions, by their ids.
pub(crate) struct McpSessions {
    open: Mutex<HashMap<String, SessionState>>,
    /// A permit for each session that is open or being opened.
    quota: Arc<CallerQuota>,
}

impl Default for McpSessions {
    fn default() -> Self {
        Self { open: Mutex::default(), quota: CallerQuota::new(MAX_SESSIONS) }
    }
}

struct SessionState {
    caller: Caller,
    _permit: QuotaPermit,
    /// The ids of the requests that are under way.
    requests: HashSet<String>,
    /// Requests and streams that are under way.
    uses: usize,
    last_use: Instant,
}

impl McpSessions {
    /// Reserves the permit of a new session.
    pub(super) fn reserve(self: &Arc<Self>, caller: Caller) -> Result<Reservation, Problem> {
        let permit = self.quota.take(&caller).map_err(|refusal| {
            let limit = match refusal {
                QuotaError::Full(most) => format!("{most} MCP sessions are open, which is the limit."),
                QuotaError::Caller(most) => {
                    format!("{most} MCP sessions of this token are open, which is the limit of one token.")
                }
            };
            let text = format!("{limit} End some with `DELETE /mcp`, or try again later.");
            Problem::new(ApiCode::TooManyConnections, text)
        })?;
        Ok(Reservation { sessions: Arc::clone(self), caller, permit })
    }

    /// Begins a request or a stream of a session. `request` is the id of the request.
    pub(super) fn enter(
        self: &Arc<Self>,
        session: &str,
        caller: &Caller,
        request: Option<String>,
    ) -> Result<SessionUse, Problem> {
        let mut open = self.open();
        let state = open.get_mut(session).filter(|state| state.caller.token_name == caller.token_name);
        let state = state.ok_or_else(|| {
            Problem::new(ApiCode::NotFound, "There is no such MCP session. Send `initialize` again.")
        })?;
        if let Some(request) = &request {
            if state.requests.len() >= MAX_REQUESTS {
                let text =
                    format!("{MAX_REQUESTS} requests of this session are under way, which is the limit.");
                return Err(Problem::new(ApiCode::RateLimited, text));
            }
            if !state.requests.insert(request.clone()) {
                let text = "A request with this id is under way. Use another id for each request.";
                return Err(Problem::new(ApiCode::RequestInvalid, text));
            }
        }
        state.uses += 1;
        Ok(SessionUse { sessions: Arc::clone(self), session: session.to_owned(), request })
    }

    /// Removes a session that its client has ended.
    pub(super) fn remove(&self, session: &str) {
        self.open().remove(session);
    }

    /// Removes the sessions that are idle, and those whose caller is no longer accepted. Gives their ids.
    pub(super) fn sweep(&self, now: Instant, is_accepted: impl Fn(&Caller) -> bool) -> Vec<String> {
        let mut ended = Vec::new();
        self.open().retain(|id, state| {
            let is_idle = state.uses == 0 && now.duration_since(state.last_use) >= MAX_IDLE;
            let stays = !is_idle && is_accepted(&state.caller);
            if !stays {
                ended.push(id.clone());
            }
            stays
        });
        ended
    }

    /// Removes all sessions, and gives their ids.
    pub(super) fn remove_all(&self) -> Vec<String> {
        self.open().drain().map(|(id, _)| id).collect()
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, SessionState>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permit of a session that is being opened.
pub(super) struct Reservation {
    sessions: Arc<McpSessions>,
    caller: Caller,
    permit: QuotaPermit,
}

impl Reservation {
    /// Opens the session.
    pub(super) fn open(self, session: String) {
        let Self { sessions, caller, permit } = self;
        let (requests, last_use) = (HashSet::new(), Instant::now());
        let state = SessionState { caller, _permit: permit, requests, uses: 0, last_use };
        sessions.open().insert(session, state);
    }
}

/// A request or a stream of a session. The session is in use until this is dropped.
pub(super) struct SessionUse {
    sessions: Arc<McpSessions>,
    session: String,
    request: Option<String>,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        if let Some(state) = self.sessions.open().get_mut(&self.session) {
            if let Some(request) = &self.request {
                state.requests.remove(request);
            }
            state.uses -= 1;
            state.last_use = Instant::now();
        }
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
