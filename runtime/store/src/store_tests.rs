use super::Store;
use crate::EventLogSettings;
use crate::kit::{
    buffered_batch, debug_event, deliver_run, deployed_event, events_after, finish_run, id, last_batch,
    new_run, start_run, start_run_with_event, synced_batch, with_events,
};
use redflow_contract::code::StoreCode;
use redflow_contract::memory::DataOwner;
use redflow_contract::run::RunStatus;
use redflow_ports::{EventLog as _, RunStore as _};
use std::path::Path;
use std::task::{Context, Waker};
use std::time::Duration;

/// Makes the disk full: the database may not grow.
async fn fill_disk(store: &Store, dir: &Path) {
    let pages = |name: &str| -> i64 {
        let connection = rusqlite::Connection::open(dir.join("redflow.db")).unwrap();
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap()
    };
    store.sql(&format!("PRAGMA max_page_count = {}", pages("page_count"))).await;
}

async fn free_disk(store: &Store) {
    store.sql("PRAGMA max_page_count = 1000000").await;
}

#[tokio::test]
async fn a_full_disk_refuses_batches_until_it_has_room_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let large = "x".repeat(50_000);
    let mut journal = start_run(&store, "a").await;
    let mut other = start_run(&store, "b").await;
    fill_disk(&store, dir.path()).await;
    let full = journal.append(synced_batch(&[&large])).await.unwrap_err();
    assert_eq!(full.code, StoreCode::DataFull);
    assert!(full.message.contains(dir.path().to_str().unwrap()), "{full}");
    assert_eq!(journal.append(last_batch(1)).await.unwrap_err(), full, "nothing more is stored");

    // The failure of a buffered batch shows at the next batch.
    other.append(buffered_batch(&[&large])).await.unwrap();
    assert_eq!(store.load(&id("b")).await.unwrap().unwrap().mark.batches, 1, "nothing is half written");
    assert_eq!(other.append(synced_batch(&["small"])).await.unwrap_err(), full);

    // A run that could not start is not stored.
    let run = new_run("c");
    let mut lines = crate::kit::opening_lines(&run);
    lines.push(large);
    let batch = redflow_ports::Batch { lines, ..synced_batch(&[]) };
    assert_eq!(store.create(run).append(batch).await.unwrap_err(), full);
    assert!(store.load(&id("c")).await.unwrap().is_none());

    free_disk(&store).await;
    finish_run(&store, "d", 1).await;
    let stored = store.load(&id("a")).await.unwrap().unwrap();
    store.reopen(&stored).append(last_batch(1)).await.unwrap();
    finish_run(&store, "c", 1).await;
}

/// Everything in the group of a failed batch fails with it, but a background write is retried.
#[tokio::test]
async fn a_group_fails_together_and_background_writes_are_retried() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "over", 1).await;
    let (mut small, mut large) = (start_run(&store, "small").await, start_run(&store, "large").await);
    let parked = store.load(&id("small")).await.unwrap().unwrap();
    fill_disk(&store, dir.path()).await;

    let holder = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    small.append(buffered_batch(&["x"])).await.unwrap();
    store.mark_delivered(&id("over"));
    let mut taken = store.reopen(&parked);
    large.append(buffered_batch(&[&"x".repeat(50_000)])).await.unwrap();
    holder.execute_batch("COMMIT").unwrap();

    let over = store.load(&id("over")).await.unwrap().unwrap().summary;
    assert_eq!((over.status, over.delivered), (RunStatus::Completed, false));
    for journal in [&mut small, &mut taken, &mut large] {
        journal.append(synced_batch(&["more"])).await.unwrap_err();
    }
    assert_eq!(store.load(&id("small")).await.unwrap().unwrap().mark.batches, 1);
    free_disk(&store).await;
    assert!(store.load(&id("over")).await.unwrap().unwrap().summary.delivered);
}

/// A store retries background writes once more before it closes.
#[tokio::test]
async fn background_writes_are_retried_when_the_store_closes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "over", 1).await;
    let mut large = start_run(&store, "large").await;
    fill_disk(&store, dir.path()).await;
    let holder = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.mark_delivered(&id("over"));
    large.append(buffered_batch(&[&"x".repeat(50_000)])).await.unwrap();
    holder.execute_batch("COMMIT").unwrap();
    assert!(!store.load(&id("over")).await.unwrap().unwrap().summary.delivered);
    drop(store);
    let reader = crate::Reader::open(dir.path()).unwrap();
    assert!(reader.summary(&id("over")).unwrap().unwrap().delivered);
}

