//! Entries that are listed by what is known about them, and entries that are forgotten.

use super::SqliteArchive;
use super::tests::{
    KB, Place, by_meaning, by_words, code, collection, document, entry, has_bytes, keys, plain_archive,
};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{EntryKind, EntrySource, EntryState, SearchMode, SourceKind};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_contract::memory::DataOwner;
use redflow_ports::{
    Archive as _, EmbedPurpose, EntryFilter, NewEntry, SearchFilter, SearchQuery, VectorScores,
};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

with_both! {
    entries_are_listed_and_counted_by_filters
    filters_follow_changes
    an_older_file_gets_its_indexes
    a_user_is_forgotten
    a_session_and_a_source_are_forgotten
    what_is_forgotten_leaves_no_byte
    cached_vectors_are_forgotten
    another_process_finds_nothing_that_is_forgotten
    a_file_in_use_is_written_again
    many_entries_are_forgotten
    what_is_not_there_is_not_forgotten
    a_text_that_has_not_changed_keeps_its_vector
    a_mark_stays_until_the_bytes_are_gone
}

fn of(user: &str, key: &str, text: &str) -> NewEntry {
    NewEntry { user: Some(user.to_owned()), ..entry(key, text, [1.0, 0.2, 0.1]) }
}

fn from(reference: &str, key: &str) -> NewEntry {
    let source = EntrySource { kind: SourceKind::Tool, reference: reference.to_owned(), digest: None };
    NewEntry { source: Some(source), ..entry(key, "of a source", [1.0, 0.2, 0.1]) }
}

fn user(name: &str) -> DataOwner {
    DataOwner::User(name.to_owned())
}

async fn listed(archive: &SqliteArchive, filter: EntryFilter) -> Vec<String> {
    let count = archive.count(KB, filter.clone()).await.unwrap();
    let all = archive.list(KB, filter, None, 100).await.unwrap();
    assert_eq!(count, all.len() as u64);
    all.into_iter().map(|entry| entry.key).collect()
}

fn everything() -> EntryFilter {
    EntryFilter::default()
}

async fn entries_are_listed_and_counted_by_filters(place: Place) {
    let archive = &place.archive;
    assert_eq!(code(archive.count(KB, everything()).await), ArchiveCode::CollectionUnknown);
    for name in [KB, "kb/other"] {
        archive.create_collection(collection(name)).await.unwrap();
    }
    let new = |key: &str, kind, state, user: &str, session: &str, created_at| NewEntry {
        kind,
        state,
        session: Some(session.to_owned()),
        created_at: Some(created_at),
        ..of(user, key, "text")
    };
    let entries = vec![
        new("c", EntryKind::Fact, EntryState::Live, "ada", "s1", 10),
        new("a", EntryKind::Episode, EntryState::Live, "ada", "s2", 20),
        new("b", EntryKind::Preference, EntryState::Quarantined, "bob's", "s1", 30),
        new("d", EntryKind::Fact, EntryState::Archived, "bob's", "s2", 40),
        entry("e", "of no user", [1.0; 3]),
    ];
    archive.put(KB, entries).await.unwrap();
    archive.put("kb/other", vec![of("ada", "o", "elsewhere")]).await.unwrap();
    let named = |user: Option<&str>, session: Option<&str>| EntryFilter {
        user: user.map(str::to_owned),
        session: session.map(str::to_owned),
        ..everything()
    };
    let kinds = |kinds: &[EntryKind]| EntryFilter { kinds: kinds.to_vec(), ..everything() };
    let states = |states: &[EntryState]| EntryFilter { states: states.to_vec(), ..everything() };
    let cases = [
        (everything(), "abcde"),
        (named(Some("ada"), None), "ac"),
        (named(Some("bob's"), None), "bd"),
        (named(Some("eve"), None), ""),
        (named(None, Some("s1")), "bc"),
        (named(Some("bob's"), Some("s2")), "d"),
        (kinds(&[EntryKind::Fact]), "cde"),
        (kinds(&[EntryKind::Episode, EntryKind::Preference]), "ab"),
        (states(&[EntryState::Quarantined]), "b"),
        (states(&[EntryState::Live, EntryState::Archived]), "acde"),
        (EntryFilter { since: Some(30), ..everything() }, "bde"),
        (EntryFilter { since: Some(11), ..named(Some("ada"), None) }, "a"),
        (EntryFilter { states: vec![EntryState::Live], ..kinds(&[EntryKind::Fact]) }, "ce"),
    ];
    for (filter, expected) in cases {
        assert_eq!(listed(archive, filter.clone()).await.concat(), expected, "{filter:?}");
    }
    let next = archive.list(KB, kinds(&[EntryKind::Fact]), Some("c"), 1).await.unwrap();
    assert_eq!(next.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["d"]);
    assert_eq!(archive.list(KB, everything(), Some("e"), 9).await.unwrap(), []);
    assert_eq!(archive.list(KB, everything(), None, 0).await.unwrap(), []);
}

