//! The state that all request handlers share.
//!
//! Imports no handler, so that every handler can import this file.

use crate::active_flow::{ActiveFlow, FlowBuilder};
use crate::admin::editor_notices::EditorNotices;
use crate::agent_counts::AgentCounts;
use crate::attached::node_red::AttachedNodeRed;
use crate::bridge::Bridge;
use crate::console::files::Console;
use crate::hub::Hub;
use crate::mcp::server_state::McpServer;
use crate::redflow_ui::frames::Frames;
use crate::refused_origins::RefusedOrigins;
use crate::response::Problem;
use crate::settings::Settings;
use crate::tool_definitions::ToolDefinitions;
use crate::work_slots::WorkSlots;
use redflow_access::AccessControl;
use redflow_engine::Engine;
use redflow_ports::{
    ChatStore, Clock, FlowStore, KnowledgeBases, Memories, Meter, RunReader, RunStore, TextRedactor,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The most calls of tools outside runs at a time. Others wait.
pub(crate) const MAX_TOOL_CALLS: u32 = 64;

/// The most traces that are streamed at a time.
pub(crate) const MAX_TRACE_STREAMS: usize = 64;

pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) hub: Arc<Hub>,
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) run_reader: Arc<dyn RunReader>,
    pub(crate) access: AccessControl,
    pub(crate) refused_origins: RefusedOrigins,
    /// The page that this build has.
    pub(crate) console: Arc<Console>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) meter: Arc<dyn Meter>,
    pub(crate) render_metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(crate) redactor: Arc<dyn TextRedactor>,
    pub(crate) flow_builder: FlowBuilder,
    pub(crate) frames: Arc<Frames>,
    pub(crate) editor_notices: Arc<EditorNotices>,
    pub(crate) agent_counts: Arc<AgentCounts>,
    pub(crate) tool_definitions: Arc<ToolDefinitions>,
    /// A permit for each call of a tool outside a run.
    pub(crate) tool_calls: Arc<Semaphore>,
    /// A permit for each trace that is streamed.
    pub(crate) trace_streams: Arc<Semaphore>,
    /// A permit for each sign-in that ends.
    pub(crate) oauth_callbacks: Semaphore,
    /// The sidecar as an MCP server.
    pub(crate) mcp: McpServer,
    /// The Node-REDs whose agents run here.
    pub(crate) bridge: Bridge,
    pub(crate) chats: Arc<dyn ChatStore>,
    pub(crate) knowledge: Arc<dyn KnowledgeBases>,
    pub(crate) memories: Arc<dyn Memories>,
    pub(crate) flow_store: Arc<dyn FlowStore>,
    pub(crate) active_flow: RwLock<ActiveFlow>,
    /// Held during a deploy, so that there is one at a time.
    pub(crate) deploy_lock: tokio::sync::Mutex<()>,
    /// The Node-RED without the bridge, set at most once.
    pub(crate) attached: OnceLock<Arc<AttachedNodeRed>>,
    pub(crate) work_slots: Arc<WorkSlots>,
    /// Set when the schedules of inject nodes have begun.
    pub(crate) ready: AtomicBool,
    /// Cancelled when the sidecar begins to stop.
    pub(crate) stop: CancellationToken,
}

impl App {
    pub(crate) fn active_flow(&self) -> ActiveFlow {
        self.active_flow.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) && !self.stop.is_cancelled()
    }

    /// Writes changed sessions to their file on another thread, and says whether the file has them now.
    pub(crate) async fn save_sessions(self: &Arc<Self>) -> bool {
        let app = Arc::clone(self);
        let saved = tokio::task::spawn_blocking(move || app.access.save_sessions()).await;
        if let Ok(Err(error)) = &saved {
            tracing::warn!(
                code = error.code.as_str(),
                "{} After a restart now, browsers that signed in would have to sign in again, and those that signed out \
                 would not.",
                error.message
            );
        }
        matches!(saved, Ok(Ok(())))
    }

    /// See [`WorkSlots::run_blocking`].
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        self.work_slots.run_blocking(work).await
    }
}
