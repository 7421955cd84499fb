//! Queries on the tables of runs.
//!
//! Owns how rows become runs again, and every check that the rows are as they were written. Never writes.

use super::checksum::BatchRow;
use super::row::{RunRow, UNREADABLE, columns, readable_id};
use crate::error;
use redflow_contract::code::StoreCode;
use redflow_contract::digest::Digest;
use redflow_contract::id::RunId;
use redflow_contract::journal::plan_line;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::{JournalPosition, RunFilter, RunRecord, StoreError, StoredRun};
use rusqlite::{Connection, OptionalExtension as _, Params};
use std::cell::LazyCell;
use std::path::Path;

/// Which rows of `runs` to list, and in which order. Each one uses an index of its own, or the table's key.
const UNFINISHED: &str = "WHERE ended_at IS NULL OR delivered = 0 ORDER BY id";
const NEWEST: &str = "WHERE id < ?1 ORDER BY id DESC";
const NEWEST_OPEN: &str = "WHERE (ended_at IS NULL OR delivered = 0) AND id < ?1 ORDER BY id DESC";
const NEWEST_FAILED: &str = "WHERE code IS NOT NULL AND id < ?1 ORDER BY id DESC";
const NEWEST_FAILED_OF_AGENT: &str = "WHERE code IS NOT NULL AND node_id = ?2 AND id < ?1 ORDER BY id DESC";
const NEWEST_OF_AGENT: &str = "WHERE node_id = ?2 AND id < ?1 ORDER BY id DESC";
const NEWEST_OF_INSTANCE: &str = "WHERE instance = ?2 AND id < ?1 ORDER BY id DESC";

/// A connection to read by, and whether a process drives the runs.
pub(crate) struct RunQueries<'a> {
    connection: &'a Connection,
    dir: &'a Path,
    is_driven: LazyCell<bool, Box<dyn FnOnce() -> bool + 'a>>,
}

/// A run, and how much of it is intact.
pub(crate) struct CheckedRun {
    pub(crate) row: RunRow,
    /// The journal up to the first damage.
    pub(crate) journal: Vec<u8>,
    batches: i64,
    active_ms: i64,
    /// The first damage of the journal, or else of the row.
    pub(crate) problem: Option<StoreError>,
}

impl<'a> RunQueries<'a> {
    /// `is_driven` is called at most once, and only if an answer depends on it: it touches the lock.
    pub(crate) fn new(
        connection: &'a Connection,
        dir: &'a Path,
        is_driven: impl FnOnce() -> bool + 'a,
    ) -> Self {
        Self { connection, dir, is_driven: LazyCell::new(Box::new(is_driven)) }
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.connection
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir
    }

    pub(crate) fn is_driven(&self) -> bool {
        *self.is_driven
    }

    pub(crate) fn summary(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        self.in_transaction(|| {
            let Some(mut row) = self.find(run)? else { return Ok(None) };
            let _ = self.check_row(&mut row, self.driver()?);
            Ok(Some(row.summary))
        })
    }

    /// Runs that are not over, or whose result is not delivered, in the order they started.
    pub(crate) fn unfinished(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.in_transaction(|| self.list(UNFINISHED, [], |_| true, usize::MAX))
    }

    /// The newest runs that match the filter.
    pub(crate) fn newest(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        self.in_transaction(|| {
            let before = match &filter.before {
                None => i64::MAX,
                Some(run) => match self.number(run)? {
                    None => return Ok(Vec::new()),
                    Some(number) => number,
                },
            };
            let matches = |run: &RunSummary| matches_filter(filter, run);
            // Use the index with the fewest rows. No match is missed: a row whose status contradicts the
            // columns of the index is damaged.
            let only = |allowed: &[RunStatus]| {
                filter.statuses.as_ref().is_some_and(|all| all.iter().all(|status| allowed.contains(status)))
            };
            if only(&[RunStatus::Running, RunStatus::Interrupted, RunStatus::Waiting]) {
                self.list(NEWEST_OPEN, [before], matches, filter.limit)
            } else if only(&[RunStatus::Failed]) {
                match &filter.agent {
                    Some(agent) => {
                        self.list(NEWEST_FAILED_OF_AGENT, (before, agent.as_str()), matches, filter.limit)
                    }
                    None => self.list(NEWEST_FAILED, [before], matches, filter.limit),
                }
            } else if let Some(agent) = &filter.agent {
                self.list(NEWEST_OF_AGENT, (before, agent.as_str()), matches, filter.limit)
            } else if let Some(instance) = &filter.instance {
                self.list(NEWEST_OF_INSTANCE, (before, instance.as_str()), matches, filter.limit)
            } else {
                self.list(NEWEST, [before], matches, filter.limit)
            }
        })
    }

