//! Collections.

use super::database_error::DbError;
use super::entries::{json, json_text, millis};
use super::text_index;
use redflow_contract::archive::{Collection, MAX_COLLECTION_NAME, MAX_DIMENSIONS};
use redflow_contract::code::ArchiveCode;
use redflow_ports::{ArchiveError, NewCollection};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};

const SELECT: &str = "SELECT name, embedder, dimensions, settings, entries, created_at,
     (SELECT count(*) FROM document WHERE document.collection = collection.id) FROM collection";

fn read(row: &Row<'_>) -> rusqlite::Result<Collection> {
    Ok(Collection {
        name: row.get(0)?,
        embedder: row.get(1)?,
        dimensions: row.get(2)?,
        settings: json(row, 3)?,
        entries: millis(row.get(4)?),
        created_at: millis(row.get(5)?),
        documents: millis(row.get(6)?),
    })
}

pub(super) fn list(connection: &Connection) -> rusqlite::Result<Vec<Collection>> {
    connection.prepare_cached(&format!("{SELECT} ORDER BY name"))?.query_map([], read)?.collect()
}

pub(super) fn get(connection: &Connection, name: &str) -> rusqlite::Result<Option<Collection>> {
    connection.prepare_cached(&format!("{SELECT} WHERE name = ?1"))?.query_row([name], read).optional()
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

pub(super) fn create(
    transaction: &Transaction<'_>,
    new: &NewCollection,
    now: i64,
) -> Result<Collection, DbError> {
    if let Some(known) = get(transaction, &new.name)? {
        if known.embedder == new.embedder && known.dimensions == new.dimensions {
            return Ok(known);
        }
        return Err(mismatch(&known, new).into());
    }
    let sql = "INSERT INTO collection(name, embedder, dimensions, settings, entries, created_at)
         VALUES (?1, ?2, ?3, ?4, 0, ?5)";
    let params = params![new.name, new.embedder, new.dimensions, json_text(&new.settings), now];
    transaction.prepare_cached(sql)?.execute(params)?;
    text_index::create(transaction, transaction.last_insert_rowid())?;
    get(transaction, &new.name)?.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
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
pub(super) fn remove(transaction: &Transaction<'_>, name: &str) -> Result<bool, DbError> {
    let id: Option<i64> = transaction
        .prepare_cached("DELETE FROM collection WHERE name = ?1 RETURNING id")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    let Some(id) = id else { return Ok(false) };
    text_index::drop_index(transaction, id)?;
    for table in ["entry_history", "vector"] {
        let sql = format!("DELETE FROM {table} WHERE entry IN (SELECT id FROM entry WHERE collection = ?1)");
        transaction.prepare_cached(&sql)?.execute([id])?;
    }
    for table in ["code", "entry", "document", "change"] {
        transaction.prepare_cached(&format!("DELETE FROM {table} WHERE collection = ?1"))?.execute([id])?;
    }
    Ok(true)
}

/// Gives a collection another name, in place of the one that has it, if both have the same documents.
pub(super) fn rename(transaction: &Transaction<'_>, name: &str, to: &str) -> Result<bool, DbError> {
    let documents =
        "SELECT name, digest, tags FROM document WHERE collection = (SELECT id FROM collection WHERE name = ";
    let sql = format!(
        "SELECT NOT EXISTS (SELECT 1 FROM collection WHERE name = ?1)
             OR NOT EXISTS (SELECT 1 FROM collection WHERE name = ?2)
             OR EXISTS ({documents}?1) EXCEPT {documents}?2))
             OR EXISTS ({documents}?2) EXCEPT {documents}?1))"
    );
    let differ: bool = transaction.query_row(&sql, [name, to], |row| row.get(0))?;
    if differ {
        return Ok(false);
    }
    remove(transaction, to)?;
    let sql = "UPDATE collection SET name = ?2 WHERE name = ?1";
    Ok(transaction.prepare_cached(sql)?.execute([name, to])? > 0)
}
