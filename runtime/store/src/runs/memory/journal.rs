//! The journal of a run in memory.

use super::{Runs, lock};
use crate::events::body;
use crate::events::log::EventLogHandle;
use redflow_contract::id::RunId;
use redflow_ports::{Batch, BoxFuture, Journal, NewRun, StoreError};
use std::sync::{Arc, Mutex};

/// Writes the journal of one run.
#[derive(Debug)]
pub(super) struct MemoryJournal {
    pub(super) runs: Arc<Mutex<Runs>>,
    pub(super) log: Option<EventLogHandle>,
    pub(super) run: RunId,
    pub(super) new_run: Option<Box<NewRun>>,
    pub(super) handle: u64,
    pub(super) next_seq: i64,
    pub(super) failure: Option<StoreError>,
}

impl MemoryJournal {
    fn store(&mut self, seq: i64, new_run: Option<Box<NewRun>>, batch: Batch) -> Result<(), StoreError> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        let bodies = self
            .log
            .as_ref()
            .map(|log| body::unwritten_run_events(&batch.events, log.settings.max_event_bytes).collect());
        let bodies: Vec<_> = bodies.unwrap_or_default();
        let mut runs = lock(&self.runs);
        let inserted = new_run.map_or(Ok(()), |run| runs.insert(*run, self.handle));
        let stored = inserted.and_then(|()| runs.append(&self.run, self.handle, seq, batch));
        if let (Ok(()), Some(log)) = (&stored, &self.log) {
            // While the lock is held, so that no other handle can write the run and mix up the order of
            // events.
            log.ring.append(bodies);
        }
        drop(runs);
        self.failure = stored.clone().err();
        stored
    }
}

impl Journal for MemoryJournal {
    fn append(&mut self, batch: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        // Counted here and not in the future: if the caller drops the future, the gap must show.
        let seq = self.next_seq;
        self.next_seq += 1;
        let new_run = self.new_run.take();
        Box::pin(async move { self.store(seq, new_run, batch) })
    }
}
