//! A clock and an event sink that record what the engine does.

use redflow_contract::Millis;
use redflow_contract::event::{FlowEvent, RunEvent};
use redflow_contract::id::RunId;
use redflow_contract::stream::ModelDelta;
use redflow_ports::{Clock, EventSink, FlowStep, StartId, StepOutcome};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::time::Instant;

/// The time at which every test starts: 2025-12-17T19:33:20Z.
pub(crate) const START: Millis = 1_766_000_000_000;

/// Everything the engine reported and its services did, in order.
pub(crate) struct EventRecorder {
    started: Instant,
    run_ids: AtomicU32,
    message_ids: AtomicU32,
    watches_runs: bool,
    watches_deltas: AtomicBool,
    watches_flow_steps: AtomicBool,
    /// Whether an earlier process had runs. Doubles do not hang in a second process.
    pub(crate) is_restart: bool,
    flow_events: Mutex<Vec<FlowEvent>>,
    run_events: Mutex<Vec<RunEvent>>,
    deltas: Mutex<Vec<ModelDelta>>,
    calls: Mutex<Vec<String>>,
    flow_steps: Mutex<Vec<(StartId, String)>>,
}

impl EventRecorder {
    pub(crate) fn new(earlier_runs: u32) -> Self {
        Self {
            started: Instant::now(),
            run_ids: AtomicU32::new(earlier_runs),
            message_ids: AtomicU32::new(0),
            watches_runs: true,
            watches_deltas: AtomicBool::new(false),
            watches_flow_steps: AtomicBool::new(false),
            is_restart: earlier_runs > 0,
            flow_events: Mutex::default(),
            run_events: Mutex::default(),
            deltas: Mutex::default(),
            calls: Mutex::default(),
            flow_steps: Mutex::default(),
        }
    }

    pub(crate) fn without_run_events(self) -> Self {
        Self { watches_runs: false, ..self }
    }

    pub(crate) fn record(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }

    /// The calls of services.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls_and_appends().into_iter().filter(|line| line != "journal").collect()
    }

    /// The calls of services; `journal` stands for each append to a journal.
    pub(crate) fn calls_and_appends(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn flow_events(&self) -> Vec<FlowEvent> {
        self.flow_events.lock().unwrap().clone()
    }

    /// The events of the flow, one line each.
    pub(crate) fn flow_lines(&self) -> Vec<String> {
        self.flow_events.lock().unwrap().iter().map(event_line).collect()
    }

    /// Asks for deltas from now on.
    pub(crate) fn watch_deltas(&self) {
        self.watches_deltas.store(true, Ordering::Relaxed);
    }

    /// The deltas, one line each.
    pub(crate) fn deltas(&self) -> Vec<String> {
        let deltas = self.deltas.lock().unwrap();
        let line = |delta: &ModelDelta| {
            format!("{} {}.{} {}", delta.run_id, delta.iteration, delta.attempt, delta.text)
        };
        deltas.iter().map(line).collect()
    }

    /// Asks for flow steps from now on.
    pub(crate) fn watch_flow_steps(&self) {
        self.watches_flow_steps.store(true, Ordering::Relaxed);
    }

    /// The flow steps, one line each; starts are numbered in order.
    pub(crate) fn flow_steps(&self) -> Vec<String> {
        let steps = self.flow_steps.lock().unwrap();
        let mut starts: Vec<StartId> = Vec::new();
        let mut number = |start: &StartId| match starts.iter().position(|known| known == start) {
            Some(index) => index + 1,
            None => {
                starts.push(*start);
                starts.len()
            }
        };
        steps.iter().map(|(start, line)| format!("{} {line}", number(start))).collect()
    }

    pub(crate) fn run_events(&self) -> Vec<RunEvent> {
        self.run_events.lock().unwrap().clone()
    }
}

