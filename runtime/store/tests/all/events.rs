//! The log of events: what both stores do alike.

use crate::kit::{
    all_after, begun, begun_with_event, debug, deployed, finished, finished_text, first, id, last, new_run,
    now, run_event, said, soon, text, told_after, waits, with_events,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Ending;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeRef;
use redflow_contract::run::{RunState, RunStatus};
use redflow_contract::stream::StreamEvent;
use redflow_ports::{Batch, EventBounds, EventLog, LoggedEvent, NewRun, RunFilter, RunReader, RunStore};
use redflow_store::EventLogSettings;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Waker};

/// What a sidecar needs of a store.
trait Kept: RunStore + EventLog + RunReader {}
impl<T: RunStore + EventLog + RunReader> Kept for T {}

/// Each function becomes a test of the store on disk and one of the store in memory.
macro_rules! both {
    ($($name:ident)+) => {
        $(mod $name {
            use redflow_store::{EventLogSettings, MemoryStore, Store};
            use std::sync::Arc;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_disk() {
                let dir = tempfile::tempdir().unwrap();
                let store = Store::open_with_log(dir.path(), EventLogSettings::default());
                super::$name(Arc::new(store.unwrap())).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_memory() {
                let store = MemoryStore::keeping_with_log(MemoryStore::KEPT, EventLogSettings::default());
                super::$name(Arc::new(store)).await;
            }
        })+
    };
}

both! {
    events_come_in_the_order_they_became_true
    a_refused_batch_says_nothing
    what_is_kept_now_is_told_now
    a_waiter_misses_nothing
    many_runs_at_once_keep_their_order
    an_answer_is_bounded
    a_large_value_is_cut
    positions_out_of_range_are_no_trouble
    runs_are_listed_page_by_page
    runs_are_listed_by_agent_and_instance
    a_run_is_looked_at
}

async fn events_come_in_the_order_they_became_true(store: Arc<dyn Kept>) {
    assert!(store.keeps_events());
    assert_eq!(store.id().len(), 32, "{}", store.id());
    assert_eq!(store.bounds(), EventBounds { oldest: 0, newest: 0 });
    assert_eq!(store.after(0, 10).await.unwrap(), []);
    let mut a = begun_with_event(&*store, "a").await;
    store.append(7, debug(json!({"x": 1})));
    let mut b = begun_with_event(&*store, "b").await;
    a.append(with_events(soon(&["x"]), "a", [2, 3])).await.unwrap();
    b.append(now(&["nothing to tell"])).await.unwrap();
    a.append(with_events(last(5), "a", [4])).await.unwrap();
    store.append(8, deployed("r2"));
    store.wait_past(6).await;
    let all = all_after(&*store, 0, 100).await;
    let expected = ["a 1", "debug {\"x\":1}", "b 1", "a 2", "a 3", "a 4", "deployed r2"];
    assert_eq!(all.iter().map(said).collect::<Vec<_>>(), expected);
    assert_eq!(all.iter().map(|event| event.position).collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
    assert_eq!(store.bounds(), EventBounds { oldest: 0, newest: 7 });
    // They are what happened, word for word.
    let read = |event: &LoggedEvent| serde_json::from_str::<StreamEvent>(&event.json).unwrap();
    assert_eq!(read(&all[0]), StreamEvent::Run { event: run_event("a", 1) });
    assert_eq!(read(&all[1]), StreamEvent::Flow { at: 7, event: debug(json!({"x": 1})) });
    assert_eq!(store.after(3, 2).await.unwrap(), all[3..5]);
    assert_eq!(store.after(7, 2).await.unwrap(), []);
}

async fn a_refused_batch_says_nothing(store: Arc<dyn Kept>) {
    let mut lost = begun_with_event(&*store, "lost").await;
    drop(lost.append(with_events(now(&["never sent"]), "lost", [2])));
    lost.append(with_events(now(&["after it"]), "lost", [3])).await.unwrap_err();

    let mut old = begun_with_event(&*store, "taken").await;
    let mut new = store.reopen(&store.load(&id("taken")).await.unwrap().unwrap());
    old.append(with_events(now(&["from the old"]), "taken", [2])).await.unwrap_err();
    new.append(with_events(now(&["from the new"]), "taken", [2])).await.unwrap();

    let twice = new_run("lost");
    let batch = with_events(first(&twice), "lost", [1]);
    store.create(twice).append(batch).await.unwrap_err();

    new.append(with_events(last(1), "taken", [3])).await.unwrap();
    new.append(with_events(now(&["after the end"]), "taken", [4])).await.unwrap_err();
    assert_eq!(told_after(&*store, 0).await, ["lost 1", "taken 1", "taken 2", "taken 3"]);
}

/// When a batch is kept its events can be read, and not a moment later.
async fn what_is_kept_now_is_told_now(store: Arc<dyn Kept>) {
    let mut journal = begun(&*store, "a").await;
    for seq in 1..=200 {
        journal.append(with_events(now(&["x"]), "a", [seq])).await.unwrap();
        assert_eq!(store.bounds().newest, u64::from(seq));
        assert_eq!(store.after(u64::from(seq) - 1, 5).await.unwrap().len(), 1);
    }
}

async fn a_waiter_misses_nothing(store: Arc<dyn Kept>) {
    let mut waits = store.wait_past(0);
    let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    const EVENTS: u64 = 2000;
    let telling = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for number in 0..EVENTS {
                store.append(number, debug(number));
                if number.is_multiple_of(7) {
                    tokio::task::yield_now().await;
                }
            }
        }
    });
    waits.await;
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = Arc::clone(&store);
        readers.spawn(async move {
            let (mut position, mut told) = (0, Vec::new());
            while position < EVENTS {
                store.wait_past(position).await;
                let some = store.after(position, 3).await.unwrap();
                assert!(!some.is_empty(), "there was an event after {position}");
                position = some.last().unwrap().position;
                told.extend(some.iter().map(said));
            }
            told
        });
    }
    telling.await.unwrap();
    let expected: Vec<String> = (0..EVENTS).map(|number| format!("debug {number}")).collect();
    while let Some(told) = readers.join_next().await {
        assert_eq!(told.unwrap(), expected);
    }
}

