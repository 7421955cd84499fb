//! Entries: stored, read and removed, with their history, text index, vectors and changes.

use super::database_error::DbError;
use super::entry_row::{EntryRow, LocatedEntry, find_with, millis, stored};
use super::seal::{Db, StoredName};
use super::{sealed_entries, text_index};
use crate::index::{Code, normalise};
use redflow_contract::archive::{
    Entry, EntryState, MAX_DIMENSIONS, MAX_ENTRIES, MAX_ENTRY_KEY, MAX_ENTRY_META, MAX_ENTRY_TEXT, MAX_TAG,
    MAX_TAGS,
};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_ports::{ArchiveError, Expected, NewEntry};
use rusqlite::{OptionalExtension as _, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The former versions of an entry that are kept.
const KEPT_VERSIONS: u32 = 20;

/// The changes that are kept. An index that lacks more is built again.
const KEPT_CHANGES: i64 = 10_000;

/// A collection as its row has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CollectionRow {
    pub(super) id: i64,
    pub(super) dimensions: usize,
    pub(super) entries: i64,
}

/// Reads an entry from [`super::entry_row::COLUMNS`].
pub(super) fn read(db: &Db<'_>, row: &Row<'_>) -> rusqlite::Result<Entry> {
    if db.is_sealed() {
        return sealed_entries::read(db, row);
    }
    let hash: String = row.get(16)?;
    Ok(Entry {
        key: row.get(0)?,
        version: row.get(1)?,
        kind: word(row, 2)?,
        text: row.get(3)?,
        meta: json(row, 4)?,
        tags: json(row, 5)?,
        user: row.get(6)?,
        session: row.get(7)?,
        state: word(row, 8)?,
        valid_from: millis(row.get(9)?),
        valid_to: row.get::<_, Option<i64>>(10)?.map(millis),
        created_at: millis(row.get(11)?),
        expires_at: row.get::<_, Option<i64>>(12)?.map(millis),
        trust: word(row, 13)?,
        importance: row.get(14)?,
        source: optional_json(row, 15)?,
        content_hash: Digest::parse_hex(&hash).ok_or_else(|| damaged(16))?,
        supersedes: row.get(17)?,
    })
}

fn damaged(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, String::new(), rusqlite::types::Type::Text)
}

/// Reads the word of an enum.
pub(super) fn word<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str().map_err(|_| damaged(column))?.to_owned();
    serde_json::from_value(serde_json::Value::String(text)).map_err(|_| damaged(column))
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str().map_err(|_| damaged(column))?;
    serde_json::from_str(text).map_err(|_| damaged(column))
}

fn optional_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    match row.get_ref(column)?.as_str_or_null().map_err(|_| damaged(column))? {
        Some(text) => serde_json::from_str(text).map(Some).map_err(|_| damaged(column)),
        None => Ok(None),
    }
}

/// The word of an enum as it is stored.
pub(super) fn text_of<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

