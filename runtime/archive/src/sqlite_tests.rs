use super::SqliteArchive;
use crate::{Key, KeySource};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{
    Document, EntryKind, EntrySource, EntryState, MAX_ENTRY_META, MAX_ENTRY_TEXT, SearchMode, SourceKind,
    Trust,
};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_contract::id::RunId;
use redflow_ports::{
    Archive, ArchiveError, Clock, Expected, NewCollection, NewEntry, SearchFilter, SearchQuery, VectorScores,
};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(super) const KB: &str = "kb/test";

struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
    fn run_id(&self) -> RunId {
        "run".into()
    }
    fn message_id(&self) -> String {
        String::new()
    }
}

pub(super) struct Place {
    pub(super) data: tempfile::TempDir,
    clock: Arc<TestClock>,
    pub(super) archive: SqliteArchive,
    pub(super) keys: Option<Arc<TestKeys>>,
}

impl Place {
    fn new(keys: Option<Arc<TestKeys>>) -> Self {
        let (data, clock) = (tempfile::tempdir().unwrap(), Arc::new(TestClock(AtomicU64::new(1_000_000))));
        let archive = open(data.path(), &clock, keys.clone());
        Self { data, clock, archive, keys }
    }

    /// With an archive that is not encrypted.
    pub(super) fn plain() -> Self {
        Self::new(None)
    }

    /// With an encrypted archive.
    pub(super) fn sealed() -> Self {
        Self::new(Some(Arc::default()))
    }

    /// Another process that uses the same file.
    pub(super) fn other(&self) -> SqliteArchive {
        self.with_keys(self.keys.clone())
    }

    /// Another process that uses the same file with these keys.
    pub(super) fn with_keys(&self, keys: Option<Arc<TestKeys>>) -> SqliteArchive {
        open(self.data.path(), &self.clock, keys)
    }

    pub(super) fn file(&self) -> std::path::PathBuf {
        self.data.path().join("archive.db")
    }
}

/// The archive of a directory, without a key.
pub(super) fn plain_archive(data: &Path) -> SqliteArchive {
    open(data, &Arc::new(TestClock(AtomicU64::new(1_000_000))), None)
}

fn open(data: &Path, clock: &Arc<TestClock>, keys: Option<Arc<TestKeys>>) -> SqliteArchive {
    match keys {
        Some(keys) => SqliteArchive::sealed(data, clock.clone(), keys),
        None => SqliteArchive::new(data, clock.clone()),
    }
}

/// A key that is made when it is needed.
#[derive(Default)]
pub(super) struct TestKeys(pub(super) Mutex<Option<Key>>);

impl KeySource for TestKeys {
    fn read(&self) -> Result<Option<Key>, ArchiveError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn create(&self) -> Result<Key, ArchiveError> {
        Ok(self.0.lock().unwrap().insert(Key::new([7; 32])).clone())
    }

    fn remedy(&self) -> String {
        "bring the key back".to_owned()
    }
}

/// Makes two tests of each function: with a plain archive, and with an encrypted one.
macro_rules! with_both {
    ($($name:ident)*) => {
        mod plain {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name(super::Place::plain()).await;
            })*
        }
        mod sealed {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name(super::Place::sealed()).await;
            })*
        }
    };
}

with_both! {
    an_unused_archive_has_no_file
    what_is_stored_is_read
    versions_are_compared_and_kept
    a_batch_is_stored_whole_or_not_at_all
    collections_keep_their_embedder
    searches_say_why
    a_replaced_entry_ends
    two_processes_see_each_other
    a_hundred_writers_lose_nothing
    a_collection_takes_the_place_of_another
    a_document_is_replaced_whole
    what_is_removed_leaves_no_byte
    expired_entries_are_removed
    used_entries_end_later
    vectors_are_cached
    what_does_not_fit_is_not_stored
    a_file_of_somebody_else_is_refused
    an_index_without_a_log_of_changes_is_built_again
    a_collection_of_an_older_process_is_searched
}

pub(super) fn collection(name: &str) -> NewCollection {
    let (name, embedder) = (name.to_owned(), "three".to_owned());
    NewCollection { name, embedder, dimensions: 3, settings: serde_json::Map::new() }
}

pub(super) fn entry(key: &str, text: &str, vector: [f32; 3]) -> NewEntry {
    NewEntry { vector: Some(vector.to_vec()), ..NewEntry::new(key, EntryKind::Fact, text) }
}

pub(super) fn by_words(text: &str) -> SearchQuery {
    SearchQuery {
        text: text.to_owned(),
        vector: None,
        mode: SearchMode::Lexical,
        filter: SearchFilter::default(),
        min_score: 0.0,
        vector_scores: VectorScores::default(),
        limit: 10,
    }
}

pub(super) fn by_meaning(vector: [f32; 3]) -> SearchQuery {
    SearchQuery { vector: Some(vector.to_vec()), mode: SearchMode::Semantic, ..by_words("") }
}

