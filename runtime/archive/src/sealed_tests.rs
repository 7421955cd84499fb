//! What an encrypted archive hides, and what it notices. `sqlite_tests.rs` tests that it works.

use super::tests::{KB, Place, TestKeys, by_meaning, by_words, code, collection, document, entry, keys};
use crate::{Key, KeySource as _};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{Document, EntryKind, EntrySource, SearchMode, SourceKind};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_ports::{Archive as _, Expected, NewCollection, NewEntry, SearchFilter, SearchQuery};
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// All bytes below a folder.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.flat_map(|file| std::fs::read(file).unwrap()).collect()
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|part| part.eq_ignore_ascii_case(needle))
}

/// Sixteen values of which none is zero.
fn vector(seed: f32) -> Vec<f32> {
    (0..16_u8).map(|at| (f32::from(at) * 1.7 + seed).sin()).collect()
}

/// Fills a collection with words that occur nowhere else, and returns them.
async fn fill(place: &Place) -> Vec<&'static str> {
    let archive = &place.archive;
    let settings = json!({"settingkey": "settingvalue"}).as_object().unwrap().clone();
    let new = NewCollection {
        name: "kb/collname".to_owned(),
        embedder: "embedderid".to_owned(),
        dimensions: 16,
        settings,
    };
    archive.create_collection(new).await.unwrap();
    let source = EntrySource {
        kind: SourceKind::Document,
        reference: "sourceref".to_owned(),
        digest: Some(Digest::of(b"sourcedigest")),
    };
    let passage = |text: &str| NewEntry {
        vector: Some(vector(0.3)),
        meta: json!({"headings": ["headingword"]}).as_object().unwrap().clone(),
        tags: vec!["tagword".to_owned()],
        user: Some("username".to_owned()),
        session: Some("sessionname".to_owned()),
        source: Some(source.clone()),
        ..NewEntry::new("keyname", EntryKind::Preference, text)
    };
    let name = Document {
        title: "titleword".to_owned(),
        origin: "/x/originword".to_owned(),
        tags: vec!["doctag".to_owned()],
        ..document("docname", b"docdigest", 1)
    };
    let document = ("kb/collname", name);
    archive.put_document(document.0, document.1, vec![passage("formerword")]).await.unwrap();
    let again = NewEntry { expected: Expected::Version(1), ..passage("zebracorn") };
    archive.put("kb/collname", vec![again]).await.unwrap();
    let replacing = NewEntry { supersedes: Some("keyname".to_owned()), ..passage("quagga") };
    let replacing = NewEntry { key: "otherkey".to_owned(), ..replacing };
    archive.put("kb/collname", vec![replacing]).await.unwrap();
    archive.cache_vectors("embedderid", vec![(Digest::of(b"cachedtext"), vector(0.9))]).await.unwrap();
    vec![
        "collname",
        "embedderid",
        "settingkey",
        "settingvalue",
        "sourceref",
        "headingword",
        "tagword",
        "username",
        "sessionname",
        "keyname",
        "titleword",
        "originword",
        "doctag",
        "docname",
        "formerword",
        "zebracorn",
        "quagga",
        "otherkey",
        "preference",
        "superseded",
    ]
}

/// The bytes of a vector, its code and the digests of [`fill`], in each form in which a plain archive has them.
fn hidden_values() -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    let mut stored = vector(0.3);
    crate::index::normalise(&mut stored);
    values.push(crate::index::Code::of(&stored).bytes()[..8].to_vec());
    for vector in [stored, vector(0.3), vector(0.9)] {
        values
            .extend(vector.chunks(2).map(|pair| pair.iter().flat_map(|value| value.to_le_bytes()).collect()));
    }
    for text in ["sourcedigest", "docdigest", "cachedtext", "zebracorn"] {
        values.push(Digest::of(text.as_bytes()).to_hex().into_bytes());
    }
    values
}

