//! Questions to the tables.
//!
//! Owns how rows become runs again, and every check that they are the rows that were written. Never writes.

use crate::error;
use crate::row::{COLUMNS, Found, UNREADABLE, id};
use crate::sum::Row;
use redflow_contract::code::StoreCode;
use redflow_contract::digest::Digest;
use redflow_contract::id::RunId;
use redflow_contract::journal::plan_line;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::{RunFilter, RunRecord, StoreError, StoreMark, StoredRun};
use rusqlite::{Connection, OptionalExtension as _, Params};
use std::cell::LazyCell;
use std::path::Path;

/// Which rows of `runs` to list, and in which order. Each is an index of its own, or the table's.
const UNFINISHED: &str = "WHERE ended_at IS NULL OR delivered = 0 ORDER BY id";
const NEWEST: &str = "WHERE id < ?1 ORDER BY id DESC";
const NEWEST_OPEN: &str = "WHERE (ended_at IS NULL OR delivered = 0) AND id < ?1 ORDER BY id DESC";
const NEWEST_FAILED: &str = "WHERE code IS NOT NULL AND id < ?1 ORDER BY id DESC";
const NEWEST_FAILED_OF_AGENT: &str = "WHERE code IS NOT NULL AND node_id = ?2 AND id < ?1 ORDER BY id DESC";
const NEWEST_OF_AGENT: &str = "WHERE node_id = ?2 AND id < ?1 ORDER BY id DESC";
const NEWEST_OF_INSTANCE: &str = "WHERE instance = ?2 AND id < ?1 ORDER BY id DESC";

/// A connection, and what it does not know by itself.
pub(crate) struct Tables<'a> {
    connection: &'a Connection,
    dir: &'a Path,
    driven: LazyCell<bool, Box<dyn FnOnce() -> bool + 'a>>,
}

/// A run, and how far it is what was written.
pub(crate) struct Checked {
    pub(crate) found: Found,
    pub(crate) journal: Vec<u8>,
    batches: i64,
    active_ms: i64,
    /// Why the journal ends where it does, or else what is wrong with the row of the run.
    pub(crate) problem: Option<StoreError>,
}

impl<'a> Tables<'a> {
    /// Whether some process drives the runs is asked at most once, and only if the answer depends on it.
    pub(crate) fn new(connection: &'a Connection, dir: &'a Path, driven: impl FnOnce() -> bool + 'a) -> Self {
        Self { connection, dir, driven: LazyCell::new(Box::new(driven)) }
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.connection
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir
    }

    pub(crate) fn is_driven(&self) -> bool {
        *self.driven
    }

    pub(crate) fn summary(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        self.at_once(|| {
            let Some(mut found) = self.find(run)? else { return Ok(None) };
            let _ = self.judge(&mut found, self.driver()?);
            Ok(Some(found.summary))
        })
    }

    /// Runs that are not over, or whose result has not left for good, in the order they began.
    pub(crate) fn unfinished(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.at_once(|| self.list(UNFINISHED, [], |_| true, usize::MAX))
    }

    /// The newest runs of the wanted kind.
    pub(crate) fn newest(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        self.at_once(|| {
            let before = match &filter.before {
                None => i64::MAX,
                Some(run) => match self.number(run)? {
                    None => return Ok(Vec::new()),
                    Some(number) => number,
                },
            };
            let wanted = |run: &RunSummary| wants(filter, run);
            // The fewest rows in which all that are wanted are. One of another status than its row says is damaged.
            let only = |these: &[RunStatus]| {
                filter.statuses.as_ref().is_some_and(|all| all.iter().all(|status| these.contains(status)))
            };
            if only(&[RunStatus::Running, RunStatus::Interrupted, RunStatus::Waiting]) {
                self.list(NEWEST_OPEN, [before], wanted, filter.limit)
            } else if only(&[RunStatus::Failed]) {
                match &filter.agent {
                    Some(agent) => {
                        self.list(NEWEST_FAILED_OF_AGENT, (before, agent.as_str()), wanted, filter.limit)
                    }
                    None => self.list(NEWEST_FAILED, [before], wanted, filter.limit),
                }
            } else if let Some(agent) = &filter.agent {
                self.list(NEWEST_OF_AGENT, (before, agent.as_str()), wanted, filter.limit)
            } else if let Some(instance) = &filter.instance {
                self.list(NEWEST_OF_INSTANCE, (before, instance.as_str()), wanted, filter.limit)
            } else {
                self.list(NEWEST, [before], wanted, filter.limit)
            }
        })
    }

