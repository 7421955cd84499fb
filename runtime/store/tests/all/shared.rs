//! What both stores do alike.

use crate::kit::{
    begun, finished, finished_text, first, id, last, new_run, now, opening, soon, text, waiting, waits,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::effect::Ending;
use redflow_contract::run::{RunState, RunStatus};
use redflow_ports::{Batch, RunStore, StoreMark, StoredRun};

/// Each function becomes a test of the store on disk and one of the store in memory.
macro_rules! both {
    ($($name:ident)+) => {
        $(mod $name {
            #[tokio::test]
            async fn on_disk() {
                let dir = tempfile::tempdir().unwrap();
                super::$name(&redflow_store::Store::open(dir.path()).unwrap()).await;
            }

            #[tokio::test]
            async fn in_memory() {
                super::$name(&redflow_store::MemoryStore::default()).await;
            }
        })+
    };
}

both! {
    a_journal_comes_back_byte_for_byte
    nothing_is_kept_before_the_first_batch
    a_run_is_where_its_last_batch_says
    an_ending_is_kept
    a_batch_may_have_no_lines
    an_old_handle_writes_nothing_after_reopen
    a_batch_after_a_lost_one_is_refused
    a_lost_first_batch_is_no_run
    a_run_that_is_over_takes_nothing_more
    only_what_is_stored_is_reopened
    a_cause_sets_off_one_run
    a_run_begins_once
    unfinished_runs_come_in_the_order_they_began
    a_read_sees_what_was_queued_before_it
}

async fn loaded(store: &dyn RunStore, run: &str) -> StoredRun {
    store.load(&id(run)).await.unwrap().unwrap()
}

async fn a_journal_comes_back_byte_for_byte(store: &dyn RunStore) {
    finished(store, "a", 2000).await;
    finished(store, "b", 3000).await;
    for (run, at) in [("a", 2000), ("b", 3000)] {
        let stored = loaded(store, run).await;
        assert_eq!(text(&stored.journal), finished_text(run));
        assert_eq!(stored.active_ms, 9);
        assert_eq!(stored.mark.batches, 3);
        let summary = stored.summary;
        assert_eq!(summary.run_id, id(run));
        assert_eq!(summary.agent, new_run(run).agent);
        assert_eq!((summary.name.as_str(), summary.started_at, summary.ended_at), ("Agent", 1000, Some(at)));
        assert_eq!(summary.source.as_deref(), Some("flows/ü.json"));
        assert_eq!((summary.status, summary.delivered), (RunStatus::Completed, false));
    }
}

async fn nothing_is_kept_before_the_first_batch(store: &dyn RunStore) {
    drop(store.create(new_run("a")));
    let _kept = begun(store, "b").await;
    assert!(store.load(&id("a")).await.unwrap().is_none());
    let runs = store.unfinished().await.unwrap();
    assert_eq!(runs.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["b"]);
}

async fn a_run_is_where_its_last_batch_says(store: &dyn RunStore) {
    let mut journal = begun(store, "a").await;
    assert_eq!(loaded(store, "a").await.summary.status, RunStatus::Running);
    journal.append(waits()).await.unwrap();
    let parked = loaded(store, "a").await;
    assert_eq!((parked.summary.status, &parked.summary.waiting), (RunStatus::Waiting, &Some(waiting())));

    // Whoever takes it up has not changed it yet; its first batch does.
    let mut taken = store.reopen(&parked);
    let still = loaded(store, "a").await;
    assert_eq!((still.summary.status, still.summary.waiting), (RunStatus::Waiting, Some(waiting())));
    taken.append(now(&["resolved"])).await.unwrap();
    let running = loaded(store, "a").await;
    assert_eq!((running.summary.status, running.summary.waiting), (RunStatus::Running, None));

    // A run may also go on without having been loaded.
    taken.append(waits()).await.unwrap();
    taken.append(now(&["again"])).await.unwrap();
    assert_eq!(loaded(store, "a").await.summary.status, RunStatus::Running);
    taken.append(last(5)).await.unwrap();
    let over = loaded(store, "a").await.summary;
    assert_eq!((over.status, over.waiting, over.ended_at), (RunStatus::Completed, None, Some(5)));
}

async fn an_ending_is_kept(store: &dyn RunStore) {
    let endings = [
        ("a", Ending::Completed, RunStatus::Completed, None),
        ("b", Ending::Stopped, RunStatus::Stopped, None),
        ("c", Ending::Failed { code: RunErrorCode::Timeout }, RunStatus::Failed, Some(RunErrorCode::Timeout)),
    ];
    for (run, ending, status, code) in endings {
        // The first batch may be the last one too.
        let run = new_run(run);
        let state = RunState::Finished { at: u64::MAX, ending };
        let mut journal = store.create(run.clone());
        journal.append(Batch { state, ..first(&run) }).await.unwrap();
        let stored = store.load(&run.run_id).await.unwrap().unwrap();
        assert_eq!((stored.summary.status, stored.summary.code), (status, code));
        assert_eq!(text(&stored.journal), opening(&run).join("\n") + "\n");
    }
}

async fn a_batch_may_have_no_lines(store: &dyn RunStore) {
    let mut journal = begun(store, "a").await;
    journal.append(now(&[])).await.unwrap();
    journal.append(now(&["x"])).await.unwrap();
    let stored = loaded(store, "a").await;
    assert_eq!(text(&stored.journal), opening(&new_run("a")).join("\n") + "\nx\n");
    assert_eq!(stored.mark.batches, 3);
}

async fn an_old_handle_writes_nothing_after_reopen(store: &dyn RunStore) {
    let mut old = begun(store, "a").await;
    let stored = loaded(store, "a").await;
    let mut new = store.reopen(&stored);
    let refused = old.append(now(&["from the old"])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert!(refused.message.contains("someone else"), "{refused}");
    new.append(now(&["from the new"])).await.unwrap();
    assert_eq!(old.append(now(&["once more"])).await.unwrap_err(), refused);
    let text = String::from_utf8(loaded(store, "a").await.journal).unwrap();
    assert!(text.ends_with("\nfrom the new\n") && !text.contains("old"), "{text}");

    // A mark from before the last batch is as old.
    let mut late = store.reopen(&stored);
    assert!(late.append(now(&["x"])).await.unwrap_err().message.contains("someone else"));
    new.append(now(&["still"])).await.unwrap();
}

async fn a_batch_after_a_lost_one_is_refused(store: &dyn RunStore) {
    let mut journal = begun(store, "a").await;
    let mut other = begun(store, "b").await;
    drop(journal.append(now(&["never sent"])));
    let refused = journal.append(now(&["after it"])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert!(refused.message.contains("never kept"), "{refused}");
    assert_eq!(journal.append(last(5)).await.unwrap_err(), refused);
    other.append(now(&["goes on"])).await.unwrap();

    // What was kept can be gone on with.
    let stored = loaded(store, "a").await;
    assert_eq!(text(&stored.journal), opening(&new_run("a")).join("\n") + "\n");
    store.reopen(&stored).append(last(5)).await.unwrap();
}

async fn a_lost_first_batch_is_no_run(store: &dyn RunStore) {
    let run = new_run("a");
    let mut journal = store.create(run.clone());
    drop(journal.append(first(&run)));
    journal.append(now(&["second"])).await.unwrap_err();
    assert!(store.load(&run.run_id).await.unwrap().is_none());
}

async fn a_run_that_is_over_takes_nothing_more(store: &dyn RunStore) {
    let mut journal = begun(store, "a").await;
    journal.append(last(5)).await.unwrap();
    let stored = loaded(store, "a").await;
    assert_eq!(journal.append(now(&["x"])).await.unwrap_err().code, StoreCode::RunOver);
    assert_eq!(store.reopen(&stored).append(now(&["x"])).await.unwrap_err().code, StoreCode::RunOver);
    assert_eq!(loaded(store, "a").await.journal, stored.journal);
}

async fn only_what_is_stored_is_reopened(store: &dyn RunStore) {
    let _journal = begun(store, "a").await;
    let mut stored = loaded(store, "a").await;
    stored.mark = StoreMark { run: 99, batches: 1 };
    let refused = store.reopen(&stored).append(now(&["x"])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::RunUnknown);
}

async fn a_cause_sets_off_one_run(store: &dyn RunStore) {
    assert_eq!(store.started_by("message 1").await.unwrap(), None);
    let caused = |run: &str| redflow_ports::NewRun { cause: Some("message 1".into()), ..new_run(run) };
    let run = caused("a");
    store.create(run.clone()).append(first(&run)).await.unwrap();
    assert_eq!(store.started_by("message 1").await.unwrap(), Some(id("a")));
    assert_eq!(store.started_by("message 2").await.unwrap(), None);

    let second = caused("b");
    let refused = store.create(second.clone()).append(first(&second)).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert!(!refused.message.contains("message 1"), "a cause may be private: {refused}");
    assert!(store.load(&id("b")).await.unwrap().is_none());
    // Runs without a cause are no trouble to each other.
    let _others = (begun(store, "c").await, begun(store, "d").await);
}

async fn a_run_begins_once(store: &dyn RunStore) {
    let mut journal = begun(store, "a").await;
    let run = new_run("a");
    let mut second = store.create(run.clone());
    let refused = second.append(first(&run)).await.unwrap_err();
    assert!(refused.message.contains("stored already"), "{refused}");
    assert_eq!(second.append(now(&["x"])).await.unwrap_err(), refused);
    journal.append(now(&["the first goes on"])).await.unwrap();
}

async fn unfinished_runs_come_in_the_order_they_began(store: &dyn RunStore) {
    finished(store, "c", 1).await;
    finished(store, "b", 2).await;
    let _open = begun(store, "a").await;
    let ids = async || {
        let runs = store.unfinished().await.unwrap();
        runs.into_iter().map(|run| run.run_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, ["c", "b", "a"]);
    store.delivered(&id("c"));
    store.delivered(&id("no such run"));
    assert_eq!(ids().await, ["b", "a"]);
    assert!(loaded(store, "c").await.summary.delivered);
}

async fn a_read_sees_what_was_queued_before_it(store: &dyn RunStore) {
    let mut journal = begun(store, "a").await;
    for count in 0..50 {
        journal.append(soon(&["one more"])).await.unwrap();
        assert_eq!(loaded(store, "a").await.mark.batches, count + 2);
    }
}
