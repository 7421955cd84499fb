//! Entries of an encrypted archive. A row has an id, its collection and document, the hash of its key, its version and the
//! time of its end. All else is sealed in `text`.

use super::entry_row::{EntryRow, LocatedEntry, find_with, millis, stored};
use super::seal::Db;
use redflow_contract::archive::{Entry, EntryState};
use redflow_contract::digest::Digest;
use redflow_ports::NewEntry;
use rusqlite::{Row, params};

/// Reads an entry from [`COLUMNS`](super::entry_row::COLUMNS).
pub(super) fn read(db: &Db<'_>, row: &Row<'_>) -> rusqlite::Result<Entry> {
    db.open_json(row, 3, row_of(row)?.entry_place())
}

/// Where the entry of [`COLUMNS`](super::entry_row::COLUMNS) is.
pub(super) fn row_of<'a>(row: &'a Row<'_>) -> rusqlite::Result<EntryRow<'a>> {
    Ok(EntryRow {
        collection: row.get(19)?,
        id: row.get(18)?,
        version: row.get(1)?,
        document: row.get(20)?,
        name: row.get_ref(0)?.as_blob()?,
    })
}

/// Stores an entry, and returns its id. A new one has none yet: 0.
pub(super) fn put(
    db: &Db<'_>,
    mut row: EntryRow<'_>,
    new: &NewEntry,
    hash: Digest,
    now: i64,
) -> rusqlite::Result<i64> {
    if row.id == 0 {
        row.id = db.next_id("entry")?;
    }
    let new = new.clone();
    let entry = Entry {
        key: new.key,
        version: row.version,
        kind: new.kind,
        text: new.text,
        meta: new.meta,
        tags: new.tags,
        user: new.user,
        session: new.session,
        state: new.state,
        valid_from: new.valid_from.unwrap_or(millis(now)),
        valid_to: new.valid_to,
        created_at: new.created_at.unwrap_or(millis(now)),
        expires_at: new.expires_at,
        trust: new.trust,
        importance: new.importance,
        source: new.source,
        content_hash: hash,
        supersedes: new.supersedes,
    };
    write(db, row, &entry)?;
    Ok(row.id)
}

fn write(db: &Db<'_>, row: EntryRow<'_>, entry: &Entry) -> rusqlite::Result<()> {
    let sql = "INSERT INTO entry(id, collection, document, key, version, text, expires_at, kind, meta, tags, state,
             valid_from, created_at, trust, importance, content_hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, x'', x'', x'', x'', 0, 0, x'', 0, x'')
         ON CONFLICT (id) DO UPDATE SET document = excluded.document, version = excluded.version, text = excluded.text,
             expires_at = excluded.expires_at";
    // Whether an entry is pinned cannot be read, so a pinned one has no end here.
    let expires_at = entry.expires_at.filter(|_| entry.state != EntryState::Pinned).map(stored);
    let sealed = db.seal_json(entry, row.entry_place())?;
    db.prepare_cached(sql)?.execute(params![
        row.id,
        row.collection,
        row.document,
        row.name,
        row.version,
        sealed,
        expires_at
    ])?;
    Ok(())
}

/// Ends an entry that another one replaces. Returns its id; none if there was nothing to end.
pub(super) fn end(db: &Db<'_>, collection: i64, key: &str, at: i64) -> rusqlite::Result<Option<i64>> {
    change(db, collection, key, |entry| {
        let is_ended = matches!(entry.state, EntryState::Live | EntryState::Pinned);
        if is_ended {
            entry.state = EntryState::Superseded;
            entry.valid_to = Some(entry.valid_to.map_or(millis(at), |valid_to| valid_to.min(millis(at))));
        }
        is_ended
    })
}

/// Changes an entry without a new version. Returns its id; none if there is no such one, or it stays as it is.
pub(super) fn change(
    db: &Db<'_>,
    collection: i64,
    key: &str,
    change: impl FnOnce(&mut Entry) -> bool,
) -> rusqlite::Result<Option<i64>> {
    let name = db.name("entry", collection, key);
    let Some(LocatedEntry { id, document, mut entry }) =
        find_with(db, collection, &name, |row| read(db, row))?
    else {
        return Ok(None);
    };
    if !change(&mut entry) {
        return Ok(None);
    }
    let row = EntryRow { collection, id, version: entry.version, document, name: name.bytes() };
    write(db, row, &entry)?;
    Ok(Some(id))
}
