//! Rows of entries: their columns, where an entry is, and times.

use super::seal::{Db, Place, StoredName};
use redflow_contract::Millis;
use redflow_contract::archive::Entry;
use rusqlite::{OptionalExtension as _, Row, params};

/// The columns of an entry, in the order of the readers.
pub(super) const COLUMNS: &str = "key, version, kind, text, meta, tags, user, session, state, valid_from, valid_to, \
     created_at, expires_at, trust, importance, source, content_hash, supersedes, entry.id, entry.collection, document";

/// Where an entry is, and as which version.
#[derive(Clone, Copy)]
pub(super) struct EntryRow<'a> {
    pub(super) collection: i64,
    pub(super) id: i64,
    pub(super) version: u32,
    pub(super) document: Option<i64>,
    /// The stored form of its key.
    pub(super) name: &'a [u8],
}

impl<'a> EntryRow<'a> {
    /// The place of a value that belongs to this version of the entry.
    pub(super) fn place(self, table: &'static str) -> Place<'a> {
        let numbers = [self.collection, self.id, i64::from(self.version), 0];
        Place { table, numbers, name: self.name }
    }

    /// The place of the entry itself, which also belongs to its document.
    pub(super) fn entry_place(self) -> Place<'a> {
        let mut place = self.place("entry");
        place.numbers[3] = self.document.unwrap_or(0);
        place
    }
}

/// An entry, and where it is.
pub(super) struct LocatedEntry {
    pub(super) id: i64,
    pub(super) document: Option<i64>,
    pub(super) entry: Entry,
}

/// Finds an entry by the stored form of its key.
pub(super) fn find_with(
    db: &Db<'_>,
    collection: i64,
    name: &StoredName<'_>,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<Entry>,
) -> rusqlite::Result<Option<LocatedEntry>> {
    let read =
        |row: &Row<'_>| Ok(LocatedEntry { id: row.get(18)?, document: row.get(20)?, entry: read(row)? });
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM entry WHERE collection = ?1 AND key = ?2"))?
        .query_row(params![collection, name], read)
        .optional()
}

pub(super) fn millis(stored: i64) -> Millis {
    u64::try_from(stored).unwrap_or(0)
}

pub(super) fn stored(millis: Millis) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}
