use super::Store;
use crate::EventLogSettings;
use crate::kit::{
    begun, begun_with_event, debug, delivered, deployed, finished, id, last, new_run, now, soon, told_after,
    with_events,
};
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunStatus;
use redflow_ports::{EventLog as _, RunStore as _};
use std::path::Path;
use std::task::{Context, Waker};
use std::time::Duration;

/// Room for what is there, and no more.
async fn fill(store: &Store, dir: &Path) {
    let pages = |name: &str| -> i64 {
        let connection = rusqlite::Connection::open(dir.join("redflow.db")).unwrap();
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap()
    };
    store.sql(&format!("PRAGMA max_page_count = {}", pages("page_count"))).await;
}

async fn raise_open_file_limit(store: &Store) {
    store.sql("PRAGMA max_page_count = 1000000").await;
}

#[tokio::test]
async fn a_full_disk_refuses_and_has_room_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let large = "x".repeat(50_000);
    let mut journal = begun(&store, "a").await;
    let mut other = begun(&store, "b").await;
    fill(&store, dir.path()).await;
    let full = journal.append(now(&[&large])).await.unwrap_err();
    assert_eq!(full.code, StoreCode::DataFull);
    assert!(full.message.contains(dir.path().to_str().unwrap()), "{full}");
    assert_eq!(journal.append(last(1)).await.unwrap_err(), full, "nothing more is kept");

    // What is not waited for fails at the next batch.
    other.append(soon(&[&large])).await.unwrap();
    assert_eq!(store.load(&id("b")).await.unwrap().unwrap().mark.batches, 1, "nothing half written");
    assert_eq!(other.append(now(&["small"])).await.unwrap_err(), full);

    // A run that cannot begin is not there.
    let run = new_run("c");
    let mut lines = crate::kit::opening(&run);
    lines.push(large);
    let batch = redflow_ports::Batch { lines, ..now(&[]) };
    assert_eq!(store.create(run).append(batch).await.unwrap_err(), full);
    assert!(store.load(&id("c")).await.unwrap().is_none());

    raise_open_file_limit(&store).await;
    finished(&store, "d", 1).await;
    let stored = store.load(&id("a")).await.unwrap().unwrap();
    store.reopen(&stored).append(last(1)).await.unwrap();
    finished(&store, "c", 1).await;
}

/// Everything in the group of a batch that finds no room is refused with it, but a mark is not forgotten.
#[tokio::test]
async fn a_group_fails_together_and_marks_are_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finished(&store, "over", 1).await;
    let (mut small, mut large) = (begun(&store, "small").await, begun(&store, "large").await);
    let parked = store.load(&id("small")).await.unwrap().unwrap();
    fill(&store, dir.path()).await;

    let holder = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    small.append(soon(&["x"])).await.unwrap();
    store.delivered(&id("over"));
    let mut taken = store.reopen(&parked);
    large.append(soon(&[&"x".repeat(50_000)])).await.unwrap();
    holder.execute_batch("COMMIT").unwrap();

    let over = store.load(&id("over")).await.unwrap().unwrap().summary;
    assert_eq!((over.status, over.delivered), (RunStatus::Completed, false));
    for journal in [&mut small, &mut taken, &mut large] {
        journal.append(now(&["more"])).await.unwrap_err();
    }
    assert_eq!(store.load(&id("small")).await.unwrap().unwrap().mark.batches, 1);
    raise_open_file_limit(&store).await;
    assert!(store.load(&id("over")).await.unwrap().unwrap().summary.delivered);
}

/// The last thing a store does is to try those marks once more.
#[tokio::test]
async fn marks_are_tried_again_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finished(&store, "over", 1).await;
    let mut large = begun(&store, "large").await;
    fill(&store, dir.path()).await;
    let holder = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.delivered(&id("over"));
    large.append(soon(&[&"x".repeat(50_000)])).await.unwrap();
    holder.execute_batch("COMMIT").unwrap();
    assert!(!store.load(&id("over")).await.unwrap().unwrap().summary.delivered);
    drop(store);
    let reader = crate::Reader::open(dir.path()).unwrap();
    assert!(reader.summary(&id("over")).unwrap().unwrap().delivered);
}

