//! The cache of vectors, by embedder and digest of the text. The least recently used ones are dropped.

use super::entries::{vector_bytes, vector_of};
use super::seal::{Db, Place};
use redflow_contract::digest::Digest;
use rusqlite::{OptionalExtension as _, params};

/// The most bytes of all cached vectors.
const MAX_BYTES: i64 = 200 * 1024 * 1024;

/// The bytes of a row beside its vector.
const ROW_BYTES: i64 = 160;

/// Vectors that are dropped at once.
const DROPPED: i64 = 256;

/// Counts a use of the cache, and returns its number.
fn next_use(db: &Db<'_>) -> rusqlite::Result<i64> {
    db.prepare_cached("UPDATE cache_size SET uses = uses + 1 RETURNING uses")?.query_row([], |row| row.get(0))
}

/// The place of a sealed vector.
fn place(text: &[u8]) -> Place<'_> {
    Place { table: "embedding_cache", numbers: [0; 4], name: text }
}

pub(super) fn get(db: &Db<'_>, embedder: &str, texts: &[Digest]) -> rusqlite::Result<Vec<Option<Vec<f32>>>> {
    let used = next_use(db)?;
    let sql = "UPDATE embedding_cache SET used = ?3 WHERE embedder = ?1 AND text = ?2 RETURNING data";
    let mut statement = db.prepare_cached(sql)?;
    let mut vectors = Vec::with_capacity(texts.len());
    for text in texts {
        let text = text.to_hex();
        let (name, text) = (db.name("embedder", "", embedder), db.name("embedding_cache", embedder, &text));
        let bytes: Option<Vec<u8>> = statement
            .query_row(params![name, text, used], |row| db.open(row, 0, place(text.bytes())))
            .optional()?;
        vectors.push(bytes.map(|bytes| vector_of(&bytes)));
    }
    Ok(vectors)
}

pub(super) fn put(db: &Db<'_>, embedder: &str, vectors: &[(Digest, Vec<f32>)]) -> rusqlite::Result<()> {
    let used = next_use(db)?;
    let sql = "INSERT INTO embedding_cache(embedder, text, data, used) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO NOTHING";
    let mut statement = db.prepare_cached(sql)?;
    let mut added = 0;
    for (text, vector) in vectors {
        let text = text.to_hex();
        let (name, text) = (db.name("embedder", "", embedder), db.name("embedding_cache", embedder, &text));
        let bytes = db.seal(vector_bytes(vector), place(text.bytes()))?;
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX).saturating_add(ROW_BYTES);
        if statement.execute(params![name, text, bytes, used])? > 0 {
            added += size;
        }
    }
    drop(statement);
    let mut bytes = resize(db, added)?;
    while bytes > MAX_BYTES {
        bytes = resize(db, -drop_oldest(db)?)?;
    }
    Ok(())
}

/// Drops vectors of an embedder: those of these texts, or all.
pub(super) fn remove(db: &Db<'_>, embedder: &str, texts: Option<&[Digest]>) -> rusqlite::Result<()> {
    let name = db.name("embedder", "", embedder);
    let freed = match texts {
        None => {
            let sql = "SELECT coalesce(sum(length(data) + ?2), 0) FROM embedding_cache WHERE embedder = ?1";
            let freed = db.prepare_cached(sql)?.query_row(params![name, ROW_BYTES], |row| row.get(0))?;
            db.prepare_cached("DELETE FROM embedding_cache WHERE embedder = ?1")?.execute(params![name])?;
            freed
        }
        Some(texts) => {
            let sql = "DELETE FROM embedding_cache WHERE embedder = ?1 AND text = ?2 RETURNING length(data)";
            let mut statement = db.prepare_cached(sql)?;
            let mut freed = 0;
            for text in texts {
                let text = text.to_hex();
                let text = db.name("embedding_cache", embedder, &text);
                let bytes: Option<i64> =
                    statement.query_row(params![name, text], |row| row.get(0)).optional()?;
                freed += bytes.map_or(0, |bytes| bytes + ROW_BYTES);
            }
            freed
        }
    };
    resize(db, -freed).map(drop)
}

fn resize(db: &Db<'_>, by: i64) -> rusqlite::Result<i64> {
    db.prepare_cached("UPDATE cache_size SET bytes = max(0, bytes + ?1) RETURNING bytes")?
        .query_row([by], |row| row.get(0))
}

/// Drops the vectors that were not used for the longest time. Returns their bytes.
fn drop_oldest(db: &Db<'_>) -> rusqlite::Result<i64> {
    let sql = "DELETE FROM embedding_cache WHERE id IN
         (SELECT id FROM embedding_cache ORDER BY used, id LIMIT ?1) RETURNING length(data)";
    let mut statement = db.prepare_cached(sql)?;
    let sizes = statement.query_map([DROPPED], |row| row.get::<_, i64>(0))?;
    let mut bytes = 0;
    for size in sizes {
        bytes += size? + ROW_BYTES;
    }
    // An empty cache has no bytes, whatever was counted.
    Ok(if bytes == 0 { i64::MAX } else { bytes })
}
