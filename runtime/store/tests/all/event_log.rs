//! The event log: behaviour of only one of the stores.

use crate::kit::{
    all_after, buffered_batch, debug_event, deployed_event, events_after, finish_run, id, last_batch,
    start_run, start_run_with_event, synced_batch, with_events,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunStatus;
use redflow_ports::{EventBounds, EventLog, LoggedEvent, RunFilter, RunReader, RunStore};
use redflow_store::{EventLogSettings, MemoryStore, Reader, Store};
use rusqlite::Connection;
use std::path::Path;
use std::task::{Context, Waker};

fn open(dir: &Path) -> Store {
    Store::open_with_log(dir, EventLogSettings::default()).unwrap()
}

fn with_max_events(max_events: usize) -> EventLogSettings {
    EventLogSettings { max_events, ..EventLogSettings::default() }
}

fn plain(dir: &Path) -> Connection {
    Connection::open(dir.join("redflow.db")).unwrap()
}

fn number(plain: &Connection, sql: &str) -> i64 {
    plain.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn without_a_log_no_event_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, memory) = (Store::open(dir.path()).unwrap(), MemoryStore::default());
    async fn check(store: &(impl RunStore + EventLog)) {
        assert!(!store.keeps_events());
        let _journal = start_run_with_event(store, "a").await;
        store.append(1, debug_event(1));
        store.load(&id("a")).await.unwrap().unwrap();
        assert_eq!((store.id(), store.bounds()), ("", EventBounds { oldest: 0, newest: 0 }));
        assert_eq!(store.read_after(0, 10).await.unwrap(), []);
        let mut waits = store.wait_past(0);
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    check(&disk).await;
    check(&memory).await;
    assert_eq!(number(&plain(dir.path()), "SELECT count(*) FROM events"), 0);
}

/// Several processes after each other, with one in between that stores no events.
#[tokio::test]
async fn positions_continue_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    let mut log_id = None;
    for process in 0..5_u32 {
        let store = open(dir.path());
        let first_id = log_id.get_or_insert_with(|| store.id().to_owned());
        assert_eq!(store.id(), first_id);
        assert_eq!(store.bounds(), EventBounds { oldest: 0, newest: expected.len() as u64 });
        let run = format!("run-{process}");
        let mut journal = start_run_with_event(&store, &run).await;
        journal.append(with_events(buffered_batch(&["x"]), &run, 2..=40)).await.unwrap();
        store.append(1, deployed_event(&run));
        // No caller waits for these: closing the store writes them.
        journal.append(with_events(buffered_batch(&["y"]), &run, [41])).await.unwrap();
        expected.extend((1..=40).map(|seq| format!("{run} {seq}")));
        expected.extend([format!("deployed {run}"), format!("{run} 41")]);
        drop(store);
        if process == 2 {
            let silent = Store::open(dir.path()).unwrap();
            finish_run(&silent, "silent", 1).await;
        }
    }
    let store = open(dir.path());
    for most in [1, 7, 1000] {
        let all = all_after(&store, 0, most).await;
        assert_eq!(all.iter().map(crate::kit::describe).collect::<Vec<_>>(), expected);
    }
    let last = expected.len() as u64;
    assert_eq!(events_after(&store, last - 1).await, expected[expected.len() - 1..]);
}

/// Events that left the ring are read from the disk and are the same, from every position.
#[tokio::test]
async fn events_that_left_the_ring_come_from_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut journal = start_run(&store, "a").await;
    const EVENTS: u32 = 10_000;
    for first in (1..=EVENTS).step_by(100) {
        journal.append(with_events(buffered_batch(&["x"]), "a", first..first + 100)).await.unwrap();
    }
    store.wait_past(u64::from(EVENTS) - 1).await;
    let all = all_after(&store, 0, 1000).await;
    assert_eq!(all.len(), EVENTS as usize);
    let on_disk: Vec<(i64, String)> = {
        let plain = plain(dir.path());
        let mut rows = plain.prepare("SELECT id, body FROM events ORDER BY id").unwrap();
        rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    let seen = |event: &LoggedEvent| (event.position as i64, event.json.to_string());
    assert_eq!(all.iter().map(seen).collect::<Vec<_>>(), on_disk);
    // Around the first of the 4096 events in memory.
    for after in (5890..=5910).chain([0, 1, 9_999]) {
        assert_eq!(
            store.read_after(after, 20).await.unwrap(),
            all[after as usize..][..20.min(10_000 - after as usize)]
        );
    }
}

