//! Documents of a collection.

use super::database_error::DbError;
use super::entries::{self, CollectionRow, json, json_text};
use super::entry_row::{self, millis, stored};
use super::seal::{Db, Place};
use redflow_contract::Millis;
use redflow_contract::archive::{Document, Entry};
use redflow_contract::digest::Digest;
use redflow_ports::NewEntry;
use rusqlite::{OptionalExtension as _, Row, params};

fn read(db: &Db<'_>, row: &Row<'_>) -> rusqlite::Result<Document> {
    if db.is_sealed() {
        return db.open_json(row, 1, place(row.get(9)?, row.get(8)?, row.get_ref(0)?.as_blob()?));
    }
    let digest: String = row.get(3)?;
    Ok(Document {
        name: row.get(0)?,
        title: row.get(1)?,
        origin: row.get(2)?,
        digest: Digest::parse_hex(&digest).unwrap_or(Digest::ZERO),
        bytes: millis(row.get(4)?),
        chunks: row.get(5)?,
        tags: json(row, 6)?,
        added_at: millis(row.get(7)?),
        expires_at: None,
    })
}

/// The place of a sealed document.
fn place(collection: i64, id: i64, name: &[u8]) -> Place<'_> {
    Place { table: "document", numbers: [collection, id, 0, 0], name }
}

const COLUMNS: &str = "name, title, origin, digest, bytes, chunks, tags, added_at, id, collection";

/// When a document is removed. Its passages have that: all of them the same.
fn expires_at(db: &Db<'_>, id: i64) -> rusqlite::Result<Option<Millis>> {
    let sql = "SELECT expires_at FROM entry WHERE document = ?1 LIMIT 1";
    let found: Option<Option<i64>> = db.prepare_cached(sql)?.query_row([id], |row| row.get(0)).optional()?;
    Ok(found.flatten().map(millis))
}

/// Reads a document from [`COLUMNS`], with its id.
fn read_with_id(db: &Db<'_>, row: &Row<'_>) -> rusqlite::Result<(i64, Document)> {
    Ok((row.get(8)?, read(db, row)?))
}

/// The documents of a collection after a name, sorted by name.
pub(super) fn list(
    db: &Db<'_>,
    collection: i64,
    after: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Document>> {
    if !db.is_sealed() {
        let sql = format!(
            "SELECT {COLUMNS} FROM document WHERE collection = ?1 AND name > ?2 ORDER BY name LIMIT ?3"
        );
        let mut statement = db.prepare_cached(&sql)?;
        let values = params![collection, after, limit_of(limit)];
        let found: Vec<_> =
            statement.query_map(values, |row| read_with_id(db, row))?.collect::<Result<_, _>>()?;
        return with_expiry(db, found);
    }
    // Their names have no order in the file.
    let sql = format!("SELECT {COLUMNS} FROM document WHERE collection = ?1");
    let mut statement = db.prepare_cached(&sql)?;
    let found = statement.query_map([collection], |row| read_with_id(db, row))?;
    let mut found: Vec<_> = found.collect::<Result<_, _>>()?;
    found.retain(|(_, document)| document.name.as_str() > after);
    found.sort_by(|(_, left), (_, right)| left.name.cmp(&right.name));
    found.truncate(limit);
    with_expiry(db, found)
}

fn with_expiry(db: &Db<'_>, documents: Vec<(i64, Document)>) -> rusqlite::Result<Vec<Document>> {
    let with = |(id, document)| Ok(Document { expires_at: expires_at(db, id)?, ..document });
    documents.into_iter().map(with).collect()
}

pub(super) fn get(db: &Db<'_>, collection: i64, name: &str) -> rusqlite::Result<Option<Document>> {
    let sql = format!("SELECT {COLUMNS} FROM document WHERE collection = ?1 AND name = ?2");
    let values = params![collection, db.name("document", collection, name)];
    let found = db.prepare_cached(&sql)?.query_row(values, |row| read_with_id(db, row)).optional()?;
    Ok(with_expiry(db, found.into_iter().collect())?.pop())
}

fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Stores a document with its passages, in place of an earlier one of the same name.
pub(super) fn put(
    db: &Db<'_>,
    collection: &CollectionRow,
    document: &Document,
    passages: &[NewEntry],
    now: i64,
) -> Result<(), DbError> {
    remove(db, collection.id, &document.name)?;
    let added_at = if document.added_at == 0 { now } else { stored(document.added_at) };
    if db.is_sealed() {
        let document = Document { added_at: millis(added_at), ..document.clone() };
        let (id, name) = (db.next_id("document")?, db.name("document", collection.id, &document.name));
        let sealed = db.seal_json(&document, place(collection.id, id, name.bytes()))?;
        let sql =
            "INSERT INTO document(id, collection, name, title, origin, digest, bytes, chunks, tags, added_at)
             VALUES (?1, ?2, ?3, ?4, x'', x'', 0, 0, x'', 0)";
        db.prepare_cached(sql)?.execute(params![id, collection.id, name, sealed])?;
    } else {
        let sql =
            "INSERT INTO document(collection, name, title, origin, digest, bytes, chunks, tags, added_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        db.prepare_cached(sql)?.execute(params![
            collection.id,
            document.name,
            document.title,
            document.origin,
            document.digest.to_hex(),
            stored(document.bytes),
            document.chunks,
            json_text(&document.tags),
            added_at,
        ])?;
    }
    let id = db.last_insert_rowid();
    passages.iter().try_for_each(|passage| entries::put(db, collection, Some(id), passage, now).map(drop))
}

/// The passages of a document after the first `skip` ones, in the order in which they were stored.
pub(super) fn passages(
    db: &Db<'_>,
    collection: i64,
    name: &str,
    skip: usize,
    limit: usize,
) -> rusqlite::Result<Vec<Entry>> {
    let sql = format!(
        "SELECT {} FROM entry WHERE document =
             (SELECT id FROM document WHERE collection = ?1 AND name = ?2) ORDER BY id LIMIT ?3 OFFSET ?4",
        entry_row::COLUMNS
    );
    let name = db.name("document", collection, name);
    let values = params![collection, name, limit_of(limit), limit_of(skip)];
    db.prepare_cached(&sql)?.query_map(values, |row| entries::read(db, row))?.collect()
}

/// Removes a document with its passages. Returns whether there was one.
pub(super) fn remove(db: &Db<'_>, collection: i64, name: &str) -> rusqlite::Result<bool> {
    let id: Option<i64> = db
        .prepare_cached("DELETE FROM document WHERE collection = ?1 AND name = ?2 RETURNING id")?
        .query_row(params![collection, db.name("document", collection, name)], |row| row.get(0))
        .optional()?;
    let Some(id) = id else { return Ok(false) };
    let passages = entries::ids(db, "SELECT id FROM entry WHERE document = ?1", [id])?;
    entries::remove(db, collection, &passages)?;
    Ok(true)
}

/// The documents of which passages have expired.
pub(super) fn with_expired(db: &Db<'_>, collection: i64, now: i64) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT DISTINCT document FROM entry
         WHERE collection = ?1 AND expires_at <= ?2 AND state <> 'pinned' AND document IS NOT NULL";
    entries::ids(db, sql, [collection, now])
}

/// Removes those of these documents that have no passages any more.
pub(super) fn remove_empty(db: &Db<'_>, documents: &[i64]) -> rusqlite::Result<()> {
    let sql = "DELETE FROM document WHERE id = ?1
         AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.document = document.id)";
    let mut statement = db.prepare_cached(sql)?;
    documents.iter().try_for_each(|id| statement.execute([id]).map(drop))
}
