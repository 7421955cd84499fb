//! The store in memory: what only it does.

use crate::kit::{begun, delivered, finished, first, id, new_run, now, opening, text};
use redflow_contract::run::RunStatus;
use redflow_ports::{Batch, NewRun, RunStore};
use redflow_store::{MemoryStore, RunFilter};
use std::task::{Context, Poll, Waker};

fn ids(store: &MemoryStore, filter: &RunFilter) -> Vec<String> {
    store.list(filter).into_iter().map(|run| run.run_id.to_string()).collect()
}

#[tokio::test]
async fn only_so_many_runs_that_are_over_are_kept() {
    let store = MemoryStore::keeping(2);
    let _open = begun(&store, "open").await;
    let caused = NewRun { cause: Some("cause".into()), ..new_run("a") };
    let mut journal = store.create(caused.clone());
    journal.append(first(&caused)).await.unwrap();
    journal.append(crate::kit::last(1)).await.unwrap();
    finished(&store, "b", 1).await;
    assert_eq!(ids(&store, &RunFilter::default()), ["b", "a", "open"]);
    delivered(&store, "c", 1).await;
    assert_eq!(ids(&store, &RunFilter::default()), ["c", "b", "open"]);
    assert!(store.load(&id("a")).await.unwrap().is_none());
    assert_eq!(store.started_by("cause").await.unwrap(), None);
    // It is not there any more, and its journal knows.
    journal.append(crate::kit::now(&["x"])).await.unwrap_err();

    let running = RunFilter { statuses: Some(vec![RunStatus::Running]), ..RunFilter::default() };
    assert_eq!(ids(&store, &running), ["open"]);
    assert_eq!(ids(&store, &RunFilter { limit: 1, ..RunFilter::default() }), ["c"]);
}

/// A run that another one has begun is known as long as that one may begin it again.
#[tokio::test]
async fn what_would_begin_again_is_not_forgotten() {
    let store = MemoryStore::keeping(1);
    let mut causing = begun(&store, "a").await;
    let begin = async |run: &str, cause: &str| {
        let caused = NewRun { cause: Some(cause.into()), ..new_run(run) };
        let mut journal = store.create(caused.clone());
        journal.append(first(&caused)).await.unwrap();
        journal.append(crate::kit::last(1)).await.unwrap();
        store.delivered(&id(run));
    };
    begin("b", "a:1:agent:1").await;
    begin("c", "a:2:agent:1").await;
    begin("d", "b:1:agent:1").await;
    delivered(&store, "e", 1).await;
    // `d` was begun by `b`, which sends nothing any more.
    assert_eq!(ids(&store, &RunFilter::default()), ["e", "c", "b", "a"]);
    assert_eq!(store.started_by("a:1:agent:1").await.unwrap(), Some(id("b")));
    causing.append(crate::kit::last(1)).await.unwrap();
    assert_eq!(ids(&store, &RunFilter::default()), ["c", "b", "a"], "not delivered yet");
    store.delivered(&id("a"));
    assert_eq!(ids(&store, &RunFilter::default()), ["a"]);
    assert_eq!(store.started_by("a:1:agent:1").await.unwrap(), None);

    // A run that is forgotten itself holds nobody.
    let mut causing = begun(&store, "x").await;
    begin("y", "x:1:agent:1").await;
    causing.append(crate::kit::last(1)).await.unwrap();
    delivered(&store, "z", 1).await;
    assert_eq!(ids(&store, &RunFilter::default()), ["z"]);
}

#[test]
fn nobody_asks_anything_of_it() {
    let store = MemoryStore::default();
    let mut asked = store.requests();
    assert!(matches!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    store.answer(1, None);
}

/// The plan is kept once for all its runs, and comes back where it was.
#[tokio::test]
async fn a_journal_comes_back_as_it_was_written() {
    let store = MemoryStore::default();
    let run = new_run("a");
    let lines = opening(&run);
    let cases: [(&str, Vec<String>); 3] = [
        ("a plan where it belongs", lines.clone()),
        ("another plan than the one named", vec![lines[0].clone(), lines[1].replacen('{', "{ ", 1)]),
        ("no plan at all", vec![lines[0].clone()]),
    ];
    for (place, (what, lines)) in cases.into_iter().enumerate() {
        let name = format!("run-{place}");
        let mut journal = store.create(NewRun { run_id: id(&name), ..run.clone() });
        journal.append(Batch { lines: lines.clone(), ..now(&[]) }).await.unwrap();
        journal.append(now(&["x", "y"])).await.unwrap();
        let mut expected = lines.join("\n") + "\nx\ny\n";
        let stored = store.load(&id(&name)).await.unwrap().unwrap();
        assert_eq!(text(&stored.journal), expected, "{what}");
        // Also after another process has taken it over.
        store.reopen(&stored).append(now(&["z"])).await.unwrap();
        expected += "z\n";
        assert_eq!(text(&store.load(&id(&name)).await.unwrap().unwrap().journal), expected, "{what}");
    }
}
