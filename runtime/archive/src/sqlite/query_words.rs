//! The words of a query, as the text index has them.

use super::lock;
use super::text_index;
use rusqlite::Connection;
use std::sync::Mutex;

/// Words of a query that count.
const MAX_WORDS: usize = 32;

/// The most bytes of a word.
const MAX_WORD: usize = 64;

/// Splits queries. A query with other letters than ASCII is put into an empty text index in memory, because only FTS5
/// knows which letters it keeps, and without which accents.
#[derive(Default)]
pub(super) struct QueryWords(Mutex<Option<Connection>>);

impl QueryWords {
    /// The words of a query, each once, in the order of their first places.
    pub(super) fn split(&self, text: &str) -> rusqlite::Result<Vec<String>> {
        if text.is_ascii() {
            let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
            return Ok(choose(words.map(str::to_ascii_lowercase)));
        }
        let mut kept = lock(&self.0);
        let index = match &mut *kept {
            Some(index) => index,
            none => none.insert(empty_index()?),
        };
        // It is not committed, so the index stays empty.
        let transaction = index.transaction()?;
        text_index::add(&transaction, 0, 1, text)?;
        let mut statement = transaction.prepare_cached("SELECT term FROM occurrences_0 ORDER BY offset")?;
        let words = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        Ok(choose(words.into_iter()))
    }
}

fn empty_index() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch("PRAGMA temp_store = MEMORY;")?;
    text_index::create_in_memory(&connection, 0)?;
    Ok(connection)
}

fn choose(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut chosen: Vec<String> = Vec::new();
    for word in words {
        if !word.is_empty() && word.len() <= MAX_WORD && !chosen.contains(&word) {
            chosen.push(word);
        }
        if chosen.len() == MAX_WORDS {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::QueryWords;
    use pretty_assertions::assert_eq;

    #[test]
    fn words_are_bounded() {
        let words = |text: &str| QueryWords::default().split(text).unwrap();
        assert_eq!(words("the Refund-policy, THE"), ["the", "refund", "policy"]);
        assert_eq!(words(r#"a" OR NEAR(x) * ^ _y"#), ["a", "or", "near", "x", "y"]);
        assert_eq!(words("¿…? \u{0}"), [] as [&str; 0]);
        for more in ["", " ÿ"] {
            let many: Vec<String> = (0..1_000).map(|number| format!("w{number}")).collect();
            let many = words(&(many.join(" ") + more));
            assert_eq!((many.len(), many[0].as_str(), many[31].as_str()), (32, "w0", "w31"));
            assert_eq!(words(&("x".repeat(65) + more.trim_start())), [] as [&str; 0]);
        }
    }

    #[test]
    fn words_are_those_of_the_index() {
        let words = QueryWords::default();
        let cases: &[(&str, &[&str])] = &[
            ("Für das CAFÉ, für Ärzte", &["fur", "das", "cafe", "arzte"]),
            ("Straße nai\u{308}ve", &["straße", "naive"]),
            ("что такое Насос", &["что", "такое", "насос"]),
            ("plain words", &["plain", "words"]),
            ("é", &["e"]),
        ];
        // Nothing of one query is in the next.
        for (text, expected) in cases {
            assert_eq!(words.split(text).unwrap(), *expected, "{text}");
        }
    }
}