// SECURITY: run-limits
#[tokio::test]
async fn the_oldest_events_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (most, slack) = (500_u64, 1024);
    let store = Store::open_with_log(dir.path(), with_max_events(500)).unwrap();
    let mut journal = start_run(&store, "a").await;
    let tables = plain(dir.path());
    let mut gone = 0;
    for first in (1..=20_000).step_by(250) {
        journal.append(with_events(synced_batch(&["x"]), "a", first..first + 250)).await.unwrap();
        let EventBounds { oldest, newest } = store.bounds();
        assert_eq!(newest, u64::from(first) + 249);
        let kept = newest - oldest;
        assert!(kept <= most + slack && kept >= most.min(newest), "{kept}");
        assert_eq!(number(&tables, "SELECT count(*) FROM events"), kept as i64);
        assert_eq!(number(&tables, "SELECT min(id) FROM events"), oldest as i64 + 1);
        assert!(oldest >= gone);
        gone = oldest;
        // A reader before the oldest event sees a gap; a reader at the oldest event does not.
        assert_eq!(store.read_after(0, 1).await.unwrap()[0].position, oldest + 1);
        assert_eq!(store.read_after(oldest, 1).await.unwrap()[0].position, oldest + 1);
    }
    assert!(gone > 17_000);
    let bounds = store.bounds();
    drop(store);
    // A smaller limit is reached after a few groups, many events at a time.
    let store = Store::open_with_log(dir.path(), with_max_events(0)).unwrap();
    assert_eq!(store.bounds(), bounds);
    for number in 0..1100 {
        store.append(1, debug_event(number));
        store.wait_past(bounds.newest + number).await;
    }
    let EventBounds { oldest, newest } = store.bounds();
    assert!(newest == 20_000 + 1100 && newest - oldest <= 1 + slack, "{oldest} {newest}");
    assert_eq!(all_after(&store, oldest, 100).await.len() as u64, newest - oldest);
}

/// Thousands of events in each group do not outrun the removal.
#[tokio::test]
async fn removal_keeps_up_with_new_events() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_with_log(dir.path(), with_max_events(100)).unwrap();
    let mut journal = start_run(&store, "a").await;
    for first in (1..=60_000).step_by(10_000) {
        journal.append(with_events(synced_batch(&["x"]), "a", first..first + 10_000)).await.unwrap();
    }
    let EventBounds { oldest, newest } = store.bounds();
    assert_eq!(newest, 60_000);
    assert!(newest - oldest <= 100 + 1024, "{oldest}");
}

// SECURITY: run-limits
#[tokio::test]
async fn the_memory_log_is_limited_in_events_and_bytes() {
    let store = MemoryStore::with_event_log(1, with_max_events(10));
    let mut journal = start_run(&store, "a").await;
    for seq in 1..=100 {
        journal.append(with_events(synced_batch(&["x"]), "a", [seq])).await.unwrap();
        let newest = u64::from(seq);
        assert_eq!(store.bounds(), EventBounds { oldest: newest.saturating_sub(10), newest });
    }
    let kept: Vec<String> = (91..=100).map(|seq| format!("a {seq}")).collect();
    assert_eq!(events_after(&store, 0).await, kept);
    assert_eq!(events_after(&store, 95).await, kept[5..]);
    // One batch with more events than the limit.
    journal.append(with_events(last_batch(1), "a", 101..=150)).await.unwrap();
    assert_eq!(store.bounds(), EventBounds { oldest: 140, newest: 150 });

    let large = MemoryStore::with_event_log(1, EventLogSettings::default());
    for _ in 0..3000 {
        large.append(1, debug_event("x".repeat(16_000)));
    }
    let EventBounds { oldest, newest } = large.bounds();
    assert!(newest == 3000 && newest - oldest <= (MemoryStore::MAX_EVENT_BYTES / 16_000) as u64, "{oldest}");
    assert_eq!(all_after(&large, oldest, 1000).await.len() as u64, newest - oldest);
    assert_ne!(large.id(), store.id());
}

