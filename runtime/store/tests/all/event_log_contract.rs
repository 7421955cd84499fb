//! The event log and the run reader: behaviour of both stores.

use crate::kit::{
    all_after, buffered_batch, debug_event, deployed_event, describe, events_after, finish_run,
    finished_journal, first_batch, id, last_batch, new_run, run_event, start_run, start_run_with_event,
    synced_batch, text, tool_called, tool_invoked, tool_returned, waiting_batch, with_events,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Ending;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::NodeRef;
use redflow_contract::run::{RunState, RunStatus};
use redflow_contract::stream::StreamEvent;
use redflow_ports::{
    Batch, Durability, EventBounds, EventLog, LoggedEvent, NewRun, RunFilter, RunReader, RunStore,
    ToolCallQuery,
};
use redflow_store::EventLogSettings;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Waker};

/// The ports that a sidecar needs of a store.
trait SidecarStore: RunStore + EventLog + RunReader {}
impl<T: RunStore + EventLog + RunReader> SidecarStore for T {}

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
                let store = MemoryStore::with_event_log(MemoryStore::DEFAULT_MAX_FINISHED, EventLogSettings::default());
                super::$name(Arc::new(store)).await;
            }
        })+
    };
}

both! {
    events_come_in_the_order_they_happened
    a_refused_batch_adds_no_event
    events_of_a_synced_batch_are_readable_at_once
    a_waiter_misses_nothing
    a_waiter_for_the_flow_passes_over_runs_and_calls
    many_runs_at_once_keep_their_order
    an_answer_is_limited_in_bytes
    calls_of_a_tool_are_read_newest_first
    a_large_value_is_truncated
    positions_out_of_range_have_no_events
    runs_are_listed_page_by_page
    runs_are_listed_by_agent_and_instance
    a_run_record_has_the_summary_and_the_journal
}

