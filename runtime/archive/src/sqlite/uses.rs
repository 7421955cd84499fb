//! Counts the uses of entries. An entry that is used ends later.

use super::entries::note_change;
use super::entry_row::{millis, stored};
use super::seal::Db;
use super::sealed_entries;
use redflow_contract::archive::EntryState;
use rusqlite::{OptionalExtension as _, params};

/// Counts a use of an entry, and moves its end. An entry that has ended already stays so.
pub(super) fn touch(
    db: &Db<'_>,
    collection: i64,
    key: &str,
    expires_at: Option<i64>,
    now: i64,
) -> rusqlite::Result<()> {
    let name = db.name("entry", collection, key);
    let sql = "UPDATE entry SET uses = uses + 1, used_at = ?3 WHERE collection = ?1 AND key = ?2";
    let used = db.prepare_cached(sql)?.execute(params![collection, name, now])?;
    let Some(expires_at) = expires_at.filter(|_| used > 0) else { return Ok(()) };
    // The index in memory knows when entries end, so it must learn of this.
    match prolong(db, collection, key, expires_at, now)? {
        Some(id) => note_change(db, collection, id),
        None => Ok(()),
    }
}

/// Moves the end of a live entry that has one to a later time. Returns its id; none if nothing changed.
fn prolong(
    db: &Db<'_>,
    collection: i64,
    key: &str,
    expires_at: i64,
    now: i64,
) -> rusqlite::Result<Option<i64>> {
    if db.is_sealed() {
        return sealed_entries::change(db, collection, key, |entry| {
            let ends = entry.expires_at.map(stored);
            let is_earlier = ends.is_some_and(|ends| ends > now && ends < expires_at);
            let is_prolonged = is_earlier && entry.state == EntryState::Live;
            if is_prolonged {
                entry.expires_at = Some(millis(expires_at));
            }
            is_prolonged
        });
    }
    let sql = "UPDATE entry SET expires_at = ?3 WHERE collection = ?1 AND key = ?2
         AND state = 'live' AND expires_at > ?4 AND expires_at < ?3 RETURNING id";
    db.prepare_cached(sql)?.query_row(params![collection, key, expires_at, now], |row| row.get(0)).optional()
}
