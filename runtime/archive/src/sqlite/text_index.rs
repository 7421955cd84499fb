//! The text index of a collection: a table of FTS5 that keeps words, not texts.

use super::word_counts::WordCounts;
use crate::index::{Bitmap, CollectionIndex};
use rusqlite::{Connection, OptionalExtension as _, params};

/// Entries that a search compares. Words that more entries have than that are left out, unless all words are such.
const MAX_COMPARED: i64 = 8_000;

/// Occurrences of words that a search counts. In the entries after these, a word counts once.
const MAX_OCCURRENCES: usize = 40_000;

/// Entries that a search reads for a word that counts once. If more entries have it, the oldest of them are found.
const MAX_COUNTED_ONCE: usize = 100_000;

/// Makes the index of a new collection.
pub(super) fn create(connection: &Connection, collection: i64) -> rusqlite::Result<()> {
    create_with(connection, collection, "content=''")?;
    // A removed text leaves no word behind.
    connection.execute_batch(&format!(
        "INSERT INTO text_{collection}(text_{collection}, rank) VALUES ('secure-delete', 1);"
    ))
}

/// Makes an index that can remove a text by its id alone.
pub(super) fn create_in_memory(connection: &Connection, collection: i64) -> rusqlite::Result<()> {
    create_with(connection, collection, "content='', contentless_delete=1")
}

fn create_with(connection: &Connection, collection: i64, options: &str) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE VIRTUAL TABLE text_{collection} USING fts5(
             text, {options}, tokenize=\"unicode61 remove_diacritics 2\");
         CREATE VIRTUAL TABLE words_{collection} USING fts5vocab(text_{collection}, row);"
    ))?;
    create_occurrences(connection, collection)
}

/// Makes the table of each place in a text where a word is. It may exist: an older program does not drop it with its
/// collection.
fn create_occurrences(connection: &Connection, collection: i64) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE VIRTUAL TABLE IF NOT EXISTS occurrences_{collection}
             USING fts5vocab(text_{collection}, instance);"
    ))
}

/// The collections without that table. A process with an older program makes such collections while it has the file
/// open.
pub(super) fn without_occurrences(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT id FROM collection WHERE 'occurrences_' || id NOT IN (SELECT name FROM sqlite_schema)";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Makes the table for all collections without it.
pub(super) fn add_occurrences(connection: &Connection) -> rusqlite::Result<()> {
    without_occurrences(connection)?.into_iter().try_for_each(|id| create_occurrences(connection, id))
}

pub(super) fn drop_index(connection: &Connection, collection: i64) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "DROP TABLE IF EXISTS occurrences_{collection}; DROP TABLE IF EXISTS words_{collection};
         DROP TABLE IF EXISTS text_{collection};"
    ))
}

/// Makes the index of a collection again, of the entries that it has now. No byte of another text is left in it.
pub(super) fn rebuild(connection: &Connection, collection: i64) -> rusqlite::Result<()> {
    drop_index(connection, collection)?;
    create(connection, collection)?;
    let sql = format!(
        "INSERT INTO text_{collection}(rowid, text) SELECT id, text FROM entry WHERE collection = ?1 ORDER BY id"
    );
    connection.prepare(&sql)?.execute([collection]).map(drop)
}

pub(super) fn add(connection: &Connection, collection: i64, id: i64, text: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(&format!("INSERT INTO text_{collection}(rowid, text) VALUES (?1, ?2)"))?
        .execute(params![id, text])?;
    Ok(())
}

/// Removes a text. The index needs the text itself, because it has only its words.
pub(super) fn remove(connection: &Connection, collection: i64, id: i64, text: &str) -> rusqlite::Result<()> {
    let sql =
        format!("INSERT INTO text_{collection}(text_{collection}, rowid, text) VALUES ('delete', ?1, ?2)");
    connection.prepare_cached(&sql)?.execute(params![id, text])?;
    Ok(())
}

/// Removes a text of an index in memory.
pub(super) fn remove_by_id(connection: &Connection, collection: i64, id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached(&format!("DELETE FROM text_{collection} WHERE rowid = ?1"))?.execute([id])?;
    Ok(())
}

/// An entry that was found, and how well its words fit; more is better.
pub(super) type TextHit = (i64, f32);

/// The entries of a collection, and which of them a search may find.
#[derive(Clone, Copy)]
pub(super) struct AllowedEntries<'a> {
    pub(super) index: &'a CollectionIndex,
    pub(super) allowed: &'a Bitmap,
}