/// A directory of the version without events.
#[tokio::test]
async fn an_older_directory_can_be_used() {
    let dir = tempfile::tempdir().unwrap();
    {
        let store = Store::open(dir.path()).unwrap();
        finish_run(&store, "over", 1).await;
        drop(start_run(&store, "open").await);
    }
    let old = "DROP TABLE usage; DROP TABLE tool_usage; DROP INDEX runs_by_parent; DROP INDEX runs_by_start;
               DROP INDEX runs_failed_by_end; DROP INDEX runs_failed_by_start; DROP INDEX runs_waiting; ALTER TABLE runs DROP COLUMN parent;
               DROP INDEX runs_by_agent; DROP INDEX runs_by_instance; DROP INDEX runs_failed; DROP INDEX runs_failed_by_agent; DROP TABLE chat_items;
               DROP TABLE chats; DROP TABLE events; ALTER TABLE meta DROP COLUMN log;
               ALTER TABLE runs DROP COLUMN started_by; ALTER TABLE runs DROP COLUMN tally;
               DROP INDEX runs_by_user; DROP INDEX runs_by_session; ALTER TABLE runs DROP COLUMN user;
               ALTER TABLE runs DROP COLUMN session; ALTER TABLE meta DROP COLUMN unclean; PRAGMA user_version = 1;";
    plain(dir.path()).execute_batch(old).unwrap();
    // Reading changes nothing, and a backup can be made.
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.list(&RunFilter::default()).unwrap().runs.len(), 2);
    let copy = tempfile::tempdir().unwrap();
    assert_eq!(reader.backup(&copy.path().join("redflow.db")).unwrap().runs, 2);
    assert_eq!(number(&plain(copy.path()), "PRAGMA user_version"), 1);

    for dir in [dir.path(), copy.path()] {
        let store = open(dir);
        let mut journal = store.reopen(&store.load(&id("open")).await.unwrap().unwrap());
        journal.append(with_events(last_batch(3), "open", [9])).await.unwrap();
        assert_eq!(events_after(&store, 0).await, ["open 9"]);
        assert_eq!(store.list(RunFilter::default()).await.unwrap().runs.len(), 2);
        assert_eq!(store.id().len(), 32);
    }
}

/// After a backup the copy gets other events, so a cursor of the original must not work with it.
#[tokio::test]
async fn a_backup_has_another_log_id() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut journal = start_run_with_event(&store, "a").await;
    let copy = tempfile::tempdir().unwrap();
    Reader::open(dir.path()).unwrap().backup(&copy.path().join("redflow.db")).unwrap();
    journal.append(with_events(last_batch(1), "a", [2])).await.unwrap();
    let copied = open(copy.path());
    assert_ne!(copied.id(), store.id());
    assert_eq!(events_after(&copied, 0).await, ["a 1"]);
    let (here, there) = (store.id().to_owned(), copied.id().to_owned());
    drop((store, copied));
    assert_eq!((open(dir.path()).id(), open(copy.path()).id()), (here.as_str(), there.as_str()));
}

#[tokio::test]
async fn a_missing_or_unreadable_event_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let _journal = start_run_with_event(&store, "a").await;
    for number in 0..10 {
        store.append(1, debug_event(number));
    }
    store.wait_past(10).await;
    drop(store);
    plain(dir.path()).execute("DELETE FROM events WHERE id = 5", []).unwrap();
    let store = open(dir.path());
    assert_eq!(store.read_after(0, 4).await.unwrap().len(), 4);
    assert_eq!(store.read_after(0, 6).await.unwrap_err().code, StoreCode::DataCorrupt);
    assert_eq!(store.read_after(5, 6).await.unwrap().len(), 6);
    plain(dir.path()).execute("UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE id = 7", []).unwrap();
    assert_eq!(store.read_after(5, 6).await.unwrap_err().code, StoreCode::DataCorrupt);
    // New events are stored all the same.
    store.append(1, debug_event("more"));
    store.wait_past(11).await;
    assert_eq!(events_after(&store, 11).await, ["debug \"more\""]);
}

/// A damaged run is readable up to the damage, and does not hide other runs.
#[tokio::test]
async fn a_damaged_run_is_readable_up_to_the_damage() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for run in ["a", "b", "c"] {
        finish_run(&store, run, 1).await;
    }
    plain(dir.path()).execute("UPDATE batches SET lines = x'78' WHERE run = 2 AND seq = 1", []).unwrap();
    let record = store.read(&id("b")).await.unwrap().unwrap();
    assert_eq!(record.summary.status, RunStatus::Damaged);
    let problem = record.problem.unwrap();
    assert_eq!(problem, store.load(&id("b")).await.unwrap_err());
    assert_eq!(problem.code, StoreCode::DataCorrupt);
    let sound = Reader::open(dir.path()).unwrap().intact_part(&id("b")).unwrap().unwrap();
    assert_eq!(record.journal, sound.journal);
    assert!(!record.journal.is_empty());

    // An unreadable row can still be the start of a page.
    plain(dir.path()).execute("UPDATE runs SET run_id = CAST(x'62ff' AS TEXT) WHERE id = 2", []).unwrap();
    let page =
        |before: Option<redflow_contract::id::RunId>| RunFilter { before, limit: 2, ..RunFilter::default() };
    let runs = store.list(page(None)).await.unwrap().runs;
    assert_eq!((runs.len(), &runs[0].run_id, runs[1].status), (2, &id("c"), RunStatus::Damaged));
    let rest = store.list(page(Some(runs[1].run_id.clone()))).await.unwrap().runs;
    assert_eq!(rest.iter().map(|run| &run.run_id).collect::<Vec<_>>(), [&id("a")]);
}
