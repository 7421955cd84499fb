//! One run from its first fact to its end: the conversation as a state machine.
//!
//! Owns every decision: when to call the model and the tools, when to stop, and how the run ends. The transcript is
//! only appended to, so that a late step costs as much as an early one; only a summary of an agent for one thing replaces
//! old messages. Never does an effect itself.

mod answer;
mod calls;
mod ending;
mod feed;
mod images;
mod memory;
mod result_images;
mod task;

use crate::compile::CompiledAgent;
use crate::final_answer::FinalAnswer;
use crate::group::{CallGroup, RepeatedCall};
use redflow_contract::Millis;
use redflow_contract::answer_kind::AnswerKind;
use redflow_contract::effect::Ending;
use redflow_contract::envelope::EnvelopeAction;
use redflow_contract::full_output::ToolCallRecord;
use redflow_contract::run_error::RunError;
use redflow_contract::transcript::ChatMessage;
use redflow_machine::output::to_text;
use redflow_machine::template::render;
use redflow_machine::{FirstFact, MessageImages, RunRecord, take_images};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use task::{OpenSummary, TaskState};

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
    /// For an agent with a task.
    task: TaskState,
}

/// What the run waits for.
#[derive(Debug, Default)]
enum Phase {
    /// Only while a fact is processed.
    #[default]
    Processing,
    FetchingImages(images::PendingMessage),
    Recalling,
    CallingModel,
    /// Old messages are summed up before the next model call.
    Summarising(OpenSummary),
    CallingTools(CallGroup),
    Appending(FinalAnswer),
    Finished(Ending),
}

impl Run {
    pub(crate) fn start(agent: Arc<CompiledAgent>, mut first: FirstFact, observed: bool) -> Self {
        let at = first.at;
        // First, so that the text of the user has no data of an image.
        let images = match &agent.settings().images {
            Some(template) => take_images(template, &mut first.message),
            None => Ok(MessageImages::default()),
        };
        let template = agent.settings().user_message.trim();
        let rendered = (!template.is_empty()).then(|| render(template, &first.message));
        let record = RunRecord::start(agent.spec(), first, observed, agent.prefix());
        let user_message = rendered.unwrap_or_else(|| match &record.envelope.input {
            Value::Null => String::new(),
            input => to_text(input),
        });
        let mut run = Self {
            agent,
            phase: Phase::Processing,
            record,
            turn: Vec::new(),
            used_ids: HashSet::new(),
            last_call: None,
            has_result: false,
            corrections: 0,
            ends_with: None,
            calls: Vec::new(),
            task: TaskState::default(),
        };
        run.collect_images(at, user_message, images);
        run
    }

    /// Starts the loop once the transcript is complete up to the user's message.
    fn start_loop(&mut self, at: Millis) {
        let user = self.record.transcript.segments().len();
        for message in &self.turn {
            self.record.transcript.push(Arc::clone(message));
        }
        match self.open_task(user) {
            Some(error) => self.fail(at, EnvelopeAction::Error, &error),
            None => self.call_model(at),
        }
    }

    fn call_model(&mut self, at: Millis) {
        if self.record.iteration() >= self.agent.spec().max_iterations {
            let error = self.record.used_up();
            return self.fail(at, EnvelopeAction::MaxIterationsReached, &error);
        }
        if !self.start_summary(at) {
            self.call_for_step(at);
        }
    }

    /// Calls the model for its next step.
    fn call_for_step(&mut self, at: Millis) {
        self.conclude_in_time(at);
        self.phase = Phase::CallingModel;
        self.record.call_model(at, self.answer_kind().clone());
    }

    /// What is asked of the model now.
    fn answer_kind(&self) -> &AnswerKind {
        match self.agent.task() {
            Some(task) => task.answer_kind(self.task.concludes),
            None => self.agent.answer_kind(self.has_result),
        }
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
            Self::FetchingImages(_) => "downloading images",
            Self::Recalling => "recalling memory",
            Self::CallingModel => "waiting for the model",
            Self::Summarising(_) => "waiting for a summary",
            Self::CallingTools(group) if group.waits() => "waiting for an outcome",
            Self::CallingTools(_) => "waiting for tools",
            Self::Appending(_) => "appending to memory",
            Self::Finished(_) => "over",
        }
    }
}
