//! What is written for each thing the writer is asked.
//!
//! Owns the journals that are open, and every statement that changes a run. Never decides what goes into one
//! transaction, never reads a line, and never writes once another process has taken over: the lock of the
//! system can be removed with its file, the number of the driver in the database cannot.

use crate::chat_lines::ChatLine;
use crate::chat_rows;
use crate::error;
use crate::event_ring::{EventLogSettings, LogParts};
use crate::event_rows::EventRows;
use crate::flow_queue::FlowLine;
use crate::journal::{Handle, Sent};
use crate::requests;
use crate::row::causing;
use crate::sum::{Head, Row, Seal};
use redflow_contract::code::StoreCode;
use redflow_contract::digest::Digest;
use redflow_contract::effect::Ending;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::journal::plan_line;
use redflow_contract::run::{RunState, RunStatus};
use redflow_ports::{NewRun, StoreError, StoreMark};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// How many open journals there may be before those that nobody holds are looked for.
const SWEEP: usize = 1024;

/// Why something was not written.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It may not be; everything else may go on.
    Refused(StoreError),
    /// The database failed.
    Database(rusqlite::Error),
}

/// A small thing to remember that nobody waits for.
#[derive(Debug)]
pub(crate) enum Mark {
    /// The result of this run has left for good.
    Delivered(RunId),
    /// This was said to a request.
    Answer { request: i64, refused: Option<StoreCode> },
    /// This happened in the flow.
    Flow(FlowLine),
    /// This was said in a chat.
    Chat(ChatLine),
}

impl From<rusqlite::Error> for Fault {
    fn from(why: rusqlite::Error) -> Self {
        Self::Database(why)
    }
}

/// A journal that someone writes.
struct Open {
    /// Who may.
    handle: Weak<Handle>,
    run: i64,
    /// How often the run was taken up again.
    epoch: i64,
    next: i64,
    sum: Digest,
    status: RunStatus,
}

/// The writing side of the database.
pub(crate) struct Ledger {
    dir: PathBuf,
    connection: Connection,
    /// The number of this process among all that drove these runs.
    driver: i64,
    /// Whether there is a later one.
    displaced: bool,
    open: HashMap<RunId, Open>,
    sweep_at: usize,
    /// The lines of a batch, joined.
    lines: Vec<u8>,
    /// If events are kept.
    events: Option<EventRows>,
}

impl Ledger {
    /// Takes over from the driver before.
    pub(crate) fn new(dir: &Path, connection: Connection) -> rusqlite::Result<Self> {
        let driver =
            connection
                .query_row("UPDATE meta SET driver = driver + 1 RETURNING driver", [], |row| row.get(0))?;
        Ok(Self {
            dir: dir.to_owned(),
            connection,
            driver,
            displaced: false,
            open: HashMap::new(),
            sweep_at: SWEEP,
            lines: Vec::new(),
            events: None,
        })
    }

    /// Keeps events from now on; gives what their readers need.
    pub(crate) fn keep_events(&mut self, settings: EventLogSettings) -> rusqlite::Result<LogParts> {
        let rows = EventRows::open(&self.connection, settings)?;
        Ok(self.events.insert(rows).log().clone())
    }

    /// Begins a transaction, if this process still drives the runs. Nobody can take over before its end.
    pub(crate) fn begin(&mut self) -> Result<(), Fault> {
        if !self.displaced {
            self.run("BEGIN IMMEDIATE")?;
            let latest = self.latest();
            if matches!(latest, Ok(latest) if latest == self.driver) {
                return Ok(());
            }
            self.roll_back();
            latest?;
            self.displaced = true;
        }
        Err(Fault::Refused(error::displaced(&self.dir)))
    }

    /// The number of the last process that took over.
    fn latest(&self) -> rusqlite::Result<i64> {
        self.connection.prepare_cached("SELECT driver FROM meta")?.query_row([], |row| row.get(0))
    }

    /// Ends the transaction. What happened can be read from now on.
    pub(crate) fn commit(&mut self) -> rusqlite::Result<()> {
        if let Some(events) = &mut self.events {
            let trimmed = events.trim(&self.connection);
            // What is not removed now goes with a later transaction.
            if self.connection.is_autocommit() {
                trimmed?;
            }
        }
        self.run("COMMIT")?;
        if let Some(events) = &mut self.events {
            events.committed();
        }
        Ok(())
    }

    /// Whether what was begun can still be committed: after some errors SQLite rolls back by itself.
    pub(crate) fn is_begun(&self) -> bool {
        !self.connection.is_autocommit()
    }

    pub(crate) fn roll_back(&mut self) {
        if self.is_begun() {
            let _ = self.run("ROLLBACK");
        }
        if let Some(events) = &mut self.events {
            events.rolled_back();
        }
    }

