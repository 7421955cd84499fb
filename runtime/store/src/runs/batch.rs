//! A batch of journal lines on its way from a journal to the writer.

use redflow_contract::id::RunId;
use redflow_ports::{Batch, NewRun, StoreError};
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

/// The right to write one journal. The writer compares addresses to find out which handle has the right now.
#[derive(Debug)]
pub(crate) struct JournalHandle {
    pub(crate) run: RunId,
    /// Once set, the writer stores nothing more for this handle.
    pub(crate) failure: OnceLock<StoreError>,
}

impl JournalHandle {
    pub(crate) fn new(run: RunId) -> Arc<Self> {
        Arc::new(Self { run, failure: OnceLock::new() })
    }

    /// Marks the handle as failed. The first error stays.
    pub(crate) fn fail(&self, error: &StoreError) {
        let _ = self.failure.set(error.clone());
    }
}

/// A batch in the queue of the writer.
#[derive(Debug)]
pub(crate) struct QueuedBatch {
    pub(crate) handle: Arc<JournalHandle>,
    /// The new run; only with its first batch.
    pub(crate) new_run: Option<Box<NewRun>>,
    pub(crate) seq: i64,
    pub(crate) batch: Batch,
    /// Its share of the queue's space.
    pub(crate) bytes: usize,
    /// Answers the caller that waits until the batch is on the disk.
    pub(crate) done: Option<oneshot::Sender<Result<(), StoreError>>>,
}

impl QueuedBatch {
    /// Answers the caller, unless it was answered before.
    pub(crate) fn answer(&mut self, result: Result<(), StoreError>) {
        if let Some(done) = self.done.take() {
            let _ = done.send(result);
        }
    }
}