async fn filters_follow_changes(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    archive.put(KB, vec![of("ada", "a", "one"), of("ada", "b", "two")]).await.unwrap();
    let of_ada = EntryFilter { user: Some("ada".to_owned()), ..everything() };
    assert_eq!(listed(archive, of_ada.clone()).await, ["a", "b"]);
    let other = place.other();
    other.put(KB, vec![of("bob", "a", "one"), of("ada", "c", "three")]).await.unwrap();
    other.remove(KB, vec!["b".to_owned()]).await.unwrap();
    assert_eq!(listed(archive, of_ada).await, ["c"]);
}

/// A file of the first version has none of the later indexes.
async fn an_older_file_gets_its_indexes(place: Place) {
    place.archive.create_collection(collection(KB)).await.unwrap();
    place.archive.put(KB, vec![of("ada", "a", "one"), of("bob", "b", "two")]).await.unwrap();
    let indexes = |connection: &rusqlite::Connection| -> Vec<String> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name";
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    let all = indexes(&connection);
    connection
        .execute_batch(
            "DROP INDEX entry_by_user; DROP INDEX entry_by_session; DROP INDEX entry_by_state;
             DROP INDEX entry_pending; DROP INDEX entry_notes_by_user; DROP INDEX entry_notes_by_session;
             ALTER TABLE entry DROP COLUMN uses; ALTER TABLE entry DROP COLUMN used_at; DROP TABLE cleaning;
             DROP TABLE IF EXISTS occurrences_1; PRAGMA user_version = 1;",
        )
        .unwrap();
    let of_bob = EntryFilter { user: Some("bob".to_owned()), ..everything() };
    assert_eq!(listed(&place.other(), of_bob).await, ["b"]);
    assert_eq!(indexes(&connection), all);
    assert_eq!(keys(&place.other(), by_words("two")).await, ["b"]);
}

async fn a_user_is_forgotten(place: Place) {
    let archive = &place.archive;
    for name in [KB, "ltm/flow/one", "ltm/flow/two"] {
        archive.create_collection(collection(name)).await.unwrap();
        archive.put(name, vec![of("ada", "a", "apple"), of("ada", "was", "apple pie")]).await.unwrap();
        // It was Ada's, and is Bob's.
        archive.put(name, vec![of("bob", "was", "cake"), of("bob", "b", "apple tree")]).await.unwrap();
        archive.put(name, vec![of("bob", "was", "bread")]).await.unwrap();
    }
    assert_eq!(archive.forget("ltm/", &user("ada")).await.unwrap(), 2);
    for name in ["ltm/flow/one", "ltm/flow/two"] {
        assert_eq!(archive.get(name, "a").await.unwrap(), None);
        let hits = archive.search(name, by_words("apple")).await.unwrap();
        assert_eq!(hits.into_iter().map(|hit| hit.entry.key).collect::<Vec<_>>(), ["b"]);
        let hits = archive.search(name, by_meaning([1.0, 0.2, 0.1])).await.unwrap();
        assert_eq!(hits.len(), 2);
        let former = archive.history(name, "was").await.unwrap();
        assert_eq!(former.into_iter().map(|entry| entry.text).collect::<Vec<_>>(), ["cake"]);
        assert_eq!(archive.collection(name).await.unwrap().unwrap().entries, 2);
    }
    assert_eq!(archive.history(KB, "was").await.unwrap().len(), 2);
    assert_eq!(listed(archive, everything()).await, ["a", "b", "was"]);
    assert_eq!(archive.forget("ltm/", &user("ada")).await.unwrap(), 0);
    assert_eq!(archive.forget(KB, &user("ada")).await.unwrap(), 1);
    // What is stored later is found.
    archive.put(KB, vec![of("ada", "a", "apple again")]).await.unwrap();
    assert_eq!(keys(archive, by_words("again")).await, ["a"]);
}