pub(super) async fn keys(archive: &SqliteArchive, query: SearchQuery) -> Vec<String> {
    let hits = archive.search(KB, query).await.unwrap();
    hits.into_iter().map(|hit| hit.entry.key).collect()
}

pub(super) fn code<T: std::fmt::Debug>(result: Result<T, ArchiveError>) -> ArchiveCode {
    result.unwrap_err().code
}

/// Whether any file of the archive has these bytes.
pub(super) fn has_bytes(data: &Path, needle: &str) -> bool {
    let files = std::fs::read_dir(data).unwrap().map(|file| file.unwrap().path());
    let mut texts = files.map(|file| std::fs::read(file).unwrap());
    // The search of the standard library is fast in a debug build too.
    let needle = needle.to_ascii_lowercase();
    texts.any(|text| String::from_utf8_lossy(&text.to_ascii_lowercase()).contains(&needle))
}

async fn an_unused_archive_has_no_file(place: Place) {
    let archive = &place.archive;
    assert_eq!(archive.collections().await.unwrap(), []);
    assert_eq!(archive.collection(KB).await.unwrap(), None);
    assert!(!archive.remove_collection(KB).await.unwrap());
    assert_eq!(archive.remove_expired().await.unwrap(), 0);
    assert_eq!(archive.cached_vectors("e", vec![Digest::ZERO]).await.unwrap(), [None]);
    archive.drop_cached_vectors("e", None).await.unwrap();
    assert_eq!(code(archive.search(KB, by_words("x")).await), ArchiveCode::CollectionUnknown);
    assert_eq!(code(archive.put(KB, Vec::new()).await), ArchiveCode::CollectionUnknown);
    assert_eq!(code(archive.remove(KB, Vec::new()).await), ArchiveCode::CollectionUnknown);
    assert_eq!(code(archive.remove_document(KB, "d").await), ArchiveCode::CollectionUnknown);
    assert!(!place.file().exists());
}

async fn what_is_stored_is_read(place: Place) {
    place.archive.create_collection(collection(KB)).await.unwrap();
    let source =
        EntrySource { kind: SourceKind::Document, reference: "a.md".to_owned(), digest: Some(Digest::ZERO) };
    let new = NewEntry {
        meta: json!({"page": 3}).as_object().unwrap().clone(),
        tags: vec!["red".to_owned()],
        user: Some("ada".to_owned()),
        session: Some("s".to_owned()),
        state: EntryState::Pinned,
        valid_from: Some(5),
        valid_to: Some(9_000_000),
        expires_at: Some(8_000_000),
        trust: Trust::Operator,
        importance: 0.5,
        source: Some(source),
        ..entry("k", "Hello", [1.0, 0.0, 0.0])
    };
    assert_eq!(place.archive.put(KB, vec![new.clone()]).await.unwrap(), [1]);
    let stored = place.other().get(KB, "k").await.unwrap().unwrap();
    assert_eq!((stored.version, stored.text.as_str(), stored.created_at), (1, "Hello", 1_000_000));
    assert_eq!(
        (stored.meta, stored.tags, stored.user, stored.session),
        (new.meta, new.tags, new.user, new.session)
    );
    assert_eq!((stored.state, stored.valid_from, stored.valid_to), (new.state, 5, new.valid_to));
    assert_eq!((stored.expires_at, stored.trust, stored.importance), (new.expires_at, new.trust, 0.5));
    assert_eq!((stored.source, stored.supersedes), (new.source, None));
    assert_eq!(stored.content_hash, Digest::of(b"Hello"));
    assert_eq!(place.archive.get(KB, "other").await.unwrap(), None);
    let known = place.archive.collections().await.unwrap();
    assert_eq!((known.len(), known[0].entries, known[0].documents), (1, 1, 0));
}

async fn versions_are_compared_and_kept(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let put = |text: &str, expected| {
        let new = NewEntry { expected, ..entry("k", text, [1.0, 0.0, 0.0]) };
        archive.put(KB, vec![new])
    };
    assert_eq!(code(put("one", Expected::Version(1)).await), ArchiveCode::MemoryConflict);
    assert_eq!(put("one", Expected::Absent).await.unwrap(), [1]);
    assert_eq!(put("one", Expected::Absent).await.unwrap(), [1], "the same again changes nothing");
    let conflict = put("two", Expected::Absent).await.unwrap_err();
    assert_eq!(conflict.code, ArchiveCode::MemoryConflict);
    assert!(conflict.message.contains("has version 1 now"), "{conflict}");
    assert_eq!(put("two", Expected::Version(1)).await.unwrap(), [2]);
    assert_eq!(code(put("three", Expected::Version(1)).await), ArchiveCode::MemoryConflict);
    for _ in 0..25 {
        put("more", Expected::Any).await.unwrap();
    }
    let history = archive.history(KB, "k").await.unwrap();
    let versions: Vec<u32> = history.iter().map(|entry| entry.version).collect();
    assert_eq!(versions, (7..=26).rev().collect::<Vec<_>>());
    assert!(keys(archive, by_words("two")).await.is_empty(), "only the current text is found");
    assert_eq!(keys(archive, by_words("more")).await, ["k"]);
}

