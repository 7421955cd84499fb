//! What the engine does to the outside world, written down: a clock, an event sink and journals.

use redflow_contract::Millis;
use redflow_contract::event::{FlowEvent, RunEvent};
use redflow_contract::id::RunId;
use redflow_ports::{BoxFuture, Clock, EventSink, Journal, JournalError, JournalStore};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// When every test begins: 2025-12-17T19:33:20Z.
pub(crate) const START: Millis = 1_766_000_000_000;

/// What goes wrong with the journals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalFault {
    /// Nothing.
    None,
    /// None can be opened.
    Open,
    /// The n-th append of each run fails.
    Append(usize),
}

/// Everything that was seen, in order.
pub(crate) struct Watch {
    begun: Instant,
    ids: AtomicU32,
    messages: AtomicU32,
    fault: JournalFault,
    watches_runs: bool,
    shown: Mutex<Vec<FlowEvent>>,
    events: Mutex<Vec<RunEvent>>,
    done: Mutex<Vec<String>>,
    journals: Mutex<BTreeMap<RunId, Vec<String>>>,
}

impl Watch {
    pub(crate) fn new(fault: JournalFault, watches_runs: bool) -> Self {
        Self {
            begun: Instant::now(),
            ids: AtomicU32::new(0),
            messages: AtomicU32::new(0),
            fault,
            watches_runs,
            shown: Mutex::default(),
            events: Mutex::default(),
            done: Mutex::default(),
            journals: Mutex::default(),
        }
    }

    /// Something was done to the world.
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.done.lock().unwrap().push(what.into());
    }

    /// What services did and were asked, without the journals.
    pub(crate) fn done(&self) -> Vec<String> {
        self.done_and_kept().into_iter().filter(|line| line != "journal").collect()
    }

    /// What services did and were asked; `journal` stands for each append.
    pub(crate) fn done_and_kept(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }

    /// The events of the flow.
    pub(crate) fn flow_events(&self) -> Vec<FlowEvent> {
        self.shown.lock().unwrap().clone()
    }

    /// The events of the flow, in a few words each.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap().iter().map(line).collect()
    }

    pub(crate) fn run_events(&self) -> Vec<RunEvent> {
        self.events.lock().unwrap().clone()
    }

    /// The journal of a run as a file would hold it.
    pub(crate) fn journal(&self, run: &RunId) -> String {
        self.journals.lock().unwrap().get(run).map(|lines| lines.join("\n")).unwrap_or_default()
    }
}

fn line(event: &FlowEvent) -> String {
    match event {
        FlowEvent::Debug { node, value, .. } => format!("{}: {value}", node.id),
        FlowEvent::NeedsNodeRed { node } => format!("{} needs Node-RED", node.id),
        FlowEvent::Uncaught { node, error } => {
            format!("{} uncaught {} #{}", node.id, error.code, error.source.count)
        }
        FlowEvent::ChainCut { node, limit } => format!("{} cut at {limit}", node.id),
    }
}

impl Clock for Watch {
    fn now(&self) -> Millis {
        START + u64::try_from(self.begun.elapsed().as_millis()).unwrap()
    }
    fn run_id(&self) -> RunId {
        RunId(format!("run-{}", self.ids.fetch_add(1, Ordering::Relaxed) + 1))
    }
    fn message_id(&self) -> String {
        format!("msg-{}", self.messages.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl EventSink for Watch {
    fn watches_runs(&self) -> bool {
        self.watches_runs
    }
    fn run_event(&self, event: &RunEvent) {
        self.events.lock().unwrap().push(event.clone());
    }
    fn flow_event(&self, event: &FlowEvent) {
        self.shown.lock().unwrap().push(event.clone());
    }
}

/// Keeps the lines of each run.
pub(crate) struct Journals(pub(crate) Arc<Watch>);

struct MemoryJournal {
    watch: Arc<Watch>,
    run: RunId,
    appends: usize,
}

impl JournalStore for Journals {
    fn open(&self, run: &RunId) -> Result<Box<dyn Journal>, JournalError> {
        if self.0.fault == JournalFault::Open {
            return Err(JournalError("no room".to_owned()));
        }
        let earlier = self.0.journals.lock().unwrap().insert(run.clone(), Vec::new());
        assert_eq!(earlier, None, "{run} opened twice");
        Ok(Box::new(MemoryJournal { watch: Arc::clone(&self.0), run: run.clone(), appends: 0 }))
    }
}

impl Journal for MemoryJournal {
    fn append<'a>(&'a mut self, lines: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            self.appends += 1;
            if self.watch.fault == JournalFault::Append(self.appends) {
                return Err(JournalError("disk full".to_owned()));
            }
            self.watch.note("journal");
            let mut journals = self.watch.journals.lock().unwrap();
            journals.get_mut(&self.run).unwrap().extend_from_slice(lines);
            Ok(())
        })
    }
}
