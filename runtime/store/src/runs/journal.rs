//! The journal of one run in the database, as the engine uses it.
//!
//! Owns the numbering of its batches and the wait for the writer. Never touches the database.

use super::batch::{JournalHandle, QueuedBatch};
use crate::error;
use crate::write_queue::WriteQueue;
use redflow_ports::{Batch, BoxFuture, Durability, Journal, NewRun, StoreError};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The largest batch. SQLite accepts four times as much in one value.
const MAX_BATCH_BYTES: usize = 256 * 1024 * 1024;

/// The approximate size of an event in the queue.
const EVENT_BYTES: usize = 512;

#[derive(Debug)]
pub(crate) struct StoreJournal {
    queue: WriteQueue,
    handle: Arc<JournalHandle>,
    new_run: Option<Box<NewRun>>,
    next_seq: i64,
}

impl StoreJournal {
    /// The journal of a new run.
    pub(crate) fn create(queue: WriteQueue, run: NewRun) -> Self {
        let handle = JournalHandle::new(run.run_id.clone());
        Self { queue, handle, new_run: Some(Box::new(run)), next_seq: 0 }
    }

    /// The journal of a stored run that has this many batches.
    pub(crate) fn reopen(queue: WriteQueue, handle: Arc<JournalHandle>, batches: i64) -> Self {
        Self { queue, handle, new_run: None, next_seq: batches }
    }
}

impl Journal for StoreJournal {
    fn append(&mut self, batch: Batch) -> BoxFuture<'_, Result<(), StoreError>> {
        // Counted here and not in the future: if the caller drops the future, the writer must see the gap.
        let seq = self.next_seq;
        self.next_seq += 1;
        let new_run = self.new_run.take();
        Box::pin(async move {
            if let Some(error) = self.handle.failure.get() {
                return Err(error.clone());
            }
            let bytes: usize = batch.lines.iter().map(|line| line.len() + 1).sum();
            if bytes > MAX_BATCH_BYTES {
                let error = error::batch_too_large(&self.handle.run, bytes);
                self.handle.fail(&error);
                return Err(error);
            }
            let (done, stored) = match batch.durability {
                Durability::Buffered => (None, None),
                Durability::Synced => {
                    let (done, stored) = oneshot::channel();
                    (Some(done), Some(stored))
                }
            };
            let bytes = bytes + batch.events.len() * EVENT_BYTES;
            let queued = QueuedBatch { handle: Arc::clone(&self.handle), new_run, seq, batch, bytes, done };
            self.queue.send_batch(queued).await?;
            match stored {
                None => Ok(()),
                Some(stored) => stored.await.unwrap_or_else(|_| Err(error::store_closed())),
            }
        })
    }
}
