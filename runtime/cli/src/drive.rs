//! A process that drives runs: its runtime, its signals, and an engine over a store.
//!
//! Owns the order in which these come and go. What becomes of the runs is told elsewhere.

use crate::files::reason;
use crate::flow_of::Flow;
use crate::interrupt::{Runs, Wishes, listen};
use crate::journal::{JournalFiles, Unwritten};
use crate::terminal::{complain, refuse};
use crate::timeline::Timeline;
use crate::{Exit, wiring};
use redflow_contract::id::{InstanceId, RunId};
use redflow_engine::{Engine, Ports, RunReport, Start, build_flow};
use redflow_ports::{EventSink, RunStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long runs may take to finish what they are at when the process is to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// How long work that cannot be stopped is waited for at the very end.
const LAST_WORK: Duration = Duration::from_secs(1);

/// A runtime, and an ear for signals.
pub(crate) struct Session {
    runtime: Runtime,
    wishes: Wishes,
}

/// What to drive, and where.
pub(crate) struct Drive<'a> {
    pub(crate) flow: Option<Flow>,
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) journals: Option<&'a mut JournalFiles>,
    pub(crate) timeline: Arc<Timeline>,
}

pub(crate) enum Work {
    Start(Start),
    Resume(Vec<RunId>),
}

/// How everything came to rest.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) reports: Vec<RunReport>,
    /// Whether the user wanted the runs to end.
    pub(crate) cancelled: bool,
    /// Whether the user wanted the runs to stop for now.
    pub(crate) suspended: bool,
    /// Whether what else was to be written is written.
    pub(crate) written: Exit,
}

/// A runtime for one thread: the work is waiting.
pub(crate) fn runtime() -> Result<Runtime, Exit> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| cannot_start(&error))
}

pub(crate) fn cannot_start(error: &std::io::Error) -> Exit {
    complain(&format!("cannot start: {}", reason(error)));
    Exit::Unusable
}

/// An engine; only inside a runtime.
pub(crate) fn engine(flow: Option<Flow>, store: Arc<dyn RunStore>, events: Arc<dyn EventSink>) -> Engine {
    let adapters = wiring::adapters();
    let (checked, source) = flow.map(|flow| (flow.checked, flow.source)).unzip();
    let built = checked.map(|checked| build_flow(checked, &adapters, &wiring::process_env));
    let ports = Ports {
        clock: wiring::clock(),
        events,
        store,
        adapters,
        source: source.flatten(),
        host: None,
        listens: true,
        instance: InstanceId::local(),
        meter: wiring::metrics(),
        env: wiring::process_env,
    };
    Engine::new(built, ports, wiring::limits())
}

impl Session {
    /// Listens to signals from now on.
    pub(crate) fn begin(runs: Runs) -> Result<Self, Exit> {
        let (runtime, wishes) = (runtime()?, Wishes::default());
        listen(wishes.clone(), runs).map_err(|error| cannot_start(&error))?;
        Ok(Self { runtime, wishes })
    }

    /// Waits for something that is no run.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Ends without waiting for what nobody needs any more, such as a check whose asker has gone.
    pub(crate) fn end(self) {
        self.runtime.shutdown_timeout(LAST_WORK);
    }

    /// What the user wants.
    pub(crate) fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    /// Whether the user wants no more to be driven.
    pub(crate) fn is_to_stop(&self) -> bool {
        self.wishes.cancel.is_cancelled() || self.wishes.suspend.is_cancelled()
    }

    /// Drives until nothing moves any more, or the user wants it to stop.
    pub(crate) fn drive(&self, drive: Drive<'_>, work: Work) -> Rest {
        let Drive { flow, store, journals, timeline } = drive;
        let Wishes { cancel, suspend } = &self.wishes;
        let (reports, written) = self.runtime.block_on(async {
            let engine = engine(flow, Arc::clone(&store), timeline);
            let follow = async {
                match work {
                    Work::Start(start) => engine.run(start, cancel).await,
                    Work::Resume(runs) => engine.resume(runs, cancel).await,
                }
            };
            let stop = async {
                suspend.cancelled().await;
                engine.shutdown(DRAIN).await;
                // The reports are on their way.
                std::future::pending().await
            };
            let reports = tokio::select! {
                biased;
                reports = follow => reports,
                () = stop => Vec::new(),
            };
            // Another process may have set off something else here meanwhile.
            engine.shutdown(DRAIN).await;
            let written = match journals {
                Some(files) => written(files.write(&reports, &*store).await),
                None => Exit::Well,
            };
            (reports, written)
        });
        let (cancelled, suspended) = (cancel.is_cancelled(), suspend.is_cancelled());
        Rest { reports, cancelled, suspended, written }
    }
}

fn written(result: Result<(), Unwritten>) -> Exit {
    match result {
        Ok(()) => Exit::Well,
        Err(Unwritten::Store(error)) => refuse(&error),
        Err(Unwritten::File(text)) => {
            complain(&text);
            Exit::Unusable
        }
    }
}
