//! The decision trace of a run: its journal, folded into steps.
//!
//! Owns which fact or event of a run becomes which step. Stores nothing: a trace is computed from the journal whenever
//! it is read. Shows no free text of a model unless the agent has `debug: true`, like the events.

use redflow_contract::Millis;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::{Fact, ModelAnswer};
use redflow_contract::id::{CallId, EffectId, RunId};
use redflow_contract::source::{Source, add_sources};
use redflow_contract::trace::{RunTrace, TraceStep, TraceStepKind};
use std::collections::HashMap;

/// Folds the facts of a run, with their effects and events, into steps.
#[derive(Debug, Default)]
pub struct Tracer {
    steps: Vec<TraceStep>,
    provenance: Vec<Source>,
    /// The effects that no fact has answered yet, and when they were opened.
    open: HashMap<EffectId, (Millis, EffectKind)>,
    /// When each tool was called.
    called_at: HashMap<CallId, Millis>,
    /// The iteration of the last model call.
    iteration: u32,
    ended: bool,
}

/// The effects whose answers are steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EffectKind {
    Recall,
    CallModel,
    Append,
}

/// What a fact says, before the machine takes it.
#[derive(Debug)]
pub struct FactOutline {
    at: Millis,
    effect: Option<EffectId>,
    answer: EffectAnswer,
}

#[derive(Debug)]
enum EffectAnswer {
    Recalled { messages: u32, sources: Vec<Source> },
    Failed(redflow_contract::code::RunErrorCode),
    Answered(Box<AnswerOutline>),
    Appended,
    Other,
}

#[derive(Debug)]
struct AnswerOutline {
    model: Option<String>,
    usage: Option<redflow_contract::fact::Usage>,
}

impl From<&ModelAnswer> for AnswerOutline {
    fn from(answer: &ModelAnswer) -> Self {
        Self { model: answer.model.clone(), usage: answer.usage }
    }
}

impl FactOutline {
    /// What a step needs of a fact.
    #[must_use]
    pub fn new(fact: &Fact) -> Self {
        let answer = match fact {
            Fact::MemoryRecalled { turns, sources, .. } => {
                let messages = u32::try_from(turns.len()).unwrap_or(u32::MAX);
                EffectAnswer::Recalled { messages, sources: sources.clone() }
            }
            Fact::MemoryFailed { error, .. } | Fact::ModelFailed { error, .. } => {
                EffectAnswer::Failed(error.code)
            }
            Fact::ModelAnswered { answer, .. } => EffectAnswer::Answered(Box::new(answer.into())),
            Fact::MemoryAppended { .. } => EffectAnswer::Appended,
            _ => EffectAnswer::Other,
        };
        Self { at: fact.at(), effect: fact.effect(), answer }
    }
}

impl Tracer {
    /// Adds a fact, with the events and the effects that the machine gave for it, in the order of the journal.
    pub fn add(&mut self, fact: FactOutline, events: &[RunEvent], effects: &[Effect]) {
        let FactOutline { at, effect, answer } = fact;
        if let Some((opened, kind)) = effect.and_then(|effect| self.open.remove(&effect)) {
            let duration_ms = at.saturating_sub(opened);
            if let Some(step) = answer_step(kind, answer, events, duration_ms) {
                self.push(at, step);
            }
        }
        for event in events {
            self.add_event(event);
        }
        for effect in effects {
            self.add_effect(at, effect);
        }
    }

    fn add_event(&mut self, event: &RunEvent) {
        let at = event.at;
        match &event.event {
            RunEventKind::ToolCalled { tool, call_id, .. } => {
                self.called_at.insert(call_id.clone(), at);
                self.push(at, TraceStepKind::Call { tool: tool.clone(), call_id: call_id.clone() });
            }
            RunEventKind::ToolReturned { tool, call_id, success, code, duration_ms, sources, .. } => {
                let step = TraceStepKind::Return {
                    tool: tool.clone(),
                    call_id: call_id.clone(),
                    success: Some(*success),
                    code: *code,
                    sources: sources.clone(),
                    duration_ms: *duration_ms,
                };
                self.push(at, step);
            }
            RunEventKind::WaitingForOutcome { tool, call_id, .. } => {
                let called_at = self.called_at.get(call_id).copied().unwrap_or(at);
                let step = TraceStepKind::Return {
                    tool: tool.clone(),
                    call_id: call_id.clone(),
                    success: None,
                    code: None,
                    sources: Vec::new(),
                    duration_ms: at.saturating_sub(called_at),
                };
                self.push(at, step);
            }
            _ => {}
        }
    }

