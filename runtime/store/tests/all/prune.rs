//! Removing runs.

use crate::kit::{
    begun, delivered, finished, finished_text, first, id, last, new_run, now, plan, text, waits,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunRequest;
use redflow_ports::{NewRun, RunStore};
use redflow_store::{
    Prune, PruneReport, Reader, RequestOutcome, RunFilter, Store, prune, request_outcome, submit_request,
};
use std::path::Path;

/// In the order they begin: old, unsent, open, waiting, mid, future, new.
async fn fill(store: &Store) {
    let own_plan = NewRun { plan: plan("only of old"), ..new_run("old") };
    let mut journal = store.create(own_plan.clone());
    journal.append(first(&own_plan)).await.unwrap();
    journal.append(last(100)).await.unwrap();
    store.delivered(&id("old"));
    finished(store, "unsent", 100).await;
    drop(begun(store, "open").await);
    begun(store, "waiting").await.append(waits()).await.unwrap();
    delivered(store, "mid", 500).await;
    delivered(store, "future", 1 << 50).await;
    delivered(store, "new", 900).await;
    store.unfinished().await.unwrap();
}

fn left(dir: &Path) -> Vec<String> {
    let runs = Reader::open(dir).unwrap().list(&RunFilter::default()).unwrap();
    runs.into_iter().rev().map(|run| run.run_id.to_string()).collect()
}

#[tokio::test]
async fn what_goes_and_what_stays() {
    let all = ["old", "unsent", "open", "waiting", "mid", "future", "new"];
    let p = |older_than: Option<u64>, keep: Option<usize>, undelivered: bool| Prune {
        older_than,
        keep,
        undelivered,
        ..Prune::default()
    };
    let table: &[(Prune, &[&str])] = &[
        (p(None, None, false), &["old", "mid", "future", "new"]),
        (p(None, None, true), &["old", "unsent", "mid", "future", "new"]),
        (p(Some(0), None, true), &[]),
        (p(Some(100), None, false), &[]),
        (p(Some(101), None, false), &["old"]),
        (p(Some(501), None, false), &["old", "mid"]),
        (p(Some(501), None, true), &["old", "unsent", "mid"]),
        // The clock was set back: what ended in the future is young.
        (p(Some(1000), None, false), &["old", "mid", "new"]),
        (p(Some(u64::MAX), None, false), &["old", "mid", "future", "new"]),
        // The newest are those that began last, whatever the clock said when they ended.
        (p(None, Some(0), false), &["old", "mid", "future", "new"]),
        (p(None, Some(1), false), &["old", "mid", "future"]),
        (p(None, Some(2), false), &["old", "mid"]),
        (p(None, Some(2), true), &["old", "unsent", "mid"]),
        (p(None, Some(4), true), &["old"]),
        (p(None, Some(5), true), &[]),
        (p(None, Some(usize::MAX), true), &[]),
        // Both: outside of both.
        (p(Some(501), Some(3), true), &["old", "unsent"]),
        (p(Some(101), Some(1), false), &["old"]),
        (p(Some(1), Some(1), true), &[]),
    ];
    for (which, goes) in table {
        let dir = tempfile::tempdir().unwrap();
        fill(&Store::open(dir.path()).unwrap()).await;
        let foreseen = prune(dir.path(), Prune { dry_run: true, ..*which }).unwrap();
        assert_eq!(left(dir.path()), all, "{which:?} was only to say what goes");
        let report = prune(dir.path(), *which).unwrap();
        let stays: Vec<&str> = all.into_iter().filter(|run| !goes.contains(run)).collect();
        assert_eq!(left(dir.path()), stays, "{which:?}");
        let batches = goes.iter().map(|run| if *run == "old" { 2 } else { 3 }).sum();
        let plans = u64::from(goes.contains(&"old"));
        let counts = |report: PruneReport| (report.runs, report.batches, report.plans);
        assert_eq!(counts(report), (goes.len() as u64, batches, plans), "{which:?}");
        assert_eq!(counts(foreseen), counts(report), "{which:?}");
        assert_eq!(foreseen.bytes_before, foreseen.bytes_after);
        let reader = Reader::open(dir.path()).unwrap();
        for run in stays {
            assert!(reader.load(&id(run)).unwrap().is_some(), "{run}");
        }
        assert_eq!(prune(dir.path(), *which).unwrap().runs, 0, "{which:?} twice");
    }
}

/// More than one step, while the driver goes on; the room is given back.
#[tokio::test]
async fn runs_go_beside_a_live_driver() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut open = begun(&store, "open").await;
    let asked =
        submit_request(dir.path(), &id("open"), &RunRequest::Cancel { reason: "x".into() }, 1).unwrap();
    for run in 0..450 {
        let mut journal = begun(&store, &format!("run {run}")).await;
        journal.append(crate::kit::soon(&[&"x".repeat(3000)])).await.unwrap();
        journal
            .append(redflow_ports::Batch { durability: redflow_ports::Durability::Buffered, ..last(1) })
            .await
            .unwrap();
        store.delivered(&id(&format!("run {run}")));
    }
    store.unfinished().await.unwrap();
    let path = dir.path().to_owned();
    let pruning =
        tokio::task::spawn_blocking(move || prune(&path, Prune { keep: Some(10), ..Prune::default() }));
    for _ in 0..50 {
        open.append(now(&["meanwhile"])).await.unwrap();
    }
    let report = pruning.await.unwrap().unwrap();
    assert_eq!((report.runs, report.batches, report.plans), (440, 440 * 3, 0));
    assert!(report.bytes_after < report.bytes_before / 4, "{report:?}");
    assert_eq!(left(dir.path()).len(), 11);
    assert_eq!(request_outcome(dir.path(), asked).unwrap(), None);

    // Once it is over it may go too, and what was asked of it goes with it.
    open.append(last(1)).await.unwrap();
    store.delivered(&id("open"));
    store.unfinished().await.unwrap();
    prune(dir.path(), Prune::default()).unwrap();
    assert_eq!(
        request_outcome(dir.path(), asked).unwrap(),
        Some(RequestOutcome::Refused(StoreCode::RunUnknown))
    );

    // The plan went with the last run that had it; the next run brings it again.
    delivered(&store, "after", 1).await;
    let stored = store.load(&id("after")).await.unwrap().unwrap();
    assert_eq!(text(&stored.journal), finished_text("after"));
    assert_eq!(left(dir.path()), ["after"]);
}

