//! The writer thread.
//!
//! Owns the only connection that writes while runs are driven. Takes everything that is queued, writes it in
//! one transaction and flushes once: commands that wait together are stored together. Never stops for an
//! error: a group that cannot be stored fails as a whole, and the next one is tried. A database that another
//! program holds is retried for a while: no transaction has begun, so the group waits and grows.

use crate::error;
use crate::events::queue::{DropReporter, FlowEventQueue, ReportWhen};
use crate::runs::run_tables::{RunTables, WriteError};
use crate::write_queue::{BackgroundWrite, WriteCommand, WriteQueue, WriteQueueReceiver, space_units};
use redflow_ports::{ForgottenRuns, StoreError, failpoint};
use rusqlite::ErrorCode;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a group waits for a program that holds the database, and the pause between two attempts. SQLite
/// waits by itself in most cases, but not in all.
const BUSY_TIMEOUT: Duration = Duration::from_secs(120);
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The limit on background writes that wait for a retry.
const MAX_RETRIES_WAITING: usize = 4096;

/// How often a background write is tried alone before it is given up, and how many of them after one group.
const MAX_ATTEMPTS_ALONE: u32 = 100;
const ALONE_PER_GROUP: usize = 8;

/// After this many groups the writer removes old answered requests.
pub(crate) const REMOVE_REQUESTS_AFTER: u64 = 1000;

/// Counts of a store since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Transactions flushed to the disk.
    pub flushes: u64,
    /// Batches stored.
    pub batches: u64,
    /// Bytes of journal lines stored.
    pub bytes: u64,
}

#[derive(Debug, Default)]
struct Counters {
    flushes: AtomicU64,
    batches: AtomicU64,
    bytes: AtomicU64,
}

