//! An agent for one thing keeps its conversation within its limit, and finishes in time.

use super::{Phase, Run};
use crate::summary::OldMessages;
use crate::task::{ResultForm, Task};
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::{ConclusionReason, RunEventKind};
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::run_error::RunError;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use std::sync::Arc;

/// At this part of the limit, in percent, a summary replaces old messages.
const SUMMARY_PERCENT: u64 = 70;

/// At this part of the limit, in percent, the model can only finish.
const CONCLUSION_PERCENT: u64 = 90;

/// The most summaries of one run.
const MAX_SUMMARIES: u32 = 2;

/// What the agent tells the model that can only finish. The list of tools stays as it is.
const CONCLUSION: &str =
    "Only the tool `finish_step` can be called now. Call it with the best result that you have so far.";

/// What a run with a task knows about its conversation.
#[derive(Debug, Default)]
pub(super) struct TaskState {
    /// The place of the user's message.
    user: usize,
    /// The tokens of the messages up to `counted`, as the provider has counted them.
    tokens: u64,
    /// The number of messages that the last counted request had.
    counted: usize,
    /// How often the model was asked for a summary.
    summaries: u32,
    /// Whether the model can only finish.
    pub(super) concludes: bool,
}

/// A summary that the model writes.
#[derive(Debug)]
pub(super) struct OpenSummary {
    old: OldMessages,
    /// What the model reads.
    request: Transcript,
}

impl Run {
    /// Notes where the user's message stands, and removes the oldest recalled turns that do not fit. Gives the error of
    /// a message that is too long without them.
    pub(super) fn open_task(&mut self, user: usize) -> Option<RunError> {
        let most = self.agent.task()?.max_tokens;
        self.task.user = user;
        let (segments, prefix) = (self.record.transcript.segments(), self.agent.prefix().segments().len());
        let recalled = segments.get(prefix..user).unwrap_or_default();
        let own = self.size().saturating_sub(estimate(recalled));
        if own <= most {
            self.remove_oldest_turns(most - own);
            return None;
        }
        let message = format!(
            "The conversation has about {own} tokens before the first model call, and `maxTokenLimit` is {most}. Send \
             a shorter text or split it, let the memory recall less, or raise `maxTokenLimit` if the model can read \
             more."
        );
        Some(RunError {
            rule: Some("maxTokenLimit".to_owned()),
            ..self.record.error(RunErrorCode::ContextLength, message)
        })
    }

    /// Removes recalled turns, the oldest first, until the rest has at most this many tokens. A turn begins with a
    /// message of the user, so that no call loses its result.
    fn remove_oldest_turns(&mut self, most: u64) {
        let (segments, prefix) = (self.record.transcript.segments(), self.agent.prefix().segments().len());
        let recalled = segments.get(prefix..self.task.user).unwrap_or_default();
        let (mut rest, mut removed) = (estimate(recalled), 0);
        while let Some(turns @ [_, after @ ..]) = recalled.get(removed..).filter(|_| rest > most) {
            let more = after.iter().take_while(|message| message.role != ChatRole::User).count();
            let oldest = turns.get(..=more).unwrap_or(turns);
            rest = rest.saturating_sub(estimate(oldest));
            removed += oldest.len();
        }
        if removed == 0 {
            return;
        }
        let mut shorter = self.agent.prefix().clone();
        for segment in segments.iter().skip(prefix + removed) {
            shorter.push(Arc::clone(segment));
        }
        self.record.replace_transcript(shorter);
        self.task.user -= removed;
    }

    /// The text that the agent works on.
    pub(super) fn task_text(&self) -> &str {
        self.record.transcript.segments().get(self.task.user).map_or("", |message| &message.content)
    }

    /// About how many tokens the conversation has: as many as the provider has counted, and an estimate of the
    /// messages since then.
    fn size(&self) -> u64 {
        let since = self.record.transcript.segments().get(self.task.counted..).unwrap_or_default();
        // The provider has counted its own answer too.
        let since = match since {
            [answer, rest @ ..] if self.task.tokens > 0 && answer.role == ChatRole::Assistant => rest,
            all => all,
        };
        self.task.tokens.saturating_add(estimate(since))
    }

