//! What the run reads from its memory, and what it leaves there.

use super::{Phase, Run};
use crate::final_answer::FinalAnswer;
use redflow_contract::effect::Effect;
use redflow_contract::envelope::{EnvelopeAction, EnvelopeEvent};
use redflow_contract::event::RunEventKind;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_contract::{Message, Millis};
use redflow_machine::output::{new_event, to_value};
use serde_json::json;
use std::sync::Arc;

impl Run {
    pub(super) fn on_memory_recalled(&mut self, at: Millis, turns: Vec<ChatMessage>) {
        let count = u32::try_from(turns.len()).unwrap_or(u32::MAX);
        self.events.emit(at, || RunEventKind::MemoryRecalled { messages: count });
        let mut memory = Message::new();
        memory.insert("sessionId".to_owned(), json!(self.session));
        memory.insert("messages".to_owned(), to_value(&turns));
        self.envelope.memory = Some(memory);
        for message in turns.into_iter().filter(|message| message.role != ChatRole::System) {
            self.used_ids.extend(message.tool_calls.iter().map(|call| call.id.clone()));
            self.transcript.push(Arc::new(message));
        }
        self.start_loop(at);
    }

    /// Ends the loop with an answer. With a memory, the turn is stored first: the user's message, the calls and
    /// their results, and the answer. Reasoning is not stored.
    pub(super) fn append_memory(&mut self, at: Millis, answer: FinalAnswer) {
        let Some(session) = self.session.clone() else { return self.complete(at, answer) };
        let mut turn: Vec<ChatMessage> = self.turn.iter().map(|message| (**message).clone()).collect();
        turn.push(ChatMessage::new(ChatRole::Assistant, answer.text.clone()));
        for message in &mut turn {
            message.reasoning = None;
        }
        let run_id = self.run_id().clone();
        let id = self.wait_in(Phase::Appending(answer), at);
        self.effects.push_back(Effect::AppendMemory { id, session, run_id, turn });
    }

    pub(super) fn on_memory_failed(&mut self, at: Millis, error: Failure) {
        self.events.emit(at, || RunEventKind::MemoryFailed { error: error.clone() });
        let duration_ms = Some(self.elapsed_ms(at));
        let event = new_event(self.iteration(), EnvelopeAction::MemoryError, at);
        self.add_envelope_event(EnvelopeEvent { duration_ms, error: Some(error), ..event });
    }
}
