//! Pruning: which runs are removed.

use crate::kit::{
    deliver_run, finish_run, finished_journal, first_batch, id, last_batch, new_run, plan, start_run,
    synced_batch, text, waiting_batch,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunRequest;
use redflow_ports::{NewRun, RunStore};
use redflow_store::{
    PruneReport, PruneRequest, Reader, RequestOutcome, RunFilter, Store, prune, request_outcome,
    submit_request,
};
use std::path::Path;

/// In the order they start: old, unsent, open, waiting, mid, future, new.
async fn fill(store: &Store) {
    let own_plan = NewRun { plan: plan("only of old"), ..new_run("old") };
    let mut journal = store.create(own_plan.clone());
    journal.append(first_batch(&own_plan)).await.unwrap();
    journal.append(last_batch(100)).await.unwrap();
    store.mark_delivered(&id("old"));
    finish_run(store, "unsent", 100).await;
    drop(start_run(store, "open").await);
    start_run(store, "waiting").await.append(waiting_batch()).await.unwrap();
    deliver_run(store, "mid", 500).await;
    deliver_run(store, "future", 1 << 50).await;
    deliver_run(store, "new", 900).await;
    store.unfinished_runs().await.unwrap();
}

fn remaining(dir: &Path) -> Vec<String> {
    let runs = Reader::open(dir).unwrap().list(&RunFilter::default()).unwrap().runs;
    runs.into_iter().rev().map(|run| run.run_id.to_string()).collect()
}

#[tokio::test]
async fn each_condition_selects_its_runs() {
    let all = ["old", "unsent", "open", "waiting", "mid", "future", "new"];
    let p = |older_than: Option<u64>, keep: Option<usize>, undelivered: bool| PruneRequest {
        older_than,
        keep,
        undelivered,
        ..PruneRequest::default()
    };
    let table: &[(PruneRequest, &[&str])] = &[
        (p(None, None, false), &["old", "mid", "future", "new"]),
        (p(None, None, true), &["old", "unsent", "mid", "future", "new"]),
        (p(Some(0), None, true), &[]),
        (p(Some(100), None, false), &[]),
        (p(Some(101), None, false), &["old"]),
        (p(Some(501), None, false), &["old", "mid"]),
        (p(Some(501), None, true), &["old", "unsent", "mid"]),
        // The clock was set back: a run that ended in the future counts as new.
        (p(Some(1000), None, false), &["old", "mid", "new"]),
        (p(Some(u64::MAX), None, false), &["old", "mid", "future", "new"]),
        // The newest runs are those that started last, whatever the clock said when they ended.
        (p(None, Some(0), false), &["old", "mid", "future", "new"]),
        (p(None, Some(1), false), &["old", "mid", "future"]),
        (p(None, Some(2), false), &["old", "mid"]),
        (p(None, Some(2), true), &["old", "unsent", "mid"]),
        (p(None, Some(4), true), &["old"]),
        (p(None, Some(5), true), &[]),
        (p(None, Some(usize::MAX), true), &[]),
        // With both conditions a run must match both.
        (p(Some(501), Some(3), true), &["old", "unsent"]),
        (p(Some(101), Some(1), false), &["old"]),
        (p(Some(1), Some(1), true), &[]),
    ];
    for (which, removed) in table {
        let dir = tempfile::tempdir().unwrap();
        fill(&Store::open(dir.path()).unwrap()).await;
        let predicted = prune(dir.path(), PruneRequest { dry_run: true, ..*which }).unwrap();
        assert_eq!(remaining(dir.path()), all, "{which:?} was a dry run");
        let report = prune(dir.path(), *which).unwrap();
        let stays: Vec<&str> = all.into_iter().filter(|run| !removed.contains(run)).collect();
        assert_eq!(remaining(dir.path()), stays, "{which:?}");
        let batches = removed.iter().map(|run| if *run == "old" { 2 } else { 3 }).sum();
        let plans = u64::from(removed.contains(&"old"));
        let counts = |report: PruneReport| (report.runs, report.batches, report.plans);
        assert_eq!(counts(report), (removed.len() as u64, batches, plans), "{which:?}");
        assert_eq!(counts(predicted), counts(report), "{which:?}");
        assert_eq!(predicted.bytes_before, predicted.bytes_after);
        let reader = Reader::open(dir.path()).unwrap();
        for run in stays {
            assert!(reader.load(&id(run)).unwrap().is_some(), "{run}");
        }
        assert_eq!(prune(dir.path(), *which).unwrap().runs, 0, "{which:?} twice");
    }
}

/// More than one step, while the driver writes. The file shrinks.
#[tokio::test]
async fn runs_are_removed_beside_a_live_driver() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut open = start_run(&store, "open").await;
    let request =
        submit_request(dir.path(), &id("open"), &RunRequest::Cancel { reason: "x".into() }, 1).unwrap();
    for run in 0..450 {
        let mut journal = start_run(&store, &format!("run {run}")).await;
        journal.append(crate::kit::buffered_batch(&[&"x".repeat(3000)])).await.unwrap();
        journal
            .append(redflow_ports::Batch { durability: redflow_ports::Durability::Buffered, ..last_batch(1) })
            .await
            .unwrap();
        store.mark_delivered(&id(&format!("run {run}")));
    }
    store.unfinished_runs().await.unwrap();
    let path = dir.path().to_owned();
    let pruning = tokio::task::spawn_blocking(move || {
        prune(&path, PruneRequest { keep: Some(10), ..PruneRequest::default() })
    });
    for _ in 0..50 {
        open.append(synced_batch(&["meanwhile"])).await.unwrap();
    }
    let report = pruning.await.unwrap().unwrap();
    assert_eq!((report.runs, report.batches, report.plans), (440, 440 * 3, 0));
    assert!(report.bytes_after < report.bytes_before / 4, "{report:?}");
    assert_eq!(remaining(dir.path()).len(), 11);
    assert_eq!(request_outcome(dir.path(), request).unwrap(), None);

    // Once it is over it can be removed too, and its request with it.
    open.append(last_batch(1)).await.unwrap();
    store.mark_delivered(&id("open"));
    store.unfinished_runs().await.unwrap();
    prune(dir.path(), PruneRequest::default()).unwrap();
    assert_eq!(
        request_outcome(dir.path(), request).unwrap(),
        Some(RequestOutcome::Refused(StoreCode::RunUnknown))
    );

    // The plan was removed with its last run; the next run stores it again.
    deliver_run(&store, "after", 1).await;
    let stored = store.load(&id("after")).await.unwrap().unwrap();
    assert_eq!(text(&stored.journal), finished_journal("after"));
    assert_eq!(remaining(dir.path()), ["after"]);
}