async fn events_come_in_the_order_they_happened(store: Arc<dyn SidecarStore>) {
    assert!(store.keeps_events());
    assert_eq!(store.id().len(), 32, "{}", store.id());
    assert_eq!(store.bounds(), EventBounds { oldest: 0, newest: 0 });
    assert_eq!(store.read_after(0, 10).await.unwrap(), []);
    let mut a = start_run_with_event(&*store, "a").await;
    store.append(7, debug_event(json!({"x": 1})));
    let mut b = start_run_with_event(&*store, "b").await;
    a.append(with_events(buffered_batch(&["x"]), "a", [2, 3])).await.unwrap();
    b.append(synced_batch(&["no event"])).await.unwrap();
    a.append(with_events(last_batch(5), "a", [4])).await.unwrap();
    store.append(8, deployed_event("r2"));
    store.wait_past(6).await;
    let all = all_after(&*store, 0, 100).await;
    let expected = ["a 1", "debug {\"x\":1}", "b 1", "a 2", "a 3", "a 4", "deployed r2"];
    assert_eq!(all.iter().map(describe).collect::<Vec<_>>(), expected);
    assert_eq!(all.iter().map(|event| event.position).collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
    assert_eq!(store.bounds(), EventBounds { oldest: 0, newest: 7 });
    // The events are unchanged.
    let read = |event: &LoggedEvent| serde_json::from_str::<StreamEvent>(&event.json).unwrap();
    assert_eq!(read(&all[0]), StreamEvent::Run { event: run_event("a", 1) });
    assert_eq!(read(&all[1]), StreamEvent::Flow { at: 7, event: debug_event(json!({"x": 1})) });
    assert_eq!(store.read_after(3, 2).await.unwrap(), all[3..5]);
    assert_eq!(store.read_after(7, 2).await.unwrap(), []);
}

async fn a_refused_batch_adds_no_event(store: Arc<dyn SidecarStore>) {
    let mut lost = start_run_with_event(&*store, "lost").await;
    drop(lost.append(with_events(synced_batch(&["never sent"]), "lost", [2])));
    lost.append(with_events(synced_batch(&["after it"]), "lost", [3])).await.unwrap_err();

    let mut old = start_run_with_event(&*store, "taken").await;
    let mut new = store.reopen(&store.load(&id("taken")).await.unwrap().unwrap());
    old.append(with_events(synced_batch(&["from the old"]), "taken", [2])).await.unwrap_err();
    new.append(with_events(synced_batch(&["from the new"]), "taken", [2])).await.unwrap();

    let twice = new_run("lost");
    let batch = with_events(first_batch(&twice), "lost", [1]);
    store.create(twice).append(batch).await.unwrap_err();

    new.append(with_events(last_batch(1), "taken", [3])).await.unwrap();
    new.append(with_events(synced_batch(&["after the end"]), "taken", [4])).await.unwrap_err();
    assert_eq!(events_after(&*store, 0).await, ["lost 1", "taken 1", "taken 2", "taken 3"]);
}

/// Gives a call of `x__send` the id that the registry has.
fn with_id(mut event: RunEvent) -> RunEvent {
    if let RunEventKind::ToolReturned { tool, id, .. } = &mut event.event {
        *id = (tool == "x__send").then(|| "mail.send".to_owned());
    }
    event
}

/// Only events that end a call belong to the log of a tool: of runs, and of calls outside runs.
async fn calls_of_a_tool_are_read_newest_first(store: Arc<dyn SidecarStore>) {
    let mut journal = start_run_with_event(&*store, "a").await;
    let events = |seqs: std::ops::Range<u32>| {
        let event = |seq: u32| {
            with_id(match seq % 3 {
                // Tools of the registry are found by their ids, whatever models call them.
                0 => tool_returned("a", seq, if seq == 3 { "mail" } else { "x__send" }),
                1 => tool_returned("a", seq, "sums"),
                _ => tool_called("a", seq, "mail"),
            })
        };
        Batch { events: seqs.map(event).collect(), ..buffered_batch(&["x"]) }
    };
    journal.append(events(2..8)).await.unwrap();
    store.append(9, tool_invoked("mail"));
    journal.append(Batch { durability: Durability::Synced, ..events(8..10) }).await.unwrap();
    store.wait_past(9).await;
    let read = |before, most| {
        let store = Arc::clone(&store);
        async move {
            let query = ToolCallQuery { id: "mail.send".to_owned(), name: "mail".to_owned(), before, most };
            let events = store.read_calls(query).await.unwrap();
            assert!(events.iter().all(|event| matches!(event.tool.as_deref(), Some("mail" | "mail.send"))));
            events.iter().map(|event| event.position).collect::<Vec<_>>()
        }
    };
    let all = read(None, 9).await;
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(all.is_sorted_by(|newer, older| newer > older), "{all:?}");
    assert_eq!(read(None, 2).await, all[..2]);
    assert_eq!(read(Some(all[1]), 9).await, all[2..]);
    assert_eq!((read(Some(0), 9).await, read(Some(u64::MAX), 9).await), (Vec::new(), all));
    // The log itself names the tools too.
    let tools: Vec<_> = all_after(&*store, 0, 100).await.into_iter().filter_map(|event| event.tool).collect();
    assert_eq!(tools.len(), 6, "{tools:?}");
}

/// When an append returns, its events can be read.
async fn events_of_a_synced_batch_are_readable_at_once(store: Arc<dyn SidecarStore>) {
    let mut journal = start_run(&*store, "a").await;
    for seq in 1..=200 {
        journal.append(with_events(synced_batch(&["x"]), "a", [seq])).await.unwrap();
        assert_eq!(store.bounds().newest, u64::from(seq));
        assert_eq!(store.read_after(u64::from(seq) - 1, 5).await.unwrap().len(), 1);
    }
}

async fn a_waiter_misses_nothing(store: Arc<dyn SidecarStore>) {
    let mut waits = store.wait_past(0);
    let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    const EVENTS: u64 = 2000;
    let writer = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for number in 0..EVENTS {
                store.append(number, debug_event(number));
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
            let (mut position, mut events) = (0, Vec::new());
            while position < EVENTS {
                store.wait_past(position).await;
                let some = store.read_after(position, 3).await.unwrap();
                assert!(!some.is_empty(), "there was an event after {position}");
                position = some.last().unwrap().position;
                events.extend(some.iter().map(describe));
            }
            events
        });
    }
    writer.await.unwrap();
    let expected: Vec<String> = (0..EVENTS).map(|number| format!("debug {number}")).collect();
    while let Some(events) = readers.join_next().await {
        assert_eq!(events.unwrap(), expected);
    }
}

