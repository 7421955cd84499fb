//! The journal of one run, as its driver holds it.
//!
//! Owns the numbering of its batches and the wait for the writer. Never touches the database.

use crate::error;
use crate::writer::Queue;
use redflow_contract::id::RunId;
use redflow_ports::{Batch, BoxFuture, Durability, Journal, NewRun, StoreError};
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

/// The most bytes of one batch. SQLite takes four times that in one value.
const MAX_BATCH_BYTES: usize = 256 * 1024 * 1024;

/// About how large an event is while it waits.
const EVENT_BYTES: usize = 512;

/// Who writes a journal. The writer knows the one in force by its address.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) run: RunId,
    /// Why nothing more is kept.
    pub(crate) failed: OnceLock<StoreError>,
}

impl Handle {
    pub(crate) fn new(run: RunId) -> Arc<Self> {
        Arc::new(Self { run, failed: OnceLock::new() })
    }

    /// Lets nothing more be kept. The first reason stays.
    pub(crate) fn fail(&self, why: &StoreError) {
        let _ = self.failed.set(why.clone());
    }
}

/// A batch on its way to the writer.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) handle: Arc<Handle>,
    /// The run, with its first batch.
    pub(crate) start: Option<Box<NewRun>>,
    pub(crate) seq: i64,
    pub(crate) batch: Batch,
    /// How large it is.
    pub(crate) bytes: usize,
    /// Who waits until it is kept.
    pub(crate) done: Option<oneshot::Sender<Result<(), StoreError>>>,
}

impl Sent {
    /// Tells whoever waits. Only the first time counts.
    pub(crate) fn answer(&mut self, result: Result<(), StoreError>) {
        if let Some(done) = self.done.take() {
            let _ = done.send(result);
        }
    }
}

/// A journal in the database.
#[derive(Debug)]
pub(crate) struct StoreJournal {
    queue: Queue,
    handle: Arc<Handle>,
    start: Option<Box<NewRun>>,
    next: i64,
}

impl StoreJournal {
    /// Of a run that begins.
    pub(crate) fn begin(queue: Queue, run: NewRun) -> Self {
        let handle = Handle::new(run.run_id.clone());
        Self { queue, handle, start: Some(Box::new(run)), next: 0 }
    }

    /// Of a run that goes on.
    pub(crate) fn go_on(queue: Queue, handle: Arc<Handle>, batches: i64) -> Self {
        Self { queue, handle, start: None, next: batches }
    }
}

impl Journal for StoreJournal {
    fn append(&mut self, batch: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        // Counted here and not in the future: if that is dropped half-way, the writer must see the gap.
        let seq = self.next;
        self.next += 1;
        let start = self.start.take();
        Box::pin(async move {
            if let Some(error) = self.handle.failed.get() {
                return Err(error.clone());
            }
            let bytes: usize = batch.lines.iter().map(|line| line.len() + 1).sum();
            if bytes > MAX_BATCH_BYTES {
                let why = error::too_large(&self.handle.run, bytes);
                self.handle.fail(&why);
                return Err(why);
            }
            let (done, kept) = match batch.durability {
                Durability::Buffered => (None, None),
                Durability::Synced => {
                    let (done, kept) = oneshot::channel();
                    (Some(done), Some(kept))
                }
            };
            let bytes = bytes + batch.events.len() * EVENT_BYTES;
            let sent = Sent { handle: Arc::clone(&self.handle), start, seq, batch, bytes, done };
            self.queue.batch(sent).await?;
            match kept {
                None => Ok(()),
                Some(kept) => kept.await.unwrap_or_else(|_| Err(error::closed())),
            }
        })
    }
}
