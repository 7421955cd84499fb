//! What all requests of MCP clients share: sessions, changes of the lists, and the calls that are under way.

use super::quota::CallerQuota;
use super::sessions::McpSessions;
use super::tool_list::KeptList;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Calls of agents that are under way at the same time. One token has at most half of them.
pub(crate) const MAX_AGENT_CALLS: usize = 256;

/// What the requests of MCP clients share.
pub(crate) struct McpServer {
    pub(super) protocol_sessions: Arc<LocalSessionManager>,
    /// Without the token that ends a stream.
    pub(super) protocol_config: StreamableHttpServerConfig,
    pub(super) sessions: Arc<McpSessions>,
    pub(super) tools: KeptList,
    pub(super) changes: ListChanges,
    /// A permit for each call of an agent.
    pub(super) agent_calls: Arc<CallerQuota>,
}

impl McpServer {
    pub(crate) fn new(max_body_bytes: usize, heartbeat: Duration) -> Self {
        let protocol_config = StreamableHttpServerConfig::default()
            // The guard has checked both.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_json_response(true)
            .with_sse_keep_alive(Some(heartbeat))
            .with_max_request_body_bytes(max_body_bytes);
        let mut protocol_sessions = LocalSessionManager::default();
        // A run can take longer than any silence. `McpSessions` ends idle sessions.
        protocol_sessions.session_config.keep_alive = None;
        Self {
            protocol_sessions: Arc::new(protocol_sessions),
            protocol_config,
            sessions: Arc::default(),
            tools: KeptList::default(),
            changes: ListChanges::default(),
            agent_calls: CallerQuota::new(MAX_AGENT_CALLS),
        }
    }

    /// Ends all sessions.
    pub(crate) async fn stop(&self) {
        for session in self.sessions.remove_all() {
            self.close(session).await;
        }
    }

    pub(super) async fn close(&self, session: String) {
        // Fails if the session has ended already, which is no problem.
        let _ = self.protocol_sessions.close_session(&session.into()).await;
    }
}

/// Counts the changes of the list of tools.
pub(crate) struct ListChanges(watch::Sender<u64>);

impl Default for ListChanges {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl ListChanges {
    /// A receiver of all later changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    /// Tells all receivers about a change.
    pub(super) fn count(&self) {
        self.0.send_modify(|count| *count += 1);
    }
}
