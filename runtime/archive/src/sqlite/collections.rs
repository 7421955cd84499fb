//! Collections.

use super::database_error::DbError;
use super::entries::{CollectionRow, json, json_text};
use super::entry_row::millis;
use super::seal::{Db, Place};
use super::{documents, text_index};
use redflow_contract::archive::{Collection, Document, MAX_COLLECTION_NAME, MAX_DIMENSIONS};
use redflow_contract::code::ArchiveCode;
use redflow_ports::{ArchiveError, NewCollection};
use rusqlite::{OptionalExtension as _, Row, params};
use serde_json::{Map, Value};

const SELECT: &str = "SELECT name, embedder, dimensions, settings, entries, created_at,
     (SELECT count(*) FROM document WHERE document.collection = collection.id), id FROM collection";

fn read(db: &Db<'_>, row: &Row<'_>) -> rusqlite::Result<Collection> {
    let (name, embedder, settings) = match db.is_sealed() {
        true => open(db, row)?,
        false => (row.get(0)?, row.get(1)?, json(row, 3)?),
    };
    Ok(Collection {
        name,
        embedder,
        dimensions: row.get(2)?,
        settings,
        entries: millis(row.get(4)?),
        created_at: millis(row.get(5)?),
        documents: millis(row.get(6)?),
    })
}

/// What is sealed of a collection: its name, its embedder and its settings.
type Sealed = (String, String, Map<String, Value>);

fn open(db: &Db<'_>, row: &Row<'_>) -> rusqlite::Result<Sealed> {
    db.open_json(row, 3, place(row.get(7)?, row.get(2)?, row.get_ref(0)?.as_blob()?))
}

/// The place of a sealed collection.
fn place(id: i64, dimensions: u32, name: &[u8]) -> Place<'_> {
    Place { table: "collection", numbers: [id, i64::from(dimensions), 0, 0], name }
}

/// All collections, sorted by name.
pub(super) fn list(db: &Db<'_>) -> rusqlite::Result<Vec<Collection>> {
    let mut statement = db.prepare_cached(SELECT)?;
    let collections = statement.query_map([], |row| read(db, row))?;
    let mut collections: Vec<Collection> = collections.collect::<Result<_, _>>()?;
    collections.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(collections)
}

pub(super) fn get(db: &Db<'_>, name: &str) -> rusqlite::Result<Option<Collection>> {
    db.prepare_cached(&format!("{SELECT} WHERE name = ?1"))?
        .query_row([db.name("collection", "", name)], |row| read(db, row))
        .optional()
}

/// The row of a collection that must exist.
pub(super) fn find(db: &Db<'_>, name: &str) -> Result<CollectionRow, DbError> {
    let sql = "SELECT name, embedder, dimensions, settings, entries, created_at, 0, id FROM collection
         WHERE name = ?1";
    let row = db
        .prepare_cached(sql)?
        .query_row([db.name("collection", "", name)], |row| {
            if db.is_sealed() {
                // A moved row, or changed dimensions, must not be used.
                open(db, row)?;
            }
            Ok(CollectionRow {
                id: row.get(7)?,
                dimensions: usize::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
                entries: row.get(4)?,
            })
        })
        .optional()?;
    row.ok_or_else(|| super::unknown(name).into())
}

/// Checks what needs no database.
pub(super) fn check(new: &NewCollection) -> Result<(), ArchiveError> {
    let is_name = |part: &str| {
        !part.is_empty()
            && part.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.'))
    };
    let parts: Vec<&str> = new.name.split('/').collect();
    let is_valid =
        new.name.len() <= MAX_COLLECTION_NAME * 4 && parts.len() > 1 && parts.into_iter().all(is_name);
    if !is_valid {
        let name: String = new.name.chars().take(80).collect();
        return Err(ArchiveError::new(
            ArchiveCode::EntryInvalid,
            format!("`{name}` cannot be the name of a collection: use letters, digits, `-`, `_` and `.`."),
        ));
    }
    if !(1..=MAX_DIMENSIONS).contains(&(new.dimensions as usize)) {
        return Err(ArchiveError::new(
            ArchiveCode::EntryInvalid,
            format!("Vectors may have 1 to {MAX_DIMENSIONS} dimensions, and these have {}.", new.dimensions),
        ));
    }
    Ok(())
}

