//! The indexes of collections in memory. Each follows the changes of the file, also those of other processes.

use super::changes::{changed_since, last_change};
use super::entries::{self, CollectionRow};
use super::entry_row::{self, COLUMNS};
use super::query_words::QueryWords;
use super::seal::Db;
use super::text_index::{self, AllowedEntries, TextHit};
use super::word_counts::WordCounts;
use super::words::Words;
use super::{lock, sealed_entries};
use crate::index::{Code, CollectionIndex, IndexRow};
use redflow_contract::archive::{Entry, EntryKind, EntryState, MAX_ENTRIES, Trust};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The most bytes of all indexes. The least recently used ones are dropped.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// The indexes of a collection.
pub(super) struct SearchIndex {
    pub(super) vectors: RwLock<CollectionIndex>,
    /// The text index of an encrypted collection, from its first search by words on.
    words: Mutex<Option<Words>>,
    counts: Mutex<WordCounts>,
    query_words: Arc<QueryWords>,
}

pub(super) type SharedIndex = Arc<SearchIndex>;

impl SearchIndex {
    fn new(vectors: CollectionIndex, query_words: &Arc<QueryWords>) -> SharedIndex {
        Arc::new(Self {
            vectors: RwLock::new(vectors),
            words: Mutex::default(),
            counts: Mutex::default(),
            query_words: Arc::clone(query_words),
        })
    }

    /// The bytes that it holds, about.
    fn bytes(&self) -> usize {
        let vectors = self.vectors.read().unwrap_or_else(PoisonError::into_inner).bytes();
        vectors + lock(&self.words).as_ref().map_or(0, Words::bytes) + lock(&self.counts).bytes()
    }

    /// Finds the allowed entries with the words of a query, the best first.
    pub(super) fn find_words(
        &self,
        db: &Db<'_>,
        collection: &CollectionRow,
        text: &str,
        limit: usize,
        entries: AllowedEntries<'_>,
    ) -> rusqlite::Result<Vec<TextHit>> {
        let words = self.query_words.split(text)?;
        let counts = &mut lock(&self.counts);
        if !db.is_sealed() {
            return text_index::search(db, collection.id, words, limit, counts, entries);
        }
        let mut index = lock(&self.words);
        let kept = index.take().map(|index| index.update(db, collection)).transpose()?.flatten();
        let current = kept.map_or_else(|| Words::build(db, collection), Ok)?;
        let index = index.insert(current).connection();
        text_index::search(index, collection.id, words, limit, counts, entries)
    }
}

/// The indexes of this process.
#[derive(Default)]
pub(super) struct Indexes {
    /// The least recently used first.
    all: Mutex<Vec<(i64, SharedIndex)>>,
    query_words: Arc<QueryWords>,
}

impl Indexes {
    /// The index of a collection, with all changes that the connection sees.
    pub(super) fn get(&self, db: &Db<'_>, collection: &CollectionRow) -> rusqlite::Result<SharedIndex> {
        let new = || build(db, collection).map(|vectors| SearchIndex::new(vectors, &self.query_words));
        let index = match self.take(collection.id) {
            Some(index) => {
                let is_current = {
                    let mut vectors = index.vectors.write().unwrap_or_else(PoisonError::into_inner);
                    update(db, collection, &mut vectors)?
                };
                if is_current { index } else { new()? }
            }
            None => new()?,
        };
        self.keep(collection.id, &index);
        Ok(index)
    }

    fn take(&self, collection: i64) -> Option<SharedIndex> {
        let mut all = lock(&self.all);
        let at = all.iter().position(|(id, _)| *id == collection)?;
        Some(all.remove(at).1)
    }

    fn keep(&self, collection: i64, index: &SharedIndex) {
        let mut all = lock(&self.all);
        all.retain(|(id, _)| *id != collection);
        all.push((collection, Arc::clone(index)));
        let mut sum: usize = all.iter().map(|(_, index)| index.bytes()).sum();
        while sum > MAX_BYTES && all.len() > 1 {
            sum -= all.remove(0).1.bytes();
        }
    }
}