/// Runs that write at the same time, and someone who reads along: everything once, each run in its own order.
async fn many_runs_at_once_keep_their_order(store: Arc<dyn Kept>) {
    const RUNS: u32 = 16;
    const BATCHES: u32 = 40;
    let mut tasks = tokio::task::JoinSet::new();
    for run in 0..RUNS {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let run = format!("run-{run}");
            let mut journal = begun_with_event(&*store, &run).await;
            for batch in 0..BATCHES {
                let events = [2 + batch * 2, 3 + batch * 2];
                let lines = if batch % 3 == 0 { now(&["x"]) } else { soon(&["x"]) };
                journal.append(with_events(lines, &run, events)).await.unwrap();
                if batch % 5 == 0 {
                    store.append(1, debug(run.clone()));
                }
            }
            journal.append(with_events(last(1), &run, [])).await.unwrap();
        });
    }
    let total = u64::from(RUNS * (1 + 2 * BATCHES + BATCHES / 5));
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut position = 0;
    while position < total {
        store.wait_past(position).await;
        for event in store.after(position, 50).await.unwrap() {
            assert_eq!(event.position, position + 1);
            position = event.position;
            if let StreamEvent::Run { event } = serde_json::from_str(&event.json).unwrap() {
                let last = seen.entry(event.run_id.to_string()).or_default();
                assert_eq!(event.seq, *last + 1, "{}", event.run_id);
                *last = event.seq;
            }
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(store.bounds().newest, total);
    assert_eq!(seen.len(), RUNS as usize);
    assert!(seen.values().all(|seq| *seq == 1 + 2 * BATCHES), "{seen:?}");
}

async fn an_answer_is_bounded(store: Arc<dyn Kept>) {
    let value = "x".repeat(15_000);
    for _ in 0..200 {
        store.append(1, debug(value.clone()));
    }
    store.wait_past(199).await;
    let some = store.after(0, usize::MAX).await.unwrap();
    let bytes: usize = some.iter().map(|event| event.json.len()).sum();
    assert!(bytes <= 1024 * 1024 && bytes > 1000 * 1024, "{bytes}");
    assert_eq!(all_after(&*store, 0, usize::MAX).await.len(), 200);
    assert_eq!(store.after(0, 0).await.unwrap(), []);
}

async fn a_large_value_is_cut(store: Arc<dyn Kept>) {
    let most = EventLogSettings::default().max_event_bytes;
    let value = json!({"text": "ü".repeat(1_000_000)});
    store.append(1, debug(value.clone()));
    store.wait_past(0).await;
    let event = store.after(0, 1).await.unwrap().remove(0);
    assert!(event.json.len() <= most && event.json.len() > most - 16, "{}", event.json.len());
    let StreamEvent::Flow { event: FlowEvent::Debug { value: cut, .. }, .. } =
        serde_json::from_str(&event.json).unwrap()
    else {
        panic!("{}", event.json);
    };
    let cut = cut.as_str().unwrap();
    assert!(cut.ends_with('…') && value.to_string().starts_with(cut.trim_end_matches('…')));
}

async fn positions_out_of_range_are_no_trouble(store: Arc<dyn Kept>) {
    store.append(1, debug(1));
    store.wait_past(0).await;
    for position in [1, 2, u64::from(u32::MAX), i64::MAX as u64, u64::MAX - 1, u64::MAX] {
        assert_eq!(store.after(position, usize::MAX).await.unwrap(), [], "{position}");
        let mut waits = store.wait_past(position);
        let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "{position}");
    }
}

