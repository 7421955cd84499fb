use super::Store;
use crate::kit::{begun, delivered, finished, id, last, new_run, now, soon};
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunStatus;
use redflow_ports::RunStore as _;
use std::path::Path;

/// Room for what is there, and no more.
async fn fill(store: &Store, dir: &Path) {
    let pages = |name: &str| -> i64 {
        let connection = rusqlite::Connection::open(dir.join("redflow.db")).unwrap();
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap()
    };
    store.sql(&format!("PRAGMA max_page_count = {}", pages("page_count"))).await;
}

async fn make_room(store: &Store) {
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

    make_room(&store).await;
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
    make_room(&store).await;
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

/// A program that holds the database longer than a write waits.
#[tokio::test]
async fn a_held_database_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = begun(&store, "a").await;
    store.sql("PRAGMA busy_timeout = 0").await;
    let holder = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let busy = journal.append(now(&["x"])).await.unwrap_err();
    assert_eq!(busy.code, StoreCode::DataUnusable);
    assert!(busy.message.contains("busy"), "{busy}");
    holder.execute_batch("COMMIT").unwrap();
    finished(&store, "b", 1).await;
}