/// After a failed statement the next commands are written.
#[tokio::test]
async fn the_writer_survives_any_error() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = start_run(&store, "a").await;
    store.sql("no SQL at all").await;
    journal.append(synced_batch(&["goes on"])).await.unwrap();
    store.sql("ALTER TABLE batches RENAME TO hidden").await;
    assert_eq!(journal.append(synced_batch(&["x"])).await.unwrap_err().code, StoreCode::DataUnusable);
    store.sql("ALTER TABLE hidden RENAME TO batches").await;
    deliver_run(&store, "d", 1).await;
    assert!(store.load(&id("d")).await.unwrap().unwrap().summary.delivered);
}

/// Another program holds the database for longer than the timeout.
#[tokio::test]
async fn a_database_held_for_too_long_is_reported_as_busy() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = start_run(&store, "a").await;
    store.set_busy_timeout(Duration::ZERO);
    store.sql("PRAGMA busy_timeout = 0").await;
    let holder = hold(dir.path());
    let busy = journal.append(synced_batch(&["x"])).await.unwrap_err();
    assert_eq!(busy.code, StoreCode::DataUnusable);
    assert!(busy.message.contains("busy"), "{busy}");
    holder.execute_batch("COMMIT").unwrap();
    finish_run(&store, "b", 1).await;
}

fn hold(dir: &Path) -> rusqlite::Connection {
    let holder = rusqlite::Connection::open(dir.join("redflow.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    holder
}

/// Before the timeout nothing fails: new batches join the group.
#[tokio::test]
async fn the_writer_waits_for_a_held_database() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (mut one, mut two) = (start_run(&store, "a").await, start_run(&store, "b").await);
    // Each attempt fails at once, so that there are many.
    store.sql("PRAGMA busy_timeout = 0").await;
    let before = store.stats();
    let holder = hold(dir.path());
    {
        let (first, second) = (one.append(synced_batch(&["x"])), two.append(synced_batch(&["y"])));
        tokio::pin!(first, second);
        for append in [&mut first, &mut second] {
            assert!(tokio::time::timeout(Duration::from_millis(200), append).await.is_err());
        }
        holder.execute_batch("COMMIT").unwrap();
        first.await.unwrap();
        second.await.unwrap();
    }
    let after = store.stats();
    assert_eq!((after.flushes - before.flushes, after.batches - before.batches), (1, 2));
    one.append(last_batch(1)).await.unwrap();
}

#[tokio::test]
async fn closing_the_store_does_not_wait_for_a_held_database() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = start_run(&store, "a").await;
    store.sql("PRAGMA busy_timeout = 0").await;
    let holder = hold(dir.path());
    let appending = tokio::spawn(async move { journal.append(synced_batch(&["x"])).await });
    tokio::task::yield_now().await;
    let started = std::time::Instant::now();
    drop(store);
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(appending.await.unwrap().unwrap_err().code, StoreCode::DataUnusable);
    holder.execute_batch("COMMIT").unwrap();
    let stored = crate::Reader::open(dir.path()).unwrap().load(&id("a")).unwrap().unwrap();
    assert_eq!(stored.mark.batches, 1);
}

const REFUSE: &str = "CREATE TRIGGER refuse BEFORE UPDATE OF delivered ON runs WHEN OLD.run_id = 'bad'
                      BEGIN SELECT RAISE(ABORT, 'no'); END";

/// A background write that can never succeed does not affect others, and is given up at last.
#[tokio::test]
async fn a_background_write_that_always_fails_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "bad", 1).await;
    finish_run(&store, "good", 1).await;
    let mut journal = start_run(&store, "a").await;
    store.sql(REFUSE).await;
    let is_delivered = async |run: &str| store.load(&id(run)).await.unwrap().unwrap().summary.delivered;

    // In one group with others.
    let holder = hold(dir.path());
    store.mark_delivered(&id("bad"));
    journal.append(buffered_batch(&["x"])).await.unwrap();
    holder.execute_batch("COMMIT").unwrap();
    journal.append(synced_batch(&["y"])).await.unwrap();
    assert!(!is_delivered("bad").await);

    // It waits for a retry together with others, whose group failed.
    let mut large = start_run(&store, "large").await;
    fill_disk(&store, dir.path()).await;
    let holder = hold(dir.path());
    store.mark_delivered(&id("good"));
    large.append(buffered_batch(&[&"x".repeat(50_000)])).await.unwrap();
    holder.execute_batch("COMMIT").unwrap();
    assert!(!is_delivered("good").await);
    free_disk(&store).await;
    assert_eq!((is_delivered("good").await, is_delivered("bad").await), (true, false));

    // It could be written now, if it were still retried.
    for _ in 0..110 {
        store.mark_delivered(&id("no such run"));
        store.unfinished_runs().await.unwrap();
    }
    store.sql("DROP TRIGGER refuse").await;
    journal.append(synced_batch(&["z"])).await.unwrap();
    assert!(!is_delivered("bad").await);
    store.mark_delivered(&id("bad"));
    assert!(is_delivered("bad").await);
}

