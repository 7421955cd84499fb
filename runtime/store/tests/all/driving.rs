//! The store of the driving process: what is kept when, and how often the disk is asked for it.

use crate::kit::{
    begun, delivered, finished, finished_text, first, id, last, new_run, now, opening, plan, soon, text,
    waits,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunStatus;
use redflow_ports::{Batch, NewRun, RunStore, StoreError};
use redflow_store::{Reader, RunFilter, Store};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Waker};

fn plain(dir: &Path) -> Connection {
    Connection::open(dir.join("redflow.db")).unwrap()
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn what_waits_together_is_flushed_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let holder = plain(dir.path());
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut journals = Vec::new();
    for index in 0..100 {
        let run = new_run(&format!("run {index}"));
        let batch = Batch { durability: redflow_ports::Durability::Buffered, ..first(&run) };
        let mut journal = store.create(run);
        journal.append(batch).await.unwrap();
        journal.append(soon(&["second"])).await.unwrap();
        journals.push(journal);
    }
    assert_eq!(store.stats().batches, 0);
    holder.execute_batch("COMMIT").unwrap();
    assert_eq!(store.unfinished().await.unwrap().len(), 100);
    let stats = store.stats();
    assert_eq!((stats.flushes, stats.batches), (1, 200));
    assert!(stats.bytes > 200);
}

/// However many runs want to go on only after a flush, one flush lets them all.
#[tokio::test]
async fn runs_share_flushes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journals = Vec::new();
    for index in 0..64 {
        journals.push(begun(&store, &format!("run {index}")).await);
    }
    let before = store.stats();
    let holder = plain(dir.path());
    for _ in 0..10 {
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut kept: Vec<_> = journals.iter_mut().map(|journal| journal.append(now(&["a line"]))).collect();
        for append in &mut kept {
            // Asked once, each has queued its batch.
            assert!(append.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        holder.execute_batch("COMMIT").unwrap();
        for append in kept {
            append.await.unwrap();
        }
    }
    let after = store.stats();
    assert_eq!((after.flushes - before.flushes, after.batches - before.batches), (10, 640));
}

#[tokio::test]
async fn what_is_kept_now_is_seen_by_others_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let mut journal = begun(&store, "a").await;
    for count in 1..5 {
        let stored = reader.load(&id("a")).unwrap().unwrap();
        assert_eq!((stored.mark.batches, stored.summary.status), (count, RunStatus::Running));
        journal.append(now(&["more"])).await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_store_has_written_everything_and_leaves_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = begun(&store, "a").await;
    for _ in 0..500 {
        journal.append(soon(&["a line"])).await.unwrap();
    }
    drop(store);
    let closed = journal.append(now(&["too late"])).await.unwrap_err();
    assert_eq!(closed.code, StoreCode::DataUnusable);
    assert!(closed.message.contains("closed"), "{closed}");
    let mut files: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["lock", "redflow.db"]);
    let stored = Reader::open(dir.path()).unwrap().load(&id("a")).unwrap().unwrap();
    assert_eq!((stored.mark.batches, stored.summary.status), (501, RunStatus::Interrupted));
}

#[tokio::test]
async fn a_plan_is_stored_once_and_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for run in ["a", "b", "c"] {
        finished(&store, run, 1).await;
    }
    // Not the line of its plan: kept as it is, without looking into it.
    let odd = new_run("odd");
    let mut lines = opening(&odd);
    lines[1] = lines[1].replacen('0', "1", 1);
    store.create(odd).append(Batch { lines: lines.clone(), ..now(&[]) }).await.unwrap();
    let short = new_run("short");
    store.create(short).append(now(&["header alone"])).await.unwrap();
    let other = NewRun { plan: plan("another"), ..new_run("other") };
    store.create(other.clone()).append(first(&other)).await.unwrap();

    let tables = plain(dir.path());
    assert_eq!(number(&tables, "SELECT count(*) FROM plans"), 2);
    let of_a = "SELECT instr(CAST(lines AS TEXT), 'plan') FROM batches WHERE run = 1 ORDER BY id LIMIT 1";
    assert_eq!(number(&tables, of_a), 0);
    let reader = Reader::open(dir.path()).unwrap();
    let load = |run: &str| String::from_utf8(reader.load(&id(run)).unwrap().unwrap().journal).unwrap();
    assert_eq!(load("a"), finished_text("a"));
    assert_eq!(load("odd"), lines.join("\n") + "\n");
    assert_eq!(load("short"), "header alone\n");
    assert_eq!(load("other"), opening(&other).join("\n") + "\n");
}

#[tokio::test]
async fn a_run_runs_only_while_its_own_driver_does() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (_a, _b) = (begun(&store, "a").await, begun(&store, "b").await);
    begun(&store, "parked").await.append(waits()).await.unwrap();
    delivered(&store, "over", 1).await;
    drop(store);
    let reader = Reader::open(dir.path()).unwrap();
    let statuses = || -> Vec<RunStatus> {
        ["a", "b", "parked", "over"].map(|run| reader.summary(&id(run)).unwrap().unwrap().status).to_vec()
    };
    use RunStatus::{Completed, Interrupted, Running, Waiting};
    assert!(!reader.is_driven());
    assert_eq!(statuses(), [Interrupted, Interrupted, Waiting, Completed]);

    let store = Store::open(dir.path()).unwrap();
    assert!(reader.is_driven());
    assert_eq!(statuses(), [Interrupted, Interrupted, Waiting, Completed]);
    let unfinished = store.unfinished().await.unwrap();
    assert_eq!(
        unfinished.iter().map(|run| run.status).collect::<Vec<_>>(),
        [Interrupted, Interrupted, Waiting]
    );
    let stored = store.load(&id("a")).await.unwrap().unwrap();
    let mut taken = store.reopen(&stored);
    taken.append(now(&["goes on"])).await.unwrap();
    assert_eq!(statuses(), [Running, Interrupted, Waiting, Completed]);
    drop(store);
    assert_eq!(statuses(), [Interrupted, Interrupted, Waiting, Completed]);
}

