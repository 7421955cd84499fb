//! Runs to store, and directories to store them in.

use redflow_contract::Millis;
use redflow_contract::digest::Digest;
use redflow_contract::effect::Ending;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::{CallId, InstanceId, NodeRef, NodeSummary, RunId};
use redflow_contract::journal::plan_line;
use redflow_contract::plan::{AgentPlan, EncodedPlan, PlanNode};
use redflow_contract::run::{RunState, WaitingCall};
use redflow_contract::stream::StreamEvent;
use redflow_ports::{Batch, Durability, EventLog, Journal, LoggedEvent, NewRun, RunStore};

pub(crate) fn plan(name: &str) -> EncodedPlan {
    let node = |id: &str| PlanNode {
        node: NodeSummary { id: id.into(), type_name: "t".into(), name: name.into() },
        config: serde_json::Map::new(),
    };
    let plan = AgentPlan { agent: node("agent"), model: node("model"), memory: None, tools: Vec::new() };
    EncodedPlan::new(&plan).unwrap()
}

pub(crate) fn new_run(run: &str) -> NewRun {
    NewRun {
        run_id: run.into(),
        agent: NodeRef { instance: InstanceId::local(), node_id: "agent".into() },
        name: "Agent".into(),
        started_at: 1000,
        cause: None,
        source: Some("flows/ü.json".into()),
        plan: plan("p"),
    }
}

/// The first three lines of a journal: a header, the plan's and a fact.
pub(crate) fn opening(run: &NewRun) -> Vec<String> {
    let header = format!(r#"{{"header":"{}"}}"#, run.run_id);
    let second = plan_line(&Digest::of(header.as_bytes()), run.plan.json());
    vec![header, second, r#"{"fact":"began ü"}"#.to_owned()]
}

pub(crate) fn now(lines: &[&str]) -> Batch {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    Batch {
        lines,
        state: RunState::Running,
        active_ms: 7,
        durability: Durability::Synced,
        events: Vec::new(),
    }
}

pub(crate) fn soon(lines: &[&str]) -> Batch {
    Batch { durability: Durability::Buffered, ..now(lines) }
}

pub(crate) fn first(run: &NewRun) -> Batch {
    Batch { lines: opening(run), ..now(&[]) }
}

pub(crate) fn last(at: Millis) -> Batch {
    Batch { state: RunState::Finished { at, ending: Ending::Completed }, active_ms: 9, ..now(&["the end"]) }
}

pub(crate) fn waiting() -> WaitingCall {
    let input = serde_json::from_value(serde_json::json!({"amount": 5, "to": "ü"})).unwrap();
    WaitingCall { call_id: CallId::from("call-1"), tool: "pay".into(), iteration: 2, asked_at: 1500, input }
}

pub(crate) fn waits() -> Batch {
    Batch { state: RunState::Waiting(waiting()), ..now(&["waits"]) }
}

/// A run of which the first batch is kept.
pub(crate) async fn begun(store: &dyn RunStore, run: &str) -> Box<dyn Journal> {
    let run = new_run(run);
    let batch = first(&run);
    let mut journal = store.create(run);
    journal.append(batch).await.unwrap();
    journal
}

/// A run that is over, in three batches.
pub(crate) async fn finished(store: &dyn RunStore, run: &str, at: Millis) {
    let mut journal = begun(store, run).await;
    journal.append(soon(&["middle", "lines"])).await.unwrap();
    journal.append(last(at)).await.unwrap();
}

/// The same, and its result has left.
pub(crate) async fn delivered(store: &dyn RunStore, run: &str, at: Millis) {
    finished(store, run, at).await;
    store.delivered(&run.into());
}

/// The journal that [`finished`] writes.
pub(crate) fn finished_text(run: &str) -> String {
    let lines = opening(&new_run(run));
    format!("{}\nmiddle\nlines\nthe end\n", lines.join("\n"))
}

pub(crate) fn id(run: &str) -> RunId {
    run.into()
}

/// The whole text of a stored journal.
pub(crate) fn text(journal: &[u8]) -> &str {
    std::str::from_utf8(journal).unwrap()
}

/// An event of a run.
pub(crate) fn run_event(run: &str, seq: u32) -> RunEvent {
    RunEvent {
        run_id: run.into(),
        seq,
        at: 1000 + u64::from(seq),
        agent: new_run(run).agent,
        event: RunEventKind::ModelCalled { iteration: seq, preview: None },
    }
}

/// The batch, and these events of the run with it.
pub(crate) fn with_events(batch: Batch, run: &str, seqs: impl IntoIterator<Item = u32>) -> Batch {
    Batch { events: seqs.into_iter().map(|seq| run_event(run, seq)).collect(), ..batch }
}

/// A run of which the first batch is kept, with one event.
pub(crate) async fn begun_with_event(store: &dyn RunStore, run: &str) -> Box<dyn Journal> {
    let new = new_run(run);
    let batch = with_events(first(&new), run, [1]);
    let mut journal = store.create(new);
    journal.append(batch).await.unwrap();
    journal
}

pub(crate) fn debug_node() -> NodeSummary {
    NodeSummary { id: "debug".into(), type_name: "debug".into(), name: "Shown".into() }
}

pub(crate) fn debug(value: impl Into<serde_json::Value>) -> FlowEvent {
    FlowEvent::Debug { node: debug_node(), property: "payload".into(), value: value.into() }
}

pub(crate) fn deployed(revision: &str) -> FlowEvent {
    FlowEvent::Deployed { revision: revision.into(), agents: 1, refused: 0, instance: None }
}

/// What an event says, in a word: `run seq`, or the beginning of what the flow says.
pub(crate) fn said(event: &LoggedEvent) -> String {
    match serde_json::from_str(&event.json).unwrap() {
        StreamEvent::Run { event: run } => {
            assert_eq!(event.run.as_ref(), Some(&run.run_id));
            format!("{} {}", run.run_id, run.seq)
        }
        StreamEvent::Flow { event: flow, .. } => {
            assert_eq!(event.run, None);
            match flow {
                FlowEvent::Debug { value, .. } => format!("debug {value}"),
                FlowEvent::Deployed { revision, .. } => format!("deployed {revision}"),
                other => panic!("nobody here says {other:?}"),
            }
        }
    }
}

/// Every event after a position, a few at a time. Their positions must follow each other.
pub(crate) async fn all_after(log: &dyn EventLog, mut position: u64, most: usize) -> Vec<LoggedEvent> {
    let mut all = Vec::<LoggedEvent>::new();
    loop {
        let some = log.after(position, most).await.unwrap();
        assert!(some.len() <= most);
        for event in some {
            assert!(all.is_empty() || event.position == position + 1, "{position}, then {}", event.position);
            position = event.position;
            all.push(event);
        }
        if position >= log.bounds().newest {
            return all;
        }
    }
}

/// What was said after a position.
pub(crate) async fn told_after(log: &dyn EventLog, position: u64) -> Vec<String> {
    all_after(log, position, 100).await.iter().map(said).collect()
}