    /// Call it inside a transaction.
    fn list(
        &self,
        which: &str,
        params: impl Params,
        matches: impl Fn(&RunSummary) -> bool,
        limit: usize,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let driver = self.driver()?;
        let mut statement = columns(self.connection)
            .and_then(|columns| {
                self.connection.prepare_cached(&format!("SELECT {columns} FROM runs {which}"))
            })
            .map_err(|error| self.error(&error))?;
        let rows = statement.query_map(params, RunRow::read).map_err(|error| self.error(&error))?;
        // One damaged run must not hide the others: it is listed as damaged.
        let summaries = rows.map(|row| {
            row.map_err(|error| self.error(&error)).map(|mut row| {
                let _ = self.check_row(&mut row, driver);
                row.summary
            })
        });
        summaries.filter(|run| run.as_ref().map_or(true, &matches)).take(limit).collect()
    }

    /// The ids of all runs, in the order they started.
    pub(crate) fn run_ids(&self) -> Result<Vec<RunId>, StoreError> {
        let query = || {
            let mut statement = self.connection.prepare_cached("SELECT id, run_id FROM runs ORDER BY id")?;
            statement.query_map([], run_id)?.collect::<Result<_, _>>()
        };
        query().map_err(|error| self.error(&error))
    }

    /// The numbers of all runs, in the order they started.
    pub(crate) fn numbers(&self) -> Result<Vec<i64>, StoreError> {
        let query = || {
            let mut statement = self.connection.prepare_cached("SELECT id FROM runs ORDER BY id")?;
            statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()
        };
        query().map_err(|error| self.error(&error))
    }

    pub(crate) fn started_by(&self, cause: &str) -> Result<Option<RunId>, StoreError> {
        let query = || {
            let mut statement =
                self.connection.prepare_cached("SELECT id, run_id FROM runs WHERE cause = ?1")?;
            statement.query_row([cause], run_id).optional()
        };
        query().map_err(|error| self.error(&error))
    }

    /// Loads one run, if it is intact. Missing last batches show only once the run waits or is over, because
    /// only then its row has their number. The lost end of a run that was running looks like an end that was
    /// never written.
    pub(crate) fn load(&self, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
        let Some(checked) = self.check(run)? else { return Ok(None) };
        match checked.problem {
            Some(problem) => Err(problem),
            None => Ok(Some(StoredRun {
                mark: JournalPosition { run: checked.row.number, batches: checked.batches },
                summary: checked.row.summary,
                journal: checked.journal,
                active_ms: u64::try_from(checked.active_ms).unwrap_or_default(),
            })),
        }
    }

    /// Checks one run; none if there is no such run.
    pub(crate) fn check(&self, run: &RunId) -> Result<Option<CheckedRun>, StoreError> {
        self.in_transaction(|| self.find(run)?.map(|row| self.check_run(row)).transpose())
    }

    /// Loads one run, even if it is damaged; then up to the first damage.
    pub(crate) fn record(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let checked = self.check(run)?;
        Ok(checked.map(|CheckedRun { row, journal, problem, .. }| {
            let mut summary = row.summary;
            if problem.is_some() {
                summary.status = RunStatus::Damaged;
                summary.set_questions(Vec::new());
            }
            RunRecord { summary, journal, problem }
        }))
    }

    /// Checks one run by its number. Call it inside a transaction.
    pub(crate) fn check_numbered(&self, number: i64) -> Result<Option<CheckedRun>, StoreError> {
        let row = self.row(number).map_err(|error| self.error(&error))?;
        row.map(|row| self.check_run(row)).transpose()
    }