/// A failed statement that is nobody's fault in particular.
#[tokio::test]
async fn the_writer_outlives_any_error() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = begun(&store, "a").await;
    store.sql("no SQL at all").await;
    journal.append(now(&["goes on"])).await.unwrap();
    store.sql("ALTER TABLE batches RENAME TO hidden").await;
    assert_eq!(journal.append(now(&["x"])).await.unwrap_err().code, StoreCode::DataUnusable);
    store.sql("ALTER TABLE hidden RENAME TO batches").await;
    delivered(&store, "d", 1).await;
    assert!(store.load(&id("d")).await.unwrap().unwrap().summary.delivered);
}

/// A program that holds the database for longer than anyone waits.
#[tokio::test]
async fn a_held_database_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = begun(&store, "a").await;
    store.patience(Duration::ZERO);
    store.sql("PRAGMA busy_timeout = 0").await;
    let holder = hold(dir.path());
    let busy = journal.append(now(&["x"])).await.unwrap_err();
    assert_eq!(busy.code, StoreCode::DataUnusable);
    assert!(busy.message.contains("busy"), "{busy}");
    holder.execute_batch("COMMIT").unwrap();
    finished(&store, "b", 1).await;
}

fn hold(dir: &Path) -> rusqlite::Connection {
    let holder = rusqlite::Connection::open(dir.join("redflow.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    holder
}

/// As long as it may be, nothing fails: what comes meanwhile joins the group.
#[tokio::test]
async fn a_held_database_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (mut one, mut two) = (begun(&store, "a").await, begun(&store, "b").await);
    // Each try fails at once, so that there are many.
    store.sql("PRAGMA busy_timeout = 0").await;
    let before = store.stats();
    let holder = hold(dir.path());
    {
        let (first, second) = (one.append(now(&["x"])), two.append(now(&["y"])));
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
    one.append(last(1)).await.unwrap();
}

/// Whoever closes the store does not wait for that program.
#[tokio::test]
async fn a_closed_store_waits_no_longer() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = begun(&store, "a").await;
    store.sql("PRAGMA busy_timeout = 0").await;
    let holder = hold(dir.path());
    let appending = tokio::spawn(async move { journal.append(now(&["x"])).await });
    tokio::task::yield_now().await;
    let began = std::time::Instant::now();
    drop(store);
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(appending.await.unwrap().unwrap_err().code, StoreCode::DataUnusable);
    holder.execute_batch("COMMIT").unwrap();
    let stored = crate::Reader::open(dir.path()).unwrap().load(&id("a")).unwrap().unwrap();
    assert_eq!(stored.mark.batches, 1);
}

const REFUSE: &str = "CREATE TRIGGER refuse BEFORE UPDATE OF delivered ON runs WHEN OLD.run_id = 'bad'
                      BEGIN SELECT RAISE(ABORT, 'no'); END";

/// A mark that can never be kept costs nobody else anything, and is given up at last.
#[tokio::test]
async fn a_mark_that_always_fails_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finished(&store, "bad", 1).await;
    finished(&store, "good", 1).await;
    let mut journal = begun(&store, "a").await;
    store.sql(REFUSE).await;
    let is_delivered = async |run: &str| store.load(&id(run)).await.unwrap().unwrap().summary.delivered;

    // In one group with others.
    let holder = hold(dir.path());
    store.delivered(&id("bad"));
    journal.append(soon(&["x"])).await.unwrap();
    holder.execute_batch("COMMIT").unwrap();
    journal.append(now(&["y"])).await.unwrap();
    assert!(!is_delivered("bad").await);

    // Left over together with others, of a group that failed.
    let mut large = begun(&store, "large").await;
    fill(&store, dir.path()).await;
    let holder = hold(dir.path());
    store.delivered(&id("good"));
    large.append(soon(&[&"x".repeat(50_000)])).await.unwrap();
    holder.execute_batch("COMMIT").unwrap();
    assert!(!is_delivered("good").await);
    raise_open_file_limit(&store).await;
    assert_eq!((is_delivered("good").await, is_delivered("bad").await), (true, false));

    // It would be kept now, if it were still tried.
    for _ in 0..110 {
        store.delivered(&id("no such run"));
        store.unfinished().await.unwrap();
    }
    store.sql("DROP TRIGGER refuse").await;
    journal.append(now(&["z"])).await.unwrap();
    assert!(!is_delivered("bad").await);
    store.delivered(&id("bad"));
    assert!(is_delivered("bad").await);
}

