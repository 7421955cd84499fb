//! A sidecar from start to stop: builds its parts, serves requests, and drains runs at the end.

use crate::active_flow::{FlowBuilder, PreparedFlow};
use crate::admin::editor_notices::EditorNotices;
use crate::admin::notice_writer;
use crate::agent_counts::AgentCounts;
use crate::app::{App, MAX_TOOL_CALLS, MAX_TRACE_STREAMS};
use crate::attached;
use crate::bridge::engine_parts::EngineParts;
use crate::bridge::{Bridge, run_requests};
use crate::console::files::Console;
use crate::deploy;
use crate::hub::{EngineObserver, Hub};
use crate::loop_delay::measure_loop_delay;
use crate::mcp;
use crate::mcp::server_state::McpServer;
use crate::mcp::streams::ClientEnd;
use crate::mcp_servers::MAX_CALLBACKS;
use crate::redflow_ui::frames::Frames;
use crate::redflow_ui::missed::remember_interrupted;
use crate::redflow_ui::stored_items::StoredItems;
use crate::refused_origins::RefusedOrigins;
use crate::response::Problem;
use crate::routes;
use crate::settings::{Parts, Settings};
use crate::start_failure::StartFailure;
use crate::tool_definitions::ToolDefinitions;
use crate::watchdog::Watchdog;
use crate::work_slots::WorkSlots;
use redflow_access::AccessControl;
use redflow_contract::api::ApiError;
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::id::InstanceId;
use redflow_engine::{Engine, Ports};
use redflow_node_red::NodeRed;
use redflow_ports::UiStorage;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The pause after sessions could not be written.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// A running sidecar. It accepts no connection before [`Sidecar::serve`].
pub struct Sidecar {
    app: Arc<App>,
    background: Vec<JoinHandle<()>>,
    watchdog: Watchdog,
}

