//! The writing side of the database.
//!
//! Owns the open journals, and every statement that changes a run. Never decides what goes into one
//! transaction, and never reads a journal line. Never writes once another process has taken over: the file of
//! the system's lock can be removed, but the number of the driver in the database cannot.

use super::batch::{JournalHandle, QueuedBatch};
use super::checksum::{BatchRow, EndSeal, RunHead};
use super::removal;
use super::row::{causing_run, questions_to_json};
use super::usage::PendingUsage;
use crate::chats::rows as chat_rows;
use crate::database::to_sql_integer;
use crate::error;
use crate::events::log::{EventLogHandle, EventLogSettings};
use crate::events::rows::{self as event_rows, EventRows};
use crate::removed_runs::RemovedRuns;
use crate::requests;
use crate::write_queue::BackgroundWrite;
use redflow_contract::code::StoreCode;
use redflow_contract::day::Day;
use redflow_contract::digest::Digest;
use redflow_contract::effect::Ending;
use redflow_contract::id::{NodeId, NodeRef, Principal, RunId};
use redflow_contract::journal::plan_line;
use redflow_contract::memory::DataOwner;
use redflow_contract::run::{RunState, RunStatus};
use redflow_contract::tally::RunTally;
use redflow_ports::{ForgottenRuns, JournalPosition, NewRun, StoreError, failpoint};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// With this many open journals, those without a live handle are removed.
const SWEEP: usize = 1024;

#[derive(Debug)]
pub(crate) enum WriteError {
    /// The write is not allowed. Other writes of the same transaction may continue.
    Refused(StoreError),
    /// The database failed, and with it the transaction.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// A journal that a live handle may append to.
struct OpenJournal {
    handle: Weak<JournalHandle>,
    /// The number of the run.
    run: i64,
    /// How often the run was reopened.
    epoch: i64,
    next_seq: i64,
    checksum: Digest,
    status: RunStatus,
    agent: NodeRef,
}

pub(crate) struct RunTables {
    dir: PathBuf,
    connection: Connection,
    /// The number of this process among all that drove these runs.
    driver: i64,
    /// Whether a later process drives the runs.
    is_displaced: bool,
    journals: HashMap<RunId, OpenJournal>,
    sweep_at: usize,
    /// A buffer for the joined lines of a batch.
    lines: Vec<u8>,
    /// None if events are not stored.
    events: Option<EventRows>,
    /// What the runs that end in the open transaction have used.
    usage: PendingUsage,
}

impl RunTables {
    /// Takes over the runs from the driver before.
    pub(crate) fn take_over(dir: &Path, connection: Connection) -> rusqlite::Result<Self> {
        let driver =
            connection
                .query_row("UPDATE meta SET driver = driver + 1 RETURNING driver", [], |row| row.get(0))?;
        Ok(Self {
            dir: dir.to_owned(),
            connection,
            driver,
            is_displaced: false,
            journals: HashMap::new(),
            sweep_at: SWEEP,
            lines: Vec::new(),
            events: None,
            usage: PendingUsage::default(),
        })
    }

    /// Stores events from now on. Returns the side of the log that readers use.
    pub(crate) fn store_events(&mut self, settings: EventLogSettings) -> rusqlite::Result<EventLogHandle> {
        let rows = EventRows::open(&self.connection, settings)?;
        Ok(self.events.insert(rows).log().clone())
    }

    /// Begins a transaction, if this process still drives the runs. No process can take over before its end.
    pub(crate) fn begin(&mut self) -> Result<(), WriteError> {
        if !self.is_displaced {
            self.run("BEGIN IMMEDIATE")?;
            let latest = self.latest_driver();
            if matches!(latest, Ok(latest) if latest == self.driver) {
                return Ok(());
            }
            self.roll_back();
            latest?;
            self.is_displaced = true;
        }
        Err(WriteError::Refused(error::displaced(&self.dir)))
    }

    /// The number of the last process that took over.
    fn latest_driver(&self) -> rusqlite::Result<i64> {
        self.connection.prepare_cached("SELECT driver FROM meta")?.query_row([], |row| row.get(0))
    }

    /// Ends the transaction. Its events can be read from now on.
    pub(crate) fn commit(&mut self) -> rusqlite::Result<()> {
        self.usage.write(&self.connection)?;
        if let Some(events) = &mut self.events {
            let trimmed = events.trim(&self.connection);
            // A failed trim alone is no reason to fail: a later transaction trims again.
            if self.connection.is_autocommit() {
                trimmed?;
            }
        }
        self.run("COMMIT")?;
        if let Some(events) = &mut self.events {
            events.on_commit();
        }
        Ok(())
    }