/// A background write that succeeds before it is given up is not lost.
#[tokio::test]
async fn a_background_write_that_fails_for_a_while_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "bad", 1).await;
    store.sql(REFUSE).await;
    store.mark_delivered(&id("bad"));
    for _ in 0..20 {
        store.mark_delivered(&id("no such run"));
        store.unfinished_runs().await.unwrap();
    }
    store.sql("DROP TRIGGER refuse").await;
    assert!(store.load(&id("bad")).await.unwrap().unwrap().summary.delivered);
}

/// The table of requests does not grow with the life of the driver.
#[tokio::test]
async fn old_answered_requests_are_removed_now_and_then() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let plain = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    for (at, answered) in [("1", "1"), ("1", "0"), ("1 << 60", "1")] {
        let sql =
            format!("INSERT INTO requests(run_id, body, at, answered) VALUES ('a', '', {at}, {answered})");
        plain.execute(&sql, []).unwrap();
    }
    let count = || plain.query_row("SELECT count(*) FROM requests", [], |row| row.get::<_, i64>(0)).unwrap();
    for _ in 0..crate::writer::REMOVE_REQUESTS_AFTER {
        assert_eq!(count(), 3);
        store.mark_delivered(&id("no such run"));
        store.writer.queue.wait_until_written().await.unwrap();
    }
    store.writer.queue.wait_until_written().await.unwrap();
    assert_eq!(count(), 2);
}

fn with_log(dir: &Path) -> Store {
    Store::open_with_log(dir, EventLogSettings::default()).unwrap()
}

/// While another program holds the database, nothing can be committed: so nothing is readable, and a waiting
/// reader keeps waiting.
#[tokio::test]
async fn events_are_readable_only_after_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_log(dir.path());
    let mut journal = start_run_with_event(&store, "a").await;
    assert_eq!(events_after(&store, 0).await, ["a 1"]);
    let holder = hold(dir.path());
    journal.append(with_events(buffered_batch(&["x"]), "a", [2, 3])).await.unwrap();
    store.append(5, debug_event("later"));
    let bounds = redflow_ports::EventBounds { oldest: 0, newest: 1 };
    {
        let mut waits = store.wait_past(1);
        for _ in 0..100 {
            assert_eq!(store.bounds(), bounds);
            assert_eq!(store.read_after(1, 10).await.unwrap(), []);
            let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
            tokio::task::yield_now().await;
        }
        holder.execute_batch("COMMIT").unwrap();
        waits.await;
    }
    store.wait_past(3).await;
    assert_eq!(events_after(&store, 0).await, ["a 1", "a 2", "a 3", "debug \"later\""]);
    let stored = crate::Reader::open(dir.path()).unwrap().load(&id("a")).unwrap().unwrap();
    assert_eq!(stored.mark.batches, 2);
}

/// The next events get the positions of events that were not stored.
#[tokio::test]
async fn a_failed_group_gives_its_positions_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_log(dir.path());
    let (mut large, mut small) =
        (start_run_with_event(&store, "l").await, start_run_with_event(&store, "s").await);
    fill_disk(&store, dir.path()).await;
    let holder = hold(dir.path());
    small.append(with_events(buffered_batch(&["x"]), "s", [2])).await.unwrap();
    large.append(with_events(buffered_batch(&[&"x".repeat(50_000)]), "l", [2, 3])).await.unwrap();
    // Of the flow events, only debug events may be lost.
    store.append(5, debug_event("lost"));
    store.append(6, deployed_event("stays"));
    holder.execute_batch("COMMIT").unwrap();
    small.append(synced_batch(&["more"])).await.unwrap_err();
    assert_eq!(events_after(&store, 0).await, ["l 1", "s 1"]);
    free_disk(&store).await;
    let mut other = start_run_with_event(&store, "o").await;
    other.append(with_events(synced_batch(&["x"]), "o", [2])).await.unwrap();
    store.wait_past(4).await;
    // The retry follows the first group that was stored.
    assert_eq!(events_after(&store, 0).await, ["l 1", "s 1", "deployed stays", "o 1", "o 2"]);
    let (waiting, bytes, _) = store.writer.flow_events.counts();
    assert_eq!((waiting, bytes), (0, 0));
    drop(store);
    let store = with_log(dir.path());
    assert_eq!(events_after(&store, 0).await, ["l 1", "s 1", "deployed stays", "o 1", "o 2"]);
}

