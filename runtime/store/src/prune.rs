//! Removing runs that are over, or damaged.
//!
//! Owns which runs may go. Works beside a live driver, in small steps under SQLite's own lock. Never touches a
//! run that may still be driven, and never forgets that something was begun while the run that began it may
//! begin it once more.

use crate::database;
use crate::directory::Directory;
use crate::lock::Lock;
use crate::read::{Tables, unsigned};
use redflow_contract::Millis;
use redflow_ports::{StoreError, failpoint};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;

/// How many runs go in one step. The driver may have to wait for a step.
const STEP: usize = 200;

/// How many pages are given back in one step.
const PAGES: usize = 1000;

/// Which runs to remove: those that are over, and for which everything given here holds. One that was begun by
/// another run stays as long as that one is not over or its result has not left for good: it would begin it
/// again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prune {
    /// Only runs that ended before this moment. One that ended in the future, by a clock that was set back
    /// since, did not.
    pub older_than: Option<Millis>,
    /// Only runs that are not among the newest so many of those that are over, by the order they began.
    pub keep: Option<usize>,
    /// Also runs whose result has not left for good.
    pub undelivered: bool,
    /// Also runs that are not stored as they were written, whatever their age, unless a live process may be
    /// driving them. Without `older_than` and `keep`: only these.
    pub damaged: bool,
    /// Only say what would go.
    pub dry_run: bool,
}

impl Prune {
    /// Whether sound runs may go too.
    fn sound(self) -> bool {
        !self.damaged || self.older_than.is_some() || self.keep.is_some()
    }
}

/// What was removed, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// How many runs.
    pub runs: u64,
    /// How many of them because they were damaged; none if that was not asked.
    pub damaged: u64,
    /// How many batches of their journals.
    pub batches: u64,
    /// How many plans that no other run has.
    pub plans: u64,
    /// How large the database was.
    pub bytes_before: u64,
    /// How large it is now.
    pub bytes_after: u64,
}

/// Removes runs of a data directory.
///
/// # Errors
/// When the directory cannot be used. What was removed until then stays removed.
pub fn prune(dir: &Path, which: Prune) -> Result<PruneReport, StoreError> {
    let directory = Directory::named(dir)?;
    let connection = database::write(&directory)?;
    let work = Work { directory: &directory, connection: &connection, which };
    let bytes_before = work.told(size(&connection))?;
    work.told(connection.execute_batch(NOTES))?;
    if which.damaged {
        work.note_damaged()?;
    }
    let report = if which.dry_run { work.told(work.foresee())? } else { work.remove()? };
    Ok(PruneReport { bytes_before, bytes_after: work.told(size(&connection))?, ..report })
}

/// What is known of runs while they are looked through, in memory: which are damaged, and which stay although
/// they may begin others once more.
const NOTES: &str = "PRAGMA temp_store = MEMORY;
     CREATE TEMP TABLE damaged(id INTEGER PRIMARY KEY);
     CREATE TEMP TABLE staying(run_id PRIMARY KEY);";

/// The runs that are to go, as a condition of `runs`. The numbers of runs follow the order they began.
const CHOSEN: &str = "(id IN (SELECT id FROM temp.damaged)
     OR (ended_at IS NOT NULL AND (delivered = 1 OR ?1) AND (?2 IS NULL OR ended_at < ?2) AND id < ?3))";

/// Runs that may begin others once more.
const OPEN: &str = "(ended_at IS NULL OR delivered = 0)";

/// The three values in [`CHOSEN`].
type Bounds = (bool, Option<i64>, i64);

struct Work<'a> {
    directory: &'a Directory,
    connection: &'a Connection,
    which: Prune,
}