    /// Whether a transaction is open. After some errors SQLite rolls back by itself.
    pub(crate) fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    pub(crate) fn roll_back(&mut self) {
        if self.is_in_transaction() {
            let _ = self.run("ROLLBACK");
        }
        self.usage.clear();
        if let Some(events) = &mut self.events {
            events.on_rollback();
        }
    }

    /// Copies the write-ahead log into the database, as far as other connections allow. A displaced driver
    /// leaves it to the new one.
    pub(crate) fn checkpoint(&self) {
        if self.is_displaced {
            return;
        }
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    #[cfg(test)]
    pub(crate) fn sql(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }

    /// Appends a batch to its journal. Returns the bytes of its lines.
    pub(crate) fn append_batch(&mut self, queued: &mut QueuedBatch) -> Result<usize, WriteError> {
        let handle = &queued.handle;
        if let Some(error) = handle.failure.get() {
            return Err(WriteError::Refused(error.clone()));
        }
        let plan = match queued.new_run.take() {
            Some(run) => self.insert_run(handle, &run, &mut queued.batch.lines)?,
            None => None,
        };
        let Some(journal) = self.journals.get_mut(&handle.run).filter(|journal| journal.belongs_to(handle))
        else {
            return Err(WriteError::Refused(error::journal_taken_over(&handle.run)));
        };
        if journal.status.is_over() {
            return Err(WriteError::Refused(error::run_over(&handle.run)));
        }
        if queued.seq != journal.next_seq {
            return Err(WriteError::Refused(error::missing_batch(&handle.run)));
        }
        join_lines(&queued.batch.lines, &mut self.lines);
        let (lines, active_ms) = (self.lines.as_slice(), to_sql_integer(queued.batch.active_ms));
        let (seq, epoch) = (journal.next_seq, journal.epoch);
        let row = BatchRow { run: handle.run.as_str(), seq, epoch, active_ms, plan, lines };
        let checksum = row.checksum(&journal.checksum);
        self.connection
            .prepare_cached(
                "INSERT INTO batches(run, seq, epoch, active_ms, lines, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![journal.run, seq, epoch, active_ms, lines, checksum.to_hex()])?;
        journal.next_seq += 1;
        journal.checksum = checksum;
        if journal.status != RunStatus::Running || queued.batch.state != RunState::Running {
            journal.update_state(&self.connection, &queued.batch.state, &queued.batch.tally)?;
            if let RunState::Finished { at, ending, usage } = &queued.batch.state {
                let failed = matches!(ending, Ending::Failed { .. });
                self.usage.add(Day::of(*at), &journal.agent, failed, usage);
            }
        }
        if let Some(events) = &mut self.events {
            events.insert_run_events(&self.connection, &queued.batch.events)?;
        }
        Ok(self.lines.len())
    }

    /// Inserts a new run. Each plan is stored once for all runs. So if the second line is the plan's line, it
    /// is left out, and the plan's digest takes its place in the checksum of the row. A run without a user or a
    /// session takes that of the run that started it: that one may be removed earlier.
    fn insert_run(
        &mut self,
        handle: &Arc<JournalHandle>,
        run: &NewRun,
        lines: &mut Vec<String>,
    ) -> Result<Option<Digest>, WriteError> {
        let leaves_out_plan = match lines.as_slice() {
            [header, second, ..] => *second == plan_line(&Digest::of(header.as_bytes()), run.plan.json()),
            _ => false,
        };
        // Looked up each time: another process may have removed a plan that no run used any more.
        let plan = if leaves_out_plan { Some(self.find_or_insert_plan(run)?) } else { None };
        let head = RunHead {
            run: run.run_id.as_str(),
            instance: run.agent.instance.as_str(),
            node_id: run.agent.node_id.as_str(),
            name: &run.name,
            started_at: to_sql_integer(run.started_at),
            cause: run.cause.as_deref(),
            source: run.source.as_deref(),
        };
        let checksum = head.checksum();
        let inserted = self
            .connection
            .prepare_cached(
                "INSERT INTO runs(run_id, plan, instance, node_id, name, started_at, cause, cause_run, source,
                                  head, driver, started_by, user, session, parent, status)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
                         coalesce(?13, (SELECT user FROM runs WHERE run_id = ?8)),
                         coalesce(?14, (SELECT session FROM runs WHERE run_id = ?8 AND coalesce(?13, user) IS user)),
                         (SELECT run_id FROM runs WHERE run_id = ?8), 'running')",
            )?
            .execute(params![
                head.run,
                plan,
                head.instance,
                head.node_id,
                head.name,
                head.started_at,
                head.cause,
                head.cause.and_then(causing_run),
                head.source,
                checksum.to_hex(),
                self.driver,
                run.by.as_ref().map(Principal::as_str),
                run.user,
                run.session
            ]);
        match inserted {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                return Err(WriteError::Refused(error::run_exists(&run.run_id)));
            }
            inserted => inserted?,
        };
        let number = self.connection.last_insert_rowid();
        let handle_ref = Arc::downgrade(handle);
        self.open_journal(
            &handle.run,
            OpenJournal {
                handle: handle_ref,
                run: number,
                epoch: 0,
                next_seq: 0,
                checksum,
                status: RunStatus::Running,
                agent: run.agent.clone(),
            },
        );
        if leaves_out_plan {
            lines.remove(1);
        }
        Ok(leaves_out_plan.then(|| run.plan.digest()))
    }

