//! The indexes of collections in memory. Each follows the changes of the file, also those of other processes.

use super::entries::{self, CollectionRow};
use super::lock;
use crate::index::{Code, CollectionIndex, Row};
use redflow_contract::archive::{EntryKind, EntryState, MAX_ENTRIES, Trust};
use rusqlite::{Connection, OptionalExtension as _};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The most bytes of all indexes. The least recently used ones are dropped.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// The index of a collection.
pub(super) type SharedIndex = Arc<RwLock<CollectionIndex>>;

/// The indexes of this process, the least recently used first.
#[derive(Default)]
pub(super) struct Indexes(Mutex<Vec<(i64, SharedIndex)>>);

impl Indexes {
    /// The index of a collection, with all changes that the connection sees.
    pub(super) fn get(
        &self,
        connection: &Connection,
        collection: &CollectionRow,
    ) -> rusqlite::Result<SharedIndex> {
        let known = self.take(collection.id);
        let index = match known {
            Some(index) => {
                let is_current = {
                    let mut index = index.write().unwrap_or_else(PoisonError::into_inner);
                    update(connection, collection, &mut index)?
                };
                if is_current { index } else { Arc::new(RwLock::new(build(connection, collection)?)) }
            }
            None => Arc::new(RwLock::new(build(connection, collection)?)),
        };
        self.keep(collection.id, &index);
        Ok(index)
    }

    fn take(&self, collection: i64) -> Option<SharedIndex> {
        let mut all = lock(&self.0);
        let at = all.iter().position(|(id, _)| *id == collection)?;
        Some(all.remove(at).1)
    }

    fn keep(&self, collection: i64, index: &SharedIndex) {
        let mut all = lock(&self.0);
        all.retain(|(id, _)| *id != collection);
        all.push((collection, Arc::clone(index)));
        let bytes = |index: &SharedIndex| index.read().unwrap_or_else(PoisonError::into_inner).bytes();
        let mut sum: usize = all.iter().map(|(_, index)| bytes(index)).sum();
        while sum > MAX_BYTES && all.len() > 1 {
            sum -= bytes(&all.remove(0).1);
        }
    }
}

/// The number of the last change.
fn last_change(connection: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'change'";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
}

const ROW_COLUMNS: &str = "entry.id, kind, state, trust, user, session, tags, valid_from, valid_to, created_at, \
     expires_at, importance, code.scale, code.data";

const JOIN: &str = "entry LEFT JOIN code ON code.collection = entry.collection AND code.entry = entry.id";

fn build(connection: &Connection, collection: &CollectionRow) -> rusqlite::Result<CollectionIndex> {
    let mut index = CollectionIndex::new(collection.dimensions, last_change(connection)?);
    index.reserve(usize::try_from(collection.entries).unwrap_or(0).min(MAX_ENTRIES));
    let sql = format!("SELECT {ROW_COLUMNS} FROM {JOIN} WHERE entry.collection = ?1 ORDER BY entry.id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([collection.id])?;
    while let Some(row) = rows.next()? {
        set(&mut index, row)?;
    }
    Ok(index)
}

/// Adds what has changed. Returns false if the index must be built again.
fn update(
    connection: &Connection,
    collection: &CollectionRow,
    index: &mut CollectionIndex,
) -> rusqlite::Result<bool> {
    let last = last_change(connection)?;
    if last == index.seq {
        return Ok(true);
    }
    let oldest: i64 = connection
        .prepare_cached("SELECT coalesce(min(seq), 9223372036854775807) FROM change")?
        .query_row([], |row| row.get(0))?;
    if oldest > index.seq.saturating_add(1) || index.is_sparse() {
        return Ok(false);
    }
    let sql = "SELECT DISTINCT entry FROM change WHERE seq > ?1 AND collection = ?2 ORDER BY entry";
    let changed = entries::ids(connection, sql, [index.seq, collection.id])?;
    let sql = format!("SELECT {ROW_COLUMNS} FROM {JOIN} WHERE entry.id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    for id in changed {
        let mut rows = statement.query([id])?;
        match rows.next()? {
            Some(row) => {
                if !set(index, row)? {
                    return Ok(false);
                }
            }
            None => index.remove(id),
        }
    }
    index.seq = last;
    Ok(true)
}

fn set(index: &mut CollectionIndex, row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
    let tags: Vec<String> = match row.get_ref(6)?.as_str() {
        Ok("[]") => Vec::new(),
        _ => entries::json(row, 6)?,
    };
    let (user, session): (Option<String>, Option<String>) = (row.get(4)?, row.get(5)?);
    let (kind, state, trust): (EntryKind, EntryState, Trust) =
        (entries::word(row, 1)?, entries::word(row, 2)?, entries::word(row, 3)?);
    let values = Row {
        kind,
        state,
        trust,
        user: user.as_deref(),
        session: session.as_deref(),
        tags: &tags,
        valid_from: row.get(7)?,
        valid_to: row.get(8)?,
        created_at: row.get(9)?,
        expires_at: row.get(10)?,
        importance: row.get(11)?,
    };
    let scale: Option<f32> = row.get(12)?;
    let code = match scale {
        Some(scale) => row.get_ref(13)?.as_blob_or_null()?.map(|bytes| Code::from_bytes(scale, bytes)),
        None => None,
    };
    Ok(index.set(row.get(0)?, &values, code.as_ref()))
}