async fn runs_are_listed_page_by_page(store: Arc<dyn Kept>) {
    for run in ["e", "d", "c"] {
        finished(&*store, run, 1).await;
    }
    let _open = begun(&*store, "b").await;
    begun(&*store, "a").await.append(waits()).await.unwrap();
    let list = async |statuses: Option<Vec<RunStatus>>, before: Option<&str>, limit| -> Vec<String> {
        let filter = RunFilter { statuses, before: before.map(id), limit, ..RunFilter::default() };
        store.list(filter).await.unwrap().into_iter().map(|run| run.run_id.to_string()).collect()
    };
    assert_eq!(list(None, None, usize::MAX).await, ["a", "b", "c", "d", "e"]);
    assert_eq!(list(None, None, 2).await, ["a", "b"]);
    assert_eq!(list(None, Some("b"), 2).await, ["c", "d"]);
    assert_eq!(list(None, Some("d"), 2).await, ["e"]);
    assert_eq!(list(None, Some("e"), 2).await, [""; 0]);
    assert_eq!(list(None, Some("no such run"), 2).await, [""; 0]);
    assert_eq!(list(None, Some("a"), 0).await, [""; 0]);
    let completed = || Some(vec![RunStatus::Completed]);
    assert_eq!(list(completed(), None, 1).await, ["c"]);
    assert_eq!(list(completed(), Some("c"), 9).await, ["d", "e"]);
    assert_eq!(list(Some(vec![RunStatus::Waiting]), Some("a"), 9).await, [""; 0]);
    let soon = with_events(soon(&["queued"]), "b", [1]);
    let mut journal = store.reopen(&store.load(&id("b")).await.unwrap().unwrap());
    journal.append(soon).await.unwrap();
    journal.append(last(9)).await.unwrap();
    assert_eq!(list(completed(), None, 1).await, ["b"], "a list sees what was written before it");
}

async fn runs_are_listed_by_agent_and_instance(store: Arc<dyn Kept>) {
    // Named by where they are: their Node-RED, their agent, and a number.
    let mut open = Vec::new();
    for (run, state) in
        [("xa1", "over"), ("xb2", "failed"), ("ya3", "over"), ("xa4", "failed"), ("xa5", "open")]
    {
        let agent = NodeRef { instance: run[..1].into(), node_id: run[1..2].into() };
        let new = NewRun { agent, ..new_run(run) };
        let batch = first(&new);
        let mut journal = store.create(new);
        journal.append(batch).await.unwrap();
        let code = RunErrorCode::ProviderUnavailable;
        let failed = RunState::Finished { at: 2, ending: Ending::Failed { code } };
        match state {
            "over" => journal.append(last(2)).await.unwrap(),
            "failed" => journal.append(Batch { state: failed, ..last(2) }).await.unwrap(),
            _ => open.push(journal),
        }
    }
    let any = RunFilter::default;
    let of = |agent: &str| RunFilter { agent: Some(agent.into()), ..any() };
    let within = |instance: &str| RunFilter { instance: Some(instance.into()), ..any() };
    let both = |instance: &str, agent: &str| RunFilter { agent: Some(agent.into()), ..within(instance) };
    let failed = || Some(vec![RunStatus::Failed]);
    let running = || Some(vec![RunStatus::Running, RunStatus::Waiting]);
    let rows: [(RunFilter, &[&str]); 14] = [
        (of("a"), &["xa5", "xa4", "ya3", "xa1"]),
        (within("x"), &["xa5", "xa4", "xb2", "xa1"]),
        (both("x", "a"), &["xa5", "xa4", "xa1"]),
        (both("y", "a"), &["ya3"]),
        (both("y", "b"), &[]),
        (of("A"), &[]),
        (of(""), &[]),
        (within("x%"), &[]),
        (RunFilter { before: Some(id("xa4")), ..of("a") }, &["ya3", "xa1"]),
        (RunFilter { before: Some(id("xb2")), limit: 1, ..both("x", "a") }, &["xa1"]),
        (RunFilter { statuses: failed(), ..any() }, &["xa4", "xb2"]),
        (RunFilter { statuses: failed(), ..of("b") }, &["xb2"]),
        (RunFilter { statuses: running(), ..both("x", "a") }, &["xa5"]),
        (RunFilter { statuses: running(), ..within("y") }, &[]),
    ];
    for (filter, expected) in rows {
        let told = format!("{filter:?}");
        let found = store.list(filter).await.unwrap();
        assert_eq!(found.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), expected, "{told}");
    }
}

async fn a_run_is_looked_at(store: Arc<dyn Kept>) {
    finished(&*store, "a", 2000).await;
    let look = store.look(&id("a")).await.unwrap().unwrap();
    assert_eq!(text(&look.journal), finished_text("a"));
    assert_eq!((look.summary.status, look.problem), (RunStatus::Completed, None));
    assert_eq!(look.summary, store.load(&id("a")).await.unwrap().unwrap().summary);
    assert_eq!(store.look(&id("no such run")).await.unwrap(), None);
}
