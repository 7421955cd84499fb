//! Removing runs.

use crate::kit::{
    begun, delivered, finished, finished_text, first, id, last, new_run, now, plan, text, waits,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::RunRequest;
use redflow_ports::{NewRun, RunStore};
use redflow_store::{Answer, ListFilter, Prune, PruneReport, Reader, Store, answer_of, ask, prune};
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
    let runs = Reader::open(dir).unwrap().list(&ListFilter::default()).unwrap();
    runs.into_iter().rev().map(|run| run.run_id.0).collect()
}

#[tokio::test]
async fn what_goes_and_what_stays() {
    let all = ["old", "unsent", "open", "waiting", "mid", "future", "new"];
    let p = |older_than: Option<u64>, keep: Option<usize>, undelivered: bool| Prune {
        older_than,
        keep,
        undelivered,
        dry_run: false,
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
    let asked = ask(dir.path(), &id("open"), &RunRequest::Cancel { reason: "x".into() }, 1).unwrap();
    for run in 0..450 {
        let mut journal = begun(&store, &format!("run {run}")).await;
        journal.append(crate::kit::soon(&[&"x".repeat(3000)])).await.unwrap();
        journal.append(redflow_ports::Batch { keep: redflow_ports::Keep::Soon, ..last(1) }).await.unwrap();
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
    assert_eq!(answer_of(dir.path(), asked).unwrap(), None);

    // Once it is over it may go too, and what was asked of it goes with it.
    open.append(last(1)).await.unwrap();
    store.delivered(&id("open"));
    store.unfinished().await.unwrap();
    prune(dir.path(), Prune::default()).unwrap();
    assert_eq!(answer_of(dir.path(), asked).unwrap(), Some(Answer::Refused(StoreCode::RunUnknown)));

    // The plan went with the last run that had it; the next run brings it again.
    delivered(&store, "after", 1).await;
    let stored = store.load(&id("after")).await.unwrap().unwrap();
    assert_eq!(text(&stored.journal), finished_text("after"));
    assert_eq!(left(dir.path()), ["after"]);
}
