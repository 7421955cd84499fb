//! The thread that writes.
//!
//! Owns the only connection that writes while runs are driven, and the queue in front of it. Takes everything
//! that is queued, writes it in one transaction and flushes once: what waits together is kept together. Never
//! stops for an error: a group that cannot be kept is refused whole, and the next one is tried.

use crate::error;
use crate::journal::{Handle, Sent};
use crate::ledger::{Fault, Ledger};
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_ports::{StoreError, StoreMark, failpoint};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};

/// How much may be queued or being written, in parts of [`PART`] bytes: 4096 batches, or 16 MiB.
const ROOM: u32 = 4096;
const PART: usize = 4096;

/// The most marks that are tried again after a failed write.
const MAX_LEFT_OVER: usize = 4096;

/// What the writer is asked.
#[derive(Debug)]
pub(crate) enum Command {
    Batch(Sent),
    Reopen {
        handle: Arc<Handle>,
        mark: StoreMark,
    },
    Delivered(RunId),
    Answer {
        request: i64,
        refused: Option<StoreCode>,
    },
    /// Say when everything before this is done.
    Barrier(oneshot::Sender<()>),
    Stop,
    #[cfg(test)]
    Sql(String, oneshot::Sender<()>),
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
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(dir: &Path, ledger: Ledger) -> Result<Self, StoreError> {
        let (commands, received) = unbounded_channel();
        let room = Arc::new(Semaphore::new(ROOM as usize));
        let counts = Arc::new(Counts::default());
        let work = Work {
            dir: dir.to_owned(),
            ledger,
            received,
            room: Room(Arc::clone(&room)),
            counts: Arc::clone(&counts),
            group: Vec::new(),
            left_over: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("redflow-store".into()).spawn(move || work.run());
        let thread = Some(thread.map_err(|why| error::unusable(dir, &why))?);
        Ok(Self { queue: Queue { commands, room }, counts, thread })
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

struct Work {
    dir: PathBuf,
    ledger: Ledger,
    received: UnboundedReceiver<Command>,
    room: Room,
    counts: Arc<Counts>,
    group: Vec<Command>,
    /// Marks of a group that failed. Without them a result would be sent again after a restart.
    left_over: Vec<Command>,
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
        if !self.left_over.is_empty() {
            self.group.append(&mut self.left_over);
            let begun = self.ledger.begin();
            self.write(begun);
        }
        self.ledger.checkpoint();
    }

    /// Writes this and everything behind it. Whether more may come.
    fn take(&mut self, first: Command) -> bool {
        self.group.append(&mut self.left_over);
        self.group.push(first);
        // Begun before the rest is taken: while another process holds the database, the group grows.
        let begun = self.ledger.begin();
        let mut goes_on = true;
        while goes_on && let Ok(next) = self.received.try_recv() {
            match next {
                Command::Stop => goes_on = false,
                next => self.group.push(next),
            }
        }
        self.write(begun);
        goes_on
    }

    fn write(&mut self, begun: rusqlite::Result<()>) {
        let mut group = std::mem::take(&mut self.group);
        let (mut batches, mut bytes) = (0, 0);
        let kept = begun.and_then(|()| {
            for command in &mut group {
                let lines = self.apply(command)?;
                batches += u64::from(lines.is_some());
                bytes += lines.unwrap_or_default() as u64;
            }
            failpoint("store.before_commit");
            self.ledger.commit()
        });
        match kept {
            Ok(()) => {
                failpoint("store.after_commit");
                self.counts.flushes.fetch_add(1, Ordering::Relaxed);
                self.counts.batches.fetch_add(batches, Ordering::Relaxed);
                self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            Err(_) => self.ledger.roll_back(),
        }
        let failure = kept.err().map(|why| error::sqlite(&self.dir, &why));
        let room = group.drain(..).map(|command| self.finish(command, failure.as_ref())).sum();
        self.room.0.add_permits(room);
        self.group = group;
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
            Command::Delivered(run) => self.ledger.delivered(run).map(|()| None),
            Command::Answer { request, refused } => self.ledger.answer(*request, *refused).map(|()| None),
            #[cfg(test)]
            Command::Sql(sql, _) => self.ledger.sql(sql).map(|()| None),
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
            Command::Delivered(_) | Command::Answer { .. } => {
                if failure.is_some() && self.left_over.len() < MAX_LEFT_OVER {
                    self.left_over.push(command);
                }
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
            Command::Stop => 0,
        }
    }
}