/// Stores a run that is over and was started by another run. Its result is delivered.
async fn caused_run(store: &Store, run: &str, by: &str) {
    undelivered_caused_run(store, run, by).await;
    store.mark_delivered(&id(run));
}

async fn undelivered_caused_run(store: &Store, run: &str, by: &str) {
    let run = NewRun { cause: Some(format!("{by}:1:agent:1")), ..new_run(run) };
    let mut journal = store.create(run.clone());
    journal.append(first_batch(&run)).await.unwrap();
    journal.append(last_batch(1)).await.unwrap();
}

/// A run whose result is sent again must find the runs it started.
#[tokio::test]
async fn runs_that_would_be_started_again_stay() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "a", 1).await;
    caused_run(&store, "b", "a").await;
    // Started by a delivered run, by an unknown run, and by a run that is not over.
    caused_run(&store, "c", "b").await;
    caused_run(&store, "d", "gone").await;
    let mut open = start_run(&store, "open").await;
    caused_run(&store, "e", "open").await;
    store.unfinished_runs().await.unwrap();
    let pruned = |which: PruneRequest| {
        let predicted = prune(dir.path(), PruneRequest { dry_run: true, ..which }).unwrap();
        let report = prune(dir.path(), which).unwrap();
        assert_eq!((predicted.runs, predicted.batches), (report.runs, report.batches), "{which:?}");
        remaining(dir.path())
    };
    assert_eq!(pruned(PruneRequest::default()), ["a", "b", "open", "e"]);
    assert_eq!(store.find_by_cause("a:1:agent:1").await.unwrap(), Some(id("b")));
    // A removed `a` cannot start `b` again, so `b` is removed with it.
    assert_eq!(pruned(PruneRequest { undelivered: true, ..PruneRequest::default() }), ["open", "e"]);
    open.append(last_batch(1)).await.unwrap();
    assert_eq!(pruned(PruneRequest::default()), ["open", "e"]);
    store.mark_delivered(&id("open"));
    store.unfinished_runs().await.unwrap();
    assert_eq!(pruned(PruneRequest::default()), [""; 0]);

    // A run stays because of another run that stays.
    drop(start_run(&store, "open").await);
    undelivered_caused_run(&store, "mid", "open").await;
    caused_run(&store, "leaf", "mid").await;
    caused_run(&store, "other", "leaf").await;
    store.unfinished_runs().await.unwrap();
    assert_eq!(
        pruned(PruneRequest { undelivered: true, ..PruneRequest::default() }),
        ["open", "mid", "leaf"]
    );
}

/// Changes the journal of a run so that it is not what was written.
fn garble(dir: &Path, runs: &[&str]) {
    let plain = rusqlite::Connection::open(dir.join("redflow.db")).unwrap();
    for run in runs {
        let sql = "UPDATE batches SET lines = x'00' WHERE run = (SELECT id FROM runs WHERE run_id = ?1)";
        assert!(plain.execute(sql, [run]).unwrap() > 0);
    }
}

