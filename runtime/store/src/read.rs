//! Questions to the tables.
//!
//! Owns how rows become runs again, and every check that they are the rows that were written. Never writes.

use crate::error;
use crate::sum::Row;
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::digest::Digest;
use redflow_contract::id::{InstanceId, NodeId, NodeRef, RunId};
use redflow_contract::journal::plan_line;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::{StoreError, StoreMark, StoredRun};
use rusqlite::{Connection, OptionalExtension as _, Params};
use std::path::Path;

/// A connection, and what it does not know by itself.
pub(crate) struct Tables<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) dir: &'a Path,
    /// Whether some process drives the runs.
    pub(crate) driven: bool,
}

/// A row of `runs`.
struct Found {
    number: i64,
    plan: Option<i64>,
    driver: i64,
    code: Option<String>,
    waiting: Option<String>,
    status: String,
    /// How many batches it has and the sum of the last, as of when it stopped.
    sealed: Option<(i64, String)>,
    /// All but what the fields above say.
    summary: RunSummary,
}

const COLUMNS: &str = "id, run_id, plan, instance, node_id, name, started_at, driver, status, code, waiting, \
                       ended_at, delivered, batches, sum";

impl Tables<'_> {
    pub(crate) fn summary(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        Ok(self.list("WHERE run_id = ?1", [run.as_str()], |_| true, 1)?.pop())
    }

    /// Runs that are not over, or whose result has not left for good, in the order they began.
    pub(crate) fn unfinished(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.list("WHERE ended_at IS NULL OR delivered = 0 ORDER BY id", [], |_| true, usize::MAX)
    }

    /// The newest runs of the wanted kind.
    pub(crate) fn newest(
        &self,
        wanted: impl Fn(&RunSummary) -> bool,
        most: usize,
    ) -> Result<Vec<RunSummary>, StoreError> {
        self.list("ORDER BY id DESC", [], wanted, most)
    }

    fn list(
        &self,
        which: &str,
        params: impl Params,
        wanted: impl Fn(&RunSummary) -> bool,
        most: usize,
    ) -> Result<Vec<RunSummary>, StoreError> {
        self.at_once(|| {
            let driver = self.driver()?;
            let mut statement = self
                .connection
                .prepare_cached(&format!("SELECT {COLUMNS} FROM runs {which}"))
                .map_err(|why| self.told(&why))?;
            let rows = statement.query_map(params, found).map_err(|why| self.told(&why))?;
            // One damaged run must not hide the others.
            let damaged = |summary: RunSummary| RunSummary { status: RunStatus::Damaged, ..summary };
            rows.map(|row| row.map_err(|why| self.told(&why)))
                .map(|row| row.map(|found| (found.summary.clone(), self.judge(found, driver))))
                .map(|run| {
                    run.map(|(raw, judged)| judged.map_or_else(|_| damaged(raw), |found| found.summary))
                })
                .filter(|run| run.as_ref().map_or(true, &wanted))
                .take(most)
                .collect()
        })
    }

    /// Every run, in the order they began.
    pub(crate) fn run_ids(&self) -> Result<Vec<RunId>, StoreError> {
        let ask = || {
            let mut statement = self.connection.prepare_cached("SELECT run_id FROM runs ORDER BY id")?;
            statement.query_map([], |row| row.get(0).map(RunId))?.collect::<Result<_, _>>()
        };
        ask().map_err(|why| self.told(&why))
    }

    pub(crate) fn started_by(&self, cause: &str) -> Result<Option<RunId>, StoreError> {
        let ask = || {
            let mut statement = self.connection.prepare_cached("SELECT run_id FROM runs WHERE cause = ?1")?;
            statement.query_row([cause], |row| row.get(0).map(RunId)).optional()
        };
        ask().map_err(|why| self.told(&why))
    }

    /// Everything of one run, if it is what was written. That the last batches of a run are missing shows only
    /// once it waits or is over, because only then its row says how many there are; the lost end of a run that
    /// was going on cannot be told from an end that was never written.
    pub(crate) fn load(&self, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
        self.at_once(|| {
            let ask = || {
                let mut statement = self
                    .connection
                    .prepare_cached(&format!("SELECT {COLUMNS} FROM runs WHERE run_id = ?1"))?;
                statement.query_row([run.as_str()], found).optional()
            };
            let Some(row) = ask().map_err(|why| self.told_of(run, &why))? else { return Ok(None) };
            let found = self.judge(row, self.driver()?)?;
            self.journal(run, found).map(Some)
        })
    }

    fn journal(&self, run: &RunId, found: Found) -> Result<StoredRun, StoreError> {
        let wrong = |what: &str| error::damaged_run(run, what);
        let plan = found.plan.map(|plan| self.plan(run, plan)).transpose()?;
        let told = |why: &rusqlite::Error| self.told_of(run, why);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT seq, epoch, active_ms, lines, sum FROM batches WHERE run = ?1 ORDER BY id",
            )
            .map_err(|why| told(&why))?;
        let mut rows = statement.query([found.number]).map_err(|why| told(&why))?;
        let (mut batches, mut active_ms, mut sum) = (0, 0, Digest::ZERO);
        let mut journal = Vec::new();
        while let Some(row) = rows.next().map_err(|why| told(&why))? {
            let number = |index: usize| row.get::<_, i64>(index).map_err(|why| told(&why));
            let bytes = |index: usize| {
                row.get_ref(index)
                    .map_err(|why| told(&why))?
                    .as_bytes()
                    .map_err(|_| wrong("a value has another type"))
            };
            let left_out = plan.as_ref().filter(|_| batches == 0);
            let stored = Row {
                run,
                seq: number(0)?,
                epoch: number(1)?,
                active_ms: number(2)?,
                plan: left_out.map(|(digest, _)| *digest),
                lines: bytes(3)?,
            };
            sum = stored.sum(&sum);
            if stored.seq != batches || sum.to_hex().as_bytes() != bytes(4)? {
                return Err(wrong(&format!("its part {} does not match its sum", batches + 1)));
            }
            match left_out {
                Some((_, json)) => put_back(&mut journal, stored.lines, json),
                None => put(&mut journal, stored.lines),
            }
            active_ms = stored.active_ms;
            batches += 1;
        }
        match found.sealed {
            Some((count, last)) if count != batches || last != sum.to_hex() => {
                return Err(wrong("its last parts are missing"));
            }
            None if found.summary.ended_at.is_some() => return Err(wrong("its end is not marked")),
            _ if batches == 0 => return Err(wrong("its journal is missing")),
            _ => {}
        }
        Ok(StoredRun {
            summary: found.summary,
            journal,
            active_ms: u64::try_from(active_ms).unwrap_or_default(),
            mark: StoreMark { run: found.number, batches },
        })
    }

    fn plan(&self, run: &RunId, number: i64) -> Result<(Digest, String), StoreError> {
        let ask = || {
            let mut statement =
                self.connection.prepare_cached("SELECT digest, json FROM plans WHERE id = ?1")?;
            statement.query_row([number], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        };
        let (digest, json): (String, String) = ask()
            .map_err(|why| self.told_of(run, &why))?
            .ok_or_else(|| error::damaged_run(run, "its plan is missing"))?;
        let real = Digest::of(json.as_bytes());
        if Digest::parse_hex(&digest) != Some(real) {
            return Err(error::damaged_run(run, "its plan does not match its digest"));
        }
        Ok((real, json))
    }

    /// The number of the process that drives the runs, or did so last.
    fn driver(&self) -> Result<i64, StoreError> {
        let ask =
            || self.connection.prepare_cached("SELECT driver FROM meta")?.query_row([], |row| row.get(0));
        ask().map_err(|why| self.told(&why))
    }

    /// Puts what is written in words into the summary.
    fn judge(&self, mut found: Found, driver: i64) -> Result<Found, StoreError> {
        let run = &found.summary.run_id;
        let wrong = |what: &str| error::damaged_run(run, what);
        let status = match found.status.as_str() {
            "running" if self.driven && found.driver == driver => RunStatus::Running,
            "running" => RunStatus::Interrupted,
            "waiting" => RunStatus::Waiting,
            "completed" => RunStatus::Completed,
            "stopped" => RunStatus::Stopped,
            "failed" => RunStatus::Failed,
            _ => return Err(wrong("its status is unknown")),
        };
        if status.is_over() != found.summary.ended_at.is_some() {
            return Err(wrong("its status and its end contradict each other"));
        }
        let code = match &found.code {
            Some(code) => Some(RunErrorCode::parse(code).ok_or_else(|| wrong("its code is unknown"))?),
            None => None,
        };
        let waiting = match &found.waiting {
            Some(call) => {
                serde_json::from_str(call).map_err(|_| wrong("the call it waits for is unreadable"))?
            }
            None => None,
        };
        found.summary = RunSummary { status, code, waiting, ..found.summary };
        Ok(found)
    }

    /// Answers several questions from one state of the database.
    fn at_once<T>(&self, ask: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let _transaction = self.connection.unchecked_transaction().map_err(|why| self.told(&why))?;
        ask()
    }

    fn told(&self, why: &rusqlite::Error) -> StoreError {
        error::sqlite(self.dir, why)
    }

    /// Damage that was met while one run was read is that run's.
    fn told_of(&self, run: &RunId, why: &rusqlite::Error) -> StoreError {
        match self.told(why) {
            damage if damage.code == StoreCode::DataCorrupt => error::damaged_run(run, &why.to_string()),
            other => other,
        }
    }
}

