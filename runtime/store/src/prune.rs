//! Removes runs that are over, or damaged.
//!
//! Owns the rule which runs may be removed. Works beside a live driver, in small transactions. Never removes
//! a run that may still be driven. Never removes a run while the run that started it may start it again: the
//! second start would not be recognised as a repetition.

use crate::database::{self, from_sql_integer};
use crate::directory::Directory;
use crate::error;
use crate::lock::Lock;
use crate::runs::queries::RunQueries;
use crate::runs::removal::delete_run;
use redflow_contract::Millis;
use redflow_ports::{StoreError, failpoint};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;

/// Runs removed in one transaction. The driver may have to wait for it.
const STEP: usize = 200;

/// Free pages given back to the disk in one step.
const PAGES: usize = 1000;

/// Which runs to remove: runs that are over and match every condition given here. A run that another run
/// started stays while that other run is not over or its result is not delivered, because it might start this
/// one again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneRequest {
    /// Only runs that ended before this time. A run with an end in the future, from a clock that was set back
    /// later, does not match.
    pub older_than: Option<Millis>,
    /// Keep this many of the newest runs that are over, by the order in which they started.
    pub keep: Option<usize>,
    /// Also runs whose result is not delivered.
    pub undelivered: bool,
    /// Also runs that are not stored as they were written, whatever their age, unless a live process may be
    /// driving them. Without `older_than` and `keep`, only damaged runs.
    pub damaged: bool,
    /// Only report what would be removed.
    pub dry_run: bool,
}

impl PruneRequest {
    fn removes_intact_runs(self) -> bool {
        !self.damaged || self.older_than.is_some() || self.keep.is_some()
    }
}

/// What was removed, or would be removed by a dry run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The number of runs.
    pub runs: u64,
    /// The number of runs removed because they were damaged; 0 unless [`PruneRequest::damaged`] is set.
    pub damaged: u64,
    /// The number of batches of their journals.
    pub batches: u64,
    /// The number of plans that no other run uses.
    pub plans: u64,
    /// The size of the database before.
    pub bytes_before: u64,
    /// The size of the database after.
    pub bytes_after: u64,
}

/// Removes runs of a data directory.
///
/// # Errors
/// When the directory cannot be used. Runs removed before the error stay removed.
pub fn prune(dir: &Path, which: PruneRequest) -> Result<PruneReport, StoreError> {
    let directory = Directory::at(dir)?;
    let connection = database::open_writer(&directory)?;
    let pruner = Pruner { directory: &directory, connection: &connection, which };
    let bytes_before = pruner.checked(database_bytes(&connection))?;
    pruner.checked(connection.execute_batch(TEMP_TABLES))?;
    if which.damaged {
        pruner.find_damaged()?;
    }
    let report = if which.dry_run { pruner.checked(pruner.predict())? } else { pruner.remove()? };
    Ok(PruneReport { bytes_before, bytes_after: pruner.checked(database_bytes(&connection))?, ..report })
}

/// Tables in memory for one call: the damaged runs, and the runs that stay and may start other runs again.
const TEMP_TABLES: &str = "PRAGMA temp_store = MEMORY;
     CREATE TEMP TABLE damaged(id INTEGER PRIMARY KEY);
     CREATE TEMP TABLE staying(run_id PRIMARY KEY);";

/// The runs to remove, as a condition on `runs`. The numbers of runs follow the order in which they started.
const CHOSEN: &str = "(id IN (SELECT id FROM temp.damaged)
     OR (ended_at IS NOT NULL AND (delivered = 1 OR ?1) AND (?2 IS NULL OR ended_at < ?2) AND id < ?3))";

/// Runs that may start other runs again, as a condition on `runs`.
const OPEN: &str = "(ended_at IS NULL OR delivered = 0)";

/// The three values in [`CHOSEN`].
type Bounds = (bool, Option<i64>, i64);

struct Pruner<'a> {
    directory: &'a Directory,
    connection: &'a Connection,
    which: PruneRequest,
}