/// A run that is over, begun by another.
async fn caused(store: &Store, run: &str, by: &str, is_delivered: bool) {
    let run = NewRun { cause: Some(format!("{by}:1:agent:1")), ..new_run(run) };
    let mut journal = store.create(run.clone());
    journal.append(first(&run)).await.unwrap();
    journal.append(last(1)).await.unwrap();
    if is_delivered {
        store.delivered(&run.run_id);
    }
}

/// A run whose result is sent again must find what it has begun.
#[tokio::test]
async fn what_would_begin_again_stays() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    finished(&store, "a", 1).await;
    caused(&store, "b", "a", true).await;
    // Begun by one that is settled, by one that is gone, and by a run that is not over.
    caused(&store, "c", "b", true).await;
    caused(&store, "d", "gone", true).await;
    let mut open = begun(&store, "open").await;
    caused(&store, "e", "open", true).await;
    store.unfinished().await.unwrap();
    let pruned = |which: Prune| {
        let foreseen = prune(dir.path(), Prune { dry_run: true, ..which }).unwrap();
        let report = prune(dir.path(), which).unwrap();
        assert_eq!((foreseen.runs, foreseen.batches), (report.runs, report.batches), "{which:?}");
        left(dir.path())
    };
    assert_eq!(pruned(Prune::default()), ["a", "b", "open", "e"]);
    assert_eq!(store.started_by("a:1:agent:1").await.unwrap(), Some(id("b")));
    // Nobody sends `a` again when it is gone itself, and then `b` goes with it.
    assert_eq!(pruned(Prune { undelivered: true, ..Prune::default() }), ["open", "e"]);
    open.append(last(1)).await.unwrap();
    assert_eq!(pruned(Prune::default()), ["open", "e"]);
    store.delivered(&id("open"));
    store.unfinished().await.unwrap();
    assert_eq!(pruned(Prune::default()), [""; 0]);

    // One stays because of another that stays.
    drop(begun(&store, "open").await);
    caused(&store, "mid", "open", false).await;
    caused(&store, "leaf", "mid", true).await;
    caused(&store, "other", "leaf", true).await;
    store.unfinished().await.unwrap();
    assert_eq!(pruned(Prune { undelivered: true, ..Prune::default() }), ["open", "mid", "leaf"]);
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
async fn damaged_runs_go_if_that_is_asked() {
    let all = ["old", "unsent", "open", "waiting", "mid", "future", "new"];
    let damaged = Prune { damaged: true, ..Prune::default() };
    let table: &[(&[&str], Prune, &[&str], u64)] = &[
        (&[], damaged, &[], 0),
        (&["open"], Prune { damaged: false, older_than: Some(0), ..damaged }, &[], 0),
        (&["open"], damaged, &["open"], 1),
        (&["unsent", "waiting", "new"], damaged, &["unsent", "waiting", "new"], 3),
        // Other wishes concern the sound ones only.
        (&["open"], Prune { older_than: Some(501), ..damaged }, &["old", "open", "mid"], 1),
        (&["open", "old"], Prune { older_than: Some(501), ..damaged }, &["old", "open", "mid"], 2),
        (&["new"], Prune { keep: Some(4), ..damaged }, &["old", "new"], 1),
        (&["new"], Prune { undelivered: true, ..damaged }, &["new"], 1),
        (&all, damaged, &all, 7),
    ];
    for (garbled, which, goes, count) in table {
        let dir = tempfile::tempdir().unwrap();
        fill(&Store::open(dir.path()).unwrap()).await;
        garble(dir.path(), garbled);
        let foreseen = prune(dir.path(), Prune { dry_run: true, ..*which }).unwrap();
        assert_eq!(left(dir.path()), all, "{which:?} was only to say what goes");
        let report = prune(dir.path(), *which).unwrap();
        let stays: Vec<&str> = all.into_iter().filter(|run| !goes.contains(run)).collect();
        assert_eq!(left(dir.path()), stays, "{garbled:?} {which:?}");
        assert_eq!((report.runs, report.damaged), (goes.len() as u64, *count), "{garbled:?} {which:?}");
        let counts = |report: PruneReport| (report.runs, report.damaged, report.batches, report.plans);
        assert_eq!(counts(foreseen), counts(report), "{garbled:?} {which:?}");
    }
}

