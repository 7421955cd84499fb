//! Requests of other processes to the driver: cancel a run, answer a run that waits.
//!
//! Owns how a request reaches the driver and how its outcome comes back. Never changes a run: the driver
//! does.

use crate::database;
use crate::directory::Directory;
use crate::error;
use crate::lock::Lock;
use crate::runs::queries::RunQueries;
use redflow_contract::Millis;
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_contract::run::RunRequest;
use redflow_ports::StoreError;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// How long an answered request is stored, in milliseconds.
const RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

/// How a driver answered a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The driver carried it out.
    Done,
    /// The driver refused it, with the code that says why.
    Refused(StoreCode),
}

/// Stores a request for the process that drives the runs of a directory, now or later. Returns its number.
///
/// # Errors
/// When there is no such run, when it is over, or when the directory cannot be used.
pub fn submit_request(dir: &Path, run: &RunId, request: &RunRequest, now: Millis) -> Result<i64, StoreError> {
    let directory = Directory::at(dir)?;
    let connection = database::open_writer(&directory)?;
    let queries = RunQueries::new(&connection, directory.path(), || Lock::is_held(&directory));
    match queries.summary(run)? {
        None => return Err(error::run_unknown(run)),
        Some(summary) if summary.status.is_over() => return Err(error::run_over(run)),
        Some(_) => {}
    }
    let body = serde_json::to_string(request).map_err(|error| error::unusable(dir, &error))?;
    connection
        .execute(
            "INSERT INTO requests(run_id, body, at) VALUES (?1, ?2, ?3)",
            params![run.as_str(), body, database::to_sql_integer(now)],
        )
        .map_err(|error| error::from_sqlite(directory.path(), &error))?;
    Ok(connection.last_insert_rowid())
}

/// The outcome of a request; none while no driver has answered it. A request that was removed with its run
/// counts as refused, because there is no such run.
///
/// # Errors
/// When the directory cannot be read.
pub fn request_outcome(dir: &Path, id: i64) -> Result<Option<RequestOutcome>, StoreError> {
    let directory = Directory::at(dir)?;
    let connection = database::open_reader(&directory)?;
    let stored: Option<(bool, Option<String>)> = connection
        .query_row("SELECT answered, refused FROM requests WHERE id = ?1", [id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .map_err(|error| error::from_sqlite(directory.path(), &error))?;
    Ok(match stored {
        None => Some(RequestOutcome::Refused(StoreCode::RunUnknown)),
        Some((false, _)) => None,
        Some((true, None)) => Some(RequestOutcome::Done),
        // A newer driver may know more codes.
        Some((true, Some(code))) => {
            Some(RequestOutcome::Refused(StoreCode::parse(&code).unwrap_or(StoreCode::DataNewer)))
        }
    })
}

/// A row of `requests`.
pub(crate) struct StoredRequest {
    pub(crate) id: i64,
    pub(crate) run: RunId,
    pub(crate) body: String,
}

/// Requests without an answer, with ids above `last`.
pub(crate) fn unanswered_after(connection: &Connection, last: i64) -> rusqlite::Result<Vec<StoredRequest>> {
    let mut statement = connection
        .prepare_cached("SELECT id, run_id, body FROM requests WHERE id > ?1 AND answered = 0 ORDER BY id")?;
    // An unreadable request must not hide the others, so its values become replacement text or nothing.
    let text = |value: ValueRef<'_>| {
        value.as_bytes().map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let read = |row: &Row<'_>| {
        Ok(StoredRequest {
            id: row.get(0)?,
            run: RunId::from(text(row.get_ref(1)?)),
            body: text(row.get_ref(2)?),
        })
    };
    statement.query_map([last], read)?.collect()
}

/// Removes requests that were answered and are older than a day.
pub(crate) fn remove_old(connection: &Connection) -> rusqlite::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let before = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(RETENTION_MS);
    connection.execute("DELETE FROM requests WHERE answered = 1 AND at < ?1", [before]).map(drop)
}
