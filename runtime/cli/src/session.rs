//! A process that drives runs: its tokio runtime, its signals, and an engine over a store.

use crate::context::{AppContext, clock, process_env};
use crate::errors::print_store_error;
use crate::exit::Exit;
use crate::journal_files::{JournalFileError, JournalFiles};
use crate::loaded_flow::LoadedFlow;
use crate::signals::{RunLifetime, StopSignals, listen};
use crate::terminal::fail;
use crate::text::describe_io_error;
use crate::timeline::Timeline;
use redflow_contract::id::{InstanceId, Principal, RunId};
use redflow_engine::{Engine, Ports, RunReport, Start, build_flow};
use redflow_ports::{EventSink, RunStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The time that runs have to finish their current step when the process stops.
const DRAIN: Duration = Duration::from_secs(10);

/// The time that blocking tasks have to finish at the end of the process.
pub(crate) const BLOCKING_TASKS: Duration = Duration::from_secs(1);

pub(crate) struct Session {
    runtime: Runtime,
    signals: StopSignals,
}

/// One engine, and the work for it.
pub(crate) struct Job<'a> {
    pub(crate) flow: Option<LoadedFlow>,
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) journals: Option<&'a mut JournalFiles>,
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) work: Work,
}

pub(crate) enum Work {
    Start(Start),
    Resume(Vec<RunId>),
}

/// The ends of all runs of a job.
#[derive(Debug)]
pub(crate) struct JobOutcome {
    pub(crate) reports: Vec<RunReport>,
    /// The user cancelled the runs.
    pub(crate) cancelled: bool,
    /// The user suspended the runs.
    pub(crate) suspended: bool,
    /// The result of writing the journal files and of other side work.
    pub(crate) exit: Exit,
}

/// A runtime with one thread. The commands mostly wait, so more threads would not help.
pub(crate) fn new_runtime() -> Result<Runtime, Exit> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| cannot_start(&error))
}

pub(crate) fn cannot_start(error: &std::io::Error) -> Exit {
    fail(&format!("cannot start: {}", describe_io_error(error)))
}

/// Must be called inside a tokio runtime.
pub(crate) fn new_engine(
    context: &AppContext,
    flow: Option<LoadedFlow>,
    store: Arc<dyn RunStore>,
    events: Arc<dyn EventSink>,
) -> Engine {
    let adapters = Arc::clone(&context.adapters);
    let (checked, source) = flow.map(|flow| (flow.checked, flow.source)).unzip();
    let built =
        checked.map(|checked| build_flow(checked, &adapters, redflow_strategies::strategies(), &process_env));
    let ports = Ports {
        strategies: redflow_strategies::strategies().clone(),
        clock: clock(),
        events,
        store,
        adapters,
        source: source.flatten(),
        host: None,
        takes_requests: true,
        registry: Arc::clone(&context.registry),
        principal: Some(Principal::from("cli")),
        instance: InstanceId::local(),
        meter: context.metrics.clone(),
        env: process_env,
    };
    Engine::new(built, ports, context.settings.limits)
}

impl Session {
    /// Starts to listen for signals.
    pub(crate) fn start(lifetime: RunLifetime) -> Result<Self, Exit> {
        let (runtime, signals) = (new_runtime()?, StopSignals::default());
        listen(signals.clone(), lifetime).map_err(|error| cannot_start(&error))?;
        Ok(Self { runtime, signals })
    }

    /// Loads the tools of the data directory.
    pub(crate) fn load_tools(&self, context: &AppContext) -> Result<(), Exit> {
        let _entered = self.runtime.enter();
        context.load_tools()
    }

    /// Ends the connections and programs of MCP servers, after all runs.
    pub(crate) fn stop_servers(&self, context: &AppContext) {
        self.runtime.block_on(context.mcp.stop());
    }

    /// Waits for work that drives no run.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Ends without waiting long for blocking tasks, such as a check whose client has disconnected.
    pub(crate) fn end(self) {
        self.runtime.shutdown_timeout(BLOCKING_TASKS);
    }

    pub(crate) fn signals(&self) -> &StopSignals {
        &self.signals
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.signals.cancel.is_cancelled() || self.signals.suspend.is_cancelled()
    }

    /// Drives the runs of a job until all have stopped, or the user stops them.
    pub(crate) fn drive(&self, context: &AppContext, job: Job<'_>) -> JobOutcome {
        let Job { flow, store, journals, timeline, work } = job;
        let StopSignals { cancel, suspend } = &self.signals;
        let (reports, exit) = self.runtime.block_on(async {
            let engine = new_engine(context, flow, Arc::clone(&store), timeline);
            let drive = async {
                match work {
                    Work::Start(start) => engine.run(start, cancel).await,
                    Work::Resume(runs) => engine.resume(runs, cancel).await,
                }
            };
            let stop = async {
                suspend.cancelled().await;
                engine.shutdown(DRAIN).await;
                // `drive` ends now with the reports.
                std::future::pending().await
            };
            let reports = tokio::select! {
                biased;
                reports = drive => reports,
                () = stop => Vec::new(),
            };
            // Requests of other processes may have started more work.
            engine.shutdown(DRAIN).await;
            let exit = match journals {
                Some(files) => journal_exit(files.write(&reports, &*store).await),
                None => Exit::Success,
            };
            (reports, exit)
        });
        let (cancelled, suspended) = (cancel.is_cancelled(), suspend.is_cancelled());
        JobOutcome { reports, cancelled, suspended, exit }
    }
}

fn journal_exit(result: Result<(), JournalFileError>) -> Exit {
    match result {
        Ok(()) => Exit::Success,
        Err(JournalFileError::Store(error)) => print_store_error(error),
        Err(JournalFileError::File(text)) => fail(&text),
    }
}