async fn a_session_and_a_source_are_forgotten(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let in_session =
        |session: &str, key: &str| NewEntry { session: Some(session.to_owned()), ..of("ada", key, "said") };
    archive.put(KB, vec![in_session("flow:1", "s1"), in_session("flow:12", "s12")]).await.unwrap();
    assert_eq!(archive.forget("kb/", &DataOwner::Session("flow:1".to_owned())).await.unwrap(), 1);
    assert_eq!(listed(archive, everything()).await, ["s12"]);
    let sources = ["run-1", "run-1#2", "run-1#2#3", "run-10", "run-1/2", "x run-1", "RUN-1"];
    let entries: Vec<NewEntry> = sources.into_iter().map(|source| from(source, source)).collect();
    archive.put(KB, entries).await.unwrap();
    archive.put_document(KB, document("d", b"1", 1), vec![from("run-1#9", "passage")]).await.unwrap();
    archive.put_document(KB, document("e", b"1", 1), vec![from("e", "other passage")]).await.unwrap();
    assert_eq!(archive.forget("kb/", &DataOwner::Source("run-1".to_owned())).await.unwrap(), 4);
    let left = ["RUN-1", "other passage", "run-1/2", "run-10", "s12", "x run-1"];
    assert_eq!(listed(archive, everything()).await, left);
    let documents = archive.documents(KB).await.unwrap();
    assert_eq!(documents.into_iter().map(|document| document.name).collect::<Vec<_>>(), ["e"]);
}

/// A number that looks like any other, so that keys are stored in no order.
fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Entries of two users, in no order. One of `share` is of the second. Those of the first have words and names that occur nowhere else.
fn entries_of_two(count: u64, share: u64) -> Vec<NewEntry> {
    let new = |number: u64| {
        let name = mixed(number);
        let filler = "long text of a memory ".repeat(usize::try_from(name % 7).unwrap_or(0));
        match name % share {
            1.. => NewEntry {
                session: Some(format!("session-quaggazeta-{number}")),
                tags: vec![format!("tag-quaggazeta-{number}")],
                source: Some(EntrySource {
                    kind: SourceKind::Memory,
                    reference: format!("ref-quaggazeta-{number}"),
                    digest: None,
                }),
                ..of(
                    "user-quaggazeta",
                    &format!("{name:x}-quaggazeta"),
                    &format!("zebracorn quaggazeta{number} {filler}"),
                )
            },
            0 => of("bob", &format!("{name:x}"), &format!("noise {number} {filler}")),
        }
    };
    (0..count).map(new).collect()
}

async fn what_is_forgotten_leaves_no_byte(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let entries = entries_of_two(3_000, 2);
    let of_bob = entries.iter().filter(|entry| entry.user.as_deref() == Some("bob")).count();
    for part in entries.chunks(200) {
        archive.put(KB, part.to_vec()).await.unwrap();
    }
    // Some have former versions.
    archive.put(KB, entries[..300].to_vec()).await.unwrap();
    archive.put(KB, vec![of("user-quaggazeta", "shared", "zebracorn")]).await.unwrap();
    archive.put(KB, vec![of("bob", "shared", "noise")]).await.unwrap();
    let is_plain = place.keys.is_none();
    for word in ["zebracorn", "user-quaggazeta", "quaggazeta"] {
        assert_eq!(has_bytes(place.data.path(), word), is_plain, "{word}");
    }
    let forgotten = archive.forget("kb/", &user("user-quaggazeta")).await.unwrap();
    assert_eq!(forgotten, (3_000 - of_bob) as u64);
    assert!(place.data.path().join("archive.db-wal").exists(), "the file is still open");
    assert!(!has_bytes(place.data.path(), "quaggazeta"));
    assert!(!has_bytes(place.data.path(), "zebracorn"));
    assert_eq!(has_bytes(place.data.path(), "noise"), is_plain, "other entries stay");
    let by_bob = EntryFilter { user: Some("bob".to_owned()), ..everything() };
    assert_eq!(archive.count(KB, by_bob).await.unwrap(), of_bob as u64 + 1);
    assert_eq!(keys(archive, by_words("noise")).await.len(), 10);
    assert_eq!(keys(archive, by_words("zebracorn")).await, [] as [&str; 0]);
}