/// Runs write at the same time, and a reader follows: it gets every event once, each run in its own order.
async fn a_waiter_for_the_flow_passes_over_runs_and_calls(store: Arc<dyn SidecarStore>) {
    let mut context = Context::from_waker(Waker::noop());
    let mut a = start_run_with_event(&*store, "a").await;
    a.append(with_events(synced_batch(&["x"]), "a", [2, 3])).await.unwrap();
    let mut waits = store.wait_for_flow_event(0);
    assert!(waits.as_mut().poll(&mut context).is_pending(), "there are only events of runs");
    store.append(6, tool_invoked("mail"));
    assert!(waits.as_mut().poll(&mut context).is_pending(), "and a call of a tool");
    store.append(7, debug_event(1));
    assert_eq!(waits.await, 4, "the last event of another kind before it");
    assert_eq!(events_after(&*store, 4).await, ["debug 1"]);
    assert!(store.wait_for_flow_event(5).as_mut().poll(&mut context).is_pending());
    a.append(with_events(synced_batch(&["y"]), "a", 4..=5_000)).await.unwrap();
    store.append(8, debug_event(2));
    assert_eq!(store.wait_for_flow_event(5).await, 5_002);
    // The store on the disk holds fewer events in memory: this reader has to read all of them.
    let begin = store.wait_for_flow_event(0).await;
    assert!(begin == 0 || begin == 4, "{begin}");
    let flow = all_after(&*store, begin, 100)
        .await
        .into_iter()
        .filter(|event| event.run.is_none() && event.tool.is_none());
    assert_eq!(flow.map(|event| describe(&event)).collect::<Vec<_>>(), ["debug 1", "debug 2"]);
}

