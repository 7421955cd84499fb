//! Removes entries whose time is over. Pinned ones stay.

use super::seal::Db;
use super::{documents, entries};

/// Selects collections with expired entries.
const COLLECTIONS: &str =
    "SELECT DISTINCT collection FROM entry WHERE expires_at <= ?1 AND state <> 'pinned'";

/// Whether there is something to remove.
pub(super) fn is_due(db: &Db<'_>, now: i64) -> rusqlite::Result<bool> {
    Ok(!entries::ids(db, COLLECTIONS, [now])?.is_empty())
}

/// Removes expired entries, and documents without passages. Returns how many entries there were.
pub(super) fn remove(db: &Db<'_>, now: i64) -> rusqlite::Result<u64> {
    let sql = "SELECT id FROM entry WHERE collection = ?1 AND expires_at <= ?2 AND state <> 'pinned'";
    let mut removed = 0;
    for collection in entries::ids(db, COLLECTIONS, [now])? {
        let ids = entries::ids(db, sql, [collection, now])?;
        let documents = documents::with_expired(db, collection, now)?;
        removed += entries::remove(db, collection, &ids)?;
        documents::remove_empty(db, &documents)?;
    }
    Ok(removed)
}
