//! A sidecar: its engine, the flow in force, and its life from start to stop.

use crate::answer::Problem;
use crate::hub::{Hub, Sink};
use crate::in_force::{InForce, Prepared, Workshop};
use crate::routes;
use crate::settings::{Parts, Settings};
use redflow_contract::api::{ApiError, DeployAnswer, DeployRequest};
use redflow_contract::code::{ApiCode, DiagnosticCode};
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::event::FlowEvent;
use redflow_contract::id::InstanceId;
use redflow_door::Door;
use redflow_engine::{Engine, Ports};
use redflow_flow::RawFlow;
use redflow_ports::{Clock, Credentials, FlowShelf, Meter, RunCatalogue};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
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
    pub(crate) catalogue: Arc<dyn RunCatalogue>,
    pub(crate) door: Door,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) meter: Arc<dyn Meter>,
    pub(crate) metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(crate) workshop: Workshop,
    shelf: Arc<dyn FlowShelf>,
    in_force: RwLock<InForce>,
    /// One deploy at a time.
    deploying: tokio::sync::Mutex<()>,
    ready: AtomicBool,
    /// Told when it is to stop.
    pub(crate) stop: CancellationToken,
}

/// A sidecar that runs.
pub struct Sidecar {
    app: Arc<App>,
    pump: JoinHandle<()>,
}

impl Sidecar {
    /// Starts: the flow is in force, runs that were interrupted go on, inject nodes fire by themselves. Nobody can
    /// come in before [`Sidecar::serve`].
    ///
    /// # Errors
    /// When the flow cannot be read or used at all.
    pub async fn start(parts: Parts, settings: Settings) -> Result<Self, StartFailure> {
        let Parts { clock, store, catalogue, log, shelf, adapters, meter, metrics, env, source, tokens } =
            parts;
        let settings = Arc::new(settings);
        let workshop = Workshop { adapters: Arc::clone(&adapters), env, settings: Arc::clone(&settings) };
        let prepared = load(&workshop, &shelf).await?;
        let hub = Hub::new(log);
        let sink = Sink { hub: Arc::clone(&hub), clock: Arc::clone(&clock) };
        let ports = Ports {
            clock: Arc::clone(&clock),
            events: Arc::new(sink),
            store,
            adapters,
            instance: InstanceId::local(),
            source,
            meter: Arc::clone(&meter),
            env,
        };
        let Prepared { told, built, .. } = prepared;
        let door = Door::new(settings.door.clone(), tokens).map_err(StartFailure::Api)?;
        let app = Arc::new(App {
            engine: Engine::new(Some(built), ports, settings.engine_limits),
            door,
            hub: Arc::clone(&hub),
            catalogue,
            clock,
            settings,
            meter,
            metrics,
            workshop,
            shelf,
            in_force: RwLock::new(told),
            deploying: tokio::sync::Mutex::default(),
            ready: AtomicBool::new(false),
            stop: CancellationToken::new(),
        });
        let pump = tokio::spawn(hub.pump());
        let sidecar = Self { app, pump };
        sidecar.tell_deployed();
        sidecar.recover();
        Ok(sidecar)
    }

    /// What the checker says of the flow in force.
    #[must_use]
    pub fn report(&self) -> Arc<CheckReport> {
        self.app.in_force().report
    }

    /// How many agents the flow in force has, and how many of those are refused; none if there is no flow.
    #[must_use]
    pub fn agents(&self) -> Option<(usize, usize)> {
        let told = self.app.in_force();
        let agents = || told.list.flows.iter().flat_map(|flow| &flow.agents);
        (!told.is_empty).then(|| (agents().count(), agents().filter(|agent| !agent.ready).count()))
    }

    /// A path that lets one browser in.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn sign_in_path(&self) -> Result<String, ApiError> {
        let App { door, clock, .. } = &*self.app;
        Ok(door.sign_in_code(&door.owner(), clock.now())?.path)
    }

    /// Lets people in until it is to stop, then stops: readers are told, runs finish the effect they are at.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let Self { app, pump } = self;
        let router = routes::router(&app);
        let (closing, drain) = (app.stop.clone(), app.settings.drain);
        // Both at once: whoever waits for a run over a connection gets its answer when the run has stopped.
        let runs_stop = async {
            stop.cancelled().await;
            app.stop.cancel();
            app.engine.shutdown(drain).await;
        };
        let serving = redflow_door::listen::serve(listener, router, &app.settings.door, closing, drain);
        tokio::join!(serving, runs_stop);
        pump.abort();
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
        self.app.tell_deployed(&self.app.in_force());
    }
}