#[tokio::test]
async fn runs_are_listed_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finished(&store, "z", 9).await;
    let _open = begun(&store, "y").await;
    begun(&store, "x").await.append(waits()).await.unwrap();
    finished(&store, "w", 1).await;
    let reader = Reader::open(dir.path()).unwrap();
    let list = |statuses: Option<Vec<RunStatus>>, limit| -> Vec<String> {
        let runs = reader.list(&RunFilter { statuses, limit, ..RunFilter::default() }).unwrap();
        runs.into_iter().map(|run| run.run_id.to_string()).collect()
    };
    assert_eq!(list(None, usize::MAX), ["w", "x", "y", "z"]);
    assert_eq!(list(None, 2), ["w", "x"]);
    assert_eq!(list(None, 0), [""; 0]);
    assert_eq!(list(Some(vec![RunStatus::Completed]), 5), ["w", "z"]);
    assert_eq!(list(Some(vec![RunStatus::Completed]), 1), ["w"]);
    assert_eq!(list(Some(vec![RunStatus::Running, RunStatus::Waiting]), 5), ["x", "y"]);
    assert_eq!(list(Some(Vec::new()), 5), [""; 0]);
    assert_eq!(reader.run_ids().unwrap(), ["z", "y", "x", "w"].map(id));
    assert_eq!(reader.summary(&id("no such run")).unwrap(), None);
    assert!(reader.load(&id("no such run")).unwrap().is_none());
}

/// With many runs that are over, the few others are found by an index.
#[tokio::test]
async fn unfinished_runs_are_found_by_their_index() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let plan: String = plain(dir.path())
        .query_row(
            "EXPLAIN QUERY PLAN SELECT * FROM runs WHERE ended_at IS NULL OR delivered = 0 ORDER BY id",
            [],
            |row| row.get("detail"),
        )
        .unwrap();
    assert!(plan.contains("runs_unfinished"), "{plan}");
}

#[tokio::test]
async fn a_batch_larger_than_any_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = begun(&store, "a").await;
    let huge = "x".repeat(256 * 1024 * 1024);
    let refused = journal.append(now(&[&huge])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert_eq!(journal.append(last(1)).await.unwrap_err(), refused);
    finished(&store, "b", 1).await;
}

/// More than the queue has room for, in batches larger than all of it.
#[tokio::test]
async fn batches_wait_for_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(dir.path()).unwrap());
    let large = "x".repeat(20 * 1024 * 1024);
    let mut runs = tokio::task::JoinSet::new();
    for run in ["a", "b", "c"] {
        let (store, large) = (Arc::clone(&store), large.clone());
        runs.spawn(async move {
            let mut journal = begun(&*store, run).await;
            journal.append(soon(&[&large])).await.unwrap();
            journal.append(now(&["after it"])).await
        });
    }
    let kept: Vec<Result<(), StoreError>> = runs.join_all().await;
    assert_eq!(kept, [Ok(()), Ok(()), Ok(())]);
    let stored = store.load(&id("b")).await.unwrap().unwrap();
    assert_eq!(text(&stored.journal), opening(&new_run("b")).join("\n") + "\n" + &large + "\nafter it\n");
}

/// The lock goes with its file, but not the right to write.
#[tokio::test]
async fn a_second_driver_shuts_the_first_out() {
    let dir = tempfile::tempdir().unwrap();
    let old = Store::open(dir.path()).unwrap();
    let mut theirs = begun(&old, "a").await;
    finished(&old, "over", 1).await;
    old.unfinished().await.unwrap();
    std::fs::remove_file(dir.path().join("lock")).unwrap();
    let new = Store::open(dir.path()).unwrap();
    let mut ours = new.reopen(&new.load(&id("a")).await.unwrap().unwrap());
    ours.append(now(&["from the new"])).await.unwrap();

    // Whatever the old one wants to keep: what it goes on with, what it begins, what it takes up.
    theirs.append(soon(&["from the old"])).await.unwrap();
    let refused = theirs.append(now(&["from the old"])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataLocked);
    assert!(refused.message.contains("Another process has taken over the runs of"), "{refused}");
    let run = new_run("b");
    assert_eq!(old.create(run.clone()).append(first(&run)).await.unwrap_err(), refused);
    let stored = old.load(&id("a")).await.unwrap().unwrap();
    assert_eq!(old.reopen(&stored).append(last(1)).await.unwrap_err(), refused);
    old.delivered(&id("over"));
    old.unfinished().await.unwrap();
    drop(old);

    ours.append(now(&["and more"])).await.unwrap();
    ours.append(last(5)).await.unwrap();
    let expected = opening(&new_run("a")).join("\n") + "\nfrom the new\nand more\nthe end\n";
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(text(&reader.load(&id("a")).unwrap().unwrap().journal), expected);
    assert!(reader.load(&id("b")).unwrap().is_none());
    assert!(!reader.summary(&id("over")).unwrap().unwrap().delivered);
    assert!(reader.is_driven());
}
