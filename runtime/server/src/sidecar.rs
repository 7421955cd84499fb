//! A sidecar: its engine, the flow in force, and its life from start to stop.

use crate::active_flow::{ActiveFlow, FlowBuilder, Prepared};
use crate::admin::editor_notices::{self, EditorNotices};
use crate::answer::Problem;
use crate::attached::{self, AttachedNodeRed};
use crate::bridge::{Bridge, EngineParts};
use crate::guard::RefusedOrigins;
use crate::hub::{Hub, Sink};
use crate::redflow_ui::frames::Frames;
use crate::redflow_ui::stored::Stored;
use crate::routes;
use crate::settings::{Parts, Settings};
use redflow_access::AccessControl;
use redflow_contract::api::ApiError;
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::InstanceId;
use redflow_engine::{Engine, Ports};
use redflow_flow::RawFlow;
use redflow_node_red::NodeRed;
use redflow_ports::{ChatStore, Clock, Credentials, FlowStore, Meter, RunReader, UiStorage};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Why a sidecar does not start.
#[derive(Debug)]
pub enum StartFailure {
    /// The flow file cannot be used at all: every problem.
    Flow(CheckReport),
    /// Something else.
    Api(ApiError),
}

/// Everything the handlers of requests use.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) hub: Arc<Hub>,
    pub(crate) catalogue: Arc<dyn RunReader>,
    pub(crate) access: AccessControl,
    pub(crate) refused_origins: RefusedOrigins,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) meter: Arc<dyn Meter>,
    pub(crate) metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(crate) flow_builder: FlowBuilder,
    pub(crate) frames: Arc<Frames>,
    pub(crate) board: EditorNotices,
    /// The Node-REDs whose agents run here.
    pub(crate) bridge: Bridge,
    pub(crate) chats: Arc<dyn ChatStore>,
    pub(crate) shelf: Arc<dyn FlowStore>,
    pub(crate) active_flow: RwLock<ActiveFlow>,
    /// One deploy at a time.
    pub(crate) deploying: tokio::sync::Mutex<()>,
    /// The Node-RED it stands beside.
    pub(crate) beside: OnceLock<Arc<AttachedNodeRed>>,
    ready: AtomicBool,
    /// Told when it is to stop.
    pub(crate) stop: CancellationToken,
}

/// A sidecar that runs.
pub struct Sidecar {
    app: Arc<App>,
    pump: JoinHandle<()>,
    board: JoinHandle<()>,
    requests: JoinHandle<()>,
}

impl Sidecar {
    /// Starts: the flow is in force, runs that were interrupted go on, inject nodes fire by themselves. Nobody can
    /// come in before [`Sidecar::serve`].
    ///
    /// # Errors
    /// When the flow cannot be read or used at all.
    pub async fn start(parts: Parts, settings: Settings) -> Result<Self, StartFailure> {
        let Parts { clock, store, catalogue, log, shelf, chats, drawer, adapters, .. } = parts;
        let Parts { meter, metrics, env, source, tokens, .. } = parts;
        let settings = Arc::new(settings);
        let stored = open_stored(drawer).await?;
        let flow_builder = FlowBuilder {
            adapters: Arc::clone(&adapters),
            env,
            settings: Arc::clone(&settings),
            stored,
            instance: InstanceId::local(),
        };
        let prepared = load(&flow_builder, &shelf).await?;
        let hub = Hub::new(log);
        let frames = Frames::new(Arc::clone(&clock));
        let (of_sink, chats_of_sink) = (Arc::clone(&frames), Arc::clone(&chats));
        let sink =
            Sink { hub: Arc::clone(&hub), clock: Arc::clone(&clock), frames: of_sink, chats: chats_of_sink };
        let bridge = Bridge::new(EngineParts {
            clock: Arc::clone(&clock),
            store: Arc::clone(&store),
            catalogue: Arc::clone(&catalogue),
            meter: Arc::clone(&meter),
            hub: Arc::clone(&hub),
            flow_builder: flow_builder.clone(),
        });
        let ports = Ports {
            clock: Arc::clone(&clock),
            events: Arc::new(sink),
            store,
            adapters,
            instance: InstanceId::local(),
            source,
            host: None,
            // What other processes ask may be of runs of any engine.
            listens: false,
            meter: Arc::clone(&meter),
            env,
        };
        let Prepared { told, built, .. } = prepared;
        frames.knows(built.scrubber());
        let access = AccessControl::new(settings.access.clone(), tokens).map_err(StartFailure::Api)?;
        let app = Arc::new(App {
            engine: Engine::new(Some(built), ports, settings.engine_limits),
            access,
            refused_origins: RefusedOrigins::default(),
            hub: Arc::clone(&hub),
            catalogue,
            clock,
            settings,
            meter,
            metrics,
            flow_builder,
            frames,
            board: EditorNotices::new(),
            bridge,
            chats,
            shelf,
            active_flow: RwLock::new(told),
            deploying: tokio::sync::Mutex::default(),
            beside: OnceLock::new(),
            ready: AtomicBool::new(false),
            stop: CancellationToken::new(),
        });
        let before = hub.log.bounds().newest;
        let pump = tokio::spawn(hub.pump());
        let board = tokio::spawn(editor_notices::keep(Arc::clone(&app), before));
        let requests = tokio::spawn(Arc::clone(&app).hear_requests());
        let sidecar = Self { app, pump, board, requests };
        sidecar.tell_deployed();
        sidecar.recover();
        Ok(sidecar)
    }

