//! The thread that writes.
//!
//! Owns the only connection that writes while runs are driven, and the queue in front of it. Takes everything
//! that is queued, writes it in one transaction and flushes once: what waits together is kept together. Never
//! stops for an error: a group that cannot be kept is refused whole, and the next one is tried. A database that
//! another program holds is no error for long: nothing was begun, so the group waits and grows.

use crate::error;
use crate::flow_queue::{FlowQueue, Losses};
use crate::journal::{Handle, Sent};
use crate::ledger::{Fault, Ledger, Mark};
use redflow_contract::id::NodeId;
use redflow_ports::{StoreError, StoreMark, failpoint};
use rusqlite::ErrorCode;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};

/// How much may be queued or being written, in parts of [`PART`] bytes: 4096 batches, or 16 MiB.
const ROOM: u32 = 4096;
const PART: usize = 4096;

/// How long a group waits for a program that holds the database, and how long between two tries. SQLite waits
/// by itself in most cases, not in all.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(10);

/// The most marks that are tried again after a failed write.
const MAX_LEFT_OVER: usize = 4096;

/// How often a mark is tried alone before it is given up, and how many of them after one group.
const TRIES: u32 = 100;
const ALONE: usize = 8;

/// After so many groups, what was asked and answered long ago is forgotten.
pub(crate) const FORGET_AFTER: u64 = 1000;

/// What the writer is asked.
#[allow(clippy::large_enum_variant, reason = "nearly all are batches, which a box would only slow down")]
#[derive(Debug)]
pub(crate) enum Command {
    Batch(Sent),
    Reopen {
        handle: Arc<Handle>,
        mark: StoreMark,
    },
    /// None once it is left over.
    Mark(Option<Mark>),
    /// Forget a chat, as far as something was said in it up to this number, and say when that is kept.
    ClearChat {
        node: NodeId,
        until: i64,
        done: oneshot::Sender<Result<(), StoreError>>,
    },
    /// Say when everything before this is done.
    Barrier(oneshot::Sender<()>),
    Stop,
    #[cfg(test)]
    Sql(String, oneshot::Sender<()>),
    #[cfg(test)]
    Patience(Duration),
}

/// The way to the writer. Batches wait for room; everything else is small and at most one per run.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    commands: UnboundedSender<Command>,
    room: Arc<Semaphore>,
}

impl Queue {
    pub(crate) async fn batch(&self, sent: Sent) -> Result<(), StoreError> {
        let room = self.room.acquire_many(parts(sent.bytes)).await.map_err(|_| error::closed())?;
        // The writer gives it back.
        room.forget();
        self.send(Command::Batch(sent))
    }

    pub(crate) fn send(&self, command: Command) -> Result<(), StoreError> {
        self.commands.send(command).map_err(|_| error::closed())
    }

    /// Waits until everything queued so far is done.
    pub(crate) async fn settled(&self) -> Result<(), StoreError> {
        let (done, settled) = oneshot::channel();
        self.send(Command::Barrier(done))?;
        settled.await.map_err(|_| error::closed())
    }
}

fn parts(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PART)).unwrap_or(ROOM).clamp(1, ROOM)
}

/// What a store has done since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// How often it had the disk write everything down.
    pub flushes: u64,
    /// How many batches it has kept.
    pub batches: u64,
    /// How many bytes of journal lines.
    pub bytes: u64,
}

#[derive(Debug, Default)]
struct Counts {
    flushes: AtomicU64,
    batches: AtomicU64,
    bytes: AtomicU64,
}