async fn cached_vectors_are_forgotten(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let another = redflow_ports::NewCollection { embedder: "four".to_owned(), ..collection("kb/other") };
    archive.create_collection(another).await.unwrap();
    archive.put(KB, vec![of("ada", "a", "former")]).await.unwrap();
    archive.put(KB, vec![of("ada", "a", "apple"), of("bob", "b", "bread")]).await.unwrap();
    let names = |text: &str| {
        let mut names = EmbedPurpose::ALL.map(|purpose| purpose.cached_name(text)).to_vec();
        names.push(Digest::of(text.as_bytes()));
        names
    };
    for embedder in ["three", "four"] {
        for text in ["former", "apple", "bread"] {
            let vectors = names(text).into_iter().map(|name| (name, vec![1.0; 3])).collect();
            archive.cache_vectors(embedder, vectors).await.unwrap();
        }
    }
    assert_eq!(archive.forget("kb/", &user("ada")).await.unwrap(), 1);
    for embedder in ["three", "four"] {
        for (text, is_kept) in [("former", false), ("apple", false), ("bread", true)] {
            let cached = archive.cached_vectors(embedder, names(text)).await.unwrap();
            assert!(cached.iter().all(|vector| vector.is_some() == is_kept), "{embedder} {text}");
        }
    }
}

async fn another_process_finds_nothing_that_is_forgotten(place: Place) {
    let (archive, other) = (&place.archive, place.other());
    archive.create_collection(collection(KB)).await.unwrap();
    archive.put(KB, vec![of("ada", "a", "apple"), of("bob", "b", "apple")]).await.unwrap();
    let of_ada = EntryFilter { user: Some("ada".to_owned()), ..everything() };
    // Both have their indexes in memory.
    for process in [archive, &other] {
        assert_eq!(keys(process, by_words("apple")).await.len(), 2);
        assert_eq!(keys(process, by_meaning([1.0, 0.2, 0.1])).await.len(), 2);
        assert_eq!(listed(process, of_ada.clone()).await, ["a"]);
    }
    assert_eq!(archive.forget("kb/", &user("ada")).await.unwrap(), 1);
    for process in [archive, &other] {
        assert_eq!(keys(process, by_words("apple")).await, ["b"]);
        assert_eq!(keys(process, by_meaning([1.0, 0.2, 0.1])).await, ["b"]);
        assert_eq!(listed(process, of_ada.clone()).await, [] as [&str; 0]);
        assert_eq!(process.get(KB, "a").await.unwrap(), None);
    }
}

