//! Queries on the tables of runs.
//!
//! Owns how rows become runs again, and every check that the rows are as they were written. Never writes.

use super::checksum::BatchRow;
use super::row::{RunRow, UNREADABLE, columns, readable_id};
use super::search::{RunPosition, Search};
use super::stats::{self, agent_name};
use super::tree::{RunLinks, walk};
use crate::database::runs_have_parents;
use crate::error;
use redflow_contract::api::RunList;
use redflow_contract::code::StoreCode;
use redflow_contract::console::{RunTree, Stats, StatsBy};
use redflow_contract::digest::Digest;
use redflow_contract::id::RunId;
use redflow_contract::journal::plan_line;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::{JournalPosition, RunFilter, RunRecord, StatsQuery, StoreError, StoredRun, TreeQuery};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Params, params_from_iter};
use std::cell::LazyCell;
use std::path::Path;

/// Rows of `runs` that are not over, or whose result is not delivered.
const UNFINISHED: &str = "WHERE ended_at IS NULL OR delivered = 0 ORDER BY id";

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

impl CheckedRun {
    pub(crate) fn summary(&self) -> &RunSummary {
        &self.row.summary
    }
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
    pub(crate) fn newest(&self, filter: &RunFilter) -> Result<RunList, StoreError> {
        self.in_transaction(|| {
            let mut page = RunList { runs: Vec::new(), next: None, searched_to: None };
            let before = match &filter.before {
                None => None,
                Some(run) => match self.number(run)? {
                    None => return Ok(page),
                    Some(number) => self.position("WHERE id = ?1", &[number.into()])?,
                },
            };
            let has_parents = runs_have_parents(self.connection).map_err(|error| self.error(&error))?;
            let search = Search::new(filter, before.as_ref(), has_parents);
            let last = match search.last_row() {
                Some((which, params)) => self.position(&which, params)?,
                None => None,
            };
            let (which, params) = search.rows(last.as_ref());
            // One run more shows whether there is another page.
            let most = filter.limit.saturating_add(1);
            page.runs = self.list(&which, params_from_iter(params), |run| filter.matches(run), most)?;
            if page.runs.len() > filter.limit {
                page.runs.truncate(filter.limit);
                page.next = page.runs.last().map(|run| run.run_id.clone());
            } else if let Some(last) = last {
                page.searched_to = Some(u64::try_from(last.started_at).unwrap_or_default());
                page.next = Some(last.run);
            }
            page.runs.iter_mut().try_for_each(|run| self.count_children(run))?;
            Ok(page)
        })
    }

    /// Finds the position of one run; none if no row matches.
    fn position(&self, which: &str, params: &[Value]) -> Result<Option<RunPosition>, StoreError> {
        let query = || {
            let sql = format!("SELECT id, run_id, started_at FROM runs {which}");
            let mut statement = self.connection.prepare_cached(&sql)?;
            let read = |row: &rusqlite::Row<'_>| {
                // A damaged time must not hide the other runs.
                let started_at = row.get_ref(2)?.as_i64().unwrap_or_default();
                Ok(RunPosition { number: row.get(0)?, started_at, run: run_id(row)? })
            };
            statement.query_row(params_from_iter(params), read).optional()
        };
        query().map_err(|error| self.error(&error))
    }

    /// Counts the runs that a run has started.
    fn count_children(&self, run: &mut RunSummary) -> Result<(), StoreError> {
        let query = || {
            if !runs_have_parents(self.connection)? {
                return Ok(0);
            }
            self.connection.prepare_cached(CHILDREN)?.query_row([run.run_id.as_str()], |row| row.get(0))
        };
        run.children = query().map_err(|error| self.error(&error))?;
        Ok(())
    }

    /// The runs below a run, in the order of the tree; none if there is no such run.
    pub(crate) fn tree(&self, query: &TreeQuery) -> Result<Option<RunTree>, StoreError> {
        self.in_transaction(|| {
            let Some(top) = self.number(&query.run)? else { return Ok(None) };
            let after = match &query.after {
                None => None,
                Some(after) => match self.number(after)? {
                    None => return Ok(Some(RunTree { runs: Vec::new(), next: None })),
                    number => number,
                },
            };
            walk(self, top, after, query.limit).map(Some)
        })
    }

    /// The sums of what runs have used.
    pub(crate) fn stats(&self, query: StatsQuery) -> Result<Stats, StoreError> {
        let connection = self.connection;
        self.in_transaction(|| {
            let stats = if query.by == StatsBy::Code {
                stats::read_failures(connection, query).map(|runs| stats::count_failures(query, runs))
            } else {
                let name_of = |instance: &str, node_id: &str| agent_name(connection, instance, node_id);
                stats::read_usage(connection, query, name_of)
            };
            stats.map_err(|error| self.error(&error))
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
        let row = self.row(number).map_err(|error| self.run_error(run, &error))?;
        let Some(mut row) = row else { return Ok(None) };
        self.count_children(&mut row.summary)?;
        Ok(Some(row))
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

impl RunLinks for RunQueries<'_> {
    type Error = StoreError;

    fn next_child(&self, parent: i64, after: i64) -> Result<Option<i64>, StoreError> {
        let query = || {
            let mut statement = self.connection.prepare_cached(NEXT_CHILD)?;
            statement.query_row([parent, after], |row| row.get(0)).optional()
        };
        query().map_err(|error| self.error(&error))
    }

    fn parent(&self, run: i64) -> Result<Option<i64>, StoreError> {
        let query = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT id FROM runs WHERE run_id = (SELECT parent FROM runs WHERE id = ?1)",
            )?;
            statement.query_row([run], |row| row.get(0)).optional()
        };
        query().map_err(|error| self.error(&error))
    }

    fn summary(&self, run: i64) -> Result<Option<RunSummary>, StoreError> {
        let row = self.row(run).map_err(|error| self.error(&error))?;
        let Some(mut row) = row else { return Ok(None) };
        let _ = self.check_row(&mut row, self.driver()?);
        self.count_children(&mut row.summary)?;
        Ok(Some(row.summary))
    }
}

const CHILDREN: &str = "SELECT count(*) FROM runs WHERE parent = ?1";

/// The next run with the same parent, by number.
const NEXT_CHILD: &str =
    "SELECT id FROM runs WHERE parent = (SELECT run_id FROM runs WHERE id = ?1) AND id > ?2
     ORDER BY id LIMIT 1";

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