fn found(row: &rusqlite::Row<'_>) -> rusqlite::Result<Found> {
    let sealed: (Option<i64>, Option<String>) = (row.get("batches")?, row.get("sum")?);
    Ok(Found {
        number: row.get("id")?,
        plan: row.get("plan")?,
        driver: row.get("driver")?,
        code: row.get("code")?,
        waiting: row.get("waiting")?,
        status: row.get("status")?,
        sealed: sealed.0.zip(sealed.1),
        summary: RunSummary {
            run_id: RunId(row.get("run_id")?),
            agent: NodeRef {
                instance: InstanceId(row.get("instance")?),
                node_id: NodeId(row.get("node_id")?),
            },
            name: row.get("name")?,
            status: RunStatus::Interrupted,
            code: None,
            waiting: None,
            started_at: unsigned(row.get("started_at")?)?,
            ended_at: row.get::<_, Option<i64>>("ended_at")?.map(unsigned).transpose()?,
            delivered: row.get("delivered")?,
        },
    })
}

/// A number that cannot be below zero.
pub(crate) fn unsigned(number: i64) -> rusqlite::Result<u64> {
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, number))
}

/// Lines, each ended: a batch has none or is joined by line feeds.
fn put(journal: &mut Vec<u8>, lines: &[u8]) {
    if !lines.is_empty() {
        journal.extend_from_slice(lines);
        journal.push(b'\n');
    }
}

/// The lines of a first batch, with the plan's after the first of them.
fn put_back(journal: &mut Vec<u8>, lines: &[u8], plan: &str) {
    let end = lines.iter().position(|&byte| byte == b'\n').unwrap_or(lines.len());
    let (header, rest) = lines.split_at(end);
    put(journal, header);
    put(journal, plan_line(&Digest::of(header), plan).as_bytes());
    put(journal, rest.get(1..).unwrap_or_default());
}
