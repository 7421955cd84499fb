//! The log of changed entries, which indexes follow.

use super::entries;
use super::seal::Db;
use rusqlite::OptionalExtension as _;

/// The number of the last change.
pub(super) fn last_change(db: &Db<'_>) -> rusqlite::Result<i64> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'change'";
    Ok(db.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// The entries of a collection that changed after `seq`; none if the log does not reach back so far.
pub(super) fn changed_since(
    db: &Db<'_>,
    collection: i64,
    seq: i64,
    last: i64,
) -> rusqlite::Result<Option<Vec<i64>>> {
    if last == seq {
        return Ok(Some(Vec::new()));
    }
    let oldest: i64 = db
        .prepare_cached("SELECT coalesce(min(seq), 9223372036854775807) FROM change")?
        .query_row([], |row| row.get(0))?;
    if oldest > seq.saturating_add(1) {
        return Ok(None);
    }
    let sql = "SELECT DISTINCT entry FROM change WHERE seq > ?1 AND collection = ?2 ORDER BY entry";
    entries::ids(db, sql, [seq, collection]).map(Some)
}