    /// Belongs into a transaction.
    fn list(
        &self,
        which: &str,
        params: impl Params,
        wanted: impl Fn(&RunSummary) -> bool,
        most: usize,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let driver = self.driver()?;
        let mut statement = self
            .connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM runs {which}"))
            .map_err(|why| self.told(&why))?;
        let rows = statement.query_map(params, Found::read).map_err(|why| self.told(&why))?;
        // One damaged run must not hide the others: it is listed as such.
        let summaries = rows.map(|row| {
            row.map_err(|why| self.told(&why)).map(|mut found| {
                let _ = self.judge(&mut found, driver);
                found.summary
            })
        });
        summaries.filter(|run| run.as_ref().map_or(true, &wanted)).take(most).collect()
    }

    /// Every run, in the order they began.
    pub(crate) fn run_ids(&self) -> Result<Vec<RunId>, StoreError> {
        let ask = || {
            let mut statement = self.connection.prepare_cached("SELECT id, run_id FROM runs ORDER BY id")?;
            statement.query_map([], run_id)?.collect::<Result<_, _>>()
        };
        ask().map_err(|why| self.told(&why))
    }

    /// The numbers of all runs, in the order they began.
    pub(crate) fn numbers(&self) -> Result<Vec<i64>, StoreError> {
        let ask = || {
            let mut statement = self.connection.prepare_cached("SELECT id FROM runs ORDER BY id")?;
            statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()
        };
        ask().map_err(|why| self.told(&why))
    }

    pub(crate) fn started_by(&self, cause: &str) -> Result<Option<RunId>, StoreError> {
        let ask = || {
            let mut statement =
                self.connection.prepare_cached("SELECT id, run_id FROM runs WHERE cause = ?1")?;
            statement.query_row([cause], run_id).optional()
        };
        ask().map_err(|why| self.told(&why))
    }

    /// Everything of one run, if it is what was written. That the last batches of a run are missing shows only
    /// once it waits or is over, because only then its row says how many there are; the lost end of a run that
    /// was going on cannot be told from an end that was never written.
    pub(crate) fn load(&self, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
        let Some(checked) = self.sound_part(run)? else { return Ok(None) };
        match checked.problem {
            Some(problem) => Err(problem),
            None => Ok(Some(StoredRun {
                mark: StoreMark { run: checked.found.number, batches: checked.batches },
                summary: checked.found.summary,
                journal: checked.journal,
                active_ms: u64::try_from(checked.active_ms).unwrap_or_default(),
            })),
        }
    }

    /// One run as far as it is sound; none if there is no such run.
    pub(crate) fn sound_part(&self, run: &RunId) -> Result<Option<Checked>, StoreError> {
        self.at_once(|| self.find(run)?.map(|found| self.check(found)).transpose())
    }

    /// The same, as whoever looks at runs is told it.
    pub(crate) fn look(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let checked = self.sound_part(run)?;
        Ok(checked.map(|Checked { found, journal, problem, .. }| {
            let mut summary = found.summary;
            if problem.is_some() {
                (summary.status, summary.waiting) = (RunStatus::Damaged, None);
            }
            RunRecord { summary, journal, problem }
        }))
    }

    /// One run by its number. Belongs into a transaction.
    pub(crate) fn numbered(&self, number: i64) -> Result<Option<Checked>, StoreError> {
        let found = self.one("WHERE id = ?1", [number]).map_err(|why| self.told(&why))?;
        found.map(|found| self.check(found)).transpose()
    }

    fn find(&self, run: &RunId) -> Result<Option<Found>, StoreError> {
        let Some(number) = self.number(run)? else { return Ok(None) };
        self.one("WHERE id = ?1", [number]).map_err(|why| self.told_of(run, &why))
    }

