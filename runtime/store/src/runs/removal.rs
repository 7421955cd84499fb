//! Removes runs from the tables.
//!
//! Owns which rows belong to a run, and which runs belong to an owner. Never decides what goes into one transaction.

use crate::database::{self, from_sql_integer, to_sql_integer};
use crate::removed_runs::RemovedRuns;
use redflow_contract::Millis;
use redflow_contract::id::RunId;
use redflow_contract::memory::DataOwner;
use redflow_ports::ForgottenRuns;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

/// The runs of an owner. A run belongs to the owner of the run that started it, unless it names another user.
const OWNED: &str = "WITH RECURSIVE owned(id, run_id, user) AS (
         SELECT id, run_id, user FROM runs WHERE COLUMN = ?1
         UNION
         SELECT child.id, child.run_id, coalesce(child.user, owned.user) FROM owned
             JOIN runs AS child ON child.parent = owned.run_id
             WHERE child.user IS NULL OR child.user IS owned.user
     ) SELECT DISTINCT id FROM owned ORDER BY id";

/// How long after its end a run stays whose result is not delivered. After that it is not expected any more.
const DELIVERY_MS: Millis = 60 * 60 * 1000;

/// A run that may be removed now: it is over, its result is not on its way, and the run that started it cannot start
/// it again.
const REMOVABLE: &str = "SELECT run_id, started_at, ended_at FROM runs
     WHERE id = ?1 AND ended_at IS NOT NULL AND (delivered = 1 OR ended_at <= ?2) AND NOT EXISTS
         (SELECT 1 FROM runs AS causing WHERE causing.run_id = runs.cause_run
          AND (causing.ended_at IS NULL OR causing.delivered = 0))";

/// The runs that chats and events of the flow name, but that are not stored.
const MISSING: &str = "SELECT run FROM (
         SELECT CASE WHEN json_valid(body) THEN json_extract(body, '$.traceId') END AS run FROM chat_items
         UNION
         SELECT CASE WHEN json_valid(body) THEN coalesce(json_extract(body, '$.event.item.traceId'),
             json_extract(body, '$.event.call.runId')) END FROM events WHERE run_id IS NULL
     ) WHERE typeof(run) = 'text' AND NOT EXISTS (SELECT 1 FROM runs WHERE run_id = run)";

/// When a run must have ended so that its result is not expected any more.
pub(super) fn last_undelivered_end() -> Millis {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Millis::try_from(now).unwrap_or(Millis::MAX).saturating_sub(DELIVERY_MS)
}

/// Removes the runs of an owner that are over, apart from those that another run may start again.
pub(super) fn remove_owned(
    connection: &Connection,
    owner: &DataOwner,
) -> rusqlite::Result<(ForgottenRuns, RemovedRuns)> {
    let mut left = owned_runs(connection, owner)?;
    let mut removed = RemovedRuns::default();
    let mut forgotten = ForgottenRuns::default();
    let last_undelivered_end = to_sql_integer(last_undelivered_end());
    // A removed run no longer holds the runs that it started, so another pass may find more.
    loop {
        let before = left.len();
        let mut kept = Vec::new();
        for number in left {
            let mut find = connection.prepare_cached(REMOVABLE)?;
            let found = find.query_row([number, last_undelivered_end], |row| {
                let run = RunId::from(row.get::<_, String>(0)?);
                Ok((run, from_sql_integer(row.get(1)?)?, from_sql_integer(row.get(2)?)?))
            });
            match found.optional()? {
                None => kept.push(number),
                Some((run, started_at, ended_at)) => {
                    removed.add(run, started_at, ended_at, &opening_batch(connection, number)?);
                    delete_run(connection, number)?;
                    forgotten.removed += 1;
                }
            }
        }
        left = kept;
        if left.len() == before {
            break;
        }
    }
    forgotten.unfinished = left.len() as u64;
    let unused = "DELETE FROM plans WHERE id NOT IN (SELECT plan FROM runs WHERE plan IS NOT NULL)";
    connection.execute(unused, [])?;
    Ok((forgotten, removed))
}

/// The numbers of the runs of an owner, in the order they started.
fn owned_runs(connection: &Connection, owner: &DataOwner) -> rusqlite::Result<Vec<i64>> {
    let (sql, key) = match owner {
        DataOwner::User(user) => (OWNED.replace("COLUMN", "user"), user),
        DataOwner::Session(session) => (OWNED.replace("COLUMN", "session"), session),
        DataOwner::Source(run) => ("SELECT id FROM runs WHERE run_id = ?1".to_owned(), run),
    };
    connection.prepare(&sql)?.query_map([key], |row| row.get(0))?.collect()
}

/// Adds the runs that were removed earlier and are still named. Nothing tells any more whose they were.
pub(super) fn add_missing_runs(connection: &Connection, removed: &mut RemovedRuns) -> rusqlite::Result<()> {
    let mut find = connection.prepare(MISSING)?;
    let mut rows = find.query([])?;
    while let Some(row) = rows.next()? {
        removed.add_missing(RunId::from(row.get::<_, String>(0)?));
    }
    Ok(())
}

/// Adds those of the messages that start a run that stays.
pub(super) fn add_kept_messages(
    connection: &Connection,
    messages: &HashSet<String>,
    removed: &mut RemovedRuns,
) -> rusqlite::Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    let mut read = connection.prepare("SELECT lines FROM batches WHERE seq = 0")?;
    let mut rows = read.query([])?;
    while let Some(row) = rows.next()? {
        removed.keep_messages(row.get_ref(0)?.as_bytes()?, messages);
    }
    Ok(())
}

/// The first lines of a run; empty if they are missing.
fn opening_batch(connection: &Connection, run: i64) -> rusqlite::Result<Vec<u8>> {
    let mut find = connection.prepare_cached("SELECT lines FROM batches WHERE run = ?1 AND seq = 0")?;
    Ok(find.query_row([run], |row| row.get(0)).optional()?.unwrap_or_default())
}

/// Removes a run with its batches and requests. The runs that it started have no parent then. Returns the number of
/// batches.
pub(crate) fn delete_run(transaction: &Connection, run: i64) -> rusqlite::Result<u64> {
    let delete = |sql: &str| transaction.prepare_cached(sql)?.execute(params![run]);
    let batches = delete("DELETE FROM batches WHERE run = ?1")?;
    if database::runs_have_parents(transaction)? {
        delete("UPDATE runs SET parent = NULL WHERE parent = (SELECT run_id FROM runs WHERE id = ?1)")?;
    }
    delete("DELETE FROM requests WHERE run_id = (SELECT run_id FROM runs WHERE id = ?1)")?;
    delete("DELETE FROM runs WHERE id = ?1")?;
    Ok(batches as u64)
}