async fn find_all(place: &Place) -> Vec<String> {
    let query = SearchQuery { text: "quagga".to_owned(), mode: SearchMode::Lexical, ..by_words("") };
    let filter = SearchFilter {
        tags: vec!["tagword".to_owned()],
        user: Some("username".to_owned()),
        session: Some("sessionname".to_owned()),
        kinds: vec![EntryKind::Preference],
        ..SearchFilter::default()
    };
    let by_meaning = SearchQuery { vector: Some(vector(0.3)), mode: SearchMode::Semantic, ..query.clone() };
    let mut found = Vec::new();
    for query in [query, by_meaning] {
        let hits = place.other().search("kb/collname", SearchQuery { filter: filter.clone(), ..query }).await;
        found.extend(hits.unwrap().into_iter().map(|hit| hit.entry.key));
    }
    found
}

// SECURITY: archive-encrypted
#[tokio::test]
async fn no_word_and_no_vector_is_in_the_files() {
    // The plain archive proves that the search for bytes finds them.
    for place in [Place::plain(), Place::sealed()] {
        let is_plain = place.keys.is_none();
        let words = fill(&place).await;
        assert_eq!(find_all(&place).await, ["otherkey", "otherkey"]);
        let cached =
            place.other().cached_vectors("embedderid", vec![Digest::of(b"cachedtext")]).await.unwrap();
        assert_eq!(cached, [Some(vector(0.9))]);
        let bytes = bytes_below(place.data.path());
        assert!(place.data.path().join("archive.db-wal").exists());
        for word in words {
            assert_eq!(contains(&bytes, word.as_bytes()), is_plain, "{word}");
        }
        let found = hidden_values().iter().filter(|value| contains(&bytes, value)).count();
        assert_eq!(found > 20, is_plain, "{found} values");
        assert!(is_plain || found == 0, "{found} values");
        // Emptied into the file itself.
        drop(
            rusqlite::Connection::open(place.file())
                .unwrap()
                .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"),
        );
        let bytes = std::fs::read(place.file()).unwrap();
        assert_eq!(contains(&bytes, b"zebracorn"), is_plain);
        assert_eq!(find_all(&place).await, ["otherkey", "otherkey"]);
    }
}

