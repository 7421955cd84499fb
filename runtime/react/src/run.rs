//! One run from its first fact to its end: the ReAct loop as a state machine.
//!
//! Owns every decision: when to call the model and the tools, when to stop, and how the run ends. The
//! envelope is its state. The transcript is only appended to, so that a late step costs as much as an early
//! one. Never does an effect itself.

mod ending;
mod steps;

use crate::compile::CompiledAgent;
use redflow_contract::Message;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::envelope::EnvelopeAction;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::Fact;
use redflow_contract::id::CallId;
use redflow_contract::node::OnUnknown;
use redflow_contract::run::WaitingCall;
use redflow_contract::tally::{RunTally, Spent};
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_contract::usage::RunUsage;
use redflow_machine::output::to_text;
use redflow_machine::{FeedError, FirstFact, Machine, Question, RunCaller, RunRecord, Status};
use serde_json::Value;
use std::sync::Arc;

/// The state of a run.
#[derive(Debug)]
pub struct Run {
    agent: Arc<CompiledAgent>,
    phase: Phase,
    record: RunRecord,
    /// The input as text for the model.
    input: Arc<ChatMessage>,
    /// The message of the last valid action.
    last_message: Option<String>,
}

/// What the run waits for.
#[derive(Debug, Default)]
enum Phase {
    /// Only while a fact is processed.
    #[default]
    Processing,
    Recalling,
    CallingModel,
    CallingTool(PendingToolCall),
    Parked(PendingToolCall),
    Appending,
    Finished(Ending),
}

/// A tool call that has no result yet.
#[derive(Debug)]
struct PendingToolCall {
    id: CallId,
    tool: String,
    input: Message,
    confidence: f64,
    on_unknown: OnUnknown,
}

impl Run {
    pub(crate) fn start(agent: Arc<CompiledAgent>, observed: bool, first: FirstFact) -> Self {
        let at = first.at;
        let record = RunRecord::start(agent.spec(), first, observed, agent.prefix());
        let input = Arc::new(ChatMessage::new(ChatRole::User, to_text(&record.envelope.input)));
        let mut run = Self { agent, phase: Phase::Recalling, record, input, last_message: None };
        if !run.record.recall_memory(at, &run.input.content) {
            run.start_loop(at);
        }
        run
    }

    fn push(&mut self, role: ChatRole, content: String) {
        self.record.transcript.push(Arc::new(ChatMessage::new(role, content)));
    }

    fn last_response(&self) -> Value {
        self.record.envelope.model.as_ref().and_then(|model| model.last_response.clone()).unwrap_or_default()
    }

    /// The message of the final action; the whole action if it has none.
    fn final_payload(&self) -> Value {
        self.last_message.clone().map_or_else(|| self.last_response(), Value::String)
    }
}

impl Machine for Run {
    fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
        if !self.record.is_drained() {
            return Err(FeedError::Undrained);
        }
        if matches!(self.phase, Phase::Finished(_)) {
            return Err(FeedError::Finished);
        }
        let expected = self.record.last_effect();
        if let Some(found) = fact.effect().filter(|found| *found != expected) {
            return Err(FeedError::NotOpen(found));
        }
        match (std::mem::take(&mut self.phase), fact) {
            (Phase::Recalling, Fact::MemoryRecalled { at, turns, sources, .. }) => {
                self.on_memory_recalled(at, turns, sources)
            }
            (Phase::Recalling, Fact::MemoryCleared { at, .. }) => {
                self.record.emit(at, || RunEventKind::MemoryCleared {});
                self.on_memory_recalled(at, Vec::new(), Vec::new());
            }
            (Phase::Recalling, Fact::MemoryFailed { at, error, .. }) => {
                self.record.memory_failed(at, error);
                self.start_loop(at);
            }
            (Phase::CallingModel, Fact::ModelAnswered { at, answer, .. }) => {
                self.on_model_answered(at, answer)
            }
            (Phase::CallingModel, Fact::ModelFailed { at, error, .. }) => {
                let error = self.record.error(error.code, error.message);
                self.fail(at, EnvelopeAction::Error, &error);
            }
            (
                phase @ (Phase::CallingModel | Phase::CallingTool(_)),
                Fact::BudgetReached { at, budget, limit, spent, .. },
            ) => {
                self.on_budget_reached(at, phase, Spent { budget, limit, spent });
            }
            (Phase::CallingTool(call), Fact::ToolReturned { at, result, tries, .. }) => {
                self.on_tool_returned(at, call, result, Some(tries));
            }
            (Phase::Parked(call), Fact::OutcomeResolved { at, result, .. }) => {
                self.on_tool_returned(at, call, result, None);
            }
            (Phase::CallingTool(call), Fact::ToolOutcomeUnknown { at, reason, .. }) => {
                self.on_outcome_unknown(at, call, reason);
            }
            (Phase::Appending, Fact::MemoryAppended { at, .. }) => self.complete(at),
            (Phase::Appending, Fact::MemoryFailed { at, error, .. }) => {
                self.record.memory_failed(at, error);
                self.complete(at);
            }
            // The answer counts, even if the memory did not store it in time.
            (Phase::Appending, Fact::CancelRequested { at, .. } | Fact::DeadlineReached { at }) => {
                self.complete(at);
            }
            (phase, Fact::CancelRequested { at, reason }) => {
                let error = self.record.cancelled(&reason);
                self.interrupt(at, phase, &error);
            }
            (phase, Fact::DeadlineReached { at }) => {
                let error = self.record.timed_out();
                self.interrupt(at, phase, &error);
            }
            (phase, fact) => {
                let state = phase.name();
                self.phase = phase;
                return Err(match fact {
                    Fact::RunStarted { .. } => FeedError::AlreadyStarted,
                    fact => FeedError::UnexpectedFact { fact: fact.name(), state },
                });
            }
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Effect> {
        self.record.poll()
    }

    fn set_observed(&mut self, observed: bool) {
        self.record.set_observed(observed);
    }

    fn take_events(&mut self) -> Vec<RunEvent> {
        self.record.take_events()
    }

    fn caller(&self) -> RunCaller<'_> {
        self.record.caller()
    }

    fn tally(&self) -> RunTally {
        self.record.tally()
    }

    fn usage(&self) -> RunUsage {
        self.record.usage()
    }

    fn status(&self) -> Status {
        match &self.phase {
            Phase::Parked(call) => {
                let call = WaitingCall {
                    call_id: call.id.clone(),
                    tool: call.tool.clone(),
                    iteration: self.record.iteration(),
                    asked_at: self.record.opened_at(),
                    input: call.input.clone(),
                };
                Status::Waiting(vec![Question { effect: self.record.last_effect(), call }])
            }
            Phase::Finished(ending) => Status::Finished(*ending),
            _ => Status::Running,
        }
    }
}

impl Phase {
    fn name(&self) -> &'static str {
        match self {
            Self::Processing => "between two facts",
            Self::Recalling => "recalling memory",
            Self::CallingModel => "waiting for the model",
            Self::CallingTool(_) => "waiting for a tool",
            Self::Parked(_) => "waiting for an outcome",
            Self::Appending => "appending to memory",
            Self::Finished(_) => "over",
        }
    }
}