    /// What the checker says of the flow in force.
    #[must_use]
    pub fn report(&self) -> Arc<CheckReport> {
        self.app.active_flow().report
    }

    /// How many agents the flow in force has, and how many of those are refused; none if there is no flow.
    #[must_use]
    pub fn agents(&self) -> Option<(usize, usize)> {
        let told = self.app.active_flow();
        let agents = || told.list.flows.iter().flat_map(|flow| &flow.agents);
        (!told.is_empty).then(|| (agents().count(), agents().filter(|agent| !agent.ready).count()))
    }

    /// Stands beside a Node-RED without the bridge: checks what is deployed there, and lets requests of the Redflow UI go
    /// on to it. Before [`Sidecar::serve`].
    pub fn attach(&self, node_red: NodeRed) {
        attached::begin(&self.app, node_red);
    }

    /// A path that lets one browser in.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn sign_in_path(&self) -> Result<String, ApiError> {
        let App { access, clock, .. } = &*self.app;
        Ok(access.sign_in_code(&access.owner(), clock.now())?.path)
    }

    /// Lets people in until it is to stop, then stops: readers are told, runs finish the effect they are at.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let Self { app, pump, board, requests } = self;
        let router = routes::router(&app);
        let (closing, drain) = (app.stop.clone(), app.settings.drain);
        // Both at once: whoever waits for a run over a connection gets its answer when the run has stopped.
        let runs_stop = async {
            stop.cancelled().await;
            app.stop.cancel();
            tokio::join!(app.engine.shutdown(drain), app.bridge.shutdown(drain));
        };
        let serving = redflow_access::listen::serve(listener, router, &app.settings.access, closing, drain);
        tokio::join!(serving, runs_stop);
        requests.abort();
        pump.abort();
        board.abort();
    }

    /// Brings runs back; what comes of them is seen by whoever looks.
    fn recover(&self) {
        let app = Arc::clone(&self.app);
        tokio::spawn(async move {
            let goes_on = CancellationToken::new();
            // Asked for in this order: what was interrupted comes before what begins.
            let begin = async {
                app.engine.begin_schedules().await;
                app.ready.store(true, Ordering::Relaxed);
            };
            let (recovered, ()) = tokio::join!(biased; app.engine.recover(&goes_on), begin);
            if let Err(error) = recovered {
                tracing::error!(
                    code = error.code.as_str(),
                    "runs could not be brought back: {}",
                    error.message
                );
            }
        });
    }

    fn tell_deployed(&self) {
        self.app.tell_deployed(&self.app.active_flow());
    }
}

impl App {
    pub(crate) fn active_flow(&self) -> ActiveFlow {
        self.active_flow.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) && !self.stop.is_cancelled()
    }

    pub(crate) fn tell_deployed(&self, told: &ActiveFlow) {
        let agents = told.list.flows.iter().flat_map(|flow| &flow.agents);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let event = FlowEvent::Deployed {
            revision: told.revision().to_owned(),
            agents: count(agents.clone().count()),
            refused: count(agents.filter(|agent| !agent.ready).count()),
            instance: None,
        };
        self.hub.log.append(self.clock.now(), event);
    }
}

/// Things that take long and are done at the same time.
static HEAVY: Semaphore = Semaphore::const_new(4);

/// Does something that takes long beside everything else.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let _turn = HEAVY.acquire().await;
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem::internal())
}

/// What the Redflow UI has stored.
async fn open_stored(drawer: Arc<dyn UiStorage>) -> Result<Arc<Stored>, StartFailure> {
    let failed = |Problem(error): Problem| StartFailure::Api(*error);
    let opened = blocking(move || Stored::open(drawer).map_err(Problem::from)).await;
    opened.and_then(|stored| stored).map_err(failed)
}

/// The flow that was put on the shelf last, or an empty one.
pub(crate) async fn load(
    flow_builder: &FlowBuilder,
    shelf: &Arc<dyn FlowStore>,
) -> Result<Prepared, StartFailure> {
    let (flow_builder, shelf) = (flow_builder.clone(), Arc::clone(shelf));
    let prepare = move || {
        let shelved = shelf.load().map_err(|error| {
            let (code, message) = (error.code, error.message);
            StartFailure::Api(ApiError { code, message, report: None, revision: None })
        })?;
        let (bytes, credentials) = shelved
            .map_or_else(|| (b"[]".to_vec(), Credentials::new()), |found| (found.flows, found.credentials));
        let mut raw =
            RawFlow::parse(&bytes, &flow_builder.settings.flow_limits).map_err(StartFailure::Flow)?;
        let keys = raw.extract_plain_keys(Some(&credentials));
        if keys > 0 {
            tracing::warn!(
                keys,
                "the flow file holds keys in the open; nobody is shown them, and the next deployment takes them out"
            );
        } else if raw.nodes().iter().any(|node| node.props.contains_key("credentials")) {
            tracing::warn!(
                "the flow file holds credentials in the open; take them out, and deploy them once: they are kept apart then"
            );
        }
        flow_builder.prepare(raw, &credentials).map_err(StartFailure::Flow)
    };
    let failed = |Problem(error): Problem| StartFailure::Api(*error);
    blocking(prepare).await.map_err(failed)?
}
