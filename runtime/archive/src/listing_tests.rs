use super::entries::CollectionRow;
use super::listing::{self, count_statement, list_statement, session_statement};
use super::tests::{KB, Place, by_words, collection, keys};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{EntryKind, EntryState};
use redflow_ports::{Archive as _, EntryFilter, NewEntry};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

with_both! {
    sessions_are_listed_once_and_in_pages
    all_entries_of_a_filter_are_removed
}

fn turn(key: &str, session: &str) -> NewEntry {
    NewEntry {
        session: Some(session.to_owned()),
        user: Some("ada".to_owned()),
        ..NewEntry::new(key, EntryKind::Episode, format!("xylocarp {session}"))
    }
}

/// Turns that wait, of a session or of all.
fn pending(session: Option<&str>) -> EntryFilter {
    EntryFilter {
        kinds: vec![EntryKind::Episode],
        states: vec![EntryState::Live],
        session: session.map(str::to_owned),
        ..EntryFilter::default()
    }
}

/// What a user, or a session, got since a time besides turns.
fn notes(user: Option<&str>, session: Option<&str>) -> EntryFilter {
    EntryFilter {
        kinds: vec![EntryKind::Fact, EntryKind::Preference, EntryKind::Log],
        user: user.map(str::to_owned),
        session: session.map(str::to_owned),
        since: Some(5),
        ..EntryFilter::default()
    }
}

/// These are read after each turn, by the only reader. Their work must not grow with the turns that were archived.
#[tokio::test]
async fn what_each_turn_reads_has_an_index() {
    let place = Place::plain();
    place.archive.create_collection(collection(KB)).await.unwrap();
    let row = CollectionRow { id: 1, dimensions: 3, entries: 0 };
    let session = Some("tab:s");
    let cases = [
        (
            count_statement(&row, &pending(session)),
            "COVERING INDEX entry_pending (collection=? AND session=?)",
        ),
        (
            list_statement(&row, &pending(session), "a", 12),
            "INDEX entry_pending (collection=? AND session=? AND key>?)",
        ),
        (
            session_statement(&row, &pending(None), "tab:a"),
            "COVERING INDEX entry_pending (collection=? AND session>?)",
        ),
        (
            list_statement(&row, &notes(Some("ada"), None), "", 200),
            "INDEX entry_notes_by_user (collection=? AND user=? AND created_at>?)",
        ),
        (
            list_statement(&row, &notes(None, session), "", 200),
            "INDEX entry_notes_by_session (collection=? AND session=? AND created_at>?)",
        ),
    ];
    for ((sql, values), expected) in cases {
        let plan = place.archive.0.read(|db| Ok(plan(db.connection, &sql, values)?)).unwrap().unwrap();
        assert_eq!(plan.first().unwrap(), &format!("SEARCH entry USING {expected}"), "{sql}");
    }
}

fn plan(connection: &Connection, sql: &str, values: Vec<Value>) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    statement.query_map(params_from_iter(values), |row| row.get(3))?.collect()
}

/// The columns of an encrypted file are empty, so these indexes must show nothing of its entries.
// SECURITY: archive-encrypted
#[tokio::test]
async fn the_indexes_of_an_encrypted_file_are_empty() {
    for (place, rows) in [(Place::plain(), [2, 1, 1]), (Place::sealed(), [0; 3])] {
        place.archive.create_collection(collection(KB)).await.unwrap();
        let note = NewEntry { kind: EntryKind::Fact, ..turn("c", "s") };
        place.archive.put(KB, vec![turn("a", "s"), turn("b", "t"), note]).await.unwrap();
        let connection = Connection::open(place.file()).unwrap();
        let counts = [
            ("entry_pending", "kind = 'episode' AND state = 'live' AND session IS NOT NULL"),
            ("entry_notes_by_user", "kind <> 'episode' AND user IS NOT NULL"),
            ("entry_notes_by_session", "kind <> 'episode' AND session IS NOT NULL"),
        ]
        .map(|(index, condition)| {
            let sql = format!("SELECT count(*) FROM entry INDEXED BY {index} WHERE {condition}");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
        });
        assert_eq!(counts, rows);
    }
}

async fn sessions_are_listed_once_and_in_pages(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let archived = NewEntry { state: EntryState::Archived, ..turn("old", "s9") };
    let note = NewEntry { kind: EntryKind::Fact, ..turn("note", "s8") };
    let turns = ["s3", "s1", "s1", "s2", "s1"].iter().enumerate();
    let turns = turns.map(|(number, session)| turn(&number.to_string(), session));
    archive.put(KB, turns.chain([archived, note]).collect()).await.unwrap();
    let cases = [
        (pending(None), None, 10, vec!["s1", "s2", "s3"]),
        (pending(None), None, 2, vec!["s1", "s2"]),
        (pending(None), Some("s2"), 2, vec!["s3"]),
        (pending(None), Some("s3"), 2, vec![]),
        (pending(None), None, 0, vec![]),
        (pending(Some("s2")), None, 10, vec!["s2"]),
        (EntryFilter::default(), Some("s2"), 10, vec!["s3", "s8", "s9"]),
    ];
    for (filter, after, limit, expected) in cases {
        let sessions = archive.sessions(KB, filter.clone(), after, limit).await.unwrap();
        assert_eq!(sessions, expected, "{filter:?} {after:?}");
    }
}

async fn all_entries_of_a_filter_are_removed(place: Place) {
    let archive = &place.archive;
    archive.create_collection(collection(KB)).await.unwrap();
    let count = 1_200;
    let turns = (0..count).map(|number| turn(&format!("t{number}"), "s1"));
    let kept = NewEntry { state: EntryState::Archived, ..turn("old", "s2") };
    archive.put(KB, turns.chain([kept]).collect()).await.unwrap();
    for (limit, removed) in [(1_000, 1_000), (1_000, 200)] {
        assert_eq!(archive.remove_listed(KB, pending(Some("s1")), limit).await.unwrap(), removed);
    }
    assert_eq!(keys(archive, by_words("xylocarp")).await, [""; 0], "an archived turn is not found");
    let left = archive.list(KB, EntryFilter::default(), None, 10).await.unwrap();
    assert_eq!(left.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["old"]);
    assert_eq!(archive.remove_listed(KB, pending(Some("s1")), 10).await.unwrap(), 0);
    let row = CollectionRow { id: 1, dimensions: 3, entries: 1 };
    let inner = &archive.0;
    let ids = inner.read(|db| Ok(listing::ids(db, &inner.indexes, &row, &EntryFilter::default(), 1)?));
    assert_eq!(ids.unwrap().unwrap().len(), 1);
    for file in std::fs::read_dir(place.data.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(11).any(|part| part == b"xylocarp s1"), "no byte is left");
    }
}