    /// Brings the log into the database, as far as others let us. With another driver it is theirs to do.
    pub(crate) fn checkpoint(&self) {
        if self.displaced {
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

    /// Keeps a batch; how many bytes its lines have.
    pub(crate) fn batch(&mut self, sent: &mut Sent) -> Result<usize, Fault> {
        let handle = &sent.handle;
        if let Some(why) = handle.failed.get() {
            return Err(Fault::Refused(why.clone()));
        }
        let plan = match sent.start.take() {
            Some(run) => self.begin_run(handle, &run, &mut sent.batch.lines)?,
            None => None,
        };
        let Some(open) = self.open.get_mut(&handle.run).filter(|open| open.is_of(handle)) else {
            return Err(Fault::Refused(error::taken_over(&handle.run)));
        };
        if open.status.is_over() {
            return Err(Fault::Refused(error::over(&handle.run)));
        }
        if sent.seq != open.next {
            return Err(Fault::Refused(error::gap(&handle.run)));
        }
        join(&sent.batch.lines, &mut self.lines);
        let (lines, active_ms) = (self.lines.as_slice(), whole(sent.batch.active_ms));
        let row = Row { run: handle.run.as_str(), seq: open.next, epoch: open.epoch, active_ms, plan, lines };
        let sum = row.sum(&open.sum);
        self.connection
            .prepare_cached(
                "INSERT INTO batches(run, seq, epoch, active_ms, lines, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![open.run, row.seq, row.epoch, active_ms, lines, sum.to_hex()])?;
        open.next += 1;
        open.sum = sum;
        if open.status != RunStatus::Running || sent.batch.state != RunState::Running {
            open.stand(&self.connection, &sent.batch.state)?;
        }
        if let Some(events) = &mut self.events {
            events.of_run(&self.connection, std::mem::take(&mut sent.batch.events))?;
        }
        Ok(self.lines.len())
    }

    /// Writes down a run that begins. Its plan is kept once for all runs: if the second line is what it gives,
    /// it is taken out, and the plan's digest takes its place in the row's sum.
    fn begin_run(
        &mut self,
        handle: &Arc<Handle>,
        run: &NewRun,
        lines: &mut Vec<String>,
    ) -> Result<Option<Digest>, Fault> {
        let left_out = match lines.as_slice() {
            [header, second, ..] => *second == plan_line(&Digest::of(header.as_bytes()), run.plan.json()),
            _ => false,
        };
        // Asked each time: another process may have removed a plan that no run had any more.
        let plan = if left_out { Some(self.plan(run)?) } else { None };
        let head = Head {
            run: run.run_id.as_str(),
            instance: run.agent.instance.as_str(),
            node_id: run.agent.node_id.as_str(),
            name: &run.name,
            started_at: whole(run.started_at),
            cause: run.cause.as_deref(),
            source: run.source.as_deref(),
        };
        let sum = head.sum();
        let inserted = self
            .connection
            .prepare_cached(
                "INSERT INTO runs(run_id, plan, instance, node_id, name, started_at, cause, cause_run, source,
                                  head, driver, status)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'running')",
            )?
            .execute(params![
                head.run,
                plan,
                head.instance,
                head.node_id,
                head.name,
                head.started_at,
                head.cause,
                head.cause.and_then(causing),
                head.source,
                sum.to_hex(),
                self.driver
            ]);
        match inserted {
            Err(why) if why.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                return Err(Fault::Refused(error::exists(&run.run_id)));
            }
            other => other?,
        };
        let number = self.connection.last_insert_rowid();
        self.hold(handle, number, 0, 0, sum, RunStatus::Running);
        if left_out {
            lines.remove(1);
        }
        Ok(left_out.then(|| run.plan.digest()))
    }