async fn a_batch_is_stored_whole_or_not_at_all(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let good = || entry("good", "text", [1.0, 0.0, 0.0]);
    let long = "x".repeat(MAX_ENTRY_TEXT + 1);
    let meta = json!({"x": "y".repeat(MAX_ENTRY_META)}).as_object().unwrap().clone();
    let wrong = [
        (entry("", "x", [1.0; 3]), ArchiveCode::EntryInvalid),
        (entry(&"k".repeat(1_025), "x", [1.0; 3]), ArchiveCode::EntryInvalid),
        (entry("k", &long, [1.0; 3]), ArchiveCode::EntryInvalid),
        (NewEntry { meta, ..good() }, ArchiveCode::EntryInvalid),
        (NewEntry { tags: vec!["t".to_owned(); 17], ..good() }, ArchiveCode::EntryInvalid),
        (NewEntry { tags: vec!["t".repeat(65)], ..good() }, ArchiveCode::EntryInvalid),
        (NewEntry { tags: vec![String::new()], ..good() }, ArchiveCode::EntryInvalid),
        (NewEntry { importance: f32::NAN, ..good() }, ArchiveCode::EntryInvalid),
        (NewEntry { vector: Some(vec![1.0; 4]), ..good() }, ArchiveCode::EmbedderMismatch),
        (NewEntry { expected: Expected::Version(3), ..good() }, ArchiveCode::MemoryConflict),
    ];
    for (wrong, expected) in wrong {
        let shown = format!("{:.80}", wrong.key);
        assert_eq!(code(archive.put(KB, vec![good(), wrong]).await), expected, "{shown}");
        assert_eq!(archive.list(KB, Default::default(), None, 10).await.unwrap(), []);
    }
    assert_eq!(archive.collection(KB).await.unwrap().unwrap().entries, 0);
    archive.put(KB, vec![good(), entry("a", "x", [0.0; 3])]).await.unwrap();
    let listed = archive.list(KB, Default::default(), Some("a"), 10).await.unwrap();
    assert_eq!(listed.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["good"]);
}

async fn collections_keep_their_embedder(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    archive.create_collection(collection(KB)).await.unwrap();
    let other = NewCollection { embedder: "four".to_owned(), ..collection(KB) };
    assert_eq!(code(archive.create_collection(other).await), ArchiveCode::EmbedderMismatch);
    let wider = NewCollection { dimensions: 4, ..collection(KB) };
    assert_eq!(code(archive.create_collection(wider).await), ArchiveCode::EmbedderMismatch);
    for name in ["", "kb", "kb/", "kb/a b", "/a", "kb/a/../b c", "kb/\u{0}"] {
        let wrong = collection(name);
        assert_eq!(code(archive.create_collection(wrong).await), ArchiveCode::EntryInvalid, "{name}");
    }
    for dimensions in [0, 4_097] {
        let wrong = NewCollection { dimensions, ..collection("kb/x") };
        assert_eq!(code(archive.create_collection(wrong).await), ArchiveCode::EntryInvalid);
    }
    let query = SearchQuery { vector: Some(vec![1.0; 4]), ..by_meaning([0.0; 3]) };
    assert_eq!(code(archive.search(KB, query).await), ArchiveCode::EmbedderMismatch);
}

async fn searches_say_why(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let entries = vec![
        entry("refund", "A refund takes five days.", [1.0, 0.0, 0.0]),
        entry("money", "You get your money back.", [0.9, 0.1, 0.0]),
        entry("weather", "It rains.", [0.0, 0.0, 1.0]),
        NewEntry { vector: None, ..entry("words", "The refund policy, in words: refund.", [0.0; 3]) },
    ];
    archive.put(KB, entries).await.unwrap();
    place.clock.0.fetch_add(500, Ordering::SeqCst);

    let hits = archive.search(KB, by_meaning([2.0, 0.0, 0.0])).await.unwrap();
    assert_eq!(
        hits.iter().map(|hit| hit.entry.key.as_str()).collect::<Vec<_>>(),
        ["refund", "money", "weather"]
    );
    assert_eq!((hits[0].score, hits[0].reason.cosine, hits[0].reason.age_ms), (1.0, Some(1.0), 500));
    assert_eq!((hits[0].reason.vector_rank, hits[0].reason.text_rank), (Some(1), None));
    assert_eq!(hits[2].score, 0.5, "a right angle");
    let near = SearchQuery { min_score: 0.9, ..by_meaning([1.0, 0.0, 0.0]) };
    assert_eq!(keys(archive, near).await, ["refund", "money"]);

    assert_eq!(keys(archive, by_words("REFUND policy?")).await, ["words", "refund"]);
    assert!(keys(archive, by_words("\" OR NEAR( *")).await.is_empty());

    let both =
        SearchQuery { mode: SearchMode::Hybrid, text: "refund".to_owned(), ..by_meaning([1.0, 0.0, 0.0]) };
    let hits = archive.search(KB, both.clone()).await.unwrap();
    assert_eq!(hits[0].entry.key, "refund");
    let words = hits.iter().find(|hit| hit.entry.key == "words").unwrap();
    assert_eq!(
        (words.reason.vector_rank, words.reason.text_rank, words.reason.cosine),
        (None, Some(1), None)
    );
    assert!(words.score > 0.0 && words.score < 1.0);
    // An entry without a vector has no such least score.
    let scored = |all: f32, without_words: f32| SearchQuery {
        vector_scores: VectorScores { all, without_words },
        ..both.clone()
    };
    for (query, expected) in [
        (scored(0.9, 0.0), &["refund", "words", "money"][..]),
        (scored(0.0, 0.9999), &["refund", "words"]),
        (scored(0.0, 0.0), &["refund", "words", "money", "weather"]),
    ] {
        let (scores, mut found) = (query.vector_scores, keys(archive, query).await);
        let mut expected = expected.to_vec();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{scores:?}");
    }
    assert_eq!(keys(archive, SearchQuery { limit: 1, ..both.clone() }).await, ["refund"]);
    assert!(keys(archive, SearchQuery { limit: 0, ..both }).await.is_empty());
}