#[tokio::test]
async fn damaged_runs_are_removed_on_request() {
    let all = ["old", "unsent", "open", "waiting", "mid", "future", "new"];
    let damaged = PruneRequest { damaged: true, ..PruneRequest::default() };
    let table: &[(&[&str], PruneRequest, &[&str], u64)] = &[
        (&[], damaged, &[], 0),
        (&["open"], PruneRequest { damaged: false, older_than: Some(0), ..damaged }, &[], 0),
        (&["open"], damaged, &["open"], 1),
        (&["unsent", "waiting", "new"], damaged, &["unsent", "waiting", "new"], 3),
        // The other conditions concern sound runs only.
        (&["open"], PruneRequest { older_than: Some(501), ..damaged }, &["old", "open", "mid"], 1),
        (&["open", "old"], PruneRequest { older_than: Some(501), ..damaged }, &["old", "open", "mid"], 2),
        (&["new"], PruneRequest { keep: Some(4), ..damaged }, &["old", "new"], 1),
        (&["new"], PruneRequest { undelivered: true, ..damaged }, &["new"], 1),
        (&all, damaged, &all, 7),
    ];
    for (garbled, which, removed, count) in table {
        let dir = tempfile::tempdir().unwrap();
        fill(&Store::open(dir.path()).unwrap()).await;
        garble(dir.path(), garbled);
        let predicted = prune(dir.path(), PruneRequest { dry_run: true, ..*which }).unwrap();
        assert_eq!(remaining(dir.path()), all, "{which:?} was a dry run");
        let report = prune(dir.path(), *which).unwrap();
        let stays: Vec<&str> = all.into_iter().filter(|run| !removed.contains(run)).collect();
        assert_eq!(remaining(dir.path()), stays, "{garbled:?} {which:?}");
        assert_eq!((report.runs, report.damaged), (removed.len() as u64, *count), "{garbled:?} {which:?}");
        let counts = |report: PruneReport| (report.runs, report.damaged, report.batches, report.plans);
        assert_eq!(counts(predicted), counts(report), "{garbled:?} {which:?}");
    }
}

/// An unreadable row is removed too, with its batches and requests.
#[tokio::test]
async fn unreadable_runs_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    fill(&Store::open(dir.path()).unwrap()).await;
    submit_request(dir.path(), &id("open"), &RunRequest::Cancel { reason: "x".into() }, 1).unwrap();
    let plain = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    plain
        .execute_batch(
            "UPDATE runs SET run_id = CAST(x'ff' AS TEXT) WHERE run_id = 'open';
             UPDATE requests SET run_id = CAST(x'ff' AS TEXT);
             UPDATE runs SET started_at = -1 WHERE run_id = 'mid'",
        )
        .unwrap();
    let report = prune(dir.path(), PruneRequest { damaged: true, ..PruneRequest::default() }).unwrap();
    assert_eq!((report.runs, report.damaged), (2, 2));
    assert_eq!(remaining(dir.path()), ["old", "unsent", "waiting", "future", "new"]);
    for table in ["requests", "batches WHERE run NOT IN (SELECT id FROM runs)"] {
        let count: i64 =
            plain.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{table}");
    }
}

/// A run that a live process may be writing stays, damaged or not.
#[tokio::test]
async fn a_damaged_run_with_a_live_driver_stays() {
    let dir = tempfile::tempdir().unwrap();
    let damaged = PruneRequest { damaged: true, ..PruneRequest::default() };
    drop(start_run(&Store::open(dir.path()).unwrap(), "interrupted").await);
    let store = Store::open(dir.path()).unwrap();
    let mut driven = start_run(&store, "driven").await;
    finish_run(&store, "over", 1).await;
    garble(dir.path(), &["interrupted", "driven", "over"]);
    let report = prune(dir.path(), damaged).unwrap();
    assert_eq!((report.damaged, remaining(dir.path())), (2, vec!["driven".to_owned()]));
    driven.append(synced_batch(&["goes on"])).await.unwrap();
    drop(store);
    assert_eq!(prune(dir.path(), damaged).unwrap().damaged, 1);
    // A damaged run stays too, while the run that started it may start it again.
    let store = Store::open(dir.path()).unwrap();
    finish_run(&store, "a", 1).await;
    caused_run(&store, "b", "a").await;
    store.unfinished_runs().await.unwrap();
    garble(dir.path(), &["b"]);
    assert_eq!(prune(dir.path(), damaged).unwrap().damaged, 0);
    garble(dir.path(), &["a"]);
    let predicted = prune(dir.path(), PruneRequest { dry_run: true, ..damaged }).unwrap();
    assert_eq!(predicted.damaged, 2);
    assert_eq!(prune(dir.path(), damaged).unwrap().damaged, 2);
}