    fn plan(&self, run: &NewRun) -> rusqlite::Result<i64> {
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

    /// Gives the journal of a run to another handle.
    pub(crate) fn reopen(&mut self, handle: &Arc<Handle>, mark: StoreMark) -> Result<(), Fault> {
        let status: Option<String> = self
            .connection
            .prepare_cached("UPDATE runs SET driver = ?3 WHERE id = ?1 AND run_id = ?2 RETURNING status")?
            .query_row(params![mark.run, handle.run.as_str(), self.driver], |row| row.get(0))
            .optional()?;
        let status = match status.as_deref() {
            None => return Err(Fault::Refused(error::unknown(&handle.run))),
            Some("running") => RunStatus::Running,
            Some("waiting") => RunStatus::Waiting,
            Some(_) => return Err(Fault::Refused(error::over(&handle.run))),
        };
        let last: Option<(i64, i64, String)> = self
            .connection
            .prepare_cached("SELECT seq, epoch, sum FROM batches WHERE run = ?1 ORDER BY id DESC LIMIT 1")?
            .query_row([mark.run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        match last {
            Some((seq, epoch, sum)) if seq + 1 == mark.batches => {
                let sum = Digest::parse_hex(&sum).ok_or_else(|| {
                    Fault::Refused(error::damaged_run(&handle.run, "its last sum is unreadable"))
                })?;
                self.hold(handle, mark.run, epoch + 1, mark.batches, sum, status);
                Ok(())
            }
            // Someone wrote since it was loaded.
            _ => Err(Fault::Refused(error::taken_over(&handle.run))),
        }
    }

    fn hold(
        &mut self,
        handle: &Arc<Handle>,
        run: i64,
        epoch: i64,
        next: i64,
        sum: Digest,
        status: RunStatus,
    ) {
        if self.open.len() >= self.sweep_at {
            self.open.retain(|_, open| open.handle.strong_count() > 0);
            self.sweep_at = SWEEP.max(self.open.len() * 2);
        }
        let open = Open { handle: Arc::downgrade(handle), run, epoch, next, sum, status };
        self.open.insert(handle.run.clone(), open);
    }

    /// Closes a journal whose last batches were not kept.
    pub(crate) fn forget(&mut self, handle: &Arc<Handle>) {
        if self.open.get(&handle.run).is_some_and(|open| open.is_of(handle)) {
            self.open.remove(&handle.run);
        }
    }

    pub(crate) fn mark(&mut self, mark: &Mark) -> rusqlite::Result<()> {
        let marked = match mark {
            Mark::Flow(line) => match &mut self.events {
                Some(events) => return events.of_flow(&self.connection, &line.body),
                None => return Ok(()),
            },
            Mark::Chat(line) => return chat_rows::say(&self.connection, line),
            Mark::Delivered(run) => self
                .connection
                .prepare_cached("UPDATE runs SET delivered = 1 WHERE run_id = ?1")?
                .execute([run.as_str()]),
            Mark::Answer { request, refused } => self
                .connection
                .prepare_cached("UPDATE requests SET answered = 1, refused = ?2 WHERE id = ?1")?
                .execute(params![request, refused.map(StoreCode::as_str)]),
        };
        marked.map(drop)
    }

    /// Forgets a chat.
    pub(crate) fn clear_chat(&self, node: &NodeId) -> rusqlite::Result<()> {
        chat_rows::clear(&self.connection, node)
    }

    /// Removes what was answered long ago.
    pub(crate) fn forget_requests(&self) -> rusqlite::Result<()> {
        requests::forget_old(&self.connection)
    }
}

impl Open {
    fn is_of(&self, handle: &Arc<Handle>) -> bool {
        self.handle.as_ptr() == Arc::as_ptr(handle)
    }

    /// Writes down where the run is. Where it stops, the row is sealed with how many batches there are and the
    /// sum of the last, so that a lost end is noticed.
    fn stand(&mut self, connection: &Connection, state: &RunState) -> rusqlite::Result<()> {
        let (status, code, call, ended_at) = match state {
            RunState::Running => (RunStatus::Running, None, None, None),
            RunState::Waiting(call) => (RunStatus::Waiting, None, serde_json::to_string(call).ok(), None),
            RunState::Finished { at, ending } => match ending {
                Ending::Completed => (RunStatus::Completed, None, None, Some(*at)),
                Ending::Stopped => (RunStatus::Stopped, None, None, Some(*at)),
                Ending::Failed { code } => (RunStatus::Failed, Some(code.as_str()), None, Some(*at)),
            },
        };
        let ended_at = ended_at.map(whole);
        let sealed = (status != RunStatus::Running).then(|| {
            let waiting = call.as_deref();
            let seal = Seal { status: status.as_str(), code, waiting, ended_at, batches: self.next };
            (self.next, seal.sum(&self.sum).to_hex())
        });
        let (batches, sum) = sealed.unzip();
        connection
            .prepare_cached(
                "UPDATE runs SET status = ?2, code = ?3, waiting = ?4, ended_at = ?5, batches = ?6, sum = ?7
                 WHERE id = ?1",
            )?
            .execute(params![self.run, status.as_str(), code, call, ended_at, batches, sum])?;
        self.status = status;
        Ok(())
    }
}

/// The lines, with a line feed between them.
fn join(lines: &[String], joined: &mut Vec<u8>) {
    joined.clear();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            joined.push(b'\n');
        }
        joined.extend_from_slice(line.as_bytes());
    }
}

/// As SQLite has whole numbers. A moment after the year 292 million is as good as the last one before.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