/// A process that reads keeps bytes in the file. What forgets says so, and works as soon as it has ended.
async fn a_file_in_use_is_written_again(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    archive.put(KB, vec![of("user-quaggazeta", "a", "zebracorn"), of("bob", "b", "noise")]).await.unwrap();
    let reader = rusqlite::Connection::open(place.file()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM entry;").unwrap();
    let error = archive.forget("kb/", &user("user-quaggazeta")).await.unwrap_err();
    assert_eq!(error.code, ArchiveCode::ArchiveUnreadable);
    assert!(error.message.contains("try again"), "{error}");
    assert_eq!(archive.get(KB, "a").await.unwrap(), None);
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(archive.forget("kb/", &user("user-quaggazeta")).await.unwrap(), 0);
    assert!(!has_bytes(place.data.path(), "zebracorn"));
    assert!(!has_bytes(place.data.path(), "user-quaggazeta"));
}

async fn many_entries_are_forgotten(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let entries = entries_of_two(3_000, 6);
    let of_bob = entries.iter().filter(|entry| entry.user.as_deref() == Some("bob")).count();
    assert!((450..600).contains(&of_bob), "{of_bob}");
    for part in entries.chunks(1_000) {
        archive.put(KB, part.to_vec()).await.unwrap();
    }
    let forgotten = archive.forget("kb/", &user("user-quaggazeta")).await.unwrap();
    assert_eq!(forgotten, (3_000 - of_bob) as u64);
    assert!(!has_bytes(place.data.path(), "quaggazeta"));
    assert_eq!(archive.count(KB, everything()).await.unwrap(), of_bob as u64);
}

async fn what_is_not_there_is_not_forgotten(place: Place) {
    let archive = &place.archive;
    assert_eq!(archive.forget("ltm/", &user("ada")).await.unwrap(), 0);
    assert!(!place.file().exists());
    archive.create_collection(collection(KB)).await.unwrap();
    assert_eq!(archive.forget("ltm/", &user("ada")).await.unwrap(), 0);
    assert_eq!(archive.forget("kb/", &user("")).await.unwrap(), 0);
}

/// How often something was forgotten, and up to which time it was cleaned.
fn marks(place: &Place) -> (i64, i64) {
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    let sql = "SELECT forgets, cleaned FROM cleaning";
    connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

async fn a_mark_stays_until_the_bytes_are_gone(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    archive.put(KB, vec![of("ada", "a", "one"), of("bob", "b", "two")]).await.unwrap();
    assert_eq!(archive.forget("kb/", &user("ada")).await.unwrap(), 1);
    assert_eq!(marks(&place), (1, 1));
    let reader = rusqlite::Connection::open(place.file()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM entry;").unwrap();
    archive.forget("kb/", &user("bob")).await.unwrap_err();
    assert_eq!(marks(&place), (2, 1));
    // The periodic removal says that it is not done, and does it later.
    assert!(archive.remove_expired().await.unwrap_err().message.contains("try again"));
    assert_eq!(marks(&place), (2, 1));
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(archive.remove_expired().await.unwrap(), 0);
    assert_eq!(marks(&place), (2, 2));
}

/// Names the directory of a process that forgets.
const DIRECTORY: &str = "REDFLOW_TEST_FORGET";

/// The process that is killed while it forgets.
#[tokio::test]
async fn forget_in_another_process() {
    let Some(data) = std::env::var_os(DIRECTORY) else { return };
    let archive = plain_archive(Path::new(&data));
    archive.create_collection(collection(KB)).await.unwrap();
    archive.put(KB, vec![of("user-quaggazeta", "a", "zebracorn"), of("bob", "b", "noise")]).await.unwrap();
    archive.forget("kb/", &user("user-quaggazeta")).await.unwrap();
    panic!("the process was not stopped at the failpoint");
}

/// Runs a process that forgets until it stops at this failpoint, and kills it there.
fn kill_at(point: &str, data: &Path) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["sqlite::forgetting_tests::forget_in_another_process", "--exact", "--nocapture"]);
    command.env(DIRECTORY, data).env("REDFLOW_FAILPOINT", point);
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let is_stopped = lines.any(|line| line.unwrap().starts_with("FAILPOINT"));
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(is_stopped, "{point}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_the_next_use_removes_what_is_left() {
    for point in ["archive.forgotten", "archive.vacuumed"] {
        for next in ["write", "forget", "expired"] {
            let place = Place::plain();
            kill_at(point, place.data.path());
            assert!(has_bytes(place.data.path(), "zebracorn"), "{point}");
            // No other connection may be opened here: as it is closed, it would empty the write-ahead log.
            match next {
                "write" => drop(place.archive.put(KB, vec![of("bob", "c", "more")]).await.unwrap()),
                "forget" => assert_eq!(place.archive.forget("kb/", &user("eve")).await.unwrap(), 0),
                _ => assert_eq!(place.archive.remove_expired().await.unwrap(), 0),
            }
            for word in ["zebracorn", "user-quaggazeta"] {
                assert!(!has_bytes(place.data.path(), word), "{point} {next} {word}");
            }
            let (forgets, cleaned) = marks(&place);
            assert_eq!(forgets, cleaned, "{point} {next}");
            assert_eq!(keys(&place.archive, by_words("noise")).await, ["b"]);
        }
    }
}

async fn a_text_that_has_not_changed_keeps_its_vector(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    archive.put(KB, vec![of("ada", "tea", "green tea")]).await.unwrap();
    let without = |text: &str| NewEntry { vector: None, ..of("ada", "tea", text) };
    for (text, expected) in [("green tea", true), ("black tea", false)] {
        archive.put(KB, vec![without(text)]).await.unwrap();
        let query = SearchQuery {
            text: String::new(),
            vector: Some(vec![1.0, 0.2, 0.1]),
            mode: SearchMode::Semantic,
            filter: SearchFilter::default(),
            min_score: 0.9,
            vector_scores: VectorScores::default(),
            limit: 1,
        };
        assert_eq!(!archive.search(KB, query).await.unwrap().is_empty(), expected, "{text}");
    }
}
