//! What other processes ask of runs.
//!
//! Owns the way of a request to the driver and of its answer back. Never changes a run: the driver does.

use crate::database;
use crate::directory::Directory;
use crate::error;
use crate::lock::Lock;
use crate::read::Tables;
use redflow_contract::Millis;
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_contract::run::RunRequest;
use redflow_ports::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// How long an answered request is remembered, in milliseconds.
const REMEMBERED: i64 = 24 * 60 * 60 * 1000;

/// What a driver says to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was done.
    Done,
    /// It was not, and this is why.
    Refused(StoreCode),
}

/// Leaves a request for the process that drives the runs of a directory, now or later. Gives its number.
///
/// # Errors
/// When there is no such run, when it is over, or when the directory cannot be used.
pub fn submit_request(dir: &Path, run: &RunId, request: &RunRequest, now: Millis) -> Result<i64, StoreError> {
    let directory = Directory::named(dir)?;
    let connection = database::write(&directory)?;
    let tables = Tables::new(&connection, directory.path(), || Lock::is_held(&directory));
    match tables.summary(run)? {
        None => return Err(error::unknown(run)),
        Some(summary) if summary.status.is_over() => return Err(error::over(run)),
        Some(_) => {}
    }
    let body = serde_json::to_string(request).map_err(|why| error::unusable(dir, &why))?;
    let at = i64::try_from(now).unwrap_or(i64::MAX);
    connection
        .execute(
            "INSERT INTO requests(run_id, body, at) VALUES (?1, ?2, ?3)",
            params![run.as_str(), body, at],
        )
        .map_err(|why| error::sqlite(directory.path(), &why))?;
    Ok(connection.last_insert_rowid())
}

/// What came of a request; none while nobody has answered it. A request that went with its run was refused
/// because there is no such run.
///
/// # Errors
/// When the directory cannot be read.
pub fn request_outcome(dir: &Path, id: i64) -> Result<Option<RequestOutcome>, StoreError> {
    let directory = Directory::named(dir)?;
    let connection = database::read(&directory)?;
    let found: Option<(bool, Option<String>)> = connection
        .query_row("SELECT answered, refused FROM requests WHERE id = ?1", [id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .map_err(|why| error::sqlite(directory.path(), &why))?;
    Ok(match found {
        None => Some(RequestOutcome::Refused(StoreCode::RunUnknown)),
        Some((false, _)) => None,
        Some((true, None)) => Some(RequestOutcome::Done),
        // A newer driver may know more codes.
        Some((true, Some(code))) => {
            Some(RequestOutcome::Refused(StoreCode::parse(&code).unwrap_or(StoreCode::DataNewer)))
        }
    })
}

/// A request as it is stored.
pub(crate) struct Found {
    pub(crate) id: i64,
    pub(crate) run: RunId,
    pub(crate) body: String,
}

/// Requests after this one that nobody has answered.
pub(crate) fn after(tables: &Tables<'_>, given: i64) -> Result<Vec<Found>, StoreError> {
    let ask = || {
        let mut statement = tables.connection().prepare_cached(
            "SELECT id, run_id, body FROM requests WHERE id > ?1 AND answered = 0 ORDER BY id",
        )?;
        // One that nobody can read must not hide the others: its run and its body are then nobody's.
        let text = |value: rusqlite::types::ValueRef<'_>| {
            value
                .as_bytes()
                .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let found = |row: &rusqlite::Row<'_>| {
            Ok(Found {
                id: row.get(0)?,
                run: RunId::from(text(row.get_ref(1)?)),
                body: text(row.get_ref(2)?),
            })
        };
        statement.query_map([given], found)?.collect::<Result<_, _>>()
    };
    ask().map_err(|why| tables.told(&why))
}

/// Removes what was answered more than a day ago.
pub(crate) fn forget_old(connection: &Connection) -> rusqlite::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let before = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(REMEMBERED);
    connection.execute("DELETE FROM requests WHERE answered = 1 AND at < ?1", [before]).map(drop)
}