async fn a_replaced_entry_ends(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    archive.put(KB, vec![entry("old", "The pump is red", [1.0, 0.0, 0.0])]).await.unwrap();
    place.clock.0.store(2_000_000, Ordering::SeqCst);
    let new =
        NewEntry { supersedes: Some("old".to_owned()), ..entry("new", "The pump is blue", [1.0, 0.0, 0.0]) };
    archive.put(KB, vec![new]).await.unwrap();
    assert_eq!(keys(archive, by_words("pump")).await, ["new"]);
    let filter = SearchFilter { as_of: Some(1_500_000), ..SearchFilter::default() };
    assert_eq!(keys(archive, SearchQuery { filter, ..by_words("pump") }).await, ["old"]);
    let old = archive.get(KB, "old").await.unwrap().unwrap();
    assert_eq!((old.state, old.valid_to), (EntryState::Superseded, Some(2_000_000)));
}

async fn two_processes_see_each_other(place: Place) {
    let (one, two) = (&place.archive, place.other());
    one.create_collection(collection(KB)).await.unwrap();
    one.put(KB, vec![entry("a", "first", [1.0, 0.0, 0.0])]).await.unwrap();
    assert_eq!(keys(&two, by_meaning([1.0, 0.0, 0.0])).await, ["a"]);
    two.put(KB, vec![entry("b", "second", [1.0, 0.0, 0.0])]).await.unwrap();
    assert_eq!(keys(one, by_meaning([1.0, 0.0, 0.0])).await.len(), 2);
    one.remove(KB, vec!["a".to_owned()]).await.unwrap();
    assert_eq!(keys(&two, by_meaning([1.0, 0.0, 0.0])).await, ["b"]);
    // More changes than are kept: the index is built again.
    let many = |from: usize| (from..from + 6_000).map(|n| entry(&format!("n{n}"), "many", [0.0, 1.0, 0.0]));
    one.put(KB, many(0).collect()).await.unwrap();
    one.put(KB, many(6_000).collect()).await.unwrap();
    let query = SearchQuery { limit: 200, ..by_meaning([0.0, 1.0, 0.0]) };
    assert_eq!(keys(&two, query).await.len(), 200);
    two.remove_collection(KB).await.unwrap();
    assert_eq!(code(one.search(KB, by_words("many")).await), ArchiveCode::CollectionUnknown);
    one.create_collection(collection(KB)).await.unwrap();
    assert!(
        keys(one, by_meaning([1.0, 0.0, 0.0])).await.is_empty(),
        "a new collection of the same name is empty"
    );
}