/// What can be kept again before it is given up is not lost.
#[tokio::test]
async fn a_mark_that_fails_for_a_while_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finished(&store, "bad", 1).await;
    store.sql(REFUSE).await;
    store.delivered(&id("bad"));
    for _ in 0..20 {
        store.delivered(&id("no such run"));
        store.unfinished().await.unwrap();
    }
    store.sql("DROP TRIGGER refuse").await;
    assert!(store.load(&id("bad")).await.unwrap().unwrap().summary.delivered);
}

/// A driver that lives long does not gather what was answered long ago.
#[tokio::test]
async fn old_answers_are_forgotten_now_and_then() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let plain = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    for (at, answered) in [("1", "1"), ("1", "0"), ("1 << 60", "1")] {
        let sql =
            format!("INSERT INTO requests(run_id, body, at, answered) VALUES ('a', '', {at}, {answered})");
        plain.execute(&sql, []).unwrap();
    }
    let count = || plain.query_row("SELECT count(*) FROM requests", [], |row| row.get::<_, i64>(0)).unwrap();
    for _ in 0..crate::writer::FORGET_AFTER {
        assert_eq!(count(), 3);
        store.delivered(&id("no such run"));
        store.writer.queue.settled().await.unwrap();
    }
    store.writer.queue.settled().await.unwrap();
    assert_eq!(count(), 2);
}

fn with_log(dir: &Path) -> Store {
    Store::open_with_log(dir, EventLogSettings::default()).unwrap()
}

/// While another program holds the database, nothing can be committed: so nothing may be read, and whoever waits
/// goes on waiting.
#[tokio::test]
async fn nothing_is_told_before_it_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_log(dir.path());
    let mut journal = begun_with_event(&store, "a").await;
    assert_eq!(told_after(&store, 0).await, ["a 1"]);
    let holder = hold(dir.path());
    journal.append(with_events(soon(&["x"]), "a", [2, 3])).await.unwrap();
    store.append(5, debug("later"));
    let bounds = redflow_ports::EventBounds { oldest: 0, newest: 1 };
    {
        let mut waits = store.wait_past(1);
        for _ in 0..100 {
            assert_eq!(store.bounds(), bounds);
            assert_eq!(store.after(1, 10).await.unwrap(), []);
            let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
            tokio::task::yield_now().await;
        }
        holder.execute_batch("COMMIT").unwrap();
        waits.await;
    }
    store.wait_past(3).await;
    assert_eq!(told_after(&store, 0).await, ["a 1", "a 2", "a 3", "debug \"later\""]);
    let kept = crate::Reader::open(dir.path()).unwrap().load(&id("a")).unwrap().unwrap();
    assert_eq!(kept.mark.batches, 2);
}

/// What was not kept never happened, and its positions are those of what happens next.
#[tokio::test]
async fn a_failed_group_gives_its_positions_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_log(dir.path());
    let (mut large, mut small) = (begun_with_event(&store, "l").await, begun_with_event(&store, "s").await);
    fill(&store, dir.path()).await;
    let holder = hold(dir.path());
    small.append(with_events(soon(&["x"]), "s", [2])).await.unwrap();
    large.append(with_events(soon(&[&"x".repeat(50_000)]), "l", [2, 3])).await.unwrap();
    // Of the flow, only what it merely shows may be lost.
    store.append(5, debug("lost"));
    store.append(6, deployed("stays"));
    holder.execute_batch("COMMIT").unwrap();
    small.append(now(&["more"])).await.unwrap_err();
    assert_eq!(told_after(&store, 0).await, ["l 1", "s 1"]);
    raise_open_file_limit(&store).await;
    let mut other = begun_with_event(&store, "o").await;
    other.append(with_events(now(&["x"]), "o", [2])).await.unwrap();
    store.wait_past(4).await;
    // What is tried again comes after the first group that showed that there is room.
    assert_eq!(told_after(&store, 0).await, ["l 1", "s 1", "deployed stays", "o 1", "o 2"]);
    let (waiting, bytes, _) = store.writer.flow.waiting();
    assert_eq!((waiting, bytes), (0, 0));
    drop(store);
    let store = with_log(dir.path());
    assert_eq!(told_after(&store, 0).await, ["l 1", "s 1", "deployed stays", "o 1", "o 2"]);
}