    fn add_effect(&mut self, at: Millis, effect: &Effect) {
        let kind = match effect {
            Effect::RecallMemory { .. } => EffectKind::Recall,
            // A summary decides nothing.
            Effect::CallModel { answer_kind, .. } if answer_kind.is_summary() => return,
            Effect::CallModel { iteration, .. } => {
                self.iteration = *iteration;
                EffectKind::CallModel
            }
            Effect::AppendMemory { .. } => EffectKind::Append,
            Effect::Finish { ending, .. } => {
                self.end(at, *ending);
                return;
            }
            _ => return,
        };
        self.open.insert(effect.id(), (at, kind));
    }

    fn end(&mut self, at: Millis, ending: Ending) {
        self.ended = true;
        self.push(at, TraceStepKind::End { ending });
    }

    fn push(&mut self, at: Millis, step: TraceStepKind) {
        if let TraceStepKind::Recall { sources, .. } | TraceStepKind::Return { sources, .. } = &step {
            add_sources(&mut self.provenance, sources);
        }
        let number = u32::try_from(self.steps.len() + 1).unwrap_or(u32::MAX);
        self.steps.push(TraceStep { number, at, iteration: self.iteration, step });
    }

    /// The trace of the run so far.
    #[must_use]
    pub fn into_trace(self, run_id: RunId) -> RunTrace {
        let Self { steps, provenance, ended, .. } = self;
        RunTrace { run_id, steps, provenance, ended }
    }
}

/// The step that a fact ends; none for a call that was not made.
fn answer_step(
    kind: EffectKind,
    answer: EffectAnswer,
    events: &[RunEvent],
    duration_ms: u64,
) -> Option<TraceStepKind> {
    Some(match (kind, answer) {
        (EffectKind::Recall, EffectAnswer::Recalled { messages, sources }) => {
            TraceStepKind::Recall { messages, sources, code: None, duration_ms }
        }
        (EffectKind::Recall, EffectAnswer::Failed(code)) => {
            TraceStepKind::Recall { messages: 0, sources: Vec::new(), code: Some(code), duration_ms }
        }
        (EffectKind::Append, EffectAnswer::Appended) => TraceStepKind::Append { code: None, duration_ms },
        (EffectKind::Append, EffectAnswer::Failed(code)) => {
            TraceStepKind::Append { code: Some(code), duration_ms }
        }
        (EffectKind::CallModel, EffectAnswer::Answered(answer)) => decision(*answer, events, duration_ms),
        (EffectKind::CallModel, EffectAnswer::Failed(code)) => TraceStepKind::Decide {
            action: None,
            tools: Vec::new(),
            confidence: None,
            model: None,
            usage: None,
            code: Some(code),
            preview: None,
            duration_ms,
        },
        _ => return None,
    })
}

/// The step of an answer. The machine gives an event only for a valid action.
fn decision(answer: AnswerOutline, events: &[RunEvent], duration_ms: u64) -> TraceStepKind {
    let AnswerOutline { model, usage } = answer;
    let valid = events.iter().find_map(|event| match &event.event {
        RunEventKind::ModelAnswered { action, tool, tools, confidence, preview, .. } => {
            let tools = tool.iter().chain(tools).cloned().collect();
            Some((Some(*action), tools, *confidence, preview.clone()))
        }
        _ => None,
    });
    let (action, tools, confidence, preview) = valid.unwrap_or_default();
    TraceStepKind::Decide { action, tools, confidence, model, usage, code: None, preview, duration_ms }
}
