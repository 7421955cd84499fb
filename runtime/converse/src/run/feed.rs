//! The run as a machine: which facts it takes in which phase.

use super::{Phase, Run};
use crate::group::CallState;
use redflow_contract::effect::Effect;
use redflow_contract::envelope::EnvelopeAction;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::Fact;
use redflow_contract::id::EffectId;
use redflow_contract::run::WaitingCall;
use redflow_contract::tally::{RunTally, Spent};
use redflow_contract::usage::RunUsage;
use redflow_machine::{FeedError, Machine, Question, RefusedCall, RunCaller, Status};

impl Machine for Run {
    fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
        if !self.record.is_drained() {
            return Err(FeedError::Undrained);
        }
        if matches!(self.phase, Phase::Finished(_)) {
            return Err(FeedError::Finished);
        }
        if let Some(found) = fact.effect().filter(|found| !self.is_open(*found)) {
            return Err(FeedError::NotOpen(found));
        }
        match (std::mem::take(&mut self.phase), fact) {
            (Phase::FetchingImages(pending), Fact::ImagesFetched { at, images, .. }) => {
                self.on_images_fetched(at, pending, images);
            }
            (Phase::FetchingImages(_), Fact::ImagesFailed { at, error, .. }) => {
                let error = self.record.error(error.code, error.message);
                self.fail(at, EnvelopeAction::Error, &error);
            }
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
                self.on_model_answered(at, answer);
            }
            (Phase::CallingModel, Fact::ModelFailed { at, error, .. }) => {
                let error = self.record.error(error.code, error.message);
                self.fail(at, EnvelopeAction::Error, &error);
            }
            (Phase::Summarising(open), Fact::ModelAnswered { at, answer, .. }) => {
                self.on_summary(at, &open, &answer);
            }
            // The run can go on without a summary.
            (Phase::Summarising(_), Fact::ModelFailed { at, .. }) => self.call_for_step(at),
            (
                Phase::CallingModel | Phase::Summarising(_),
                Fact::BudgetReached { at, budget, limit, spent, .. },
            ) => {
                self.record.remove_refused_call(RefusedCall::Model);
                let error = self.record.budget_reached(at, Spent { budget, limit, spent });
                self.fail(at, EnvelopeAction::Error, &error);
            }
            (Phase::CallingTools(group), fact @ Fact::ToolReturned { effect, .. })
                if group.open_call(effect).is_some() =>
            {
                self.on_tool_fact(group, effect, fact);
            }
            (Phase::CallingTools(group), fact @ Fact::OutcomeResolved { effect, .. })
                if group.asked_call(effect).is_some() =>
            {
                self.on_tool_fact(group, effect, fact);
            }
            (Phase::CallingTools(group), Fact::ToolOutcomeUnknown { at, effect, reason })
                if group.open_call(effect).is_some() =>
            {
                self.on_outcome_unknown(at, group, effect, &reason);
            }
            (Phase::CallingTools(group), Fact::BudgetReached { at, effect, budget, limit, spent })
                if group.open_call(effect).is_some() =>
            {
                self.on_budget_reached(at, group, effect, Spent { budget, limit, spent });
            }
            (Phase::Appending(answer), Fact::MemoryAppended { at, .. }) => self.complete(at, answer),
            (Phase::Appending(answer), Fact::MemoryFailed { at, error, .. }) => {
                self.record.memory_failed(at, error);
                self.complete(at, answer);
            }
            // The answer counts, even if the memory did not store it in time.
            (Phase::Appending(answer), Fact::CancelRequested { at, .. } | Fact::DeadlineReached { at }) => {
                self.complete(at, answer);
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
            Phase::CallingTools(group) if group.waits() => {
                let asked = group.0.iter().filter_map(|call| match call.state {
                    CallState::Unknown { effect, at } => Some((effect, at, call)),
                    _ => None,
                });
                let question = |(effect, asked_at, call): (EffectId, _, &crate::group::GroupCall)| Question {
                    effect,
                    call: WaitingCall {
                        call_id: call.id.clone(),
                        tool: call.tool.clone(),
                        iteration: self.record.iteration(),
                        asked_at,
                        input: call.input.clone(),
                    },
                };
                Status::Waiting(asked.map(question).collect())
            }
            Phase::CallingTools(_) if self.ends_with.is_some() => Status::Ending,
            Phase::Finished(ending) => Status::Finished(*ending),
            _ => Status::Running,
        }
    }
}

impl Run {
    /// Whether an effect has no answer yet.
    fn is_open(&self, id: EffectId) -> bool {
        match &self.phase {
            Phase::CallingTools(group) => group.open_call(id).or_else(|| group.asked_call(id)).is_some(),
            _ => id == self.record.last_effect(),
        }
    }
}