impl Pruner<'_> {
    fn checked<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| error::from_sqlite(self.directory.path(), &error))
    }

    fn queries(&self) -> RunQueries<'_> {
        RunQueries::new(self.connection, self.directory.path(), || Lock::is_held(self.directory))
    }

    /// Checks every run, each in its own short transaction, so that the driver can write meanwhile.
    fn find_damaged(&self) -> Result<(), StoreError> {
        for number in self.queries().numbers()? {
            let queries = self.queries();
            if queries.in_transaction(|| is_damaged(&queries, number))? {
                self.checked(self.connection.execute("INSERT INTO temp.damaged VALUES (?1)", [number]))?;
            }
        }
        Ok(())
    }

    fn bounds(&self) -> rusqlite::Result<Bounds> {
        let before = self.which.older_than.map(database::to_sql_integer);
        let first_kept = match self.which.keep {
            _ if !self.which.removes_intact_runs() => i64::MIN,
            None | Some(0) => i64::MAX,
            // The lowest number among the newest runs; if there are fewer runs than that, the lowest of all.
            Some(keep) => self.connection.query_row(
                "SELECT coalesce(min(id), 0) FROM
                     (SELECT id FROM runs WHERE ended_at IS NOT NULL ORDER BY id DESC LIMIT ?1)",
                [i64::try_from(keep).unwrap_or(i64::MAX)],
                |row| row.get(0),
            )?,
        };
        Ok((self.which.undelivered, before, first_kept))
    }

    /// Counts what [`Self::remove`] would remove.
    fn predict(&self) -> rusqlite::Result<PruneReport> {
        let transaction = self.connection.unchecked_transaction()?;
        let bounds = self.bounds()?;
        // Runs that stay and may start other runs: not chosen, or started by another run that stays.
        let stay = format!("INSERT INTO temp.staying SELECT run_id FROM runs WHERE {OPEN} AND NOT {CHOSEN}");
        let more = format!(
            "INSERT OR IGNORE INTO temp.staying SELECT run_id FROM runs
             WHERE {OPEN} AND cause_run IN (SELECT run_id FROM temp.staying)"
        );
        transaction.execute(&stay, bounds)?;
        while transaction.execute(&more, [])? > 0 {}
        let started_by_staying = "SELECT 1 FROM temp.staying WHERE staying.run_id = runs.cause_run";
        let removed = format!("({CHOSEN} AND NOT EXISTS ({started_by_staying}))");
        let count = |sql: &str| {
            transaction
                .query_row(&sql.replace("REMOVED", &removed), bounds, |row| from_sql_integer(row.get(0)?))
        };
        Ok(PruneReport {
            runs: count("SELECT count(*) FROM runs WHERE REMOVED")?,
            damaged: count(
                "SELECT count(*) FROM runs WHERE REMOVED AND id IN (SELECT id FROM temp.damaged)",
            )?,
            batches: count("SELECT count(*) FROM batches WHERE run IN (SELECT id FROM runs WHERE REMOVED)")?,
            plans: count(
                "SELECT count(*) FROM plans WHERE id NOT IN
                     (SELECT plan FROM runs WHERE plan IS NOT NULL AND NOT REMOVED)",
            )?,
            ..PruneReport::default()
        })
    }

    fn remove(&self) -> Result<PruneReport, StoreError> {
        let mut report = PruneReport::default();
        // Read once: runs that end meanwhile are newer and stay.
        let bounds = self.checked(self.bounds())?;
        while self.remove_step(bounds, &mut report)? {}
        report.plans = self.checked(self.connection.execute(
            "DELETE FROM plans WHERE id NOT IN (SELECT plan FROM runs WHERE plan IS NOT NULL)",
            [],
        ))? as u64;
        self.checked(free_pages(self.connection))?;
        Ok(report)
    }

    /// Removes some runs. Returns whether more may follow: a removed run no longer holds the runs it started.
    fn remove_step(&self, bounds: Bounds, report: &mut PruneReport) -> Result<bool, StoreError> {
        let transaction =
            self.checked(Transaction::new_unchecked(self.connection, TransactionBehavior::Immediate))?;
        let removable = self.checked(removable_runs(&transaction, bounds))?;
        for &(run, damaged) in &removable {
            // Another process may have removed it since, and a new run may have its number.
            if damaged && !is_damaged(&self.queries(), run)? {
                self.checked(transaction.execute("DELETE FROM temp.damaged WHERE id = ?1", [run]))?;
                continue;
            }
            report.batches += self.checked(delete_run(&transaction, run))?;
            report.runs += 1;
            report.damaged += u64::from(damaged);
        }
        failpoint("prune.before_commit");
        self.checked(transaction.commit())?;
        failpoint("prune.after_commit");
        Ok(!removable.is_empty())
    }
}

/// Runs that may be removed now, and whether each is damaged.
fn removable_runs(transaction: &Connection, bounds: Bounds) -> rusqlite::Result<Vec<(i64, bool)>> {
    let sql = format!(
        "SELECT id, id IN (SELECT id FROM temp.damaged) FROM runs
         WHERE {CHOSEN} AND NOT EXISTS
             (SELECT 1 FROM runs AS causing WHERE causing.run_id = runs.cause_run AND {OPEN})
         ORDER BY id LIMIT {STEP}"
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    statement.query_map(bounds, |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Whether a run is damaged and no live process may be writing it. Call it inside a transaction.
fn is_damaged(queries: &RunQueries<'_>, number: i64) -> Result<bool, StoreError> {
    let Some(checked) = queries.check_numbered(number)? else { return Ok(false) };
    // Only a damaged run is worth a look at the lock, which a starting driver may be waiting for.
    if checked.problem.is_none() {
        return Ok(false);
    }
    let may_be_driven = checked.row.may_belong_to(queries.driver()?) && queries.is_driven();
    Ok(!may_be_driven)
}

/// Gives free pages back to the disk.
fn free_pages(connection: &Connection) -> rusqlite::Result<()> {
    let free = || connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
    let mut left = free()?;
    while left > 0 {
        let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        // SQLite frees one page with each row.
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        failpoint("prune.shrinking");
        let now = free()?;
        if now >= left {
            break;
        }
        left = now;
    }
    // The file shrinks with this checkpoint, or with the next one of the driver.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

fn database_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row(
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
        [],
        |row| from_sql_integer(row.get(0)?),
    )
}