impl Sidecar {
    /// Activates the stored flow, resumes interrupted runs and begins the schedules of inject nodes.
    ///
    /// # Errors
    /// When the flow or the stored data cannot be read, or the whole flow is refused.
    pub async fn start(parts: Parts, settings: Settings) -> Result<Self, StartFailure> {
        let Parts { clock, store, run_reader, log, flow_store, chats, manifests, .. } = parts;
        let Parts {
            ui_storage,
            knowledge,
            memories,
            adapters,
            mcp,
            meter,
            metrics,
            redactor,
            env,
            source,
            tokens,
            ..
        } = parts;
        let settings = Arc::new(settings);
        let work_slots = WorkSlots::new();
        let stored_items = open_stored_items(&work_slots, ui_storage).await?;
        let tool_definitions = ToolDefinitions::new(manifests, Arc::clone(&adapters), env, mcp);
        // Before the flow, whose check asks which node types have operations.
        let definitions = Arc::clone(&tool_definitions);
        let loaded = work_slots.run_blocking(move || definitions.load()).await;
        loaded.map_err(|Problem(error)| StartFailure::Api(*error))?.map_err(|diagnostics| {
            StartFailure::Manifest(CheckReport { diagnostics, ..CheckReport::default() })
        })?;
        tool_definitions.connect_servers();
        let flow_builder = FlowBuilder {
            adapters: Arc::clone(&adapters),
            env,
            settings: Arc::clone(&settings),
            registry: Arc::clone(&tool_definitions.registry),
            stored_items,
            instance: InstanceId::local(),
        };
        let PreparedFlow { active, built, .. } =
            deploy::load_stored(&work_slots, &flow_builder, &flow_store).await?;
        let hub = Hub::new(log);
        let frames = Frames::new(Arc::clone(&clock));
        let editor_notices = Arc::new(EditorNotices::new());
        let agent_counts = Arc::new(AgentCounts::default());
        let observer = EngineObserver {
            hub: Arc::clone(&hub),
            clock: Arc::clone(&clock),
            frames: Arc::clone(&frames),
            chats: Arc::clone(&chats),
            editor_notices: Arc::clone(&editor_notices),
            agent_counts: Arc::clone(&agent_counts),
        };
        let bridge = Bridge::new(EngineParts {
            clock: Arc::clone(&clock),
            store: Arc::clone(&store),
            run_reader: Arc::clone(&run_reader),
            meter: Arc::clone(&meter),
            hub: Arc::clone(&hub),
            agent_counts: Arc::clone(&agent_counts),
            flow_builder: flow_builder.clone(),
            work_slots: Arc::clone(&work_slots),
        });
        let ports = Ports {
            strategies: redflow_strategies::strategies().clone(),
            clock: Arc::clone(&clock),
            events: Arc::new(observer),
            store: Arc::clone(&store),
            adapters,
            instance: InstanceId::local(),
            source,
            host: None,
            // `run_requests` reads the requests of other processes, because a run can belong to any engine.
            takes_requests: false,
            registry: Arc::clone(&flow_builder.registry),
            principal: None,
            meter: Arc::clone(&meter),
            env,
        };
        frames.add_secrets(built.scrubber());
        let access = AccessControl::new(settings.access.clone(), tokens, clock.now());
        let access = access.map_err(StartFailure::Api)?;
        let app = Arc::new(App {
            engine: Engine::new(Some(built), ports, settings.engine_limits),
            access,
            refused_origins: RefusedOrigins::default(),
            console: Arc::new(Console::embedded()),
            hub: Arc::clone(&hub),
            store: Arc::clone(&store),
            run_reader,
            clock,
            mcp: McpServer::new(settings.max_body_bytes, settings.mcp_heartbeat),
            settings,
            meter,
            render_metrics: metrics,
            redactor,
            flow_builder,
            frames,
            editor_notices,
            agent_counts,
            tool_definitions,
            tool_calls: Arc::new(Semaphore::new(MAX_TOOL_CALLS as usize)),
            trace_streams: Arc::new(Semaphore::new(MAX_TRACE_STREAMS)),
            oauth_callbacks: Semaphore::new(MAX_CALLBACKS),
            bridge,
            chats,
            knowledge,
            memories,
            flow_store,
            active_flow: RwLock::new(active),
            deploy_lock: tokio::sync::Mutex::default(),
            attached: OnceLock::new(),
            work_slots,
            ready: AtomicBool::new(false),
            stop: CancellationToken::new(),
        });
        let newest = hub.log.bounds().newest;
        let background = vec![
            tokio::spawn(notice_writer::write_notices(Arc::clone(&app), newest)),
            tokio::spawn(run_requests::handle_requests(Arc::clone(&app))),
            tokio::spawn(measure_loop_delay(Arc::clone(&app.meter))),
            tokio::spawn(Arc::clone(&app.tool_definitions).watch()),
            tokio::spawn(save_sessions(Arc::clone(&app))),
            tokio::spawn(mcp::changes::watch_lists(Arc::clone(&app))),
            tokio::spawn(mcp::end_idle_sessions(Arc::clone(&app))),
        ];
        let watchdog = Watchdog::start(&app, store);
        let sidecar = Self { app, background, watchdog };
        deploy::log_deployed(&sidecar.app, &sidecar.app.active_flow());
        sidecar.recover();
        Ok(sidecar)
    }

    /// The checker's report on the active flow.
    #[must_use]
    pub fn report(&self) -> Arc<CheckReport> {
        self.app.active_flow().report
    }

    /// How many agents the active flow has, and how many of them are refused; none without a flow.
    #[must_use]
    pub fn agents(&self) -> Option<(usize, usize)> {
        let active = self.app.active_flow();
        let refused = active.agents().filter(|agent| !agent.ready).count();
        (!active.is_empty).then(|| (active.agents().count(), refused))
    }

