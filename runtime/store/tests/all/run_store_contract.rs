//! The run store: behaviour of both stores.

use crate::kit::{
    buffered_batch, finish_run, finished_journal, first_batch, id, last_batch, new_run, opening_lines,
    start_run, synced_batch, text, waiting_batch, waiting_call,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::effect::Ending;
use redflow_contract::run::{RunState, RunStatus, WaitingCall};
use redflow_contract::tally::RunTally;
use redflow_ports::{Batch, JournalPosition, RunStore, StoredRun};

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
    nothing_is_stored_before_the_first_batch
    a_run_has_the_state_of_its_last_batch
    a_run_can_wait_for_several_calls
    a_run_has_who_started_it_and_where_it_stops_its_tally
    an_ending_is_stored
    a_batch_may_have_no_lines
    an_old_handle_writes_nothing_after_reopen
    a_batch_after_a_missing_one_is_refused
    a_run_without_its_first_batch_is_not_stored
    a_run_that_is_over_accepts_no_batch
    only_a_stored_run_can_be_reopened
    a_cause_starts_one_run
    a_run_id_is_used_once
    unfinished_runs_come_in_the_order_they_started
    a_read_sees_what_was_queued_before_it
}

async fn loaded(store: &dyn RunStore, run: &str) -> StoredRun {
    store.load(&id(run)).await.unwrap().unwrap()
}