    /// The number of a run. Numbers follow the order in which runs began.
    fn number(&self, run: &RunId) -> Result<Option<i64>, StoreError> {
        let ask = || {
            if !run.as_str().contains(UNREADABLE) {
                let mut statement =
                    self.connection.prepare_cached("SELECT id FROM runs WHERE run_id = ?1")?;
                return statement.query_row([run.as_str()], |row| row.get(0)).optional();
            }
            // What stands for an id that cannot be read is not what is stored.
            let mut statement = self.connection.prepare_cached("SELECT id, run_id FROM runs")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if run_id(row)? == *run {
                    return row.get(0).map(Some);
                }
            }
            Ok(None)
        };
        ask().map_err(|why| self.told_of(run, &why))
    }

    fn one(&self, which: &str, params: impl Params) -> rusqlite::Result<Option<Found>> {
        let mut statement = self.connection.prepare_cached(&format!("SELECT {COLUMNS} FROM runs {which}"))?;
        statement.query_row(params, Found::read).optional()
    }

    /// Looks at everything of a run. Damage is what it finds, not an error.
    fn check(&self, mut found: Found) -> Result<Checked, StoreError> {
        let judged = self.judge(&mut found, self.driver()?);
        let mut checked = Checked { found, journal: Vec::new(), batches: 0, active_ms: 0, problem: None };
        let sound = self.walk(&mut checked).and_then(|last| {
            judged?;
            let found = &checked.found;
            let wrong = |what: &str| Err(error::damaged_run(&found.summary.run_id, what));
            if found.head != Some(found.real_head()) {
                return wrong("its agent, name, start, cause or source does not match its sum");
            }
            found.wrong_end(checked.batches, &last).map_or(Ok(()), wrong)
        });
        checked.problem = match sound {
            Err(problem) if problem.code == StoreCode::DataCorrupt => Some(problem),
            sound => sound.map(|()| None)?,
        };
        Ok(checked)
    }

    /// Reads the journal until its end, whose sum it gives, or until what is not what was written.
    fn walk(&self, checked: &mut Checked) -> Result<Digest, StoreError> {
        let Checked { found, journal, batches, active_ms, .. } = checked;
        let run = &found.summary.run_id;
        let wrong = |what: &str| error::damaged_run(run, what);
        let told = |why: rusqlite::Error| self.told_of(run, &why);
        let plan = found.plan.map(|plan| self.plan(run, plan)).transpose()?;
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT seq, epoch, active_ms, lines, sum FROM batches WHERE run = ?1 ORDER BY id",
            )
            .map_err(told)?;
        let mut rows = statement.query([found.number]).map_err(told)?;
        // Before the first: the head that the row of the run has, or the one it should have. Lines that fit
        // either are sound, whatever became of the row.
        let mut before = [found.head, Some(found.real_head())];
        let mut last = None;
        while let Some(row) = rows.next().map_err(told)? {
            let number = |index: usize| row.get::<_, i64>(index).map_err(told);
            let bytes = |index: usize| {
                row.get_ref(index).map_err(told)?.as_bytes().map_err(|_| wrong("a value has another type"))
            };
            let left_out = plan.as_ref().filter(|_| *batches == 0);
            let stored = Row {
                run: run.as_str(),
                seq: number(0)?,
                epoch: number(1)?,
                active_ms: number(2)?,
                plan: left_out.map(|(digest, _)| *digest),
                lines: bytes(3)?,
            };
            let expected = bytes(4)?;
            let mut sums = before.into_iter().flatten().map(|before| stored.sum(&before));
            let sum = sums.find(|sum| sum.to_hex().as_bytes() == expected);
            if stored.seq != *batches || sum.is_none() {
                return Err(wrong(&format!("its part {} does not match its sum", *batches + 1)));
            }
            match left_out {
                Some((_, json)) => put_back(journal, stored.lines, json),
                None => put(journal, stored.lines),
            }
            *active_ms = stored.active_ms;
            *batches += 1;
            (last, before) = (sum, [sum, None]);
        }
        last.ok_or_else(|| wrong("its journal is missing"))
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
    pub(crate) fn driver(&self) -> Result<i64, StoreError> {
        let ask =
            || self.connection.prepare_cached("SELECT driver FROM meta")?.query_row([], |row| row.get(0));
        ask().map_err(|why| self.told(&why))
    }

    /// Says where a run is. A row that contradicts itself stays `damaged`.
    fn judge(&self, found: &mut Found, driver: i64) -> Result<(), StoreError> {
        found.judge(|last| last == Some(driver) && self.is_driven())
    }

    /// Answers several questions from one state of the database.
    pub(crate) fn at_once<T>(&self, ask: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let _transaction = self.connection.unchecked_transaction().map_err(|why| self.told(&why))?;
        ask()
    }

    pub(crate) fn told(&self, why: &rusqlite::Error) -> StoreError {
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

/// Whether a run is one of those that are wanted, wherever it began.
pub(crate) fn wants(filter: &RunFilter, run: &RunSummary) -> bool {
    filter.statuses.as_ref().is_none_or(|statuses| statuses.contains(&run.status))
        && filter.agent.as_ref().is_none_or(|agent| *agent == run.agent.node_id)
        && filter.instance.as_ref().is_none_or(|instance| *instance == run.agent.instance)
}

/// The run of a row of `id, run_id`.
fn run_id(row: &rusqlite::Row<'_>) -> rusqlite::Result<RunId> {
    Ok(RunId::from(id(row.get_ref(1)?, row.get(0)?)))
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

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