    /// Attaches a Node-RED without the bridge: checks the flow that is deployed there, and forwards requests
    /// of the Redflow UI to it. Call it before [`Sidecar::serve`].
    pub fn attach(&self, node_red: NodeRed) {
        attached::attach(&self.app, node_red);
    }

    /// A path with a one-time code that signs in one browser.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn sign_in_path(&self) -> Result<String, ApiError> {
        let App { access, clock, .. } = &*self.app;
        Ok(access.sign_in_code(&access.owner(), clock.now())?.path)
    }

    /// Serves requests until `stop` is cancelled. Then sockets are closed, and runs finish their current
    /// effect.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let app = &self.app;
        let router = routes::router(app);
        let (closing, drain) = (app.stop.clone(), app.settings.drain_timeout);
        // Both at once: a client that waits for a run gets its response when the run has stopped.
        let stop_runs = async {
            stop.cancelled().await;
            stop_runs(app).await;
        };
        let serving = redflow_access::listen::serve(listener, router, &app.settings.access, closing, drain);
        tokio::join!(serving, stop_runs);
        self.end().await;
    }

    /// Serves one MCP client over a pair of byte streams, with the rights of the main token, until it closes its stream
    /// or `stop` is cancelled, or it sends a message that is too long. The sidecar has no listener then.
    pub async fn serve_mcp<R, W>(self, reader: R, writer: W, stop: CancellationToken) -> ClientEnd
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let owner = self.app.access.owner();
        let end = mcp::streams::serve_client(&self.app, owner, reader, writer, &stop).await;
        stop_runs(&self.app).await;
        self.end().await;
        end
    }

    /// Ends what still works, and saves what must be kept.
    async fn end(self) {
        let Self { app, background, watchdog } = self;
        background.iter().for_each(JoinHandle::abort);
        app.mcp.stop().await;
        if let Some(mcp) = app.tool_definitions.registry.mcp() {
            mcp.stop().await;
        }
        app.save_sessions().await;
        // It holds the store, which is closed when nothing holds it.
        drop(watchdog);
    }

    /// Resumes interrupted runs in the background, then begins the schedules of inject nodes.
    fn recover(&self) {
        let app = Arc::clone(&self.app);
        tokio::spawn(async move {
            let never_cancelled = CancellationToken::new();
            remember_interrupted(&app).await;
            // The order of the two requests matters: interrupted runs come before new ones.
            let begin = async {
                app.engine.begin_schedules().await;
                app.ready.store(true, Ordering::Relaxed);
            };
            let (recovered, ()) = tokio::join!(biased; app.engine.recover(&never_cancelled), begin);
            if let Err(error) = recovered {
                tracing::error!(code = error.code.as_str(), "could not recover runs: {}", error.message);
            }
        });
    }
}

/// Lets runs finish their current effect, and calls of tools end.
async fn stop_runs(app: &App) {
    let drain = app.settings.drain_timeout;
    app.stop.cancel();
    // Calls of tools end at once, and must be in the log.
    let tool_calls = app.tool_calls.acquire_many(MAX_TOOL_CALLS);
    let calls_end = tokio::time::timeout(drain, tool_calls);
    let _ = tokio::join!(app.engine.shutdown(drain), app.bridge.shutdown(drain), calls_end);
}

/// Writes changed sessions to their file, and repeats a write that failed.
async fn save_sessions(app: Arc<App>) {
    loop {
        app.access.sessions_changed().await;
        while !app.save_sessions().await {
            tokio::time::sleep(SAVE_INTERVAL).await;
        }
    }
}

async fn open_stored_items(
    work_slots: &WorkSlots,
    ui_storage: Arc<dyn UiStorage>,
) -> Result<Arc<StoredItems>, StartFailure> {
    let failed = |Problem(error): Problem| StartFailure::Api(*error);
    let open = move || StoredItems::open(ui_storage).map_err(Problem::from);
    work_slots.run_blocking(open).await.and_then(|opened| opened).map_err(failed)
}
