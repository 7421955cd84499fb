//! Builds runs, batches and events for the tests.

use redflow_contract::Millis;
use redflow_contract::digest::Digest;
use redflow_contract::effect::Ending;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::{CallId, InstanceId, NodeRef, NodeSummary, RunId};
use redflow_contract::journal::plan_line;
use redflow_contract::plan::{AgentPlan, EncodedPlan, PlanNode};
use redflow_contract::run::{RunState, WaitingCall};
use redflow_contract::stream::StreamEvent;
use redflow_contract::tally::RunTally;
use redflow_ports::{Batch, Durability, EventLog, Journal, LoggedEvent, NewRun, RunStore};

pub(crate) fn plan(name: &str) -> EncodedPlan {
    let node = |id: &str| PlanNode {
        node: NodeSummary { id: id.into(), type_name: "t".into(), name: name.into() },
        config: serde_json::Map::new(),
    };
    let plan = AgentPlan {
        agent: node("agent"),
        model: node("model"),
        fallback_models: Vec::new(),
        services: Vec::new(),
        memory: None,
        tools: Vec::new(),
    };
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
        by: Some("token:ü".into()),
        user: None,
        session: None,
        plan: plan("p"),
    }
}

/// The first three lines of a journal: the header, the plan and a fact.
pub(crate) fn opening_lines(run: &NewRun) -> Vec<String> {
    let header = format!(r#"{{"header":"{}"}}"#, run.run_id);
    let second = plan_line(&Digest::of(header.as_bytes()), run.plan.json());
    vec![header, second, r#"{"fact":"began ü"}"#.to_owned()]
}

pub(crate) fn synced_batch(lines: &[&str]) -> Batch {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    Batch {
        lines,
        state: RunState::Running,
        active_ms: 7,
        tally: RunTally::default(),
        durability: Durability::Synced,
        events: [].into(),
    }
}

pub(crate) fn buffered_batch(lines: &[&str]) -> Batch {
    Batch { durability: Durability::Buffered, ..synced_batch(lines) }
}

pub(crate) fn first_batch(run: &NewRun) -> Batch {
    Batch { lines: opening_lines(run), ..synced_batch(&[]) }
}

pub(crate) fn last_batch(at: Millis) -> Batch {
    Batch {
        state: RunState::Finished { at, ending: Ending::Completed, usage: Box::default() },
        active_ms: 9,
        ..synced_batch(&["the end"])
    }
}

pub(crate) fn waiting_call() -> WaitingCall {
    let input = serde_json::from_value(serde_json::json!({"amount": 5, "to": "ü"})).unwrap();
    WaitingCall { call_id: CallId::from("call-1"), tool: "pay".into(), iteration: 2, asked_at: 1500, input }
}

pub(crate) fn waiting_batch() -> Batch {
    Batch { state: RunState::Waiting(vec![waiting_call()]), ..synced_batch(&["waits"]) }
}

/// Starts a run and stores its first batch.
pub(crate) async fn start_run(store: &dyn RunStore, run: &str) -> Box<dyn Journal> {
    let run = new_run(run);
    let batch = first_batch(&run);
    let mut journal = store.create(run);
    journal.append(batch).await.unwrap();
    journal
}

/// Stores a run that is over, in three batches.
pub(crate) async fn finish_run(store: &dyn RunStore, run: &str, at: Millis) {
    let mut journal = start_run(store, run).await;
    journal.append(buffered_batch(&["middle", "lines"])).await.unwrap();
    journal.append(last_batch(at)).await.unwrap();
}

/// The same, and marks its result as delivered.
pub(crate) async fn deliver_run(store: &dyn RunStore, run: &str, at: Millis) {
    finish_run(store, run, at).await;
    store.mark_delivered(&run.into());
}

/// The journal that [`finish_run`] writes.
pub(crate) fn finished_journal(run: &str) -> String {
    let lines = opening_lines(&new_run(run));
    format!("{}\nmiddle\nlines\nthe end\n", lines.join("\n"))
}

pub(crate) fn id(run: &str) -> RunId {
    run.into()
}

/// A stored journal as text.
pub(crate) fn text(journal: &[u8]) -> &str {
    std::str::from_utf8(journal).unwrap()
}

pub(crate) fn run_event(run: &str, seq: u32) -> RunEvent {
    RunEvent {
        run_id: run.into(),
        seq,
        at: 1000 + u64::from(seq),
        agent: new_run(run).agent,
        event: RunEventKind::ModelCalled { iteration: seq, preview: None },
    }
}

pub(crate) fn tool_called(run: &str, seq: u32, tool: &str) -> RunEvent {
    let (tool, call_id) = (tool.to_owned(), format!("{run}:{seq}").into());
    let event = RunEventKind::ToolCalled { iteration: 1, tool, id: None, call_id, preview: None };
    RunEvent { event, ..run_event(run, seq) }
}

pub(crate) fn tool_returned(run: &str, seq: u32, tool: &str) -> RunEvent {
    let event = RunEventKind::ToolReturned {
        iteration: 1,
        tool: tool.to_owned(),
        id: None,
        call_id: format!("{run}:{seq}").into(),
        success: true,
        error: None,
        code: None,
        tries: None,
        duration_ms: 5,
        preview: None,
        sources: Vec::new(),
        image_bytes: Vec::new(),
    };
    RunEvent { event, ..run_event(run, seq) }
}

/// A call outside a run.
pub(crate) fn tool_invoked(tool: &str) -> FlowEvent {
    let call = tool_returned("outside", 1, tool).ended_call(tool).unwrap();
    FlowEvent::ToolInvoked { call: Box::new(redflow_contract::tool::ToolInvocation { run_id: None, ..call }) }
}

/// Adds events of the run to a batch.
pub(crate) fn with_events(batch: Batch, run: &str, seqs: impl IntoIterator<Item = u32>) -> Batch {
    Batch { events: seqs.into_iter().map(|seq| run_event(run, seq)).collect(), ..batch }
}

/// Starts a run and stores its first batch with one event.
pub(crate) async fn start_run_with_event(store: &dyn RunStore, run: &str) -> Box<dyn Journal> {
    let new = new_run(run);
    let batch = with_events(first_batch(&new), run, [1]);
    let mut journal = store.create(new);
    journal.append(batch).await.unwrap();
    journal
}

pub(crate) fn debug_node() -> NodeSummary {
    NodeSummary { id: "debug".into(), type_name: "debug".into(), name: "Shown".into() }
}

pub(crate) fn debug_event(value: impl Into<serde_json::Value>) -> FlowEvent {
    FlowEvent::Debug { node: debug_node(), property: "payload".into(), value: value.into() }
}

pub(crate) fn deployed_event(revision: &str) -> FlowEvent {
    FlowEvent::Deployed { revision: revision.into(), agents: 1, refused: 0, instance: None }
}

/// An event in short: `run seq`, or the kind and the value of a flow event.
pub(crate) fn describe(event: &LoggedEvent) -> String {
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
                FlowEvent::Chat { item, .. } => format!("chat {}", item.content),
                FlowEvent::Erased {} => "erased".to_owned(),
                other => panic!("no test adds {other:?}"),
            }
        }
    }
}

/// All events after a position, read a few at a time. Checks that their positions are consecutive.
pub(crate) async fn all_after(log: &dyn EventLog, mut position: u64, most: usize) -> Vec<LoggedEvent> {
    let mut all = Vec::<LoggedEvent>::new();
    loop {
        let some = log.read_after(position, most).await.unwrap();
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

/// All events after a position, in short.
pub(crate) async fn events_after(log: &dyn EventLog, position: u64) -> Vec<String> {
    all_after(log, position, 100).await.iter().map(describe).collect()
}