impl App {
    pub(crate) fn in_force(&self) -> InForce {
        self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) && !self.stop.is_cancelled()
    }

    fn tell_deployed(&self, told: &InForce) {
        let agents = told.list.flows.iter().flat_map(|flow| &flow.agents);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let event = FlowEvent::Deployed {
            revision: told.revision().to_owned(),
            agents: count(agents.clone().count()),
            refused: count(agents.filter(|agent| !agent.ready).count()),
        };
        self.hub.log.append(self.clock.now(), event);
    }

    /// Puts a flow in force: checked, kept, and only then running.
    pub(crate) async fn deploy(&self, request: DeployRequest) -> Result<DeployAnswer, Problem> {
        let _turn = self.deploying.lock().await;
        let before = self.in_force();
        check_revision(&request, &before)?;
        let workshop = self.workshop.clone();
        let credentials = Arc::clone(&before.credentials);
        let prepare = move || {
            let raw = RawFlow::from_value(request.flows, &workshop.settings.flow_limits)?.into_array();
            refuse_odd_credentials(&raw)?;
            let prepared = workshop.prepare(raw, &credentials)?;
            if prepared.told.report.ok { Ok(prepared) } else { Err((*prepared.told.report).clone()) }
        };
        let Prepared { told, built, shelved } = blocking(prepare).await?.map_err(refused)?;
        let shelf = Arc::clone(&self.shelf);
        blocking(move || shelf.save(&shelved)).await??;
        self.engine.deploy(built).await;
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = told.clone();
        self.tell_deployed(&told);
        Ok(DeployAnswer { revision: told.revision().to_owned(), report: (*told.report).clone() })
    }
}

fn check_revision(request: &DeployRequest, before: &InForce) -> Result<(), Problem> {
    let why = match &request.revision {
        _ if request.force => return Ok(()),
        Some(revision) if revision == before.revision() => return Ok(()),
        None if before.is_empty => return Ok(()),
        Some(_) => {
            "Another flow has been deployed since that revision. Get it, merge, and deploy with its revision."
        }
        None => {
            "Say which revision this flow was made from, or `force: true` to deploy whatever is in force."
        }
    };
    let revision = Some(before.revision().to_owned());
    Err(ApiError { revision, ..ApiError::new(ApiCode::RevisionConflict, why) }.into())
}

/// Credentials that cannot be kept are refused, not forgotten.
fn refuse_odd_credentials(raw: &RawFlow) -> Result<(), CheckReport> {
    let diagnostics: Vec<Diagnostic> = raw
        .odd_credentials()
        .into_iter()
        .take(MAX_LISTED)
        .map(|node| {
            let message = "`credentials` must be an object of names and values".to_owned();
            let help = "Send {\"name\": \"value\"}, or leave them out to keep those the node has.".to_owned();
            let pointer = Some("/credentials".to_owned());
            let found = Diagnostic::new(DiagnosticCode::ConfigInvalid, message, help);
            Diagnostic { node: Some(node), pointer, ..found }
        })
        .collect();
    if diagnostics.is_empty() { Ok(()) } else { Err(CheckReport { diagnostics, ..CheckReport::default() }) }
}

/// Problems of one kind that are listed.
const MAX_LISTED: usize = 100;

/// The flow has errors.
pub(crate) fn refused(report: CheckReport) -> Problem {
    let text = "The flow has errors, each with how to mend it in `report`. Nothing was changed.";
    ApiError { report: Some(report), ..ApiError::new(ApiCode::FlowRefused, text) }.into()
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

/// The flow that was put on the shelf last, or an empty one.
async fn load(workshop: &Workshop, shelf: &Arc<dyn FlowShelf>) -> Result<Prepared, StartFailure> {
    let (workshop, shelf) = (workshop.clone(), Arc::clone(shelf));
    let prepare = move || {
        let shelved = shelf.load().map_err(|error| {
            let (code, message) = (error.code, error.message);
            StartFailure::Api(ApiError { code, message, report: None, revision: None })
        })?;
        let (bytes, credentials) = shelved
            .map_or_else(|| (b"[]".to_vec(), Credentials::new()), |found| (found.flows, found.credentials));
        let raw = RawFlow::parse(&bytes, &workshop.settings.flow_limits).map_err(StartFailure::Flow)?;
        if raw.nodes().iter().any(|node| node.props.contains_key("credentials")) {
            tracing::warn!(
                "the flow file holds credentials in the open; take them out, and deploy them once: they are kept apart then"
            );
        }
        workshop.prepare(raw, &credentials).map_err(StartFailure::Flow)
    };
    let failed = |Problem(error): Problem| StartFailure::Api(*error);
    blocking(prepare).await.map_err(failed)?
}