    fn find(&self, run: &RunId) -> Result<Option<RunRow>, StoreError> {
        let Some(number) = self.number(run)? else { return Ok(None) };
        self.row(number).map_err(|error| self.run_error(run, &error))
    }

    /// The number of a run. Numbers follow the order in which runs started.
    fn number(&self, run: &RunId) -> Result<Option<i64>, StoreError> {
        let query = || {
            if !run.as_str().contains(UNREADABLE) {
                let mut statement =
                    self.connection.prepare_cached("SELECT id FROM runs WHERE run_id = ?1")?;
                return statement.query_row([run.as_str()], |row| row.get(0)).optional();
            }
            // The replacement text of an unreadable id is not stored, so compare with every row.
            let mut statement = self.connection.prepare_cached("SELECT id, run_id FROM runs")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if run_id(row)? == *run {
                    return row.get(0).map(Some);
                }
            }
            Ok(None)
        };
        query().map_err(|error| self.run_error(run, &error))
    }

    fn row(&self, number: i64) -> rusqlite::Result<Option<RunRow>> {
        let sql = format!("SELECT {} FROM runs WHERE id = ?1", columns(self.connection)?);
        self.connection.prepare_cached(&sql)?.query_row([number], RunRow::read).optional()
    }

    /// Checks the row, the journal and the seal of a run. Damage is a result here, not an error.
    fn check_run(&self, mut row: RunRow) -> Result<CheckedRun, StoreError> {
        let row_checked = self.check_row(&mut row, self.driver()?);
        let mut checked = CheckedRun { row, journal: Vec::new(), batches: 0, active_ms: 0, problem: None };
        let result = self.read_journal(&mut checked).and_then(|last| {
            row_checked?;
            let row = &checked.row;
            let damaged = |reason: &str| Err(error::damaged_run(&row.summary.run_id, reason));
            if row.head != Some(row.computed_head()) {
                return damaged("its agent, name, start, cause or source does not match its sum");
            }
            row.end_problem(checked.batches, &last).map_or(Ok(()), damaged)
        });
        checked.problem = match result {
            Err(problem) if problem.code == StoreCode::DataCorrupt => Some(problem),
            result => result.map(|()| None)?,
        };
        Ok(checked)
    }

    /// Reads the journal up to its end or the first damage. Returns the last checksum.
    fn read_journal(&self, checked: &mut CheckedRun) -> Result<Digest, StoreError> {
        let CheckedRun { row: run_row, journal, batches, active_ms, .. } = checked;
        let run = &run_row.summary.run_id;
        let damaged = |reason: &str| error::damaged_run(run, reason);
        let to_store_error = |error: rusqlite::Error| self.run_error(run, &error);
        let plan = run_row.plan.map(|plan| self.plan(run, plan)).transpose()?;
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT seq, epoch, active_ms, lines, sum FROM batches WHERE run = ?1 ORDER BY id",
            )
            .map_err(to_store_error)?;
        let mut rows = statement.query([run_row.number]).map_err(to_store_error)?;
        // The first row continues the head: the stored one, or the computed one. Lines that match either are
        // intact, even if the row of the run is damaged.
        let mut before = [run_row.head, Some(run_row.computed_head())];
        let mut last = None;
        while let Some(row) = rows.next().map_err(to_store_error)? {
            let number = |index: usize| row.get::<_, i64>(index).map_err(to_store_error);
            let bytes = |index: usize| {
                let value = row.get_ref(index).map_err(to_store_error)?;
                value.as_bytes().map_err(|_| damaged("a value has another type"))
            };
            let left_out = plan.as_ref().filter(|_| *batches == 0);
            let stored = BatchRow {
                run: run.as_str(),
                seq: number(0)?,
                epoch: number(1)?,
                active_ms: number(2)?,
                plan: left_out.map(|(digest, _)| *digest),
                lines: bytes(3)?,
            };
            let expected = bytes(4)?;
            let mut checksums = before.into_iter().flatten().map(|before| stored.checksum(&before));
            let checksum = checksums.find(|checksum| checksum.to_hex().as_bytes() == expected);
            if stored.seq != *batches || checksum.is_none() {
                return Err(damaged(&format!("its part {} does not match its sum", *batches + 1)));
            }
            match left_out {
                Some((_, json)) => push_lines_with_plan(journal, stored.lines, json),
                None => push_lines(journal, stored.lines),
            }
            *active_ms = stored.active_ms;
            *batches += 1;
            (last, before) = (checksum, [checksum, None]);
        }
        last.ok_or_else(|| damaged("its journal is missing"))
    }

    fn plan(&self, run: &RunId, number: i64) -> Result<(Digest, String), StoreError> {
        let query = || {
            let mut statement =
                self.connection.prepare_cached("SELECT digest, json FROM plans WHERE id = ?1")?;
            statement.query_row([number], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        };
        let (digest, json): (String, String) = query()
            .map_err(|error| self.run_error(run, &error))?
            .ok_or_else(|| error::damaged_run(run, "its plan is missing"))?;
        let computed = Digest::of(json.as_bytes());
        if Digest::parse_hex(&digest) != Some(computed) {
            return Err(error::damaged_run(run, "its plan does not match its digest"));
        }
        Ok((computed, json))
    }

    /// The number of the process that drives the runs, or did so last.
    pub(crate) fn driver(&self) -> Result<i64, StoreError> {
        let query =
            || self.connection.prepare_cached("SELECT driver FROM meta")?.query_row([], |row| row.get(0));
        query().map_err(|error| self.error(&error))
    }

    /// Sets the status of a run. A row that contradicts itself stays `damaged`.
    fn check_row(&self, row: &mut RunRow, driver: i64) -> Result<(), StoreError> {
        row.check(|last| last == Some(driver) && self.is_driven())
    }

    /// Runs several queries on one state of the database.
    pub(crate) fn in_transaction<T>(
        &self,
        query: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _transaction = self.connection.unchecked_transaction().map_err(|error| self.error(&error))?;
        query()
    }

    pub(crate) fn error(&self, error: &rusqlite::Error) -> StoreError {
        error::from_sqlite(self.dir, error)
    }

    /// Damage that shows while one run is read counts as damage of that run.
    fn run_error(&self, run: &RunId, error: &rusqlite::Error) -> StoreError {
        match self.error(error) {
            damage if damage.code == StoreCode::DataCorrupt => error::damaged_run(run, &error.to_string()),
            other => other,
        }
    }
}