pub(super) fn json_text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Checks what needs no database, so that a batch with a wrong entry stores nothing.
pub(super) fn check(entry: &NewEntry, dimensions: usize) -> Result<(), ArchiveError> {
    let invalid = |problem: String| {
        let key: String = entry.key.chars().take(80).collect();
        Err(ArchiveError::new(
            ArchiveCode::EntryInvalid,
            format!("The entry `{key}` cannot be stored: {problem}."),
        ))
    };
    if entry.key.is_empty() || entry.key.len() > MAX_ENTRY_KEY {
        return invalid(format!("its key must have 1 to {MAX_ENTRY_KEY} bytes"));
    }
    if entry.text.len() > MAX_ENTRY_TEXT {
        return invalid(format!("its text has more than {MAX_ENTRY_TEXT} bytes"));
    }
    if json_text(&entry.meta).len() > MAX_ENTRY_META {
        return invalid(format!("its metadata has more than {MAX_ENTRY_META} bytes"));
    }
    if entry.tags.len() > MAX_TAGS || entry.tags.iter().any(|tag| tag.is_empty() || tag.len() > MAX_TAG) {
        return invalid(format!("it may have {MAX_TAGS} tags of 1 to {MAX_TAG} bytes"));
    }
    if !entry.importance.is_finite() {
        return invalid("its importance is not a number from 0 to 1".to_owned());
    }
    match &entry.vector {
        Some(vector) if vector.len() != dimensions || vector.len() > MAX_DIMENSIONS => {
            Err(ArchiveError::new(
                ArchiveCode::EmbedderMismatch,
                format!(
                    "The collection has vectors of {dimensions} dimensions, and these have {}: use the embedder \
                     that made it, or `redflow kb reindex`.",
                    vector.len()
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// Stores an entry, and returns its version.
pub(super) fn put(
    db: &Db<'_>,
    collection: &CollectionRow,
    document: Option<i64>,
    entry: &NewEntry,
    now: i64,
) -> Result<u32, DbError> {
    let hash = Digest::of(entry.text.as_bytes());
    let name = db.name("entry", collection.id, &entry.key);
    let existing = find(db, collection.id, &name)?;
    let version = match (&existing, entry.expected) {
        (Some(LocatedEntry { entry: old, .. }), Expected::Absent) if old.content_hash == hash => {
            return Ok(old.version);
        }
        (Some(LocatedEntry { entry: old, .. }), Expected::Version(expected)) if old.version != expected => {
            return Err(conflict(&entry.key, Some(old.version)).into());
        }
        (Some(LocatedEntry { entry: old, .. }), Expected::Absent) => {
            return Err(conflict(&entry.key, Some(old.version)).into());
        }
        (None, Expected::Version(_)) => return Err(conflict(&entry.key, None).into()),
        (Some(LocatedEntry { entry: old, .. }), _) => old.version.saturating_add(1),
        (None, _) => 1,
    };
    let id = match &existing {
        Some(LocatedEntry { id, document, entry: old }) => {
            let row = EntryRow {
                collection: collection.id,
                id: *id,
                version: old.version,
                document: *document,
                name: name.bytes(),
            };
            keep_version(db, row, old)?;
            if !db.is_sealed() {
                text_index::remove(db, collection.id, *id, &old.text)?;
            }
            *id
        }
        None => {
            let entries = db
                .prepare_cached(
                    "UPDATE collection SET entries = entries + 1 WHERE id = ?1 RETURNING entries",
                )?
                .query_row([collection.id], |row| row.get::<_, i64>(0))?;
            if entries > MAX_ENTRIES as i64 {
                return Err(full().into());
            }
            0
        }
    };
    // A text that has not changed keeps its vector.
    let is_same = existing.as_ref().is_some_and(|existing| existing.entry.content_hash == hash);
    let kept = if entry.vector.is_none() && is_same { stored_vector(db, id)? } else { None };
    let mut row = EntryRow { collection: collection.id, id, version, document, name: name.bytes() };
    if db.is_sealed() {
        row.id = sealed_entries::put(db, row, entry, hash, now)?;
    } else {
        row.id = write(db, row, entry, hash, now)?;
        text_index::add(db, collection.id, row.id, &entry.text)?;
    }
    write_vector(db, row, entry.vector.as_deref().or(kept.as_deref()))?;
    if let Some(former) = &entry.supersedes {
        end_entry(db, collection.id, former, entry.valid_from.map_or(now, stored))?;
    }
    note_change(db, collection.id, row.id)?;
    Ok(version)
}

/// Writes an entry, and returns its id. A new one has none yet: 0.
fn write(db: &Db<'_>, row: EntryRow<'_>, entry: &NewEntry, hash: Digest, now: i64) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO entry(id, collection, document, key, version, kind, text, meta, tags, user, session, state,
             valid_from, valid_to, created_at, expires_at, trust, importance, source, content_hash, supersedes)
         VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)
         ON CONFLICT (id) DO UPDATE SET document = excluded.document, version = excluded.version, kind = excluded.kind,
             text = excluded.text, meta = excluded.meta, tags = excluded.tags, user = excluded.user,
             session = excluded.session, state = excluded.state, valid_from = excluded.valid_from,
             valid_to = excluded.valid_to, created_at = excluded.created_at, expires_at = excluded.expires_at,
             trust = excluded.trust, importance = excluded.importance, source = excluded.source,
             content_hash = excluded.content_hash, supersedes = excluded.supersedes
         RETURNING id";
    db.prepare_cached(sql)?.query_row(
        params![
            row.id,
            row.collection,
            row.document,
            entry.key,
            row.version,
            text_of(&entry.kind),
            entry.text,
            json_text(&entry.meta),
            json_text(&entry.tags),
            entry.user,
            entry.session,
            text_of(&entry.state),
            entry.valid_from.map_or(now, stored),
            entry.valid_to.map(stored),
            entry.created_at.map_or(now, stored),
            entry.expires_at.map(stored),
            text_of(&entry.trust),
            entry.importance,
            entry.source.as_ref().map(json_text),
            hash.to_hex(),
            entry.supersedes,
        ],
        |row| row.get(0),
    )
}

fn write_vector(db: &Db<'_>, row: EntryRow<'_>, vector: Option<&[f32]>) -> rusqlite::Result<()> {
    let Some(vector) = vector else { return remove_vector(db, row.collection, row.id) };
    let mut vector = vector.to_vec();
    normalise(&mut vector);
    let code = Code::of(&vector);
    db.prepare_cached("INSERT OR REPLACE INTO vector(entry, data) VALUES (?1, ?2)")?
        .execute(params![row.id, db.seal(vector_bytes(&vector), row.place("vector"))?])?;
    let (scale, data) = match db.is_sealed() {
        true => (0.0, db.seal(code.bytes_with_scale(), row.place("code"))?),
        false => (code.scale, code.bytes()),
    };
    db.prepare_cached("INSERT OR REPLACE INTO code(collection, entry, scale, data) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![row.collection, row.id, scale, data])?;
    Ok(())
}

/// The vector of an entry; none if it has none.
pub(super) fn stored_vector(db: &Db<'_>, id: i64) -> rusqlite::Result<Option<Vec<f32>>> {
    let sql = match db.is_sealed() {
        true => {
            "SELECT data, collection, version, key FROM vector JOIN entry ON entry.id = vector.entry
             WHERE vector.entry = ?1"
        }
        false => "SELECT data FROM vector WHERE entry = ?1",
    };
    let read = |row: &rusqlite::Row<'_>| {
        if !db.is_sealed() {
            return Ok(vector_of(row.get_ref(0)?.as_blob()?));
        }
        let (collection, version, name) = (row.get(1)?, row.get(2)?, row.get_ref(3)?.as_blob()?);
        let at = EntryRow { collection, id, version, document: None, name };
        Ok(vector_of(&db.open(row, 0, at.place("vector"))?))
    };
    db.prepare_cached(sql)?.query_row([id], read).optional()
}

fn remove_vector(db: &Db<'_>, collection: i64, id: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM vector WHERE entry = ?1")?.execute([id])?;
    db.prepare_cached("DELETE FROM code WHERE collection = ?1 AND entry = ?2")?.execute([collection, id])?;
    Ok(())
}

pub(super) fn vector_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(super) fn vector_of(bytes: &[u8]) -> Vec<f32> {
    let value = |part: &[u8]| f32::from_le_bytes(part.try_into().unwrap_or_default());
    bytes.chunks_exact(4).map(value).collect()
}

/// Keeps a version in the history, and drops the oldest.
fn keep_version(db: &Db<'_>, row: EntryRow<'_>, old: &Entry) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO entry_history(entry, version, body) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql)?;
    match db.is_sealed() {
        true => {
            statement.execute(params![row.id, old.version, db.seal_json(old, row.place("entry_history"))?])?
        }
        false => statement.execute(params![row.id, old.version, json_text(old)])?,
    };
    db.prepare_cached("DELETE FROM entry_history WHERE entry = ?1 AND version <= ?2")?
        .execute(params![row.id, i64::from(old.version) - i64::from(KEPT_VERSIONS)])?;
    Ok(())
}

/// The former versions of an entry, newest first.
pub(super) fn history(db: &Db<'_>, collection: i64, key: &str) -> rusqlite::Result<Vec<Entry>> {
    let sql = "SELECT body, entry, version FROM entry_history WHERE entry =
         (SELECT id FROM entry WHERE collection = ?1 AND key = ?2) ORDER BY version DESC";
    let name = db.name("entry", collection, key);
    let read = |row: &Row<'_>| {
        if !db.is_sealed() {
            return json(row, 0);
        }
        let (id, version) = (row.get(1)?, row.get(2)?);
        let former = EntryRow { collection, id, version, document: None, name: name.bytes() };
        db.open_json(row, 0, former.place("entry_history"))
    };
    db.prepare_cached(sql)?.query_map(params![collection, name], read)?.collect()
}

/// An entry; none if there is no such one.
pub(super) fn get(db: &Db<'_>, collection: i64, key: &str) -> rusqlite::Result<Option<Entry>> {
    Ok(find(db, collection, &db.name("entry", collection, key))?.map(|found| found.entry))
}

pub(super) fn find(
    db: &Db<'_>,
    collection: i64,
    name: &StoredName<'_>,
) -> rusqlite::Result<Option<LocatedEntry>> {
    find_with(db, collection, name, |row| read(db, row))
}

/// Ends an entry that another one replaces. It stays, for the time in which it was true.
fn end_entry(db: &Db<'_>, collection: i64, key: &str, at: i64) -> rusqlite::Result<()> {
    if db.is_sealed() {
        let ended = sealed_entries::end(db, collection, key, at)?;
        return ended.map_or(Ok(()), |id| note_change(db, collection, id));
    }
    let sql = "UPDATE entry SET state = ?3, valid_to = min(coalesce(valid_to, ?4), ?4)
         WHERE collection = ?1 AND key = ?2 AND state IN ('live', 'pinned') RETURNING id";
    let ended = db
        .prepare_cached(sql)?
        .query_row(params![collection, key, text_of(&EntryState::Superseded), at], |row| row.get(0))
        .optional()?;
    ended.map_or(Ok(()), |id| note_change(db, collection, id))
}

/// Tells every index in memory that an entry has changed.
pub(super) fn note_change(db: &Db<'_>, collection: i64, id: i64) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT INTO change(collection, entry) VALUES (?1, ?2)")?.execute([collection, id])?;
    Ok(())
}

/// Drops the oldest changes.
pub(super) fn trim_changes(db: &Db<'_>) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM change WHERE seq <= (SELECT max(seq) FROM change) - ?1")?
        .execute([KEPT_CHANGES])?;
    Ok(())
}

/// Removes entries by their ids, with all that belongs to them.
pub(super) fn remove(db: &Db<'_>, collection: i64, ids: &[i64]) -> rusqlite::Result<u64> {
    remove_with(db, collection, ids, |id, text| text_index::remove(db, collection, id, text))
}

/// Removes entries by their ids. The caller removes each text from the text index.
pub(super) fn remove_with(
    db: &Db<'_>,
    collection: i64,
    ids: &[i64],
    remove_text: impl Fn(i64, &str) -> rusqlite::Result<()>,
) -> rusqlite::Result<u64> {
    let mut removed = 0;
    for &id in ids {
        // The text index of an encrypted collection follows the changes.
        let text: Option<Option<String>> = db
            .prepare_cached("DELETE FROM entry WHERE id = ?1 RETURNING text")?
            .query_row([id], |row| if db.is_sealed() { Ok(None) } else { row.get(0) })
            .optional()?;
        let Some(text) = text else { continue };
        if let Some(text) = text {
            remove_text(id, &text)?;
        }
        db.prepare_cached("DELETE FROM entry_history WHERE entry = ?1")?.execute([id])?;
        remove_vector(db, collection, id)?;
        note_change(db, collection, id)?;
        removed += 1;
    }
    db.prepare_cached("UPDATE collection SET entries = entries - ?2 WHERE id = ?1")?
        .execute(params![collection, removed as i64])?;
    Ok(removed)
}

/// The ids of a query with one column.
pub(super) fn ids(db: &Db<'_>, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<Vec<i64>> {
    db.prepare_cached(sql)?.query_map(params, |row| row.get(0))?.collect()
}

fn conflict(key: &str, current: Option<u32>) -> ArchiveError {
    let key: String = key.chars().take(80).collect();
    let state = match current {
        Some(version) => format!("has version {version} now"),
        None => "does not exist".to_owned(),
    };
    ArchiveError::new(
        ArchiveCode::MemoryConflict,
        format!("The entry `{key}` {state}: read it again, and repeat the change."),
    )
}

fn full() -> ArchiveError {
    ArchiveError::new(
        ArchiveCode::ArchiveFull,
        format!(
            "The collection has {MAX_ENTRIES} entries, which is the most: remove some, or use another one."
        ),
    )
}