/// A failed flow event does not stop a run; events of a run are stored with its batch or not at all.
#[tokio::test]
async fn a_broken_event_table_fails_only_runs_that_write_events() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_log(dir.path());
    let (mut one, mut two) = (start_run(&store, "a").await, start_run(&store, "b").await);
    store.sql("ALTER TABLE events RENAME TO hidden").await;
    store.append(5, debug_event("lost"));
    store.append(6, deployed_event("stays"));
    one.append(synced_batch(&["no event"])).await.unwrap();
    let refused = two.append(with_events(synced_batch(&["x"]), "b", [1])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert_eq!((store.bounds().newest, store.writer.flow_events.counts().0), (0, 1));
    store.sql("ALTER TABLE hidden RENAME TO events").await;
    one.append(with_events(synced_batch(&["y"]), "a", [1])).await.unwrap();
    store.wait_past(1).await;
    let mut events = events_after(&store, 0).await;
    events.sort();
    assert_eq!(events, ["a 1", "deployed stays"]);
}

/// The engine never waits for the disk. Debug events that come too fast are dropped; other events are not.
// SECURITY: run-limits
#[tokio::test]
async fn a_flood_of_debug_events_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_log(dir.path());
    let mut journal = start_run(&store, "a").await;
    let holder = hold(dir.path());
    journal.append(with_events(buffered_batch(&["x"]), "a", [1])).await.unwrap();
    for number in 0..12_000 {
        store.append(5, debug_event(number));
    }
    store.append(6, deployed_event("r"));
    let (waiting, bytes, dropped) = store.writer.flow_events.counts();
    assert_eq!((waiting, dropped), (10_001, 2_000));
    assert!(bytes > 10_001 * 50, "{bytes}");
    holder.execute_batch("COMMIT").unwrap();
    store.wait_past(10_001).await;
    let events = events_after(&store, 0).await;
    assert_eq!((events.len(), events[0].as_str()), (10_002, "a 1"));
    assert_eq!((events[1].as_str(), events[10_000].as_str()), ("debug 0", "debug 9999"));
    assert_eq!(events[10_001], "deployed r");
    store.writer.queue.wait_until_written().await.unwrap();
    assert_eq!(store.writer.flow_events.counts(), (0, 0, 0), "there is room again, and the loss was logged");
    store.append(7, debug_event("again"));
    store.wait_past(10_002).await;
}

/// A retried item goes to its place in the chat; an item of a chat that was cleared meanwhile is not written.
#[tokio::test]
async fn a_failed_chat_item_is_stored_later_in_its_place() {
    use redflow_contract::chat::{ChatItem, ChatSpeaker};
    use redflow_ports::ChatStore;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let append = |node: &str, id: &str| {
        let (id, content) = (id.to_owned(), String::new());
        let item = ChatItem {
            id,
            speaker: ChatSpeaker::User,
            content,
            timestamp: 1,
            trace_id: None,
            iteration: None,
        };
        ChatStore::append(&store, &node.into(), item, 100);
    };
    let items = async |node: &str| {
        let items = store.items(&node.into()).await.unwrap();
        items.into_iter().map(|item| item.id).collect::<Vec<_>>().join(" ")
    };
    append("chat", "1");
    store
        .sql(
            "CREATE TRIGGER refuse BEFORE INSERT ON chat_items WHEN NEW.item = 'bad' OR NEW.item = 'worse'
             BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .await;
    append("chat", "bad");
    append("cleared", "worse");
    append("chat", "3");
    assert_eq!(items("chat").await, "1 3");
    assert_eq!(items("cleared").await, "");
    store.clear(&"cleared".into()).await.unwrap();
    store.sql("DROP TRIGGER refuse").await;
    append("chat", "4");
    // Background writes are retried after the next group.
    append("chat", "5");
    store.writer.queue.wait_until_written().await.unwrap();
    assert_eq!(items("chat").await, "1 bad 3 4 5");
    assert_eq!(items("cleared").await, "");
}

/// The batches of other runs must not be lost because runs could not be removed.
#[tokio::test]
async fn a_failed_forget_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "over", 1).await;
    let mut journal = start_run(&store, "open").await;
    // The batches of the run are removed before this fails.
    let refuse = "CREATE TRIGGER refuse BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'no'); END";
    store.sql(refuse).await;
    let holder = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    journal.append(buffered_batch(&["before"])).await.unwrap();
    let owner = DataOwner::Source("over".into());
    let mut forget = store.forget_runs(&owner);
    assert!(forget.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    journal.append(buffered_batch(&["after"])).await.unwrap();
    holder.execute_batch("COMMIT").unwrap();
    assert_eq!(forget.await.unwrap_err().code, StoreCode::DataUnusable);
    journal.append(last_batch(1)).await.unwrap();
    assert_eq!(store.load(&id("open")).await.unwrap().unwrap().mark.batches, 4);
    assert!(store.load(&id("over")).await.unwrap().unwrap().mark.batches > 1, "half of it is removed");
    store.sql("DROP TRIGGER refuse").await;
    assert_eq!(store.forget_runs(&owner).await.unwrap().removed, 1);
}
