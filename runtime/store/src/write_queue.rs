//! The queue in front of the writer thread.
//!
//! Owns what can be queued, and the limit on queued batches: a caller waits until there is space. Everything
//! else is small or has a limit of its own, and is queued without waiting.

use crate::chats::queue::QueuedChatItem;
use crate::error;
use crate::events::body::erased_json;
use crate::events::queue::QueuedFlowEvent;
use crate::removed_runs::RemovedRuns;
use crate::runs::batch::{JournalHandle, QueuedBatch};
use redflow_contract::code::StoreCode;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::memory::DataOwner;
use redflow_ports::{ForgottenRuns, JournalPosition, StoreError};
use std::sync::Arc;
#[cfg(test)]
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};

/// The space for batches that wait or are being written, in units of [`UNIT_BYTES`]: 4096 batches, or 16 MiB.
const SPACE_UNITS: u32 = 4096;
const UNIT_BYTES: usize = 4096;

#[allow(clippy::large_enum_variant, reason = "nearly all are batches, which a box would only slow down")]
#[derive(Debug)]
pub(crate) enum WriteCommand {
    Batch(QueuedBatch),
    Reopen {
        handle: Arc<JournalHandle>,
        mark: JournalPosition,
    },
    /// None once the writer has moved it to its list of retries.
    Background(Option<BackgroundWrite>),
    /// Remove the items of a chat up to this number.
    ClearChat {
        node: NodeId,
        until: i64,
        done: oneshot::Sender<Result<(), StoreError>>,
    },
    /// Remove the runs of an owner. `forgotten` is set in the transaction of the group.
    Forget {
        owner: DataOwner,
        forgotten: Option<Result<(ForgottenRuns, RemovedRuns), StoreError>>,
        done: oneshot::Sender<Result<ForgottenRuns, StoreError>>,
    },
    /// Answer when everything queued before this is done.
    Barrier(oneshot::Sender<()>),
    Stop,
    #[cfg(test)]
    Sql(String, oneshot::Sender<()>),
    #[cfg(test)]
    BusyTimeout(Duration),
}

/// A small write that no caller waits for. The writer retries it if it fails.
#[derive(Debug)]
pub(crate) enum BackgroundWrite {
    /// The result of this run is delivered.
    Delivered(RunId),
    /// A computation of this run holds the process, or does no longer.
    Hung {
        run: RunId,
        hung: bool,
    },
    /// The answer to a request of another process.
    Answer {
        request: i64,
        refused: Option<StoreCode>,
    },
    FlowEvent(QueuedFlowEvent),
    ChatItem(QueuedChatItem),
}

impl BackgroundWrite {
    /// Whether it would store words of removed runs again.
    pub(crate) fn belongs_to(&self, removed: &RemovedRuns) -> bool {
        match self {
            Self::FlowEvent(event) => erased_json(&event.body.json, removed).is_some(),
            Self::ChatItem(item) => {
                serde_json::from_str(&item.json).is_ok_and(|item| removed.has_item(&item))
            }
            Self::Delivered(run) | Self::Hung { run, .. } => removed.contains(run),
            Self::Answer { .. } => false,
        }
    }

    /// Whether a failed write is worth a retry. Debug events are not: the flow is complete without them.
    pub(crate) fn is_worth_retrying(&self) -> bool {
        !matches!(self, Self::FlowEvent(event) if event.is_debug())
    }

    /// Gives up a write that could not be stored, and counts or reports the loss.
    pub(crate) fn give_up(self) {
        match self {
            Self::FlowEvent(event) => event.give_up(),
            Self::ChatItem(item) => item.give_up(),
            Self::Delivered(_) | Self::Hung { .. } | Self::Answer { .. } => {}
        }
    }
}

/// The sending side.
#[derive(Debug, Clone)]
pub(crate) struct WriteQueue {
    commands: UnboundedSender<WriteCommand>,
    space: Arc<Semaphore>,
}

/// The receiving side. Closes the space when it is dropped, so that no caller waits for space in vain.
#[derive(Debug)]
pub(crate) struct WriteQueueReceiver {
    pub(crate) commands: UnboundedReceiver<WriteCommand>,
    space: Arc<Semaphore>,
}

impl WriteQueue {
    pub(crate) fn new() -> (Self, WriteQueueReceiver) {
        let (sender, receiver) = unbounded_channel();
        let space = Arc::new(Semaphore::new(SPACE_UNITS as usize));
        let receiver = WriteQueueReceiver { commands: receiver, space: Arc::clone(&space) };
        (Self { commands: sender, space }, receiver)
    }

    /// Queues a batch, once there is space.
    pub(crate) async fn send_batch(&self, batch: QueuedBatch) -> Result<(), StoreError> {
        let space = self.space.acquire_many(space_units(batch.bytes)).await;
        // The writer releases it after the write.
        space.map_err(|_| error::store_closed())?.forget();
        self.send(WriteCommand::Batch(batch))
    }

    pub(crate) fn send(&self, command: WriteCommand) -> Result<(), StoreError> {
        self.commands.send(command).map_err(|_| error::store_closed())
    }

    /// Waits until everything queued so far is done.
    pub(crate) async fn wait_until_written(&self) -> Result<(), StoreError> {
        let (done, written) = oneshot::channel();
        self.send(WriteCommand::Barrier(done))?;
        written.await.map_err(|_| error::store_closed())
    }
}

impl WriteQueueReceiver {
    pub(crate) fn release_space(&self, units: usize) {
        self.space.add_permits(units);
    }
}

impl Drop for WriteQueueReceiver {
    fn drop(&mut self) {
        self.space.close();
    }
}

/// The share of the space that a batch of this size takes.
pub(crate) fn space_units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(SPACE_UNITS).clamp(1, SPACE_UNITS)
}