/// Each change of the file, and what it must not deceive.
// SECURITY: archive-intact
#[tokio::test]
async fn swapped_and_changed_values_are_noticed() {
    // A statement that exchanges a column of two rows, which may be unique.
    let swap = |table: &str, column: &str, id: &str, one: i64, two: i64| {
        format!(
            "CREATE TEMP TABLE kept AS SELECT {id} AS id, {column} AS value FROM {table} WHERE {id} IN ({one}, {two});
             UPDATE {table} SET {column} = CAST({id} AS BLOB) WHERE {id} IN ({one}, {two});
             UPDATE {table} SET {column} = (SELECT value FROM kept WHERE id = {one}) WHERE {id} = {two};
             UPDATE {table} SET {column} = (SELECT value FROM kept WHERE id = {two}) WHERE {id} = {one};"
        )
    };
    let flip = |table: &str, column: &str| {
        format!(
            "UPDATE {table} SET {column} = CAST(substr({column}, 1, length({column}) - 1) || x'00' AS BLOB)"
        )
    };
    let rows = [
        ("the entries of a collection", swap("entry", "text", "id", 1, 2)),
        ("the entries of two collections", swap("entry", "text", "id", 1, 3)),
        ("the keys of two entries", swap("entry", "key", "id", 1, 2)),
        ("a changed entry", flip("entry", "text")),
        ("a changed version", "UPDATE entry SET version = 9".to_owned()),
        ("an entry of another document", "UPDATE entry SET document = 7".to_owned()),
        ("an empty entry", "UPDATE entry SET text = x''".to_owned()),
        ("the vectors of two entries", swap("vector", "data", "entry", 1, 2)),
        ("a changed vector", flip("vector", "data")),
        ("the codes of two entries", swap("code", "data", "entry", 1, 2)),
        (
            "a vector as a code",
            "UPDATE code SET data = (SELECT data FROM vector WHERE vector.entry = code.entry)".to_owned(),
        ),
        ("the names of two collections", swap("collection", "name", "id", 1, 2)),
        ("the settings of two collections", swap("collection", "settings", "id", 1, 2)),
        ("other dimensions", "UPDATE collection SET dimensions = 2".to_owned()),
        ("the documents of a collection", swap("document", "title", "id", 1, 2)),
        ("the history of two entries", swap("entry_history", "body", "entry", 1, 2)),
        ("two cached vectors", swap("embedding_cache", "data", "id", 1, 2)),
    ];
    for (what, sql) in rows {
        let place = Place::sealed();
        let archive = &place.archive;
        for name in [KB, "kb/other"] {
            archive.create_collection(collection(name)).await.unwrap();
        }
        for text in ["first", "second"] {
            let new = |key: &str, vector| NewEntry { key: key.to_owned(), ..entry(key, text, vector) };
            archive.put(KB, vec![new("a", [1.0, 0.0, 0.0]), new("b", [0.0, 1.0, 0.0])]).await.unwrap();
            archive.put("kb/other", vec![new("a", [1.0, 0.0, 0.0])]).await.unwrap();
        }
        for name in ["one", "two"] {
            archive.put_document(KB, document(name, b"1", 0), Vec::new()).await.unwrap();
        }
        let digests = [Digest::of(b"1"), Digest::of(b"2")];
        archive.cache_vectors("e", vec![(digests[0], vec![1.0]), (digests[1], vec![2.0])]).await.unwrap();
        let read_all = async || {
            let other = place.other();
            other.collections().await?;
            other.search(KB, by_words("second")).await?;
            other.search(KB, by_meaning([1.0, 0.0, 0.0])).await?;
            other.get(KB, "a").await?;
            other.list(KB, Default::default(), None, 9).await?;
            other.history(KB, "a").await?;
            other.documents(KB).await?;
            other.cached_vectors("e", digests.to_vec()).await
        };
        assert_eq!(read_all().await.unwrap(), [Some(vec![1.0]), Some(vec![2.0])], "{what}");
        let file = rusqlite::Connection::open(place.file()).unwrap();
        file.execute_batch(&sql).unwrap_or_else(|error| panic!("{what}: {error}"));
        let error = read_all().await.unwrap_err();
        assert_eq!(error.code, ArchiveCode::ArchiveUnreadable, "{what}: {error}");
        assert!(
            error.message.contains("an encrypted value was changed or moved; restore"),
            "{what}: {error}"
        );
    }
}

// SECURITY: archive-intact
#[tokio::test]
async fn a_missing_or_wrong_key_changes_nothing() {
    let place = Place::sealed();
    place.archive.create_collection(collection(KB)).await.unwrap();
    place.archive.put(KB, vec![entry("a", "first", [1.0, 0.0, 0.0])]).await.unwrap();
    let wrong = Arc::new(TestKeys(Mutex::new(Some(Key::new([8; 32])))));
    let missing = Arc::new(TestKeys::default());
    for (keys, words) in [
        (&wrong, "it is encrypted with another key; bring the key back, or move the file away"),
        (&missing, "it is encrypted, and its key is missing; bring the key back, or move the file away"),
    ] {
        let archive = place.with_keys(Some(keys.clone()));
        let read = archive.collections().await.unwrap_err();
        assert_eq!(read.code, ArchiveCode::ArchiveUnreadable);
        assert!(read.message.contains(words), "{read}");
        let written = archive.create_collection(collection("kb/new")).await.unwrap_err();
        assert_eq!(written.to_string(), read.to_string());
    }
    assert!(missing.read().unwrap().is_none(), "no key is made for a file that has one");
    assert_eq!(place.other().collections().await.unwrap().len(), 1);
    assert_eq!(keys(&place.other(), by_words("first")).await, ["a"]);
}