/// A row that cannot even be read goes too, with everything that hangs on it.
#[tokio::test]
async fn unreadable_runs_go() {
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
    let report = prune(dir.path(), Prune { damaged: true, ..Prune::default() }).unwrap();
    assert_eq!((report.runs, report.damaged), (2, 2));
    assert_eq!(left(dir.path()), ["old", "unsent", "waiting", "future", "new"]);
    for table in ["requests", "batches WHERE run NOT IN (SELECT id FROM runs)"] {
        let count: i64 =
            plain.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{table}");
    }
}

/// What a live process may be writing is left to it, damaged or not.
#[tokio::test]
async fn a_damaged_run_that_is_driven_stays() {
    let dir = tempfile::tempdir().unwrap();
    let damaged = Prune { damaged: true, ..Prune::default() };
    drop(begun(&Store::open(dir.path()).unwrap(), "interrupted").await);
    let store = Store::open(dir.path()).unwrap();
    let mut driven = begun(&store, "driven").await;
    finished(&store, "over", 1).await;
    garble(dir.path(), &["interrupted", "driven", "over"]);
    let report = prune(dir.path(), damaged).unwrap();
    assert_eq!((report.damaged, left(dir.path())), (2, vec!["driven".to_owned()]));
    driven.append(now(&["goes on"])).await.unwrap();
    drop(store);
    assert_eq!(prune(dir.path(), damaged).unwrap().damaged, 1);
    // And what a damaged run has begun stays with the run that would begin it again.
    let store = Store::open(dir.path()).unwrap();
    finished(&store, "a", 1).await;
    caused(&store, "b", "a", true).await;
    store.unfinished().await.unwrap();
    garble(dir.path(), &["b"]);
    assert_eq!(prune(dir.path(), damaged).unwrap().damaged, 0);
    garble(dir.path(), &["a"]);
    let foreseen = prune(dir.path(), Prune { dry_run: true, ..damaged }).unwrap();
    assert_eq!(foreseen.damaged, 2);
    assert_eq!(prune(dir.path(), damaged).unwrap().damaged, 2);
}