    fn find_or_insert_plan(&self, run: &NewRun) -> rusqlite::Result<i64> {
        let digest = run.plan.digest().to_hex();
        let mut find = self.connection.prepare_cached("SELECT id FROM plans WHERE digest = ?1")?;
        if let Some(number) = find.query_row([&digest], |row| row.get(0)).optional()? {
            return Ok(number);
        }
        self.connection
            .prepare_cached("INSERT INTO plans(digest, json) VALUES (?1, ?2)")?
            .execute(params![digest, run.plan.json()])?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Gives the right to write a journal to another handle.
    pub(crate) fn reopen(
        &mut self,
        handle: &Arc<JournalHandle>,
        mark: JournalPosition,
    ) -> Result<(), WriteError> {
        let row: Option<(String, String, String)> = self
            .connection
            .prepare_cached(
                "UPDATE runs SET driver = ?3 WHERE id = ?1 AND run_id = ?2 RETURNING status, instance, node_id",
            )?
            .query_row(params![mark.run, handle.run.as_str(), self.driver], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let Some((status, instance, node_id)) = row else {
            return Err(WriteError::Refused(error::run_unknown(&handle.run)));
        };
        let agent = NodeRef { instance: instance.into(), node_id: node_id.into() };
        let status = match status.as_str() {
            "running" => RunStatus::Running,
            "waiting" => RunStatus::Waiting,
            _ => return Err(WriteError::Refused(error::run_over(&handle.run))),
        };
        let last: Option<(i64, i64, String)> = self
            .connection
            .prepare_cached("SELECT seq, epoch, sum FROM batches WHERE run = ?1 ORDER BY id DESC LIMIT 1")?
            .query_row([mark.run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        match last {
            Some((seq, epoch, checksum)) if seq + 1 == mark.batches => {
                let checksum = Digest::parse_hex(&checksum).ok_or_else(|| {
                    WriteError::Refused(error::damaged_run(&handle.run, "its last sum is unreadable"))
                })?;
                let handle_ref = Arc::downgrade(handle);
                let (run, epoch, next_seq) = (mark.run, epoch + 1, mark.batches);
                self.open_journal(
                    &handle.run,
                    OpenJournal { handle: handle_ref, run, epoch, next_seq, checksum, status, agent },
                );
                Ok(())
            }
            // Another handle appended a batch since the run was loaded.
            _ => Err(WriteError::Refused(error::journal_taken_over(&handle.run))),
        }
    }

    fn open_journal(&mut self, run: &RunId, journal: OpenJournal) {
        if self.journals.len() >= self.sweep_at {
            self.journals.retain(|_, journal| journal.handle.strong_count() > 0);
            self.sweep_at = SWEEP.max(self.journals.len() * 2);
        }
        self.journals.insert(run.clone(), journal);
    }

    /// Closes a journal whose last batches were not stored.
    pub(crate) fn close_journal(&mut self, handle: &Arc<JournalHandle>) {
        if self.journals.get(&handle.run).is_some_and(|journal| journal.belongs_to(handle)) {
            self.journals.remove(&handle.run);
        }
    }

    pub(crate) fn write_background(&mut self, write: &BackgroundWrite) -> rusqlite::Result<()> {
        let written = match write {
            BackgroundWrite::FlowEvent(event) => match &mut self.events {
                Some(events) => return events.insert(&self.connection, event.body.clone()),
                None => return Ok(()),
            },
            BackgroundWrite::ChatItem(item) => return chat_rows::append(&self.connection, item),
            BackgroundWrite::Delivered(run) => self
                .connection
                .prepare_cached("UPDATE runs SET delivered = 1 WHERE run_id = ?1")?
                .execute([run.as_str()]),
            // The number of the driver is negative while the run holds it. Other processes overwrite it when
            // they take over the run.
            BackgroundWrite::Hung { run, hung } => self
                .connection
                .prepare_cached("UPDATE runs SET driver = ?2 * abs(driver) WHERE run_id = ?1")?
                .execute(params![run.as_str(), if *hung { -1 } else { 1 }]),
            BackgroundWrite::Answer { request, refused } => self
                .connection
                .prepare_cached("UPDATE requests SET answered = 1, refused = ?2 WHERE id = ?1")?
                .execute(params![request, refused.map(StoreCode::as_str)]),
        };
        written.map(drop)
    }

    pub(crate) fn clear_chat(&self, node: &NodeId) -> rusqlite::Result<()> {
        chat_rows::clear(&self.connection, node)
    }

    /// Removes the runs of an owner that are over, and all that belongs to them. Their bytes may be left in the files
    /// until [`Self::clean`].
    /// If it fails, the open transaction goes on without it.
    pub(crate) fn forget(&mut self, owner: &DataOwner) -> rusqlite::Result<(ForgottenRuns, RemovedRuns)> {
        self.run("SAVEPOINT forget")?;
        let forgotten = self.remove_owned(owner);
        if forgotten.is_err() {
            // After some errors SQLite has rolled back everything already.
            let _ = self.run("ROLLBACK TO forget");
        }
        let released = self.run("RELEASE forget");
        let (forgotten, removed) = forgotten?;
        released?;
        for run in removed.ids() {
            self.journals.remove(run);
        }
        Ok((forgotten, removed))
    }

    fn remove_owned(&mut self, owner: &DataOwner) -> rusqlite::Result<(ForgottenRuns, RemovedRuns)> {
        self.run("UPDATE meta SET unclean = 1")?;
        let (forgotten, mut removed) = removal::remove_owned(&self.connection, owner)?;
        removal::add_missing_runs(&self.connection, &mut removed)?;
        if !removed.is_empty() {
            let ids = chat_rows::item_ids(&self.connection)?;
            removal::add_kept_messages(&self.connection, &ids, &mut removed)?;
        }
        chat_rows::forget(&self.connection, &removed)?;
        match &mut self.events {
            Some(events) => events.erase(&self.connection, &removed)?,
            None => event_rows::erase(&self.connection, &removed).map(drop)?,
        }
        Ok((forgotten, removed))
    }

    /// Whether bytes of forgotten runs may be left in the files.
    pub(crate) fn is_unclean(&self) -> rusqlite::Result<bool> {
        self.connection.query_row("SELECT unclean FROM meta", [], |row| row.get(0))
    }

    /// Writes the whole database anew and empties the write-ahead log. Then its files hold only what is stored.
    pub(crate) fn clean(&self) -> rusqlite::Result<()> {
        failpoint("forget.removed");
        self.connection.execute_batch("VACUUM")?;
        failpoint("forget.vacuumed");
        let busy: bool =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy {
            let failure = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            return Err(rusqlite::Error::SqliteFailure(failure, None));
        }
        self.run("UPDATE meta SET unclean = 0")
    }

    pub(crate) fn remove_old_requests(&self) -> rusqlite::Result<()> {
        requests::remove_old(&self.connection)
    }
}

impl OpenJournal {
    fn belongs_to(&self, handle: &Arc<JournalHandle>) -> bool {
        self.handle.as_ptr() == Arc::as_ptr(handle)
    }

    /// Updates the row of the run. Where the run stops, the row is sealed with the number of batches and the
    /// checksum of the last one, so that a lost end shows.
    fn update_state(
        &mut self,
        connection: &Connection,
        state: &RunState,
        tally: &RunTally,
    ) -> rusqlite::Result<()> {
        let (status, code, call, ended_at) = match state {
            RunState::Running => (RunStatus::Running, None, None, None),
            RunState::Waiting(calls) => (RunStatus::Waiting, None, questions_to_json(calls), None),
            RunState::Finished { at, ending, .. } => match ending {
                Ending::Completed => (RunStatus::Completed, None, None, Some(*at)),
                Ending::Stopped => (RunStatus::Stopped, None, None, Some(*at)),
                Ending::Failed { code } => (RunStatus::Failed, Some(code.as_str()), None, Some(*at)),
            },
        };
        let ended_at = ended_at.map(to_sql_integer);
        let sealed = (status != RunStatus::Running).then(|| {
            let waiting = call.as_deref();
            let seal = EndSeal { status: status.as_str(), code, waiting, ended_at, batches: self.next_seq };
            (self.next_seq, seal.checksum(&self.checksum).to_hex())
        });
        let (batches, checksum) = sealed.unzip();
        let tally = (status != RunStatus::Running).then(|| serde_json::to_string(tally).unwrap_or_default());
        connection
            .prepare_cached(
                "UPDATE runs SET status = ?2, code = ?3, waiting = ?4, ended_at = ?5, batches = ?6, sum = ?7,
                                 tally = ?8
                 WHERE id = ?1",
            )?
            .execute(params![self.run, status.as_str(), code, call, ended_at, batches, checksum, tally])?;
        self.status = status;
        Ok(())
    }
}

/// Joins the lines with line feeds.
fn join_lines(lines: &[String], joined: &mut Vec<u8>) {
    joined.clear();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            joined.push(b'\n');
        }
        joined.extend_from_slice(line.as_bytes());
    }
}

#[cfg(test)]
#[path = "run_tables_tests.rs"]
mod tests;
