//! The store of the driver: what is stored when, and how often it flushes.

use crate::kit::{
    buffered_batch, deliver_run, finish_run, finished_journal, first_batch, id, last_batch, new_run,
    opening_lines, plan, start_run, synced_batch, text, waiting_batch,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunStatus;
use redflow_ports::{Batch, NewRun, RunStore, StoreError};
use redflow_store::{Driver, Reader, RunFilter, Store};
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
async fn batches_that_wait_together_are_flushed_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let holder = plain(dir.path());
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut journals = Vec::new();
    for index in 0..100 {
        let run = new_run(&format!("run {index}"));
        let batch = Batch { durability: redflow_ports::Durability::Buffered, ..first_batch(&run) };
        let mut journal = store.create(run);
        journal.append(batch).await.unwrap();
        journal.append(buffered_batch(&["second"])).await.unwrap();
        journals.push(journal);
    }
    assert_eq!(store.stats().batches, 0);
    holder.execute_batch("COMMIT").unwrap();
    assert_eq!(store.unfinished_runs().await.unwrap().len(), 100);
    let stats = store.stats();
    assert_eq!((stats.flushes, stats.batches), (1, 200));
    assert!(stats.bytes > 200);
}

/// However many runs wait for a flush, one flush serves them all.
#[tokio::test]
async fn runs_share_flushes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journals = Vec::new();
    for index in 0..64 {
        journals.push(start_run(&store, &format!("run {index}")).await);
    }
    let before = store.stats();
    let holder = plain(dir.path());
    for _ in 0..10 {
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut appends: Vec<_> =
            journals.iter_mut().map(|journal| journal.append(synced_batch(&["a line"]))).collect();
        for append in &mut appends {
            // The first poll queues the batch.
            assert!(append.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        holder.execute_batch("COMMIT").unwrap();
        for append in appends {
            append.await.unwrap();
        }
    }
    let after = store.stats();
    assert_eq!((after.flushes - before.flushes, after.batches - before.batches), (10, 640));
}

#[tokio::test]
async fn a_synced_batch_is_visible_to_readers_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let mut journal = start_run(&store, "a").await;
    for count in 1..5 {
        let stored = reader.load(&id("a")).unwrap().unwrap();
        assert_eq!((stored.mark.batches, stored.summary.status), (count, RunStatus::Running));
        journal.append(synced_batch(&["more"])).await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_store_has_written_everything_and_leaves_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = start_run(&store, "a").await;
    for _ in 0..500 {
        journal.append(buffered_batch(&["a line"])).await.unwrap();
    }
    drop(store);
    let closed = journal.append(synced_batch(&["too late"])).await.unwrap_err();
    assert_eq!(closed.code, StoreCode::DataUnusable);
    assert!(closed.message.contains("closed"), "{closed}");
    let mut files: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["lock", "redflow.db"]);
    let stored = Reader::open(dir.path()).unwrap().load(&id("a")).unwrap().unwrap();
    assert_eq!((stored.mark.batches, stored.summary.status), (501, RunStatus::Interrupted));
}

// SECURITY: sidecar-address
#[test]
fn commands_find_the_driver_that_listens() {
    let dir = tempfile::tempdir().unwrap();
    let address = "127.0.0.1:1881".parse().unwrap();
    assert_eq!(Driver::find(dir.path()), Driver::None);
    // A driver that was killed may have left its address. It does not count, and the next driver removes it.
    std::fs::write(dir.path().join("address"), "127.0.0.1:9\n").unwrap();
    assert_eq!(Driver::find(dir.path()), Driver::None);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(Driver::find(dir.path()), Driver::Unreachable);
    store.set_address(address).unwrap();
    assert_eq!(Driver::find(dir.path()), Driver::Sidecar(address));
    std::fs::write(dir.path().join("address"), "no address").unwrap();
    assert_eq!(Driver::find(dir.path()), Driver::Unreachable);
    // A sidecar that stops takes its address away first. Its runs still end.
    store.set_address(address).unwrap();
    store.remove_address();
    assert_eq!(Driver::find(dir.path()), Driver::Unreachable);
    drop(store);
    assert_eq!(Driver::find(dir.path()), Driver::None);
    assert!(!dir.path().join("address").exists());
}

#[tokio::test]
async fn a_plan_is_stored_once_and_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for run in ["a", "b", "c"] {
        finish_run(&store, run, 1).await;
    }
    // Another line than that of its plan is stored unchanged.
    let odd = new_run("odd");
    let mut lines = opening_lines(&odd);
    lines[1] = lines[1].replacen('0', "1", 1);
    store.create(odd).append(Batch { lines: lines.clone(), ..synced_batch(&[]) }).await.unwrap();
    let short = new_run("short");
    store.create(short).append(synced_batch(&["header alone"])).await.unwrap();
    let other = NewRun { plan: plan("another"), ..new_run("other") };
    store.create(other.clone()).append(first_batch(&other)).await.unwrap();

    let tables = plain(dir.path());
    assert_eq!(number(&tables, "SELECT count(*) FROM plans"), 2);
    let of_a = "SELECT instr(CAST(lines AS TEXT), 'plan') FROM batches WHERE run = 1 ORDER BY id LIMIT 1";
    assert_eq!(number(&tables, of_a), 0);
    let reader = Reader::open(dir.path()).unwrap();
    let load = |run: &str| String::from_utf8(reader.load(&id(run)).unwrap().unwrap().journal).unwrap();
    assert_eq!(load("a"), finished_journal("a"));
    assert_eq!(load("odd"), lines.join("\n") + "\n");
    assert_eq!(load("short"), "header alone\n");
    assert_eq!(load("other"), opening_lines(&other).join("\n") + "\n");
}