const ROW_COLUMNS: &str = "entry.id, kind, state, trust, user, session, tags, valid_from, valid_to, created_at, \
     expires_at, importance, code.scale, code.data, octet_length(entry.text)";

const JOIN: &str = "entry LEFT JOIN code ON code.collection = entry.collection AND code.entry = entry.id";

/// Selects what [`set`] reads.
fn select(db: &Db<'_>, condition: &str) -> String {
    match db.is_sealed() {
        true => format!("SELECT {COLUMNS}, code.data FROM {JOIN} WHERE {condition}"),
        false => format!("SELECT {ROW_COLUMNS} FROM {JOIN} WHERE {condition}"),
    }
}

fn build(db: &Db<'_>, collection: &CollectionRow) -> rusqlite::Result<CollectionIndex> {
    let mut index = CollectionIndex::new(collection.dimensions, last_change(db)?);
    index.reserve(usize::try_from(collection.entries).unwrap_or(0).min(MAX_ENTRIES));
    let mut statement = db.prepare_cached(&select(db, "entry.collection = ?1 ORDER BY entry.id"))?;
    let mut rows = statement.query([collection.id])?;
    while let Some(row) = rows.next()? {
        set(db, &mut index, row)?;
    }
    Ok(index)
}

/// Adds what has changed. Returns false if the index must be built again.
fn update(db: &Db<'_>, collection: &CollectionRow, index: &mut CollectionIndex) -> rusqlite::Result<bool> {
    let last = last_change(db)?;
    if last == index.seq {
        return Ok(true);
    }
    let changed = changed_since(db, collection.id, index.seq, last)?.filter(|_| !index.is_sparse());
    let Some(changed) = changed else { return Ok(false) };
    let mut statement = db.prepare_cached(&select(db, "entry.id = ?1"))?;
    for id in changed {
        let mut rows = statement.query([id])?;
        match rows.next()? {
            Some(row) => {
                if !set(db, index, row)? {
                    return Ok(false);
                }
            }
            None => index.remove(id),
        }
    }
    index.seq = last;
    Ok(true)
}

fn set_sealed(db: &Db<'_>, index: &mut CollectionIndex, row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
    let at = sealed_entries::row_of(row)?;
    let entry: Entry = entries::read(db, row)?;
    let code = match row.get_ref(21)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Code::from_bytes_with_scale(&db.open(row, 21, at.place("code"))?),
    };
    let values = IndexRow {
        kind: entry.kind,
        state: entry.state,
        trust: entry.trust,
        user: entry.user.as_deref(),
        session: entry.session.as_deref(),
        tags: &entry.tags,
        valid_from: entry_row::stored(entry.valid_from),
        valid_to: entry.valid_to.map(entry_row::stored),
        created_at: entry_row::stored(entry.created_at),
        expires_at: entry.expires_at.map(entry_row::stored),
        importance: entry.importance,
        text_bytes: u32::try_from(entry.text.len()).unwrap_or(u32::MAX),
    };
    Ok(index.set(at.id, &values, code.as_ref()))
}

fn set(db: &Db<'_>, index: &mut CollectionIndex, row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
    if db.is_sealed() {
        return set_sealed(db, index, row);
    }
    let tags: Vec<String> = match row.get_ref(6)?.as_str() {
        Ok("[]") => Vec::new(),
        _ => entries::json(row, 6)?,
    };
    let (user, session): (Option<String>, Option<String>) = (row.get(4)?, row.get(5)?);
    let (kind, state, trust): (EntryKind, EntryState, Trust) =
        (entries::word(row, 1)?, entries::word(row, 2)?, entries::word(row, 3)?);
    let values = IndexRow {
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
        text_bytes: row.get(14)?,
    };
    let scale: Option<f32> = row.get(12)?;
    let code = match scale {
        Some(scale) => row.get_ref(13)?.as_blob_or_null()?.map(|bytes| Code::from_bytes(scale, bytes)),
        None => None,
    };
    Ok(index.set(row.get(0)?, &values, code.as_ref()))
}