/// The handle of the running thread. When dropped, it first waits until everything queued is written.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) queue: WriteQueue,
    /// The limit on flow events in the queue.
    pub(crate) flow_events: Arc<FlowEventQueue>,
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(dir: &Path, tables: RunTables) -> Result<Self, StoreError> {
        let (queue, receiver) = WriteQueue::new();
        let counters = Arc::new(Counters::default());
        let flow_events = Arc::new(FlowEventQueue::default());
        let writer_loop = WriterLoop {
            dir: dir.to_owned(),
            tables,
            receiver,
            counters: Arc::clone(&counters),
            group: Vec::new(),
            retries: VecDeque::new(),
            groups: 0,
            busy_timeout: BUSY_TIMEOUT,
            drop_reporter: DropReporter::new(Arc::clone(&flow_events)),
            forgotten: Vec::new(),
        };
        let thread =
            std::thread::Builder::new().name("redflow-store".into()).spawn(move || writer_loop.run());
        let thread = Some(thread.map_err(|error| error::unusable(dir, &error))?);
        Ok(Self { queue, flow_events, counters, thread })
    }

    pub(crate) fn stats(&self) -> StoreStats {
        StoreStats {
            flushes: self.counters.flushes.load(Ordering::Relaxed),
            batches: self.counters.batches.load(Ordering::Relaxed),
            bytes: self.counters.bytes.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.queue.send(WriteCommand::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whether more commands may follow in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QueueState {
    Open,
    Stopped,
}

struct WriterLoop {
    dir: PathBuf,
    tables: RunTables,
    receiver: WriteQueueReceiver,
    counters: Arc<Counters>,
    group: Vec<WriteCommand>,
    /// Background writes that failed, and how often each was tried alone. Losing a `Delivered` would send a
    /// result again after a restart.
    retries: VecDeque<(BackgroundWrite, u32)>,
    /// Groups stored so far.
    groups: u64,
    busy_timeout: Duration,
    drop_reporter: DropReporter,
    /// Callers that wait until the bytes of forgotten runs are gone.
    forgotten: Vec<(ForgottenRuns, oneshot::Sender<Result<ForgottenRuns, StoreError>>)>,
}

impl WriterLoop {
    fn run(mut self) {
        let mut state = QueueState::Open;
        while state == QueueState::Open {
            state = match self.receiver.commands.blocking_recv() {
                None | Some(WriteCommand::Stop) => QueueState::Stopped,
                Some(WriteCommand::Barrier(done)) => {
                    let _ = done.send(());
                    QueueState::Open
                }
                Some(first) => self.process_group(first),
            };
        }
        self.retry_background_writes();
        self.retries.drain(..).for_each(|(write, _)| write.give_up());
        self.drop_reporter.report(ReportWhen::Now);
        self.tables.checkpoint();
    }

    /// Writes this command and everything queued behind it.
    fn process_group(&mut self, first: WriteCommand) -> QueueState {
        self.group.push(first);
        // The transaction begins before the rest is taken: while another process holds the database, the
        // group grows.
        let (begun, mut state) = self.begin();
        if state == QueueState::Open {
            state = self.collect_queued();
        }
        if self.write_group(begun) {
            self.groups += 1;
            self.retry_background_writes();
            if self.groups.is_multiple_of(REMOVE_REQUESTS_AFTER) {
                // If it fails, there is a next time.
                let _ = self.write_alone(|tables| tables.remove_old_requests());
            }
            self.drop_reporter.report(ReportWhen::NotTooOften);
        }
        state
    }

    /// Begins the transaction of a group. While the database is busy no transaction has begun, so it retries
    /// until the timeout. After a stop it tries only once more.
    fn begin(&mut self) -> (Result<(), WriteError>, QueueState) {
        let since = Instant::now();
        let mut state = QueueState::Open;
        loop {
            match self.tables.begin() {
                Err(WriteError::Database(error))
                    if state == QueueState::Open
                        && error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                        && since.elapsed() < self.busy_timeout =>
                {
                    state = self.collect_queued();
                    std::thread::park_timeout(BUSY_PAUSE);
                }
                begun => return (begun, state),
            }
        }
    }

    /// Moves everything that is queued into the group.
    fn collect_queued(&mut self) -> QueueState {
        while let Ok(next) = self.receiver.commands.try_recv() {
            match next {
                WriteCommand::Stop => return QueueState::Stopped,
                next => self.group.push(next),
            }
        }
        QueueState::Open
    }

    /// Writes the group, if its transaction has begun. Returns whether it is stored.
    fn write_group(&mut self, begun: Result<(), WriteError>) -> bool {
        let mut group = std::mem::take(&mut self.group);
        let (mut batches, mut bytes) = (0, 0);
        let stored = begun.and_then(|()| {
            for command in &mut group {
                let line_bytes = self.write(command)?;
                batches += u64::from(line_bytes.is_some());
                bytes += line_bytes.unwrap_or_default() as u64;
            }
            failpoint("store.before_commit");
            Ok(self.tables.commit()?)
        });
        let failure = match stored {
            Ok(()) => {
                failpoint("store.after_commit");
                self.counters.flushes.fetch_add(1, Ordering::Relaxed);
                self.counters.batches.fetch_add(batches, Ordering::Relaxed);
                self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
                None
            }
            Err(error) => {
                self.tables.roll_back();
                Some(match error {
                    WriteError::Refused(error) => error,
                    WriteError::Database(error) => error::from_sqlite(&self.dir, &error),
                })
            }
        };
        let units = group.drain(..).map(|command| self.finish(command, failure.as_ref())).sum();
        self.receiver.release_space(units);
        self.group = group;
        self.clean_files();
        failure.is_none()
    }

    /// Removes the bytes of forgotten runs from the files, and answers the callers. The other commands of the group
    /// have their answers already.
    fn clean_files(&mut self) {
        if self.forgotten.is_empty() {
            return;
        }
        let cleaned = self.tables.clean().map_err(|error| error::not_cleaned(&self.dir, &error));
        for (forgotten, done) in self.forgotten.drain(..) {
            let _ = done.send(cleaned.clone().map(|()| forgotten));
        }
    }

    /// Retries failed background writes, apart from any group: none of them may make a group fail. If they
    /// fail together, some of them are tried alone. One that never succeeds is given up.
    fn retry_background_writes(&mut self) {
        let mut writes = std::mem::take(&mut self.retries);
        if writes.is_empty() {
            return;
        }
        let together = self
            .write_alone(|tables| writes.iter().try_for_each(|(write, _)| tables.write_background(write)));
        let alone = match together {
            Some(true) => return,
            Some(false) => ALONE_PER_GROUP.min(writes.len()),
            None => 0,
        };
        for (write, attempts) in writes.drain(..alone).collect::<Vec<_>>() {
            let stored = self.write_alone(|tables| tables.write_background(&write));
            match stored {
                Some(true) => {}
                _ if attempts < MAX_ATTEMPTS_ALONE => {
                    writes.push_back((write, attempts + u32::from(stored.is_some())));
                }
                _ => write.give_up(),
            }
        }
        self.retries = writes;
    }

    /// Runs `act` in a transaction of its own. Returns whether it is stored; none if no transaction could
    /// begin.
    fn write_alone(&mut self, act: impl FnOnce(&mut RunTables) -> rusqlite::Result<()>) -> Option<bool> {
        self.tables.begin().ok()?;
        let is_stored = act(&mut self.tables).and_then(|()| self.tables.commit()).is_ok();
        if is_stored {
            self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        } else {
            self.tables.roll_back();
        }
        Some(is_stored)
    }

    fn retry_later(&mut self, write: Option<BackgroundWrite>) {
        let Some(write) = write else { return };
        if write.is_worth_retrying() && self.retries.len() < MAX_RETRIES_WAITING {
            self.retries.push_back((write, 0));
        } else {
            write.give_up();
        }
    }

    /// Writes one command. Returns the bytes of lines if it was a batch. A refusal concerns only its own
    /// journal; an error makes the whole group fail.
    fn write(&mut self, command: &mut WriteCommand) -> rusqlite::Result<Option<usize>> {
        match command {
            WriteCommand::Batch(batch) => match self.tables.append_batch(batch) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(WriteError::Database(error)) => Err(error),
                Err(WriteError::Refused(error)) => {
                    batch.handle.fail(&error);
                    batch.answer(Err(error));
                    Ok(None)
                }
            },
            WriteCommand::Reopen { handle, mark } => match self.tables.reopen(handle, *mark) {
                Ok(()) => Ok(None),
                Err(WriteError::Database(error)) => Err(error),
                Err(WriteError::Refused(error)) => {
                    handle.fail(&error);
                    Ok(None)
                }
            },
            WriteCommand::Background(write) => {
                match write.as_ref().map_or(Ok(()), |write| self.tables.write_background(write)) {
                    // A failed background write is no reason for the rest of the group to fail.
                    Err(_) if self.tables.is_in_transaction() => {
                        self.retry_later(write.take());
                        Ok(None)
                    }
                    written => written.map(|()| None),
                }
            }
            WriteCommand::ClearChat { node, .. } => self.tables.clear_chat(node).map(|()| None),
            WriteCommand::Forget { owner, forgotten, .. } => {
                match self.tables.forget(owner) {
                    // A failed removal is no reason for the rest of the group to fail.
                    Err(error) if self.tables.is_in_transaction() => {
                        *forgotten = Some(Err(error::from_sqlite(&self.dir, &error)));
                    }
                    removed => *forgotten = Some(Ok(removed?)),
                }
                Ok(None)
            }
            #[cfg(test)]
            WriteCommand::Sql(sql, _) => self.tables.sql(sql).map(|()| None),
            #[cfg(test)]
            WriteCommand::BusyTimeout(timeout) => {
                self.busy_timeout = *timeout;
                Ok(None)
            }
            WriteCommand::Barrier(_) | WriteCommand::Stop => Ok(None),
        }
    }

    /// Answers the caller of a command with the result of its group. Returns the space to release.
    fn finish(&mut self, command: WriteCommand, failure: Option<&StoreError>) -> usize {
        match command {
            WriteCommand::Batch(mut batch) => {
                if let Some(error) = failure {
                    batch.handle.fail(error);
                    self.tables.close_journal(&batch.handle);
                }
                batch.answer(failure.cloned().map_or(Ok(()), Err));
                space_units(batch.bytes) as usize
            }
            WriteCommand::Reopen { handle, .. } => {
                if let Some(error) = failure {
                    handle.fail(error);
                    self.tables.close_journal(&handle);
                }
                0
            }
            WriteCommand::Background(write) => {
                if failure.is_some() {
                    self.retry_later(write);
                }
                0
            }
            WriteCommand::ClearChat { node, until, done } => {
                if failure.is_none() {
                    // Items that wait for a retry must not come back after the chat was cleared.
                    self.retries.retain(|(write, _)| match write {
                        BackgroundWrite::ChatItem(item) => item.node != node || item.number > until,
                        _ => true,
                    });
                }
                let _ = done.send(failure.cloned().map_or(Ok(()), Err));
                0
            }
            WriteCommand::Forget { forgotten, done, .. } => {
                match (failure, forgotten) {
                    (None, Some(Ok((forgotten, removed)))) => {
                        // They must not come back.
                        self.retries.retain(|(write, _)| !write.belongs_to(&removed));
                        self.forgotten.push((forgotten, done));
                    }
                    (failure, own) => {
                        let own = own.and_then(Result::err);
                        let error = failure.cloned().or(own).unwrap_or_else(error::store_closed);
                        let _ = done.send(Err(error));
                    }
                }
                0
            }
            WriteCommand::Barrier(done) => {
                let _ = done.send(());
                0
            }
            #[cfg(test)]
            WriteCommand::Sql(_, done) => {
                let _ = done.send(());
                0
            }
            #[cfg(test)]
            WriteCommand::BusyTimeout(_) => 0,
            WriteCommand::Stop => 0,
        }
    }
}