async fn a_journal_comes_back_byte_for_byte(store: &dyn RunStore) {
    finish_run(store, "a", 2000).await;
    finish_run(store, "b", 3000).await;
    for (run, at) in [("a", 2000), ("b", 3000)] {
        let stored = loaded(store, run).await;
        assert_eq!(text(&stored.journal), finished_journal(run));
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

async fn nothing_is_stored_before_the_first_batch(store: &dyn RunStore) {
    drop(store.create(new_run("a")));
    let _stored = start_run(store, "b").await;
    assert!(store.load(&id("a")).await.unwrap().is_none());
    let runs = store.unfinished_runs().await.unwrap();
    assert_eq!(runs.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["b"]);
}

async fn a_run_has_the_state_of_its_last_batch(store: &dyn RunStore) {
    let mut journal = start_run(store, "a").await;
    assert_eq!(loaded(store, "a").await.summary.status, RunStatus::Running);
    journal.append(waiting_batch()).await.unwrap();
    let parked = loaded(store, "a").await;
    assert_eq!((parked.summary.status, &parked.summary.waiting), (RunStatus::Waiting, &Some(waiting_call())));

    // Reopening does not change the state; the first batch does.
    let mut taken = store.reopen(&parked);
    let still = loaded(store, "a").await;
    assert_eq!((still.summary.status, still.summary.waiting), (RunStatus::Waiting, Some(waiting_call())));
    taken.append(synced_batch(&["resolved"])).await.unwrap();
    let running = loaded(store, "a").await;
    assert_eq!((running.summary.status, running.summary.waiting), (RunStatus::Running, None));

    // A run may also continue without being loaded.
    taken.append(waiting_batch()).await.unwrap();
    taken.append(synced_batch(&["again"])).await.unwrap();
    assert_eq!(loaded(store, "a").await.summary.status, RunStatus::Running);
    taken.append(last_batch(5)).await.unwrap();
    let over = loaded(store, "a").await.summary;
    assert_eq!((over.status, over.waiting, over.ended_at), (RunStatus::Completed, None, Some(5)));
}

async fn a_run_can_wait_for_several_calls(store: &dyn RunStore) {
    let mut journal = start_run(store, "a").await;
    let second = WaitingCall { call_id: "call-2".into(), asked_at: 1600, ..waiting_call() };
    let calls = vec![waiting_call(), second.clone()];
    journal
        .append(Batch { state: RunState::Waiting(calls.clone()), ..synced_batch(&["waits"]) })
        .await
        .unwrap();
    let summary = loaded(store, "a").await.summary;
    assert_eq!((&summary.waiting, &summary.questions), (&Some(waiting_call()), &calls));
    assert_eq!(summary.open_questions(), calls);
    journal
        .append(Batch { state: RunState::Waiting(vec![second.clone()]), ..synced_batch(&["one"]) })
        .await
        .unwrap();
    let summary = loaded(store, "a").await.summary;
    assert_eq!((&summary.waiting, summary.questions.len()), (&Some(second.clone()), 0));
    assert_eq!(summary.open_questions(), [second]);
}

async fn a_run_has_who_started_it_and_where_it_stops_its_tally(store: &dyn RunStore) {
    let mut journal = start_run(store, "a").await;
    let summary = loaded(store, "a").await.summary;
    assert_eq!((summary.by, summary.tally), (Some("token:ü".into()), None));
    let used = |input_tokens| RunTally { input_tokens, cost: Some(0.25), ..RunTally::default() };
    journal.append(Batch { tally: used(5), ..waiting_batch() }).await.unwrap();
    assert_eq!(loaded(store, "a").await.summary.tally, Some(used(5)));
    journal.append(Batch { tally: used(6), ..synced_batch(&["again"]) }).await.unwrap();
    assert_eq!(loaded(store, "a").await.summary.tally, None, "what it uses now is not known");
    journal.append(Batch { tally: used(9), ..last_batch(5) }).await.unwrap();
    assert_eq!(loaded(store, "a").await.summary.tally, Some(used(9)));
}

async fn an_ending_is_stored(store: &dyn RunStore) {
    let endings = [
        ("a", Ending::Completed, RunStatus::Completed, None),
        ("b", Ending::Stopped, RunStatus::Stopped, None),
        ("c", Ending::Failed { code: RunErrorCode::Timeout }, RunStatus::Failed, Some(RunErrorCode::Timeout)),
    ];
    for (run, ending, status, code) in endings {
        // The first batch may also be the last one.
        let run = new_run(run);
        let state = RunState::Finished { at: u64::MAX, ending, usage: Box::default() };
        let mut journal = store.create(run.clone());
        journal.append(Batch { state, ..first_batch(&run) }).await.unwrap();
        let stored = store.load(&run.run_id).await.unwrap().unwrap();
        assert_eq!((stored.summary.status, stored.summary.code), (status, code));
        assert_eq!(text(&stored.journal), opening_lines(&run).join("\n") + "\n");
    }
}

async fn a_batch_may_have_no_lines(store: &dyn RunStore) {
    let mut journal = start_run(store, "a").await;
    journal.append(synced_batch(&[])).await.unwrap();
    journal.append(synced_batch(&["x"])).await.unwrap();
    let stored = loaded(store, "a").await;
    assert_eq!(text(&stored.journal), opening_lines(&new_run("a")).join("\n") + "\nx\n");
    assert_eq!(stored.mark.batches, 3);
}

async fn an_old_handle_writes_nothing_after_reopen(store: &dyn RunStore) {
    let mut old = start_run(store, "a").await;
    let stored = loaded(store, "a").await;
    let mut new = store.reopen(&stored);
    let refused = old.append(synced_batch(&["from the old"])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert!(refused.message.contains("another writer"), "{refused}");
    new.append(synced_batch(&["from the new"])).await.unwrap();
    assert_eq!(old.append(synced_batch(&["once more"])).await.unwrap_err(), refused);
    let text = String::from_utf8(loaded(store, "a").await.journal).unwrap();
    assert!(text.ends_with("\nfrom the new\n") && !text.contains("old"), "{text}");

    // A mark from before the last batch is out of date too.
    let mut late = store.reopen(&stored);
    assert!(late.append(synced_batch(&["x"])).await.unwrap_err().message.contains("another writer"));
    new.append(synced_batch(&["still"])).await.unwrap();
}

async fn a_batch_after_a_missing_one_is_refused(store: &dyn RunStore) {
    let mut journal = start_run(store, "a").await;
    let mut other = start_run(store, "b").await;
    drop(journal.append(synced_batch(&["never sent"])));
    let refused = journal.append(synced_batch(&["after it"])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert!(refused.message.contains("never stored"), "{refused}");
    assert_eq!(journal.append(last_batch(5)).await.unwrap_err(), refused);
    other.append(synced_batch(&["goes on"])).await.unwrap();

    // The run can continue from its stored batches.
    let stored = loaded(store, "a").await;
    assert_eq!(text(&stored.journal), opening_lines(&new_run("a")).join("\n") + "\n");
    store.reopen(&stored).append(last_batch(5)).await.unwrap();
}

async fn a_run_without_its_first_batch_is_not_stored(store: &dyn RunStore) {
    let run = new_run("a");
    let mut journal = store.create(run.clone());
    drop(journal.append(first_batch(&run)));
    journal.append(synced_batch(&["second"])).await.unwrap_err();
    assert!(store.load(&run.run_id).await.unwrap().is_none());
}

async fn a_run_that_is_over_accepts_no_batch(store: &dyn RunStore) {
    let mut journal = start_run(store, "a").await;
    journal.append(last_batch(5)).await.unwrap();
    let stored = loaded(store, "a").await;
    assert_eq!(journal.append(synced_batch(&["x"])).await.unwrap_err().code, StoreCode::RunOver);
    assert_eq!(
        store.reopen(&stored).append(synced_batch(&["x"])).await.unwrap_err().code,
        StoreCode::RunOver
    );
    assert_eq!(loaded(store, "a").await.journal, stored.journal);
}

async fn only_a_stored_run_can_be_reopened(store: &dyn RunStore) {
    let _journal = start_run(store, "a").await;
    let mut stored = loaded(store, "a").await;
    stored.mark = JournalPosition { run: 99, batches: 1 };
    let refused = store.reopen(&stored).append(synced_batch(&["x"])).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::RunUnknown);
}

async fn a_cause_starts_one_run(store: &dyn RunStore) {
    assert_eq!(store.find_by_cause("message 1").await.unwrap(), None);
    let caused = |run: &str| redflow_ports::NewRun { cause: Some("message 1".into()), ..new_run(run) };
    let run = caused("a");
    store.create(run.clone()).append(first_batch(&run)).await.unwrap();
    assert_eq!(store.find_by_cause("message 1").await.unwrap(), Some(id("a")));
    assert_eq!(store.find_by_cause("message 2").await.unwrap(), None);

    let second = caused("b");
    let refused = store.create(second.clone()).append(first_batch(&second)).await.unwrap_err();
    assert_eq!(refused.code, StoreCode::DataUnusable);
    assert!(!refused.message.contains("message 1"), "a cause may be private: {refused}");
    assert!(store.load(&id("b")).await.unwrap().is_none());
    // Runs without a cause do not conflict.
    let _others = (start_run(store, "c").await, start_run(store, "d").await);
}

async fn a_run_id_is_used_once(store: &dyn RunStore) {
    let mut journal = start_run(store, "a").await;
    let run = new_run("a");
    let mut second = store.create(run.clone());
    let refused = second.append(first_batch(&run)).await.unwrap_err();
    assert!(refused.message.contains("stored already"), "{refused}");
    assert_eq!(second.append(synced_batch(&["x"])).await.unwrap_err(), refused);
    journal.append(synced_batch(&["the first goes on"])).await.unwrap();
}

async fn unfinished_runs_come_in_the_order_they_started(store: &dyn RunStore) {
    finish_run(store, "c", 1).await;
    finish_run(store, "b", 2).await;
    let _open = start_run(store, "a").await;
    let ids = async || {
        let runs = store.unfinished_runs().await.unwrap();
        runs.into_iter().map(|run| run.run_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, ["c", "b", "a"]);
    store.mark_delivered(&id("c"));
    store.mark_delivered(&id("no such run"));
    assert_eq!(ids().await, ["b", "a"]);
    assert!(loaded(store, "c").await.summary.delivered);
}

async fn a_read_sees_what_was_queued_before_it(store: &dyn RunStore) {
    let mut journal = start_run(store, "a").await;
    for count in 0..50 {
        journal.append(buffered_batch(&["one more"])).await.unwrap();
        assert_eq!(loaded(store, "a").await.mark.batches, count + 2);
    }
}
