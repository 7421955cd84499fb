//! What the engine does to the outside world, written down: a clock and an event sink.

use redflow_contract::Millis;
use redflow_contract::event::{FlowEvent, RunEvent};
use redflow_contract::id::RunId;
use redflow_contract::stream::ModelDelta;
use redflow_ports::{Clock, EventSink, FlowStep, StartId, StepOutcome};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tokio::time::Instant;

/// When every test begins: 2025-12-17T19:33:20Z.
pub(crate) const START: Millis = 1_766_000_000_000;

/// Everything that was seen, in order.
pub(crate) struct Watch {
    begun: Instant,
    ids: AtomicU32,
    messages: AtomicU32,
    watches_runs: bool,
    watches_deltas: AtomicBool,
    watches_flow_steps: AtomicBool,
    /// Nothing hangs in a process that came after a crash.
    pub(crate) is_second: bool,
    shown: Mutex<Vec<FlowEvent>>,
    events: Mutex<Vec<RunEvent>>,
    deltas: Mutex<Vec<ModelDelta>>,
    done: Mutex<Vec<String>>,
    moves: Mutex<Vec<(StartId, String)>>,
}

impl Watch {
    pub(crate) fn new(watches_runs: bool, earlier_runs: u32) -> Self {
        Self {
            begun: Instant::now(),
            ids: AtomicU32::new(earlier_runs),
            messages: AtomicU32::new(0),
            watches_runs,
            watches_deltas: AtomicBool::new(false),
            watches_flow_steps: AtomicBool::new(false),
            is_second: earlier_runs > 0,
            shown: Mutex::default(),
            events: Mutex::default(),
            deltas: Mutex::default(),
            done: Mutex::default(),
            moves: Mutex::default(),
        }
    }

    /// Something was done to the world.
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.done.lock().unwrap().push(what.into());
    }

    /// What services did and were asked, without the journals.
    pub(crate) fn done(&self) -> Vec<String> {
        self.done_and_kept().into_iter().filter(|line| line != "journal").collect()
    }

    /// What services did and were asked; `journal` stands for each append.
    pub(crate) fn done_and_kept(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }

    /// The events of the flow.
    pub(crate) fn flow_events(&self) -> Vec<FlowEvent> {
        self.shown.lock().unwrap().clone()
    }

    /// The events of the flow, in a few words each.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap().iter().map(line).collect()
    }

    /// From now on answers are watched as they come in.
    pub(crate) fn watch_deltas(&self) {
        self.watches_deltas.store(true, Ordering::Relaxed);
    }

    /// The pieces of answers, in a few words each.
    pub(crate) fn deltas(&self) -> Vec<String> {
        let deltas = self.deltas.lock().unwrap();
        let line = |delta: &ModelDelta| {
            format!("{} {}.{} {}", delta.run_id, delta.iteration, delta.attempt, delta.text)
        };
        deltas.iter().map(line).collect()
    }

    /// From now on messages are watched as they move.
    pub(crate) fn watch_moves(&self) {
        self.watches_flow_steps.store(true, Ordering::Relaxed);
    }

    /// What moved, in a few words each; starts are numbered as they came.
    pub(crate) fn moves(&self) -> Vec<String> {
        let moves = self.moves.lock().unwrap();
        let mut starts: Vec<StartId> = Vec::new();
        let mut number = |start: &StartId| match starts.iter().position(|known| known == start) {
            Some(place) => place + 1,
            None => {
                starts.push(*start);
                starts.len()
            }
        };
        moves.iter().map(|(start, line)| format!("{} {line}", number(start))).collect()
    }

    pub(crate) fn run_events(&self) -> Vec<RunEvent> {
        self.events.lock().unwrap().clone()
    }
}

fn line(event: &FlowEvent) -> String {
    match event {
        FlowEvent::Debug { node, value, .. } => format!("{}: {value}", node.id),
        FlowEvent::Deployed { revision, .. } => format!("deployed {revision}"),
        FlowEvent::Checked { revision, .. } => format!("checked {revision}"),
        FlowEvent::MemoryCleared { node } => format!("{} forgot", node.id),
        FlowEvent::NeedsNodeRed { node } => format!("{} needs Node-RED", node.id),
        FlowEvent::Uncaught { node, error } => {
            format!("{} uncaught {} #{}", node.id, error.code, error.source.count)
        }
        FlowEvent::Chat { node, item, keeps } => {
            format!("{} {:?} ({keeps}): {}", node.id, item.speaker, item.content)
        }
        FlowEvent::ReplyDropped { node, reason } => format!("{} dropped a reply: {reason}", node.id),
        FlowEvent::ChainCut { node, limit } => format!("{} cut at {limit}", node.id),
    }
}

fn move_line(moved: FlowStep<'_>) -> String {
    let payload = |message: &redflow_contract::Message| {
        message
            .get("payload")
            .map(ToString::to_string)
            .unwrap_or_default()
            .chars()
            .take(40)
            .collect::<String>()
    };
    match moved {
        FlowStep::Started { trigger } => format!("began {}", trigger.id),
        FlowStep::Received { node, message } => format!("{} <- {}", node.id, payload(message)),
        FlowStep::Sent { node, port, message, error } => {
            let failed = error.map(|error| format!(" {}", error.code)).unwrap_or_default();
            format!("{}.{port} -> {}{failed}", node.id, payload(message))
        }
        FlowStep::Done { node, outcome } => match outcome {
            StepOutcome::Completed => format!("{} done", node.id),
            StepOutcome::Failed(error) => format!("{} failed {}", node.id, error.code),
            StepOutcome::Waiting => format!("{} waits", node.id),
        },
        FlowStep::ModelCalled { service_call, transcript } => {
            let segments = transcript.segments().len();
            format!(
                "{} asks {} #{} ({segments})",
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
        FlowStep::Ended => "over".to_owned(),
    }
}

impl Clock for Watch {
    fn now(&self) -> Millis {
        START + u64::try_from(self.begun.elapsed().as_millis()).unwrap()
    }
    fn run_id(&self) -> RunId {
        RunId::from(format!("run-{}", self.ids.fetch_add(1, Ordering::Relaxed) + 1))
    }
    fn message_id(&self) -> String {
        format!("msg-{}", self.messages.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl EventSink for Watch {
    fn watches_runs(&self) -> bool {
        self.watches_runs
    }
    fn run_event(&self, event: &RunEvent) {
        self.events.lock().unwrap().push(event.clone());
    }
    fn flow_event(&self, event: &FlowEvent) {
        self.shown.lock().unwrap().push(event.clone());
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
        self.moves.lock().unwrap().push((start, move_line(step)));
    }
}