/// Whether a run matches the filter, apart from `before` and `limit`.
pub(super) fn matches_filter(filter: &RunFilter, run: &RunSummary) -> bool {
    filter.statuses.as_ref().is_none_or(|statuses| statuses.contains(&run.status))
        && filter.agent.as_ref().is_none_or(|agent| *agent == run.agent.node_id)
        && filter.instance.as_ref().is_none_or(|instance| *instance == run.agent.instance)
}

/// Reads a row of `id, run_id`.
fn run_id(row: &rusqlite::Row<'_>) -> rusqlite::Result<RunId> {
    Ok(RunId::from(readable_id(row.get_ref(1)?, row.get(0)?)))
}

/// Adds the lines of a batch, which are joined by line feeds, and ends the last one.
fn push_lines(journal: &mut Vec<u8>, lines: &[u8]) {
    if !lines.is_empty() {
        journal.extend_from_slice(lines);
        journal.push(b'\n');
    }
}

/// Adds the lines of a first batch, with the plan's line after the first of them.
fn push_lines_with_plan(journal: &mut Vec<u8>, lines: &[u8], plan: &str) {
    let end = lines.iter().position(|&byte| byte == b'\n').unwrap_or(lines.len());
    let (header, rest) = lines.split_at(end);
    push_lines(journal, header);
    push_lines(journal, plan_line(&Digest::of(header), plan).as_bytes());
    push_lines(journal, rest.get(1..).unwrap_or_default());
}

#[cfg(test)]
#[path = "queries_tests.rs"]
mod tests;