/// Events of the flow are no reason for a run to stop; those of a run are kept with it or not at all.
#[tokio::test]
async fn a_broken_table_of_events_stops_only_runs_that_write_there() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_log(dir.path());
    let (mut one, mut two) = (begun(&store, "a").await, begun(&store, "b").await);
    store.sql("ALTER TABLE events RENAME TO hidden").await;
    store.append(5, debug("lost"));
    store.append(6, deployed("stays"));
    one.append(now(&["no event"])).await.unwrap();
    let refused = two.append(with_events(now(&["x"]), "b", [1])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert_eq!((store.bounds().newest, store.writer.flow.waiting().0), (0, 1));
    store.sql("ALTER TABLE hidden RENAME TO events").await;
    one.append(with_events(now(&["y"]), "a", [1])).await.unwrap();
    store.wait_past(1).await;
    let mut told = told_after(&store, 0).await;
    told.sort();
    assert_eq!(told, ["a 1", "deployed stays"]);
}

/// Whoever tells of the flow never waits; what comes faster than the disk goes, but only what is merely shown.
#[tokio::test]
async fn a_flood_of_debug_events_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_log(dir.path());
    let mut journal = begun(&store, "a").await;
    let holder = hold(dir.path());
    journal.append(with_events(soon(&["x"]), "a", [1])).await.unwrap();
    for number in 0..12_000 {
        store.append(5, debug(number));
    }
    store.append(6, deployed("r"));
    let (waiting, bytes, dropped) = store.writer.flow.waiting();
    assert_eq!((waiting, dropped), (10_001, 2_000));
    assert!(bytes > 10_001 * 50, "{bytes}");
    holder.execute_batch("COMMIT").unwrap();
    store.wait_past(10_001).await;
    let told = told_after(&store, 0).await;
    assert_eq!((told.len(), told[0].as_str()), (10_002, "a 1"));
    assert_eq!((told[1].as_str(), told[10_000].as_str()), ("debug 0", "debug 9999"));
    assert_eq!(told[10_001], "deployed r");
    store.writer.queue.settled().await.unwrap();
    assert_eq!(store.writer.flow.waiting(), (0, 0, 0), "there is room again, and the loss was told");
    store.append(7, debug("again"));
    store.wait_past(10_002).await;
}

/// What could not be written when it was said is written later, in its place; what was forgotten meanwhile is not.
#[tokio::test]
async fn what_is_said_without_room_comes_later_and_in_order() {
    use redflow_contract::chat::{ChatItem, ChatSpeaker};
    use redflow_ports::ChatStore as _;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let say = |node: &str, id: &str| {
        let (id, content) = (id.to_owned(), String::new());
        let item = ChatItem {
            id,
            speaker: ChatSpeaker::User,
            content,
            timestamp: 1,
            trace_id: None,
            iteration: None,
        };
        store.say(&node.into(), item, 100);
    };
    let said = async |node: &str| {
        let said = store.said(&node.into()).await.unwrap();
        said.into_iter().map(|item| item.id).collect::<Vec<_>>().join(" ")
    };
    say("chat", "1");
    store
        .sql(
            "CREATE TRIGGER refuse BEFORE INSERT ON chat_items WHEN NEW.item = 'bad' OR NEW.item = 'worse'
             BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .await;
    say("chat", "bad");
    say("cleared", "worse");
    say("chat", "3");
    assert_eq!(said("chat").await, "1 3");
    assert_eq!(said("cleared").await, "");
    store.clear(&"cleared".into()).await.unwrap();
    store.sql("DROP TRIGGER refuse").await;
    say("chat", "4");
    // Left over marks are tried after the next group.
    say("chat", "5");
    store.writer.queue.settled().await.unwrap();
    assert_eq!(said("chat").await, "1 bad 3 4 5");
    assert_eq!(said("cleared").await, "");
}