fn event_line(event: &FlowEvent) -> String {
    match event {
        FlowEvent::Debug { node, value, .. } => format!("{}: {value}", node.id),
        FlowEvent::Deployed { revision, .. } => format!("deployed {revision}"),
        FlowEvent::ToolInvoked { call } => format!("called {}", call.id),
        FlowEvent::Checked { revision, .. } => format!("checked {revision}"),
        FlowEvent::MemoryCleared { node } => format!("{} memory cleared", node.id),
        FlowEvent::MemoryConsolidated { node, consolidated, error } => {
            let error = error.as_ref().map(|error| format!(" {}", error.message)).unwrap_or_default();
            format!("{} consolidated +{}{error}", node.id, consolidated.added)
        }
        FlowEvent::MemoryForgotten { forgotten } => format!("forgotten {}", forgotten.runs),
        FlowEvent::Erased {} => "erased".to_owned(),
        FlowEvent::NeedsNodeRed { node } => format!("{} needs Node-RED", node.id),
        FlowEvent::Uncaught { node, error } => {
            format!("{} uncaught {} #{}", node.id, error.code, error.source.count)
        }
        FlowEvent::Chat { node, item, keeps } => {
            format!("{} {:?} ({keeps}): {}", node.id, item.speaker, item.content)
        }
        FlowEvent::ReplyDropped { node, reason } => format!("{} dropped a reply: {reason}", node.id),
        FlowEvent::CascadeCut { node, limit } => format!("{} cut at {limit}", node.id),
    }
}

fn step_line(step: FlowStep<'_>) -> String {
    let payload = |message: &redflow_contract::Message| {
        message
            .get("payload")
            .map(ToString::to_string)
            .unwrap_or_default()
            .chars()
            .take(40)
            .collect::<String>()
    };
    match step {
        FlowStep::Started { trigger } => format!("started {}", trigger.id),
        FlowStep::Received { node, message } => format!("{} <- {}", node.id, payload(message)),
        FlowStep::Sent { node, port, message, error, .. } => {
            let failed = error.map(|error| format!(" {}", error.code)).unwrap_or_default();
            format!("{}.{port} -> {}{failed}", node.id, payload(message))
        }
        FlowStep::Done { node, outcome } => match outcome {
            StepOutcome::Completed | StepOutcome::Shown(_) => format!("{} done", node.id),
            StepOutcome::Failed(error) => format!("{} failed {}", node.id, error.code),
            StepOutcome::Waiting => format!("{} waits", node.id),
        },
        FlowStep::ModelCalled { service_call, transcript } => {
            let segments = transcript.segments().len();
            format!(
                "{} calls {} #{} ({segments})",
                service_call.agent.id, service_call.service.id, service_call.iteration
            )
        }
        FlowStep::ModelAnswered { service_call, answer } => match answer {
            Ok(answer) => format!("{} answers {}", service_call.service.id, answer.text.len() > 1),
            Err(error) => format!("{} fails {}", service_call.service.id, error.code),
        },
        FlowStep::ToolCalled { service_call, call } => {
            format!("{} calls {} {}", service_call.agent.id, service_call.service.id, call.tool)
        }
        FlowStep::ToolReturned { service_call, result, .. } => match result {
            Ok(result) => format!("{} returns {}", service_call.service.id, result.success),
            Err(reason) => format!("{} unknown: {reason}", service_call.service.id),
        },
        FlowStep::Ended => "ended".to_owned(),
    }
}

impl Clock for EventRecorder {
    fn now(&self) -> Millis {
        START + u64::try_from(self.started.elapsed().as_millis()).unwrap()
    }
    fn run_id(&self) -> RunId {
        RunId::from(format!("run-{}", self.run_ids.fetch_add(1, Ordering::Relaxed) + 1))
    }
    fn message_id(&self) -> String {
        format!("msg-{}", self.message_ids.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl EventSink for EventRecorder {
    fn watches_runs(&self) -> bool {
        self.watches_runs
    }
    fn run_event(&self, event: &RunEvent) {
        self.run_events.lock().unwrap().push(event.clone());
    }
    fn flow_event(&self, event: &FlowEvent) {
        self.flow_events.lock().unwrap().push(event.clone());
    }
    fn watches_deltas(&self) -> bool {
        self.watches_deltas.load(Ordering::Relaxed)
    }
    fn delta(&self, delta: ModelDelta) {
        self.deltas.lock().unwrap().push(delta);
    }
    fn watches_flow_steps(&self) -> bool {
        self.watches_flow_steps.load(Ordering::Relaxed)
    }
    fn flow_step(&self, start: StartId, step: FlowStep<'_>) {
        self.flow_steps.lock().unwrap().push((start, step_line(step)));
    }
}