pub(super) fn create(db: &Db<'_>, new: &NewCollection, now: i64) -> Result<Collection, DbError> {
    if let Some(known) = get(db, &new.name)? {
        if known.embedder == new.embedder && known.dimensions == new.dimensions {
            return Ok(known);
        }
        return Err(mismatch(&known, new).into());
    }
    if db.is_sealed() {
        let (id, name) = (db.next_id("collection")?, db.name("collection", "", &new.name));
        let sealed = (&new.name, &new.embedder, &new.settings);
        let sealed = db.seal_json(&sealed, place(id, new.dimensions, name.bytes()))?;
        let sql = "INSERT INTO collection(id, name, embedder, dimensions, settings, entries, created_at)
             VALUES (?1, ?2, x'', ?3, ?4, 0, ?5)";
        db.prepare_cached(sql)?.execute(params![id, name, new.dimensions, sealed, now])?;
    } else {
        let sql = "INSERT INTO collection(name, embedder, dimensions, settings, entries, created_at)
             VALUES (?1, ?2, ?3, ?4, 0, ?5)";
        let params = params![new.name, new.embedder, new.dimensions, json_text(&new.settings), now];
        db.prepare_cached(sql)?.execute(params)?;
        text_index::create(db, db.last_insert_rowid())?;
    }
    get(db, &new.name)?.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
}

fn mismatch(known: &Collection, new: &NewCollection) -> ArchiveError {
    ArchiveError::new(
        ArchiveCode::EmbedderMismatch,
        format!(
            "The vectors of `{}` come from {} ({} dimensions), not from {} ({}): use that embedder, or make all \
             vectors again with `redflow kb reindex`.",
            known.name, known.embedder, known.dimensions, new.embedder, new.dimensions
        ),
    )
}

/// Removes a collection with all that belongs to it.
pub(super) fn remove(db: &Db<'_>, name: &str) -> Result<bool, DbError> {
    let id: Option<i64> = db
        .prepare_cached("DELETE FROM collection WHERE name = ?1 RETURNING id")?
        .query_row([db.name("collection", "", name)], |row| row.get(0))
        .optional()?;
    let Some(id) = id else { return Ok(false) };
    text_index::drop_index(db, id)?;
    for table in ["entry_history", "vector"] {
        let sql = format!("DELETE FROM {table} WHERE entry IN (SELECT id FROM entry WHERE collection = ?1)");
        db.prepare_cached(&sql)?.execute([id])?;
    }
    for table in ["code", "entry", "document", "change"] {
        db.prepare_cached(&format!("DELETE FROM {table} WHERE collection = ?1"))?.execute([id])?;
    }
    Ok(true)
}

/// Gives a collection another name, in place of the one that has it, if both have the same documents.
pub(super) fn rename(db: &Db<'_>, name: &str, to: &str) -> Result<bool, DbError> {
    let (Some(known), Some(_)) = (get(db, name)?, get(db, to)?) else { return Ok(false) };
    let (from_id, to_id) = (find(db, name)?.id, find(db, to)?.id);
    let documents = |id: i64| -> rusqlite::Result<Vec<_>> {
        let all = documents::list(db, id, "", usize::MAX)?.into_iter();
        let same = |document: Document| {
            let Document { name, digest, tags, added_at, expires_at, .. } = document;
            (name, digest, tags, added_at, expires_at)
        };
        Ok(all.map(same).collect())
    };
    if documents(from_id)? != documents(to_id)? {
        return Ok(false);
    }
    remove(db, to)?;
    let new_name = db.name("collection", "", to);
    db.prepare_cached("UPDATE collection SET name = ?2 WHERE id = ?1")?
        .execute(params![from_id, new_name])?;
    if db.is_sealed() {
        let sealed = (to, &known.embedder, &known.settings);
        let sealed = db.seal_json(&sealed, place(from_id, known.dimensions, new_name.bytes()))?;
        db.prepare_cached("UPDATE collection SET settings = ?2 WHERE id = ?1")?
            .execute(params![from_id, sealed])?;
    }
    Ok(true)
}
