//! The store in memory: behaviour of its own.

use crate::kit::{
    deliver_run, finish_run, first_batch, id, new_run, opening_lines, start_run, synced_batch, text,
};
use redflow_contract::run::RunStatus;
use redflow_ports::{Batch, NewRun, RunReader as _, RunStore};
use redflow_store::{MemoryStore, RunFilter};
use std::task::{Context, Poll, Waker};

fn ids(store: &MemoryStore, filter: &RunFilter) -> Vec<String> {
    store.list(filter).runs.into_iter().map(|run| run.run_id.to_string()).collect()
}

#[tokio::test]
async fn finished_runs_are_limited() {
    let store = MemoryStore::with_max_finished(2);
    let _open = start_run(&store, "open").await;
    let caused = NewRun { cause: Some("cause".into()), ..new_run("a") };
    let mut journal = store.create(caused.clone());
    journal.append(first_batch(&caused)).await.unwrap();
    journal.append(crate::kit::last_batch(1)).await.unwrap();
    finish_run(&store, "b", 1).await;
    assert_eq!(ids(&store, &RunFilter::default()), ["b", "a", "open"]);
    deliver_run(&store, "c", 1).await;
    assert_eq!(ids(&store, &RunFilter::default()), ["c", "b", "open"]);
    assert!(store.load(&id("a")).await.unwrap().is_none());
    assert_eq!(store.summary(&id("a")).await.unwrap(), None);
    assert_eq!(
        store.summary(&id("b")).await.unwrap().as_ref(),
        store.list(&RunFilter::default()).runs.get(1)
    );
    assert_eq!(store.find_by_cause("cause").await.unwrap(), None);
    // The run was removed, and its journal fails.
    journal.append(crate::kit::synced_batch(&["x"])).await.unwrap_err();

    let running = RunFilter { statuses: Some(vec![RunStatus::Running]), ..RunFilter::default() };
    assert_eq!(ids(&store, &running), ["open"]);
    assert_eq!(ids(&store, &RunFilter { limit: 1, ..RunFilter::default() }), ["c"]);
}

/// A run stays as long as the run that started it may start it again.
#[tokio::test]
async fn runs_that_would_be_started_again_are_not_removed() {
    let store = MemoryStore::with_max_finished(1);
    let mut starter = start_run(&store, "a").await;
    let start_caused = async |run: &str, cause: &str| {
        let caused = NewRun { cause: Some(cause.into()), ..new_run(run) };
        let mut journal = store.create(caused.clone());
        journal.append(first_batch(&caused)).await.unwrap();
        journal.append(crate::kit::last_batch(1)).await.unwrap();
        store.mark_delivered(&id(run));
    };
    start_caused("b", "a:1:agent:1").await;
    start_caused("c", "a:2:agent:1").await;
    start_caused("d", "b:1:agent:1").await;
    deliver_run(&store, "e", 1).await;
    // `b` started `d`, but its result is delivered, so it cannot start `d` again.
    assert_eq!(ids(&store, &RunFilter::default()), ["e", "c", "b", "a"]);
    assert_eq!(store.find_by_cause("a:1:agent:1").await.unwrap(), Some(id("b")));
    starter.append(crate::kit::last_batch(1)).await.unwrap();
    assert_eq!(ids(&store, &RunFilter::default()), ["c", "b", "a"], "not delivered yet");
    store.mark_delivered(&id("a"));
    assert_eq!(ids(&store, &RunFilter::default()), ["a"]);
    assert_eq!(store.find_by_cause("a:1:agent:1").await.unwrap(), None);

    // A run that was removed keeps no other run.
    let mut starter = start_run(&store, "x").await;
    start_caused("y", "x:1:agent:1").await;
    starter.append(crate::kit::last_batch(1)).await.unwrap();
    deliver_run(&store, "z", 1).await;
    assert_eq!(ids(&store, &RunFilter::default()), ["z"]);
}

#[test]
fn a_memory_store_gets_no_requests() {
    let store = MemoryStore::default();
    let mut requests = store.requests();
    assert!(matches!(requests.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    store.answer_request(1, None);
}

/// The plan is stored once for all its runs, and comes back in its place.
#[tokio::test]
async fn a_journal_comes_back_as_it_was_written() {
    let store = MemoryStore::default();
    let run = new_run("a");
    let lines = opening_lines(&run);
    let cases: [(&str, Vec<String>); 3] = [
        ("a plan where it belongs", lines.clone()),
        ("another plan than the one named", vec![lines[0].clone(), lines[1].replacen('{', "{ ", 1)]),
        ("no plan at all", vec![lines[0].clone()]),
    ];
    for (index, (what, lines)) in cases.into_iter().enumerate() {
        let name = format!("run-{index}");
        let mut journal = store.create(NewRun { run_id: id(&name), ..run.clone() });
        journal.append(Batch { lines: lines.clone(), ..synced_batch(&[]) }).await.unwrap();
        journal.append(synced_batch(&["x", "y"])).await.unwrap();
        let mut expected = lines.join("\n") + "\nx\ny\n";
        let stored = store.load(&id(&name)).await.unwrap().unwrap();
        assert_eq!(text(&stored.journal), expected, "{what}");
        // Also after another handle reopened it.
        store.reopen(&stored).append(synced_batch(&["z"])).await.unwrap();
        expected += "z\n";
        assert_eq!(text(&store.load(&id(&name)).await.unwrap().unwrap().journal), expected, "{what}");
    }
}
