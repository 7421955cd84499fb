//! The text index of a collection: a table of FTS5 that keeps words, not texts.

use super::word_counts::WordCounts;
use rusqlite::{Connection, OptionalExtension as _, params};

/// Words of a query that count.
const MAX_WORDS: usize = 32;

/// The most bytes of a word.
const MAX_WORD: usize = 64;

/// Entries that a search compares. Words that more entries have than that are left out, unless all words are such.
const MAX_COMPARED: i64 = 8_000;

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
    ))
}

pub(super) fn drop_index(connection: &Connection, collection: i64) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "DROP TABLE IF EXISTS words_{collection}; DROP TABLE IF EXISTS text_{collection};"
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

/// What is known of the words of a collection.
pub(super) struct KnownWords<'a> {
    pub(super) counts: &'a mut WordCounts,
    /// The last change of the archive that the connection sees.
    pub(super) seq: i64,
}

/// Finds the entries with the words of a query, the best first.
pub(super) fn search(
    connection: &Connection,
    collection: i64,
    text: &str,
    limit: usize,
    mut known: KnownWords<'_>,
    is_allowed: impl Fn(i64) -> bool,
) -> rusqlite::Result<Vec<TextHit>> {
    let words = rarest(connection, collection, words_of(text), &mut known)?;
    if words.is_empty() {
        return Ok(Vec::new());
    }
    // The words are quoted, so no word is an operator.
    let query = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
    let sql =
        format!("SELECT rowid, rank FROM text_{collection} WHERE text_{collection} MATCH ?1 ORDER BY rank");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([query])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, rank): (i64, f64) = (row.get(0)?, row.get(1)?);
        if is_allowed(id) {
            hits.push((id, -rank as f32));
            if hits.len() == limit {
                break;
            }
        }
    }
    Ok(hits)
}

/// The words that say the most: those of the fewest entries.
fn rarest(
    connection: &Connection,
    collection: i64,
    words: Vec<String>,
    known: &mut KnownWords<'_>,
) -> rusqlite::Result<Vec<String>> {
    let sql = format!("SELECT doc FROM words_{collection} WHERE term = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut counted = Vec::with_capacity(words.len());
    for word in words {
        let entries = known.counts.get(&word, known.seq, || {
            let entries: Option<i64> = statement.query_row([&word], |row| row.get(0)).optional()?;
            // A word with accents is stored without them, and not found here. It counts as a rare one.
            Ok(entries.unwrap_or(i64::from(!word.is_ascii())))
        })?;
        counted.push((entries, word));
    }
    counted.sort();
    let mut compared = 0;
    let is_chosen = |(entries, _): &(i64, String)| {
        let is_first = compared == 0;
        compared += entries;
        is_first || compared <= MAX_COMPARED
    };
    Ok(counted.into_iter().take_while(is_chosen).map(|(_, word)| word).collect())
}

/// The words of a query, each once, in small letters.
fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(|letter: char| !letter.is_alphanumeric()) {
        let word = word.to_lowercase();
        if !word.is_empty() && word.len() <= MAX_WORD && !words.contains(&word) {
            words.push(word);
        }
        if words.len() == MAX_WORDS {
            break;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{KnownWords, WordCounts, add, create, search, words_of};
    use pretty_assertions::assert_eq;
    use rusqlite::Connection;

    #[test]
    fn words_are_bounded() {
        assert_eq!(words_of("the Refund-policy, THE"), ["the", "refund", "policy"]);
        assert_eq!(words_of(r#"a" OR NEAR(x) * ^"#), ["a", "or", "near", "x"]);
        assert_eq!(words_of("¿…? \u{0}"), [] as [&str; 0]);
        let many: Vec<String> = (0..1_000).map(|number| format!("w{number}")).collect();
        assert_eq!(words_of(&many.join(" ")).len(), 32);
        assert_eq!(words_of(&"x".repeat(65)), [] as [&str; 0]);
    }

    #[test]
    fn frequent_words_are_left_out() {
        let connection = Connection::open_in_memory().unwrap();
        create(&connection, 1).unwrap();
        for id in 1..=9_000 {
            let text = if id % 3_000 == 0 { "The Café is open" } else { "The rest" };
            add(&connection, 1, id, text).unwrap();
        }
        let ids = |text: &str| -> Vec<i64> {
            let known = KnownWords { counts: &mut WordCounts::default(), seq: 0 };
            let hits = search(&connection, 1, text, 20_000, known, |_| true).unwrap();
            hits.into_iter().map(|(id, _)| id).collect()
        };
        assert_eq!(ids("the café"), [3_000, 6_000, 9_000], "with accents");
        assert_eq!(ids("the CAFE"), [3_000, 6_000, 9_000]);
        assert_eq!(ids("open the nothing"), [3_000, 6_000, 9_000]);
        assert_eq!(ids("the").len(), 9_000, "there is no other word");
        assert_eq!(ids("nothing"), [] as [i64; 0]);
    }
}