#[tokio::test]
async fn a_run_counts_as_running_only_while_its_driver_lives() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (_a, _b) = (start_run(&store, "a").await, start_run(&store, "b").await);
    start_run(&store, "parked").await.append(waiting_batch()).await.unwrap();
    deliver_run(&store, "over", 1).await;
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
    let unfinished = store.unfinished_runs().await.unwrap();
    assert_eq!(
        unfinished.iter().map(|run| run.status).collect::<Vec<_>>(),
        [Interrupted, Interrupted, Waiting]
    );
    let stored = store.load(&id("a")).await.unwrap().unwrap();
    let mut taken = store.reopen(&stored);
    taken.append(synced_batch(&["goes on"])).await.unwrap();
    assert_eq!(statuses(), [Running, Interrupted, Waiting, Completed]);
    drop(store);
    assert_eq!(statuses(), [Interrupted, Interrupted, Waiting, Completed]);
}

#[tokio::test]
async fn runs_are_listed_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "z", 9).await;
    let _open = start_run(&store, "y").await;
    start_run(&store, "x").await.append(waiting_batch()).await.unwrap();
    finish_run(&store, "w", 1).await;
    let reader = Reader::open(dir.path()).unwrap();
    let list = |statuses: Option<Vec<RunStatus>>, limit| -> Vec<String> {
        let runs = reader.list(&RunFilter { statuses, limit, ..RunFilter::default() }).unwrap().runs;
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

/// Among many runs that are over, an index finds the others.
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
async fn a_batch_above_the_size_limit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut journal = start_run(&store, "a").await;
    let huge = "x".repeat(256 * 1024 * 1024);
    let refused = journal.append(synced_batch(&[&huge])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert_eq!(journal.append(last_batch(1)).await.unwrap_err(), refused);
    finish_run(&store, "b", 1).await;
}

/// More than the queue has space for, in batches larger than all of it.
// SECURITY: run-limits
#[tokio::test]
async fn batches_wait_for_space_in_the_queue() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(dir.path()).unwrap());
    let large = "x".repeat(20 * 1024 * 1024);
    let mut runs = tokio::task::JoinSet::new();
    for run in ["a", "b", "c"] {
        let (store, large) = (Arc::clone(&store), large.clone());
        runs.spawn(async move {
            let mut journal = start_run(&*store, run).await;
            journal.append(buffered_batch(&[&large])).await.unwrap();
            journal.append(synced_batch(&["after it"])).await
        });
    }
    let results: Vec<Result<(), StoreError>> = runs.join_all().await;
    assert_eq!(results, [Ok(()), Ok(()), Ok(())]);
    let stored = store.load(&id("b")).await.unwrap().unwrap();
    assert_eq!(
        text(&stored.journal),
        opening_lines(&new_run("b")).join("\n") + "\n" + &large + "\nafter it\n"
    );
}

/// Removing the lock file lets a second driver start; then the first one can write no more.
#[tokio::test]
async fn a_second_driver_locks_the_first_one_out() {
    let dir = tempfile::tempdir().unwrap();
    let old = Store::open(dir.path()).unwrap();
    let mut theirs = start_run(&old, "a").await;
    finish_run(&old, "over", 1).await;
    old.unfinished_runs().await.unwrap();
    std::fs::remove_file(dir.path().join("lock")).unwrap();
    let new = Store::open(dir.path()).unwrap();
    let mut ours = new.reopen(&new.load(&id("a")).await.unwrap().unwrap());
    ours.append(synced_batch(&["from the new"])).await.unwrap();

    // The old driver can neither append, nor start a run, nor reopen one.
    theirs.append(buffered_batch(&["from the old"])).await.unwrap();
    let refused = theirs.append(synced_batch(&["from the old"])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataLocked);
    assert!(refused.message.contains("Another process has taken over the runs of"), "{refused}");
    let run = new_run("b");
    assert_eq!(old.create(run.clone()).append(first_batch(&run)).await.unwrap_err(), refused);
    let stored = old.load(&id("a")).await.unwrap().unwrap();
    assert_eq!(old.reopen(&stored).append(last_batch(1)).await.unwrap_err(), refused);
    old.mark_delivered(&id("over"));
    old.unfinished_runs().await.unwrap();
    drop(old);

    ours.append(synced_batch(&["and more"])).await.unwrap();
    ours.append(last_batch(5)).await.unwrap();
    let expected = opening_lines(&new_run("a")).join("\n") + "\nfrom the new\nand more\nthe end\n";
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(text(&reader.load(&id("a")).unwrap().unwrap().journal), expected);
    assert!(reader.load(&id("b")).unwrap().is_none());
    assert!(!reader.summary(&id("over")).unwrap().unwrap().delivered);
    assert!(reader.is_driven());
}