// SECURITY: archive-intact
#[tokio::test]
async fn a_file_stays_plain_or_encrypted() {
    let (plain, sealed) = (Place::plain(), Place::sealed());
    for (place, other_keys, words) in [
        (
            &plain,
            Some(Arc::new(TestKeys::default())),
            "it is not encrypted, and `encrypt` in `[archive]` is true",
        ),
        (&sealed, None, "it is encrypted; set `encrypt = true` in `[archive]`"),
    ] {
        place.archive.create_collection(collection(KB)).await.unwrap();
        let archive = place.with_keys(other_keys.clone());
        for error in [
            archive.collections().await.unwrap_err(),
            archive.create_collection(collection("kb/new")).await.unwrap_err(),
            archive.cache_vectors("e", vec![(Digest::ZERO, vec![1.0])]).await.unwrap_err(),
        ] {
            assert_eq!(error.code, ArchiveCode::ArchiveUnreadable);
            assert!(error.message.contains(words), "{error}");
        }
        assert!(other_keys.is_none_or(|keys| keys.read().unwrap().is_none()), "no key is made");
        assert_eq!(place.other().collections().await.unwrap().len(), 1);
    }
}

/// The text index is in memory, and must follow what another process has changed.
#[tokio::test]
async fn searches_by_words_see_other_processes() {
    let place = Place::sealed();
    let (one, two) = (&place.archive, place.other());
    one.create_collection(collection(KB)).await.unwrap();
    assert_eq!(keys(&two, by_words("first")).await, [""; 0]);
    one.put(KB, vec![entry("a", "first words", [1.0, 0.0, 0.0])]).await.unwrap();
    assert_eq!(keys(&two, by_words("first")).await, ["a"]);
    two.put(KB, vec![entry("a", "other words", [1.0, 0.0, 0.0])]).await.unwrap();
    two.put(KB, vec![entry("b", "first words", [1.0, 0.0, 0.0])]).await.unwrap();
    assert_eq!(keys(one, by_words("first")).await, ["b"]);
    assert_eq!(keys(&two, by_words("first")).await, ["b"]);
    one.remove(KB, vec!["b".to_owned()]).await.unwrap();
    assert_eq!(keys(&two, by_words("words")).await, ["a"]);
    // Searches by meaning alone leave the text index behind. More changes than are kept: it is built again.
    let many =
        |from: usize| (from..from + 6_000).map(|n| NewEntry::new(format!("n{n}"), EntryKind::Chunk, "x"));
    for from in [0, 6_000] {
        one.put(KB, many(from).collect()).await.unwrap();
        assert_eq!(keys(&two, by_meaning([1.0, 0.0, 0.0])).await, ["a"]);
    }
    one.put(KB, vec![entry("c", "last words", [1.0, 0.0, 0.0])]).await.unwrap();
    let mut found = keys(&two, by_words("words last")).await;
    found.sort();
    assert_eq!(found, ["a", "c"]);
}

/// Another connection has not been closed, as after a kill: the key and the file belong together from the first moment.
#[tokio::test]
async fn the_key_is_stored_before_the_file_needs_it() {
    let place = Place::sealed();
    assert_eq!(code(place.archive.search(KB, by_words("x")).await), ArchiveCode::CollectionUnknown);
    let keys = place.keys.clone().unwrap();
    assert!(keys.read().unwrap().is_none() && !place.file().exists(), "nothing is made by reading");
    // The process died after it made the key, and before it made the tables.
    let key = keys.create().unwrap();
    std::fs::write(place.file(), "").unwrap();
    place.archive.create_collection(collection(KB)).await.unwrap();
    assert_eq!(keys.read().unwrap().unwrap(), key);
    assert_eq!(place.other().collections().await.unwrap().len(), 1);
}