async fn a_hundred_writers_lose_nothing(place: Place) {
    place.archive.create_collection(collection(KB)).await.unwrap();
    place.archive.put(KB, vec![entry("n", "0", [1.0, 0.0, 0.0])]).await.unwrap();
    let archives: Vec<SqliteArchive> = (0..4).map(|_| place.other()).collect();
    let count = |archive: SqliteArchive| async move {
        loop {
            let old = archive.get(KB, "n").await.unwrap().unwrap();
            let next = (old.text.parse::<u32>().unwrap() + 1).to_string();
            let new =
                NewEntry { expected: Expected::Version(old.version), ..entry("n", &next, [1.0, 0.0, 0.0]) };
            match archive.put(KB, vec![new]).await {
                Ok(_) => return,
                Err(error) => assert_eq!(error.code, ArchiveCode::MemoryConflict),
            }
        }
    };
    let writers: Vec<_> = (0..100).map(|n| tokio::spawn(count(archives[n % 4].clone()))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let last = place.archive.get(KB, "n").await.unwrap().unwrap();
    assert_eq!((last.text.as_str(), last.version), ("100", 101));
}

async fn a_collection_takes_the_place_of_another(place: Place) {
    let archive = &place.archive;
    assert!(!archive.rename_collection("kb-new/test", KB).await.unwrap());
    archive.create_collection(collection(KB)).await.unwrap();
    archive.put(KB, vec![entry("old", "old words", [1.0, 0.0, 0.0])]).await.unwrap();
    assert_eq!(keys(archive, by_words("words")).await, ["old"]);
    let new = NewCollection { dimensions: 2, embedder: "two".to_owned(), ..collection("kb-new/test") };
    archive.create_collection(new).await.unwrap();
    let entry =
        NewEntry { vector: Some(vec![1.0, 0.0]), ..NewEntry::new("new", EntryKind::Chunk, "new words") };
    archive.put("kb-new/test", vec![entry]).await.unwrap();
    let same = Document { added_at: 77, ..document("a", b"1", 0) };
    archive.put_document(KB, same.clone(), Vec::new()).await.unwrap();
    assert!(!archive.rename_collection("kb-new/test", KB).await.unwrap(), "a document is missing");
    archive.put_document("kb-new/test", document("a", b"2", 0), Vec::new()).await.unwrap();
    assert!(!archive.rename_collection("kb-new/test", KB).await.unwrap(), "a document is older");
    archive.put_document("kb-new/test", document("a", b"1", 0), Vec::new()).await.unwrap();
    assert!(!archive.rename_collection("kb-new/test", KB).await.unwrap(), "it was added at another time");
    archive.put_document("kb-new/test", same, Vec::new()).await.unwrap();
    archive.put_document("kb-new/test", document("b", b"1", 0), Vec::new()).await.unwrap();
    assert!(!archive.rename_collection("kb-new/test", KB).await.unwrap(), "a document was removed");
    archive.remove_document("kb-new/test", "b").await.unwrap();
    assert!(archive.rename_collection("kb-new/test", KB).await.unwrap());
    assert_eq!(archive.documents(KB).await.unwrap()[0].added_at, 77, "a copy keeps its time");
    assert_eq!(keys(archive, by_words("words")).await, ["new"]);
    let all = archive.collections().await.unwrap();
    assert_eq!((all.len(), all[0].embedder.as_str(), all[0].entries), (1, "two", 1));
    assert!(!archive.rename_collection("kb-new/test", KB).await.unwrap(), "nothing takes its place");
    assert!(!archive.rename_collection(KB, "kb/none").await.unwrap(), "there is no place to take");
    assert_eq!(keys(archive, by_words("words")).await, ["new"]);
}

pub(super) fn document(name: &str, bytes: &[u8], chunks: u32) -> Document {
    let (name, title) = (name.to_owned(), "Title".to_owned());
    let (origin, digest) = (format!("/x/{name}"), Digest::of(bytes));
    Document {
        name,
        title,
        origin,
        digest,
        bytes: bytes.len() as u64,
        chunks,
        tags: Vec::new(),
        added_at: 0,
        expires_at: None,
    }
}

async fn a_document_is_replaced_whole(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let first = vec![entry("a#1", "alpha", [1.0, 0.0, 0.0]), entry("a#2", "beta", [0.0, 1.0, 0.0])];
    archive.put_document(KB, document("a", b"1", 2), first).await.unwrap();
    let bad = vec![entry("a#1", "gamma", [1.0, 0.0, 0.0]), entry("a#2", &"x".repeat(70_000), [0.0; 3])];
    assert_eq!(code(archive.put_document(KB, document("a", b"2", 2), bad).await), ArchiveCode::EntryInvalid);
    assert_eq!(keys(archive, by_words("alpha")).await, ["a#1"], "the earlier one stays");
    archive
        .put_document(KB, document("a", b"3", 1), vec![entry("a#1", "gamma", [1.0, 0.0, 0.0])])
        .await
        .unwrap();
    assert!(keys(archive, by_words("alpha beta")).await.is_empty());
    assert_eq!(keys(archive, by_words("gamma")).await, ["a#1"]);
    let passages = archive.passages(KB, "a").await.unwrap();
    assert_eq!(passages.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>(), ["gamma"]);
    assert_eq!(archive.passages(KB, "b").await.unwrap(), []);
    let known = archive.documents(KB).await.unwrap();
    assert_eq!((known.len(), known[0].chunks, known[0].digest), (1, 1, Digest::of(b"3")));
    assert_eq!(known[0].added_at, 1_000_000);
    assert_eq!(archive.collection(KB).await.unwrap().unwrap().entries, 1);
    assert!(archive.remove_document(KB, "a").await.unwrap());
    assert!(!archive.remove_document(KB, "a").await.unwrap());
    assert_eq!(archive.list(KB, Default::default(), None, 10).await.unwrap(), []);
}

// SECURITY: archive-encrypted
async fn what_is_removed_leaves_no_byte(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    archive.create_collection(collection("kb/other")).await.unwrap();
    let secret = |key: &str| NewEntry {
        user: Some("userzeta".to_owned()),
        ..entry(key, "zebracorn was here", [1.0; 3])
    };
    let mut noise: Vec<NewEntry> =
        (0..500).map(|n| entry(&format!("n{n}"), &format!("noise number {n}"), [0.5, 0.1, 0.2])).collect();
    noise.insert(250, secret("keyomega"));
    archive.put(KB, noise).await.unwrap();
    archive.put(KB, vec![NewEntry { expected: Expected::Any, ..secret("keyomega") }]).await.unwrap();
    archive.put_document(KB, document("docname", b"1", 1), vec![secret("docname#1")]).await.unwrap();
    archive.put("kb/other", vec![secret("k")]).await.unwrap();
    assert_eq!(has_bytes(place.data.path(), "zebracorn"), place.keys.is_none());
    assert_eq!(archive.remove(KB, vec!["keyomega".to_owned(), "none".to_owned()]).await.unwrap(), 1);
    assert!(archive.remove_document(KB, "docname").await.unwrap());
    assert!(archive.remove_collection("kb/other").await.unwrap());
    for word in ["zebracorn", "userzeta", "keyomega", "docname", "kb/other"] {
        assert!(!has_bytes(place.data.path(), word), "{word}");
    }
    assert_eq!(archive.collection(KB).await.unwrap().unwrap().entries, 500);
    let full = std::fs::metadata(place.file()).unwrap().len();
    archive.remove_collection(KB).await.unwrap();
    assert!(std::fs::metadata(place.file()).unwrap().len() < full / 2, "the file becomes smaller");
}

async fn expired_entries_are_removed(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let ending =
        |key: &str, state| NewEntry { expires_at: Some(1_500_000), state, ..entry(key, "ends", [1.0; 3]) };
    let entries =
        vec![ending("a", EntryState::Live), ending("p", EntryState::Pinned), entry("b", "stays", [1.0; 3])];
    archive.put(KB, entries).await.unwrap();
    assert_eq!(archive.remove_expired().await.unwrap(), 0);
    place.clock.0.store(1_500_000, Ordering::SeqCst);
    assert_eq!(keys(archive, by_words("ends")).await, ["p"], "not found, even before it is removed");
    assert_eq!(archive.remove_expired().await.unwrap(), 1);
    assert_eq!(archive.get(KB, "a").await.unwrap(), None);
    assert_eq!(archive.collection(KB).await.unwrap().unwrap().entries, 2);
    // A document goes with its passages.
    let passage = |key: &str, expires_at| NewEntry { expires_at, ..entry(key, "of a document", [1.0; 3]) };
    let stored = [("short", Some(1_600_000)), ("long", None)];
    for (name, expires_at) in stored {
        let passages = vec![passage(name, expires_at)];
        archive.put_document(KB, document(name, b"1", 1), passages).await.unwrap();
    }
    let documents = async || {
        let all = archive.documents(KB).await.unwrap().into_iter();
        all.map(|document| (document.name, document.expires_at)).collect::<Vec<_>>()
    };
    assert_eq!(documents().await, [("long".to_owned(), None), ("short".to_owned(), Some(1_600_000))]);
    place.clock.0.store(1_600_000, Ordering::SeqCst);
    assert_eq!(archive.remove_expired().await.unwrap(), 1);
    assert_eq!(documents().await, [("long".to_owned(), None)]);
    // A clock that is set back brings nothing back, and harms nothing.
    place.clock.0.store(1_000, Ordering::SeqCst);
    assert_eq!(archive.remove_expired().await.unwrap(), 0);
    assert_eq!(archive.put(KB, vec![entry("b", "later", [1.0; 3])]).await.unwrap(), [2]);
    assert_eq!(archive.get(KB, "b").await.unwrap().unwrap().text, "later");
    assert_eq!(archive.history(KB, "b").await.unwrap().len(), 1);
    assert_eq!(keys(archive, by_words("later")).await, ["b"]);
}

async fn used_entries_end_later(place: Place) {
    let archive = &place.archive;
    assert_eq!(code(archive.touch(KB, vec!["a".to_owned()], None).await), ArchiveCode::CollectionUnknown);
    archive.create_collection(collection(KB)).await.unwrap();
    let ending =
        |key: &str, expires_at, state| NewEntry { expires_at, state, ..entry(key, "ends", [1.0; 3]) };
    let soon = Some(1_500_000);
    let entries = vec![
        ending("used", soon, EntryState::Live),
        ending("unused", soon, EntryState::Live),
        ending("long", Some(9_000_000), EntryState::Live),
        ending("waits", soon, EntryState::Quarantined),
        ending("pinned", soon, EntryState::Pinned),
        ending("forever", None, EntryState::Live),
        ending("over", Some(900_000), EntryState::Live),
    ];
    let names: Vec<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    archive.put(KB, entries).await.unwrap();
    let other = place.other();
    assert_eq!(keys(&other, by_words("ends")).await.len(), 5, "its index is in memory");
    let used = names.iter().filter(|name| *name != "unused").cloned();
    archive.touch(KB, used.chain(["none".to_owned()]).collect(), Some(2_000_000)).await.unwrap();
    archive.touch(KB, vec!["used".to_owned()], Some(1_000)).await.unwrap();
    archive.touch(KB, vec!["used".to_owned()], None).await.unwrap();
    archive.touch(KB, Vec::new(), Some(3_000_000)).await.unwrap();
    let mut ends = Vec::new();
    for name in &names {
        let entry = archive.get(KB, name).await.unwrap().unwrap();
        assert_eq!((entry.version, archive.history(KB, name).await.unwrap().len()), (1, 0), "{name}");
        ends.push(entry.expires_at);
    }
    assert_eq!(ends, [Some(2_000_000), soon, Some(9_000_000), soon, soon, None, Some(900_000)]);
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    let mut statement = connection.prepare("SELECT uses, used_at FROM entry ORDER BY id").unwrap();
    let uses = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let uses: Vec<(i64, Option<i64>)> = uses.map(Result::unwrap).collect();
    assert_eq!(uses[..3], [(3, Some(1_000_000)), (0, None), (1, Some(1_000_000))]);
    // A new version has the uses of the former one.
    archive.put(KB, vec![ending("long", soon, EntryState::Live)]).await.unwrap();
    let uses: i64 =
        connection.query_row("SELECT uses FROM entry WHERE id = 3", [], |row| row.get(0)).unwrap();
    assert_eq!(uses, 1);
    place.clock.0.store(1_500_000, Ordering::SeqCst);
    let mut found = keys(&other, by_words("ends")).await;
    found.sort();
    assert_eq!(found, ["forever", "pinned", "used"], "found before and after the others are removed");
    assert_eq!(archive.remove_expired().await.unwrap(), 4);
    let left = archive.list(KB, Default::default(), None, 10).await.unwrap();
    assert_eq!(left.into_iter().map(|entry| entry.key).collect::<Vec<_>>(), ["forever", "pinned", "used"]);
    place.clock.0.store(2_000_000, Ordering::SeqCst);
    assert_eq!(archive.remove_expired().await.unwrap(), 1);
}

async fn vectors_are_cached(place: Place) {
    let archive = &place.archive;
    let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
    archive.cache_vectors("e", vec![(one, vec![1.0, -0.5])]).await.unwrap();
    archive.cache_vectors("e", vec![(one, vec![9.0, 9.0])]).await.unwrap();
    let cached = place.other().cached_vectors("e", vec![two, one]).await.unwrap();
    assert_eq!(cached, [None, Some(vec![1.0, -0.5])]);
    assert_eq!(archive.cached_vectors("other", vec![one]).await.unwrap(), [None]);
    archive.cache_vectors("other", vec![(one, vec![2.0])]).await.unwrap();
    archive.cache_vectors("e", vec![(two, vec![3.0])]).await.unwrap();
    archive.drop_cached_vectors("e", Some(vec![two, Digest::of(b"3")])).await.unwrap();
    assert_eq!(archive.cached_vectors("e", vec![two, one]).await.unwrap(), [None, Some(vec![1.0, -0.5])]);
    archive.drop_cached_vectors("e", None).await.unwrap();
    assert_eq!(archive.cached_vectors("e", vec![one]).await.unwrap(), [None]);
    assert_eq!(archive.cached_vectors("other", vec![one]).await.unwrap(), [Some(vec![2.0])]);
    archive.drop_cached_vectors("other", None).await.unwrap();
    let size = "SELECT bytes FROM cache_size";
    let bytes: i64 = super::lock(&archive.0.writer)
        .as_ref()
        .unwrap()
        .connection
        .query_row(size, [], |row| row.get(0))
        .unwrap();
    assert_eq!(bytes, 0);
}

async fn what_does_not_fit_is_not_stored(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    archive.put(KB, vec![entry("a", "small", [1.0, 0.0, 0.0])]).await.unwrap();
    let sql =
        |sql: &str| super::lock(&archive.0.writer).as_ref().unwrap().connection.execute_batch(sql).unwrap();
    sql("UPDATE collection SET entries = 500000");
    let error = archive.put(KB, vec![entry("b", "x", [1.0; 3])]).await.unwrap_err();
    assert_eq!(error.code, ArchiveCode::ArchiveFull);
    assert!(error.message.contains("500000 entries"), "{error}");
    archive.put(KB, vec![entry("a", "changed", [1.0; 3])]).await.unwrap();
    sql("UPDATE collection SET entries = 1; PRAGMA max_page_count = 40");
    let large = (0..50).map(|n| entry(&format!("n{n}"), &"x".repeat(20_000), [1.0; 3])).collect();
    let error = archive.put(KB, large).await.unwrap_err();
    assert_eq!(error.code, ArchiveCode::ArchiveFull);
    assert!(error.message.contains("no room left on the disk"), "{error}");
    assert_eq!(archive.list(KB, Default::default(), None, 100).await.unwrap().len(), 1);
    sql("PRAGMA max_page_count = 1000000");
    archive.put(KB, vec![entry("b", "fits", [1.0; 3])]).await.unwrap();
}

async fn a_file_of_somebody_else_is_refused(place: Place) {
    std::fs::write(place.file(), "not a database, but long enough to look at it").unwrap();
    let error = place.archive.collections().await.unwrap_err();
    assert_eq!(error.code, ArchiveCode::ArchiveUnreadable);
    let other = rusqlite::Connection::open(place.data.path().join("x.db")).unwrap();
    other.execute_batch("CREATE TABLE theirs(x)").unwrap();
    drop(other);
    std::fs::rename(place.data.path().join("x.db"), place.file()).unwrap();
    let error = place.other().create_collection(collection(KB)).await.unwrap_err();
    assert!(error.message.contains("belongs to another program"), "{error}");
    std::fs::remove_file(place.file()).unwrap();
    place.other().create_collection(collection(KB)).await.unwrap();
    let newer = rusqlite::Connection::open(place.file()).unwrap();
    newer.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(newer);
    let error = place.other().collections().await.unwrap_err();
    assert!(error.message.contains("newer Redflow Runtime"), "{error}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(place.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// A process with an older program, which had the file open before another one converted it, makes no table of
/// occurrences.
async fn a_collection_of_an_older_process_is_searched(place: Place) {
    place.archive.create_collection(collection("kb/new")).await.unwrap();
    place.archive.create_collection(collection(KB)).await.unwrap();
    place.archive.put(KB, vec![entry("a", "pump", [1.0, 0.0, 0.0])]).await.unwrap();
    let older = rusqlite::Connection::open(place.file()).unwrap();
    let tables = || -> Vec<String> {
        let sql = "SELECT name FROM sqlite_schema WHERE name GLOB 'occurrences_*' ORDER BY name";
        let mut statement = older.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let all: &[&str] = if place.keys.is_some() { &[] } else { &["occurrences_1", "occurrences_2"] };
    assert_eq!(tables(), all);
    let remove = || older.execute_batch("DROP TABLE IF EXISTS occurrences_2").unwrap();
    remove();
    assert_eq!(keys(&place.other(), by_words("pump")).await, ["a"], "it is read first");
    assert_eq!(tables(), all);
    remove();
    let writer = place.other();
    writer.put(KB, vec![entry("b", "pump", [0.0, 1.0, 0.0])]).await.unwrap();
    assert_eq!(tables(), all, "it is written first");
    assert_eq!(keys(&writer, by_words("pump")).await, ["a", "b"]);
}

/// An older program leaves the table of occurrences behind when it drops a collection.
#[tokio::test]
async fn a_table_that_is_left_behind_hinders_no_collection() {
    let place = Place::plain();
    place.archive.create_collection(collection(KB)).await.unwrap();
    let older = rusqlite::Connection::open(place.file()).unwrap();
    older
        .execute_batch(
            "DELETE FROM collection; DROP TABLE words_1; DROP TABLE text_1;
             DELETE FROM sqlite_sequence WHERE name = 'collection';",
        )
        .unwrap();
    let other = place.other();
    other.create_collection(collection(KB)).await.unwrap();
    let id: i64 = older.query_row("SELECT id FROM collection", [], |row| row.get(0)).unwrap();
    assert_eq!(id, 1, "it has the id of the former one");
    other.put(KB, vec![entry("a", "pump", [1.0, 0.0, 0.0])]).await.unwrap();
    assert_eq!(keys(&other, by_words("pump")).await, ["a"]);
    assert!(other.remove_collection(KB).await.unwrap());
}

/// The log of changes is trimmed, and the rest of it belongs to a collection that is removed.
async fn an_index_without_a_log_of_changes_is_built_again(place: Place) {
    let (one, two) = (&place.archive, place.other());
    one.create_collection(collection(KB)).await.unwrap();
    one.put(KB, vec![entry("a", "first", [1.0, 0.0, 0.0])]).await.unwrap();
    assert_eq!(keys(&two, by_words("first second")).await, ["a"]);
    one.put(KB, vec![entry("b", "second", [1.0, 0.0, 0.0])]).await.unwrap();
    one.create_collection(collection("kb/large")).await.unwrap();
    let many =
        |from: usize| (from..from + 6_000).map(|n| NewEntry::new(format!("n{n}"), EntryKind::Chunk, "x"));
    one.put("kb/large", many(0).collect()).await.unwrap();
    one.put("kb/large", many(6_000).collect()).await.unwrap();
    one.remove_collection("kb/large").await.unwrap();
    let mut found = keys(&two, by_words("first second")).await;
    found.sort();
    assert_eq!(found, ["a", "b"]);
}