/// The running writer. Dropped, it first does everything that is queued.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) queue: Queue,
    /// Which events of the flow wait in the queue.
    pub(crate) flow: Arc<FlowQueue>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(dir: &Path, ledger: Ledger) -> Result<Self, StoreError> {
        let (commands, received) = unbounded_channel();
        let room = Arc::new(Semaphore::new(ROOM as usize));
        let counts = Arc::new(Counts::default());
        let flow = Arc::new(FlowQueue::default());
        let work = Work {
            dir: dir.to_owned(),
            ledger,
            received,
            room: Room(Arc::clone(&room)),
            counts: Arc::clone(&counts),
            group: Vec::new(),
            left_over: VecDeque::new(),
            groups: 0,
            patience: PATIENCE,
            losses: Losses::of(Arc::clone(&flow)),
        };
        let thread = std::thread::Builder::new().name("redflow-store".into()).spawn(move || work.run());
        let thread = Some(thread.map_err(|why| error::unusable(dir, &why))?);
        Ok(Self { queue: Queue { commands, room }, flow, counts, thread })
    }

    pub(crate) fn stats(&self) -> StoreStats {
        StoreStats {
            flushes: self.counts.flushes.load(Ordering::Relaxed),
            batches: self.counts.batches.load(Ordering::Relaxed),
            bytes: self.counts.bytes.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.queue.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Closed with the writer, however that ends: nobody waits for room that never comes.
#[derive(Debug)]
struct Room(Arc<Semaphore>);

impl Drop for Room {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Lets a mark go that could not be kept.
fn give_up(mark: Mark) {
    match mark {
        Mark::Flow(line) => line.give_up(),
        Mark::Chat(line) => line.give_up(),
        Mark::Delivered(_) | Mark::Answer { .. } => {}
    }
}

struct Work {
    dir: PathBuf,
    ledger: Ledger,
    received: UnboundedReceiver<Command>,
    room: Room,
    counts: Arc<Counts>,
    group: Vec<Command>,
    /// Marks that were not kept, and how often each was tried alone. Without them a result would be sent again
    /// after a restart.
    left_over: VecDeque<(Mark, u32)>,
    /// How many groups were kept.
    groups: u64,
    patience: Duration,
    losses: Losses,
}

impl Work {
    fn run(mut self) {
        let mut goes_on = true;
        while goes_on {
            goes_on = match self.received.blocking_recv() {
                None | Some(Command::Stop) => false,
                Some(Command::Barrier(done)) => {
                    let _ = done.send(());
                    true
                }
                Some(first) => self.take(first),
            };
        }
        self.keep_left_over();
        self.left_over.drain(..).for_each(|(mark, _)| give_up(mark));
        self.losses.tell(true);
        self.ledger.checkpoint();
    }

    /// Writes this and everything behind it. Whether more may come.
    fn take(&mut self, first: Command) -> bool {
        self.group.push(first);
        // Begun before the rest is taken: while another process holds the database, the group grows.
        let (begun, goes_on) = self.begin();
        let goes_on = goes_on && self.gather();
        if self.write(begun) {
            self.groups += 1;
            self.keep_left_over();
            if self.groups.is_multiple_of(FORGET_AFTER) {
                // If it fails, there is a next time.
                let _ = self.alone(|ledger| ledger.forget_requests());
            }
            self.losses.tell(false);
        }
        goes_on
    }

    /// Begins the transaction of a group, and says whether more may come. While the database is busy nothing is
    /// begun: that is tried again until it has been for too long, or once more if nothing comes after.
    fn begin(&mut self) -> (Result<(), Fault>, bool) {
        let since = Instant::now();
        let mut goes_on = true;
        loop {
            match self.ledger.begin() {
                Err(Fault::Database(why))
                    if goes_on
                        && why.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                        && since.elapsed() < self.patience =>
                {
                    goes_on = self.gather();
                    std::thread::park_timeout(PAUSE);
                }
                begun => return (begun, goes_on),
            }
        }
    }

    /// Takes everything that is queued into the group. Whether more may come.
    fn gather(&mut self) -> bool {
        while let Ok(next) = self.received.try_recv() {
            match next {
                Command::Stop => return false,
                next => self.group.push(next),
            }
        }
        true
    }

    /// Writes the group, if its transaction was begun. Whether it is kept.
    fn write(&mut self, begun: Result<(), Fault>) -> bool {
        let mut group = std::mem::take(&mut self.group);
        let (mut batches, mut bytes) = (0, 0);
        let kept = begun.and_then(|()| {
            for command in &mut group {
                let lines = self.apply(command)?;
                batches += u64::from(lines.is_some());
                bytes += lines.unwrap_or_default() as u64;
            }
            failpoint("store.before_commit");
            Ok(self.ledger.commit()?)
        });
        let failure = match kept {
            Ok(()) => {
                failpoint("store.after_commit");
                self.counts.flushes.fetch_add(1, Ordering::Relaxed);
                self.counts.batches.fetch_add(batches, Ordering::Relaxed);
                self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
                None
            }
            Err(fault) => {
                self.ledger.roll_back();
                Some(match fault {
                    Fault::Refused(why) => why,
                    Fault::Database(why) => error::sqlite(&self.dir, &why),
                })
            }
        };
        let room = group.drain(..).map(|command| self.finish(command, failure.as_ref())).sum();
        self.room.0.add_permits(room);
        self.group = group;
        failure.is_none()
    }

    /// Tries the marks that were not kept once more, apart from any group: none of them may fail one. If they
    /// fail together, some of them are tried alone, and one that never succeeds is given up.
    fn keep_left_over(&mut self) {
        let mut marks = std::mem::take(&mut self.left_over);
        if marks.is_empty() {
            return;
        }
        let together = self.alone(|ledger| marks.iter().try_for_each(|(mark, _)| ledger.mark(mark)));
        let alone = match together {
            Some(true) => return,
            Some(false) => ALONE.min(marks.len()),
            None => 0,
        };
        for (mark, tries) in marks.drain(..alone).collect::<Vec<_>>() {
            let kept = self.alone(|ledger| ledger.mark(&mark));
            match kept {
                Some(true) => {}
                _ if tries < TRIES => marks.push_back((mark, tries + u32::from(kept.is_some()))),
                _ => give_up(mark),
            }
        }
        self.left_over = marks;
    }

    /// Does something in a transaction of its own. Whether it is kept; none if it could not even begin.
    fn alone(&mut self, act: impl FnOnce(&mut Ledger) -> rusqlite::Result<()>) -> Option<bool> {
        self.ledger.begin().ok()?;
        let kept = act(&mut self.ledger).and_then(|()| self.ledger.commit()).is_ok();
        if kept {
            self.counts.flushes.fetch_add(1, Ordering::Relaxed);
        } else {
            self.ledger.roll_back();
        }
        Some(kept)
    }

    /// Leaves a mark for later, if it is worth it and there is room.
    fn leave(&mut self, mark: Option<Mark>) {
        let Some(mark) = mark else { return };
        let worth = !matches!(&mark, Mark::Flow(line) if !line.must_stay());
        if worth && self.left_over.len() < MAX_LEFT_OVER {
            self.left_over.push_back((mark, 0));
        } else {
            give_up(mark);
        }
    }

    /// Writes one command, and says how many bytes of lines that were. A refusal concerns only the journal it
    /// is for; an error is the group's.
    fn apply(&mut self, command: &mut Command) -> rusqlite::Result<Option<usize>> {
        match command {
            Command::Batch(sent) => match self.ledger.batch(sent) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(Fault::Database(why)) => Err(why),
                Err(Fault::Refused(why)) => {
                    sent.handle.fail(&why);
                    sent.answer(Err(why));
                    Ok(None)
                }
            },
            Command::Reopen { handle, mark } => match self.ledger.reopen(handle, *mark) {
                Ok(()) => Ok(None),
                Err(Fault::Database(why)) => Err(why),
                Err(Fault::Refused(why)) => {
                    handle.fail(&why);
                    Ok(None)
                }
            },
            Command::Mark(mark) => match mark.as_ref().map_or(Ok(()), |mark| self.ledger.mark(mark)) {
                // A mark that fails is no reason for the rest of the group to fail.
                Err(_) if self.ledger.is_begun() => {
                    self.leave(mark.take());
                    Ok(None)
                }
                marked => marked.map(|()| None),
            },
            Command::ClearChat { node, .. } => self.ledger.clear_chat(node).map(|()| None),
            #[cfg(test)]
            Command::Sql(sql, _) => self.ledger.sql(sql).map(|()| None),
            #[cfg(test)]
            Command::Patience(patience) => {
                self.patience = *patience;
                Ok(None)
            }
            Command::Barrier(_) | Command::Stop => Ok(None),
        }
    }

    /// Tells whoever waits for a command what came of its group. How much room it gives back.
    fn finish(&mut self, command: Command, failure: Option<&StoreError>) -> usize {
        match command {
            Command::Batch(mut sent) => {
                if let Some(why) = failure {
                    sent.handle.fail(why);
                    self.ledger.forget(&sent.handle);
                }
                sent.answer(failure.cloned().map_or(Ok(()), Err));
                parts(sent.bytes) as usize
            }
            Command::Reopen { handle, .. } => {
                if let Some(why) = failure {
                    handle.fail(why);
                    self.ledger.forget(&handle);
                }
                0
            }
            Command::Mark(mark) => {
                if failure.is_some() {
                    self.leave(mark);
                }
                0
            }
            Command::ClearChat { node, until, done } => {
                if failure.is_none() {
                    // What could not be kept before must not come back after.
                    self.left_over.retain(|(mark, _)| {
                        !matches!(mark, Mark::Chat(line) if line.node == node && line.number <= until)
                    });
                }
                let _ = done.send(failure.cloned().map_or(Ok(()), Err));
                0
            }
            Command::Barrier(done) => {
                let _ = done.send(());
                0
            }
            #[cfg(test)]
            Command::Sql(_, done) => {
                let _ = done.send(());
                0
            }
            #[cfg(test)]
            Command::Patience(_) => 0,
            Command::Stop => 0,
        }
    }
}
