//! Documents of a collection.

use super::database_error::DbError;
use super::entries::{self, CollectionRow, json, json_text, millis, stored};
use redflow_contract::archive::{Document, Entry};
use redflow_contract::digest::Digest;
use redflow_ports::NewEntry;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

fn read(row: &Row<'_>) -> rusqlite::Result<Document> {
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
    })
}

pub(super) fn list(connection: &Connection, collection: i64) -> rusqlite::Result<Vec<Document>> {
    let sql = "SELECT name, title, origin, digest, bytes, chunks, tags, added_at FROM document
         WHERE collection = ?1 ORDER BY name";
    connection.prepare_cached(sql)?.query_map([collection], read)?.collect()
}

/// Stores a document with its passages, in place of an earlier one of the same name.
pub(super) fn put(
    transaction: &Transaction<'_>,
    collection: &CollectionRow,
    document: &Document,
    passages: &[NewEntry],
    now: i64,
) -> Result<(), DbError> {
    remove(transaction, collection.id, &document.name)?;
    let sql = "INSERT INTO document(collection, name, title, origin, digest, bytes, chunks, tags, added_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    transaction.prepare_cached(sql)?.execute(params![
        collection.id,
        document.name,
        document.title,
        document.origin,
        document.digest.to_hex(),
        stored(document.bytes),
        document.chunks,
        json_text(&document.tags),
        if document.added_at == 0 { now } else { stored(document.added_at) },
    ])?;
    let id = transaction.last_insert_rowid();
    passages
        .iter()
        .try_for_each(|passage| entries::put(transaction, collection, Some(id), passage, now).map(drop))
}

/// The passages of a document, in the order in which they were stored.
pub(super) fn passages(connection: &Connection, collection: i64, name: &str) -> rusqlite::Result<Vec<Entry>> {
    let sql = format!(
        "SELECT {} FROM entry WHERE document =
             (SELECT id FROM document WHERE collection = ?1 AND name = ?2) ORDER BY id",
        entries::COLUMNS
    );
    connection.prepare_cached(&sql)?.query_map(params![collection, name], entries::read)?.collect()
}

/// Removes a document with its passages. Returns whether there was one.
pub(super) fn remove(transaction: &Transaction<'_>, collection: i64, name: &str) -> rusqlite::Result<bool> {
    let id: Option<i64> = transaction
        .prepare_cached("DELETE FROM document WHERE collection = ?1 AND name = ?2 RETURNING id")?
        .query_row(params![collection, name], |row| row.get(0))
        .optional()?;
    let Some(id) = id else { return Ok(false) };
    let passages = entries::ids(transaction, "SELECT id FROM entry WHERE document = ?1", [id])?;
    entries::remove(transaction, collection, &passages)?;
    Ok(true)
}