/// Finds the entries with some of these words, the best first; of equal ones, the older.
///
/// FTS5 could give each entry its rank, but it would look up the length of each text in the file.
pub(super) fn search(
    connection: &Connection,
    collection: i64,
    words: Vec<String>,
    limit: usize,
    counts: &mut WordCounts,
    AllowedEntries { index, allowed }: AllowedEntries<'_>,
) -> rusqlite::Result<Vec<TextHit>> {
    let mut hits: Vec<TextHit> = Vec::new();
    let mut left = MAX_OCCURRENCES;
    for (count, word) in rarest(connection, collection, words, counts, index.seq)? {
        let is_cut = count > MAX_COUNTED_ONCE;
        // A filter may allow only new entries.
        let first = if is_cut { index.first_allowed(allowed) } else { None };
        let first = first.unwrap_or(i64::MIN);
        let entries = entries_with(connection, collection, &word, first, &mut left)?;
        // The number of entries that were read is exact, unless some were not read.
        let weight = index.word_weight(if is_cut { count } else { entries.len() });
        let hit = |(id, times)| index.fit(allowed, id, times).map(|fit| (id, weight * fit));
        hits.extend(entries.into_iter().filter_map(hit));
    }
    hits.sort_by_key(|(id, _)| *id);
    hits.dedup_by(|next, first| {
        let is_same = next.0 == first.0;
        first.1 += if is_same { next.1 } else { 0.0 };
        is_same
    });
    let order = |left: &TextHit, right: &TextHit| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0));
    if limit < hits.len() {
        hits.select_nth_unstable_by(limit, order);
        hits.truncate(limit);
    }
    hits.sort_unstable_by(order);
    Ok(hits)
}

/// The entries with a word, in the order of their ids, and how often each has it. `left` is how many occurrences are
/// still counted. After them, entries before `first` are left out.
fn entries_with(
    connection: &Connection,
    collection: i64,
    word: &str,
    first: i64,
    left: &mut usize,
) -> rusqlite::Result<Vec<(i64, u32)>> {
    let mut entries: Vec<(i64, u32)> = Vec::new();
    let sql = format!("SELECT doc FROM occurrences_{collection} WHERE term = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([word])?;
    while *left > 0 {
        let Some(row) = rows.next()? else { return Ok(entries) };
        let id = row.get(0)?;
        match entries.last_mut() {
            Some((last, times)) if *last == id => *times += 1,
            _ => entries.push((id, 1)),
        }
        *left -= 1;
    }
    let next = entries.last().map_or(first, |(id, _)| first.max(id.saturating_add(1)));
    let sql = format!(
        "SELECT rowid FROM text_{collection} WHERE text_{collection} MATCH ?1 AND rowid >= ?2 ORDER BY rowid
         LIMIT {MAX_COUNTED_ONCE}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    // The word is quoted, so it is no operator.
    let mut rows = statement.query(params![format!("\"{word}\""), next])?;
    while let Some(row) = rows.next()? {
        entries.push((row.get(0)?, 1));
    }
    Ok(entries)
}

/// The words that say the most: those of the fewest entries, and about how many entries have each. `seq` is the last
/// change of the archive that the connection sees.
fn rarest(
    connection: &Connection,
    collection: i64,
    words: Vec<String>,
    counts: &mut WordCounts,
    seq: i64,
) -> rusqlite::Result<Vec<(usize, String)>> {
    let sql = format!("SELECT doc FROM words_{collection} WHERE term = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut counted = Vec::with_capacity(words.len());
    for word in words {
        let count = || Ok(statement.query_row([&word], |row| row.get(0)).optional()?.unwrap_or(0));
        let entries = counts.get(&word, seq, count)?;
        if entries > 0 {
            counted.push((entries, word));
        }
    }
    counted.sort();
    let mut compared = 0;
    let is_chosen = |(entries, _): &(i64, String)| {
        let is_first = compared == 0;
        compared += entries;
        is_first || compared <= MAX_COMPARED
    };
    let chosen = counted.into_iter().take_while(is_chosen);
    Ok(chosen.map(|(entries, word)| (usize::try_from(entries).unwrap_or(usize::MAX), word)).collect())
}

#[cfg(test)]
#[path = "../text_index_tests.rs"]
mod tests;