async fn many_runs_at_once_keep_their_order(store: Arc<dyn SidecarStore>) {
    const RUNS: u32 = 16;
    const BATCHES: u32 = 40;
    let mut tasks = tokio::task::JoinSet::new();
    for run in 0..RUNS {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let run = format!("run-{run}");
            let mut journal = start_run_with_event(&*store, &run).await;
            for batch in 0..BATCHES {
                let events = [2 + batch * 2, 3 + batch * 2];
                let lines = if batch % 3 == 0 { synced_batch(&["x"]) } else { buffered_batch(&["x"]) };
                journal.append(with_events(lines, &run, events)).await.unwrap();
                if batch % 5 == 0 {
                    store.append(1, debug_event(run.clone()));
                }
            }
            journal.append(with_events(last_batch(1), &run, [])).await.unwrap();
        });
    }
    let total = u64::from(RUNS * (1 + 2 * BATCHES + BATCHES / 5));
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut position = 0;
    while position < total {
        store.wait_past(position).await;
        for event in store.read_after(position, 50).await.unwrap() {
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

async fn an_answer_is_limited_in_bytes(store: Arc<dyn SidecarStore>) {
    let value = "x".repeat(15_000);
    for _ in 0..200 {
        store.append(1, debug_event(value.clone()));
    }
    store.wait_past(199).await;
    let some = store.read_after(0, usize::MAX).await.unwrap();
    let bytes: usize = some.iter().map(|event| event.json.len()).sum();
    assert!(bytes <= 1024 * 1024 && bytes > 1000 * 1024, "{bytes}");
    assert_eq!(all_after(&*store, 0, usize::MAX).await.len(), 200);
    assert_eq!(store.read_after(0, 0).await.unwrap(), []);
}

async fn a_large_value_is_truncated(store: Arc<dyn SidecarStore>) {
    let most = EventLogSettings::default().max_event_bytes;
    let value = json!({"text": "ü".repeat(1_000_000)});
    store.append(1, debug_event(value.clone()));
    store.wait_past(0).await;
    let event = store.read_after(0, 1).await.unwrap().remove(0);
    assert!(event.json.len() <= most && event.json.len() > most - 16, "{}", event.json.len());
    let StreamEvent::Flow { event: FlowEvent::Debug { value: cut, .. }, .. } =
        serde_json::from_str(&event.json).unwrap()
    else {
        panic!("{}", event.json);
    };
    let cut = cut.as_str().unwrap();
    assert!(cut.ends_with('…') && value.to_string().starts_with(cut.trim_end_matches('…')));
}

async fn positions_out_of_range_have_no_events(store: Arc<dyn SidecarStore>) {
    store.append(1, debug_event(1));
    store.wait_past(0).await;
    for position in [1, 2, u64::from(u32::MAX), i64::MAX as u64, u64::MAX - 1, u64::MAX] {
        assert_eq!(store.read_after(position, usize::MAX).await.unwrap(), [], "{position}");
        let mut waits = store.wait_past(position);
        let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "{position}");
    }
}

async fn runs_are_listed_page_by_page(store: Arc<dyn SidecarStore>) {
    for run in ["e", "d", "c"] {
        finish_run(&*store, run, 1).await;
    }
    let _open = start_run(&*store, "b").await;
    start_run(&*store, "a").await.append(waiting_batch()).await.unwrap();
    let list = async |statuses: Option<Vec<RunStatus>>, before: Option<&str>, limit| -> Vec<String> {
        let filter = RunFilter { statuses, before: before.map(id), limit, ..RunFilter::default() };
        store.list(filter).await.unwrap().runs.into_iter().map(|run| run.run_id.to_string()).collect()
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
    let batch = with_events(buffered_batch(&["queued"]), "b", [1]);
    let mut journal = store.reopen(&store.load(&id("b")).await.unwrap().unwrap());
    journal.append(batch).await.unwrap();
    journal.append(last_batch(9)).await.unwrap();
    assert_eq!(list(completed(), None, 1).await, ["b"], "a list sees what was written before it");
}

async fn runs_are_listed_by_agent_and_instance(store: Arc<dyn SidecarStore>) {
    // Each name is made of the instance, the agent and a number.
    let mut open = Vec::new();
    for (run, state) in
        [("xa1", "over"), ("xb2", "failed"), ("ya3", "over"), ("xa4", "failed"), ("xa5", "open")]
    {
        let agent = NodeRef { instance: run[..1].into(), node_id: run[1..2].into() };
        let new = NewRun { agent, ..new_run(run) };
        let batch = first_batch(&new);
        let mut journal = store.create(new);
        journal.append(batch).await.unwrap();
        let code = RunErrorCode::ProviderUnavailable;
        let failed = RunState::Finished { at: 2, ending: Ending::Failed { code }, usage: Box::default() };
        match state {
            "over" => journal.append(last_batch(2)).await.unwrap(),
            "failed" => journal.append(Batch { state: failed, ..last_batch(2) }).await.unwrap(),
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
        let case = format!("{filter:?}");
        let runs = store.list(filter).await.unwrap().runs;
        assert_eq!(runs.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), expected, "{case}");
    }
}

async fn a_run_record_has_the_summary_and_the_journal(store: Arc<dyn SidecarStore>) {
    finish_run(&*store, "a", 2000).await;
    let record = store.read(&id("a")).await.unwrap().unwrap();
    assert_eq!(text(&record.journal), finished_journal("a"));
    assert_eq!((record.summary.status, record.problem), (RunStatus::Completed, None));
    assert_eq!(record.summary, store.load(&id("a")).await.unwrap().unwrap().summary);
    assert_eq!(store.read(&id("no such run")).await.unwrap(), None);
}