impl Work<'_> {
    fn told<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|why| self.tables().told(&why))
    }

    fn tables(&self) -> Tables<'_> {
        Tables::new(self.connection, self.directory.path(), || Lock::is_held(self.directory))
    }

    /// Looks at every run, beside whoever writes.
    fn note_damaged(&self) -> Result<(), StoreError> {
        for number in self.tables().numbers()? {
            let tables = self.tables();
            if tables.at_once(|| is_damaged(&tables, number))? {
                self.told(self.connection.execute("INSERT INTO temp.damaged VALUES (?1)", [number]))?;
            }
        }
        Ok(())
    }

    fn bounds(&self) -> rusqlite::Result<Bounds> {
        let before = self.which.older_than.map(|moment| i64::try_from(moment).unwrap_or(i64::MAX));
        let first_kept = match self.which.keep {
            _ if !self.which.sound() => i64::MIN,
            None | Some(0) => i64::MAX,
            // The lowest number among the newest; if there are fewer, the lowest of all.
            Some(keep) => self.connection.query_row(
                "SELECT coalesce(min(id), 0) FROM
                     (SELECT id FROM runs WHERE ended_at IS NOT NULL ORDER BY id DESC LIMIT ?1)",
                [i64::try_from(keep).unwrap_or(i64::MAX)],
                |row| row.get(0),
            )?,
        };
        Ok((self.which.undelivered, before, first_kept))
    }

    fn foresee(&self) -> rusqlite::Result<PruneReport> {
        let transaction = self.connection.unchecked_transaction()?;
        let bounds = self.bounds()?;
        // Runs that stay and may begin others: not chosen, or begun by another one that stays.
        let stay = format!("INSERT INTO temp.staying SELECT run_id FROM runs WHERE {OPEN} AND NOT {CHOSEN}");
        let more = format!(
            "INSERT OR IGNORE INTO temp.staying SELECT run_id FROM runs
             WHERE {OPEN} AND cause_run IN (SELECT run_id FROM temp.staying)"
        );
        transaction.execute(&stay, bounds)?;
        while transaction.execute(&more, [])? > 0 {}
        let begun = "SELECT 1 FROM temp.staying WHERE staying.run_id = runs.cause_run";
        let goes = format!("({CHOSEN} AND NOT EXISTS ({begun}))");
        let count = |sql: &str| {
            transaction.query_row(&sql.replace("GOES", &goes), bounds, |row| unsigned(row.get(0)?))
        };
        Ok(PruneReport {
            runs: count("SELECT count(*) FROM runs WHERE GOES")?,
            damaged: count("SELECT count(*) FROM runs WHERE GOES AND id IN (SELECT id FROM temp.damaged)")?,
            batches: count("SELECT count(*) FROM batches WHERE run IN (SELECT id FROM runs WHERE GOES)")?,
            plans: count(
                "SELECT count(*) FROM plans WHERE id NOT IN
                     (SELECT plan FROM runs WHERE plan IS NOT NULL AND NOT GOES)",
            )?,
            ..PruneReport::default()
        })
    }

    fn remove(&self) -> Result<PruneReport, StoreError> {
        let mut report = PruneReport::default();
        // Asked once: runs that end meanwhile are newer and stay.
        let bounds = self.told(self.bounds())?;
        while self.step(bounds, &mut report)? {}
        report.plans = self.told(self.connection.execute(
            "DELETE FROM plans WHERE id NOT IN (SELECT plan FROM runs WHERE plan IS NOT NULL)",
            [],
        ))? as u64;
        self.told(give_back(self.connection))?;
        Ok(report)
    }

    /// Removes some runs. Whether there may be more: with a run may go those it has begun.
    fn step(&self, bounds: Bounds, report: &mut PruneReport) -> Result<bool, StoreError> {
        let transaction =
            self.told(Transaction::new_unchecked(self.connection, TransactionBehavior::Immediate))?;
        let going = self.told(going(&transaction, bounds))?;
        for &(run, damaged) in &going {
            // Someone may have removed it since, and a new run may have its number.
            if damaged && !is_damaged(&self.tables(), run)? {
                self.told(transaction.execute("DELETE FROM temp.damaged WHERE id = ?1", [run]))?;
                continue;
            }
            report.batches += self.told(delete(&transaction, run))?;
            report.runs += 1;
            report.damaged += u64::from(damaged);
        }
        failpoint("prune.before_commit");
        self.told(transaction.commit())?;
        failpoint("prune.after_commit");
        Ok(!going.is_empty())
    }
}

/// Runs that may go now, and which of them are damaged.
fn going(transaction: &Connection, bounds: Bounds) -> rusqlite::Result<Vec<(i64, bool)>> {
    let sql = format!(
        "SELECT id, id IN (SELECT id FROM temp.damaged) FROM runs
         WHERE {CHOSEN} AND NOT EXISTS
             (SELECT 1 FROM runs AS causing WHERE causing.run_id = runs.cause_run AND {OPEN})
         ORDER BY id LIMIT {STEP}"
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    statement.query_map(bounds, |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Removes a run and everything of it; how many batches that were.
fn delete(transaction: &Connection, run: i64) -> rusqlite::Result<u64> {
    let delete = |sql: &str| transaction.prepare_cached(sql)?.execute([run]);
    let batches = delete("DELETE FROM batches WHERE run = ?1")?;
    delete("DELETE FROM requests WHERE run_id = (SELECT run_id FROM runs WHERE id = ?1)")?;
    delete("DELETE FROM runs WHERE id = ?1")?;
    Ok(batches as u64)
}

/// Whether a run is damaged and nobody may be writing it. Belongs into a transaction.
fn is_damaged(tables: &Tables<'_>, number: i64) -> Result<bool, StoreError> {
    let Some(checked) = tables.numbered(number)? else { return Ok(false) };
    Ok(checked.problem.is_some() && !(checked.found.may_be_held(tables.driver()?) && tables.is_driven()))
}

/// Gives free pages back to the disk.
fn give_back(connection: &Connection) -> rusqlite::Result<()> {
    let free = || connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
    let mut left = free()?;
    while left > 0 {
        let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        // One page goes with each row.
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        failpoint("prune.shrinking");
        let now = free()?;
        if now >= left {
            break;
        }
        left = now;
    }
    // The file shrinks with this, at once or when the driver does the same.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

fn size(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row(
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
        [],
        |row| unsigned(row.get(0)?),
    )
}
