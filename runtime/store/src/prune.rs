//! Removing runs that are over.
//!
//! Owns which runs may go. Works beside a live driver, in small steps under SQLite's own lock. Never touches a
//! run that is not over.

use crate::database;
use crate::directory::Directory;
use crate::error;
use crate::read::unsigned;
use redflow_contract::Millis;
use redflow_ports::StoreError;
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::Path;

/// How many runs go in one step. The driver may have to wait for a step.
const STEP: usize = 200;

/// How many pages are given back in one step.
const PAGES: usize = 1000;

/// Which runs to remove: those that are over, and for which everything given here holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prune {
    /// Only runs that ended before this moment. One that ended in the future, by a clock that was set back
    /// since, did not.
    pub older_than: Option<Millis>,
    /// Only runs that are not among the newest so many of those that are over, by the order they began.
    pub keep: Option<usize>,
    /// Also runs whose result has not left for good.
    pub undelivered: bool,
    /// Only say what would go.
    pub dry_run: bool,
}

/// What was removed, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// How many runs.
    pub runs: u64,
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
    let mut connection = database::write(&directory)?;
    let mut work = || {
        let bytes_before = size(&connection)?;
        let report =
            if which.dry_run { foresee(&connection, which)? } else { remove(&mut connection, which)? };
        Ok(PruneReport { bytes_before, bytes_after: size(&connection)?, ..report })
    };
    work().map_err(|why: rusqlite::Error| error::sqlite(directory.path(), &why))
}

/// The runs that go, as a condition of `runs`. The numbers of runs follow the order they began.
const GOES: &str =
    "ended_at IS NOT NULL AND (delivered = 1 OR ?1) AND (?2 IS NULL OR ended_at < ?2) AND id < ?3";

/// The three values in [`GOES`].
fn bounds(connection: &Connection, which: Prune) -> rusqlite::Result<(bool, Option<i64>, i64)> {
    let before = which.older_than.map(|moment| i64::try_from(moment).unwrap_or(i64::MAX));
    let first_kept = match which.keep {
        None | Some(0) => i64::MAX,
        // The lowest number among the newest; if there are fewer, the lowest of all.
        Some(keep) => connection.query_row(
            "SELECT coalesce(min(id), 0) FROM
                 (SELECT id FROM runs WHERE ended_at IS NOT NULL ORDER BY id DESC LIMIT ?1)",
            [i64::try_from(keep).unwrap_or(i64::MAX)],
            |row| row.get(0),
        )?,
    };
    Ok((which.undelivered, before, first_kept))
}

fn foresee(connection: &Connection, which: Prune) -> rusqlite::Result<PruneReport> {
    let transaction = connection.unchecked_transaction()?;
    let bounds = bounds(&transaction, which)?;
    let count =
        |sql: &str| transaction.query_row(&sql.replace("GOES", GOES), bounds, |row| unsigned(row.get(0)?));
    Ok(PruneReport {
        runs: count("SELECT count(*) FROM runs WHERE GOES")?,
        batches: count("SELECT count(*) FROM batches WHERE run IN (SELECT id FROM runs WHERE GOES)")?,
        plans: count(
            "SELECT count(*) FROM plans WHERE id NOT IN
                 (SELECT plan FROM runs WHERE plan IS NOT NULL AND NOT (GOES))",
        )?,
        ..PruneReport::default()
    })
}

fn remove(connection: &mut Connection, which: Prune) -> rusqlite::Result<PruneReport> {
    let mut report = PruneReport::default();
    // Asked once: runs that end meanwhile are newer and stay.
    let (undelivered, before, first_kept) = bounds(connection, which)?;
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let going: Vec<(i64, String)> = transaction
            .prepare_cached(&format!("SELECT id, run_id FROM runs WHERE {GOES} ORDER BY id LIMIT {STEP}"))?
            .query_map(params![undelivered, before, first_kept], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        for (run, run_id) in &going {
            let delete =
                |sql: &str, key: &dyn rusqlite::ToSql| transaction.prepare_cached(sql)?.execute([key]);
            report.batches += delete("DELETE FROM batches WHERE run = ?1", run)? as u64;
            delete("DELETE FROM requests WHERE run_id = ?1", run_id)?;
            report.runs += delete("DELETE FROM runs WHERE id = ?1", run)? as u64;
        }
        transaction.commit()?;
        if going.len() < STEP {
            break;
        }
    }
    report.plans = connection
        .execute("DELETE FROM plans WHERE id NOT IN (SELECT plan FROM runs WHERE plan IS NOT NULL)", [])?
        as u64;
    give_back(connection)?;
    Ok(report)
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
