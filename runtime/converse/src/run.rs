//! One run from its first fact to its end: the conversation as a state machine.
//!
//! Owns every decision: when to call the model and the tools, when to stop, and how the run ends. The transcript is
//! only appended to, so that a late step costs as much as an early one. Never does an effect itself.

mod answer;
mod calls;
mod ending;
mod feed;
mod memory;

use crate::compile::CompiledAgent;
use crate::final_answer::FinalAnswer;
use crate::group::{CallGroup, RepeatedCall};
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Ending;
use redflow_contract::envelope::EnvelopeAction;
use redflow_contract::full_output::ToolCallRecord;
use redflow_contract::run_error::RunError;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_machine::output::to_text;
use redflow_machine::template::render;
use redflow_machine::{FirstFact, RunRecord};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// How often a model may correct its answer.
const MAX_CORRECTIONS: u32 = 2;

/// The state of a run.
#[derive(Debug)]
pub struct Run {
    agent: Arc<CompiledAgent>,
    phase: Phase,
    record: RunRecord,
    /// What the memory will get: the user's message, then the calls and their results.
    turn: Vec<Arc<ChatMessage>>,
    /// The ids of all calls in the transcript.
    used_ids: HashSet<String>,
    /// The last call, and how often it was made in a row.
    last_call: Option<RepeatedCall>,
    /// Whether a tool has returned.
    has_result: bool,
    /// How often the agent has told the model that its answer cannot be used.
    corrections: u32,
    /// Why the run ends as soon as its open calls have returned.
    ends_with: Option<RunError>,
    /// The calls, for the full output; empty with another format.
    calls: Vec<ToolCallRecord>,
}

/// What the run waits for.
#[derive(Debug, Default)]
enum Phase {
    /// Only while a fact is processed.
    #[default]
    Processing,
    Recalling,
    CallingModel,
    CallingTools(CallGroup),
    Appending(FinalAnswer),
    Finished(Ending),
}

impl Run {
    pub(crate) fn start(agent: Arc<CompiledAgent>, first: FirstFact, observed: bool) -> Self {
        let at = first.at;
        let template = agent.settings().user_message.trim();
        let rendered = (!template.is_empty()).then(|| render(template, &first.message));
        let record = RunRecord::start(agent.spec(), first, observed, agent.prefix());
        let user_message = rendered.unwrap_or_else(|| match &record.envelope.input {
            Value::Null => String::new(),
            input => to_text(input),
        });
        let is_empty = user_message.trim().is_empty();
        let mut run = Self {
            agent,
            phase: Phase::Recalling,
            record,
            turn: vec![Arc::new(ChatMessage::new(ChatRole::User, user_message))],
            used_ids: HashSet::new(),
            last_call: None,
            has_result: false,
            corrections: 0,
            ends_with: None,
            calls: Vec::new(),
        };
        if is_empty {
            let message = "The user message is empty: set `userMessage` on the agent, or send a payload.";
            let error = run.record.error(RunErrorCode::ConfigInvalid, message.to_owned());
            run.fail(at, EnvelopeAction::Error, &error);
        } else if !run.record.recall_memory(at, &run.turn[0].content) {
            run.start_loop(at);
        }
        run
    }

    /// Starts the loop once the transcript is complete up to the user's message.
    fn start_loop(&mut self, at: Millis) {
        for message in &self.turn {
            self.record.transcript.push(Arc::clone(message));
        }
        self.call_model(at);
    }

    fn call_model(&mut self, at: Millis) {
        if self.record.iteration() >= self.agent.spec().max_iterations {
            let error = self.record.used_up();
            return self.fail(at, EnvelopeAction::MaxIterationsReached, &error);
        }
        self.phase = Phase::CallingModel;
        self.record.call_model(at, self.agent.answer_kind(self.has_result).clone());
    }

    /// Adds a message to the transcript and to the turn that the memory will get.
    fn push_to_turn(&mut self, message: ChatMessage) {
        let message = Arc::new(message);
        self.record.transcript.push(Arc::clone(&message));
        if self.record.session().is_some() {
            self.turn.push(message);
        }
    }
}

impl Phase {
    fn name(&self) -> &'static str {
        match self {
            Self::Processing => "between two facts",
            Self::Recalling => "recalling memory",
            Self::CallingModel => "waiting for the model",
            Self::CallingTools(group) if group.waits() => "waiting for an outcome",
            Self::CallingTools(_) => "waiting for tools",
            Self::Appending(_) => "appending to memory",
            Self::Finished(_) => "over",
        }
    }
}
