//! The cache of vectors, by embedder and digest of the text. The least recently used ones are dropped.

use super::entries::{vector_bytes, vector_of};
use redflow_contract::digest::Digest;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

/// The most bytes of all cached vectors.
const MAX_BYTES: i64 = 200 * 1024 * 1024;

/// The bytes of a row beside its vector.
const ROW_BYTES: i64 = 160;

/// Vectors that are dropped at once.
const DROPPED: i64 = 256;

/// Counts a use of the cache, and returns its number.
fn next_use(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("UPDATE cache_size SET uses = uses + 1 RETURNING uses")?
        .query_row([], |row| row.get(0))
}

pub(super) fn get(
    transaction: &Transaction<'_>,
    embedder: &str,
    texts: &[Digest],
) -> rusqlite::Result<Vec<Option<Vec<f32>>>> {
    let used = next_use(transaction)?;
    let sql = "UPDATE embedding_cache SET used = ?3 WHERE embedder = ?1 AND text = ?2 RETURNING data";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut vectors = Vec::with_capacity(texts.len());
    for text in texts {
        let bytes: Option<Vec<u8>> =
            statement.query_row(params![embedder, text.to_hex(), used], |row| row.get(0)).optional()?;
        vectors.push(bytes.map(|bytes| vector_of(&bytes)));
    }
    Ok(vectors)
}

pub(super) fn put(
    transaction: &Transaction<'_>,
    embedder: &str,
    vectors: &[(Digest, Vec<f32>)],
) -> rusqlite::Result<()> {
    let used = next_use(transaction)?;
    let sql = "INSERT INTO embedding_cache(embedder, text, data, used) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO NOTHING";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut added = 0;
    for (text, vector) in vectors {
        let bytes = vector_bytes(vector);
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX).saturating_add(ROW_BYTES);
        if statement.execute(params![embedder, text.to_hex(), bytes, used])? > 0 {
            added += size;
        }
    }
    drop(statement);
    let mut bytes = resize(transaction, added)?;
    while bytes > MAX_BYTES {
        bytes = resize(transaction, -drop_oldest(transaction)?)?;
    }
    Ok(())
}

fn resize(connection: &Connection, by: i64) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("UPDATE cache_size SET bytes = max(0, bytes + ?1) RETURNING bytes")?
        .query_row([by], |row| row.get(0))
}

/// Drops the vectors that were not used for the longest time. Returns their bytes.
fn drop_oldest(connection: &Connection) -> rusqlite::Result<i64> {
    let sql = "DELETE FROM embedding_cache WHERE id IN
         (SELECT id FROM embedding_cache ORDER BY used, id LIMIT ?1) RETURNING length(data)";
    let mut statement = connection.prepare_cached(sql)?;
    let sizes = statement.query_map([DROPPED], |row| row.get::<_, i64>(0))?;
    let mut bytes = 0;
    for size in sizes {
        bytes += size? + ROW_BYTES;
    }
    // An empty cache has no bytes, whatever was counted.
    Ok(if bytes == 0 { i64::MAX } else { bytes })
}