    fn has_reached(&self, task: &Task, percent: u64) -> bool {
        self.size().saturating_mul(100) >= task.max_tokens.saturating_mul(percent)
    }

    /// Takes the size of the last request and its answer as the provider has counted it. Some servers count nothing and
    /// report 0.
    pub(super) fn count_tokens(&mut self, usage: Option<Usage>) {
        let is_counted = |usage: &Usage| !usage.estimated && usage.input_tokens > 0;
        if let Some(usage) = usage.filter(|usage| is_counted(usage) && self.agent.task().is_some()) {
            self.task.tokens = usage.input_tokens.saturating_add(usage.output_tokens);
            self.task.counted = self.record.transcript.segments().len();
        }
    }

    /// Asks for a summary if the conversation is long and has old messages. Returns whether it does.
    pub(super) fn start_summary(&mut self, at: Millis) -> bool {
        let agent = Arc::clone(&self.agent);
        let Some(task) = agent.task() else { return false };
        if self.task.summaries >= MAX_SUMMARIES
            || self.task.concludes
            || !self.has_reached(task, SUMMARY_PERCENT)
        {
            return false;
        }
        let segments = self.record.transcript.segments();
        let Some(old) = OldMessages::find(segments, agent.prefix().segments().len(), self.task.user) else {
            return false;
        };
        let request = old.request(segments);
        self.task.summaries += 1;
        self.record.call_for_summary(at, request.clone(), task.summary_kind().clone());
        self.phase = Phase::Summarising(OpenSummary { old, request });
        true
    }

    /// Replaces the old messages with their summary. A summary that cannot be used changes nothing.
    pub(super) fn on_summary(&mut self, at: Millis, open: &OpenSummary, answer: &ModelAnswer) {
        self.record.summary_answered(at, answer, &open.request);
        let is_whole = matches!(answer.finish, ModelFinish::Stop | ModelFinish::ToolCalls);
        let is_usable = is_whole && !answer.text.trim().is_empty();
        let segments = self.record.transcript.segments();
        let shorter = if is_usable { open.old.replace(segments, &answer.text) } else { None };
        if let Some(shorter) = shorter {
            self.record.replace_transcript(shorter);
            // What the provider has counted included the old messages.
            (self.task.tokens, self.task.counted) = (0, 0);
            self.task.user = open.old.user_after();
            let iteration = self.record.next_iteration();
            let messages = u32::try_from(open.old.count()).unwrap_or(u32::MAX);
            self.record.emit(at, || RunEventKind::Summarised { iteration, messages, usage: answer.usage });
        }
        self.call_for_step(at);
    }

    /// From the last iteration or from 90 % of the tokens on, the model can only finish.
    pub(super) fn conclude_in_time(&mut self, at: Millis) {
        let agent = Arc::clone(&self.agent);
        let Some(task) = agent.task().filter(|_| !self.task.concludes) else { return };
        let iteration = self.record.next_iteration();
        let reason = if self.has_reached(task, CONCLUSION_PERCENT) {
            ConclusionReason::Tokens
        } else if iteration >= agent.spec().max_iterations {
            ConclusionReason::Iterations
        } else {
            return;
        };
        self.task.concludes = true;
        if task.form == ResultForm::Call && agent.version() > 1 {
            self.record.transcript.push(Arc::new(ChatMessage::new(ChatRole::User, CONCLUSION)));
        }
        self.record.emit(at, || RunEventKind::Concluding { iteration, reason });
    }
}

/// About how many tokens these messages have.
fn estimate(messages: &[Arc<ChatMessage>]) -> u64 {
    let tokens: usize = messages.iter().map(|message| ChatMessage::tokens(message)).sum();
    u64::try_from(tokens).unwrap_or(u64::MAX)
}
