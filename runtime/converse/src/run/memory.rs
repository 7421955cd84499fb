//! What the run reads from its memory, and what it leaves there.

use super::{Phase, Run};
use crate::final_answer::FinalAnswer;
use redflow_contract::Millis;
use redflow_contract::source::Source;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use std::sync::Arc;

impl Run {
    pub(super) fn on_memory_recalled(&mut self, at: Millis, turns: Vec<ChatMessage>, sources: Vec<Source>) {
        self.record.memory_recalled(at, &turns, sources);
        for message in turns.into_iter().filter(|message| message.role != ChatRole::System) {
            self.used_ids.extend(message.tool_calls.iter().map(|call| call.id.clone()));
            self.record.transcript.push(Arc::new(message));
        }
        self.start_loop(at);
    }

    /// Ends the loop with an answer. With a memory, the turn is stored first: the user's message, the calls and
    /// their results, and the answer. Reasoning and images are not stored.
    pub(super) fn append_memory(&mut self, at: Millis, answer: FinalAnswer) {
        let Some(session) = self.record.session().map(str::to_owned) else {
            return self.complete(at, answer);
        };
        let text_only = |message: Arc<ChatMessage>| ChatMessage {
            reasoning: None,
            images: Vec::new(),
            ..(*message).clone()
        };
        let mut turn: Vec<ChatMessage> = std::mem::take(&mut self.turn).into_iter().map(text_only).collect();
        turn.push(ChatMessage::new(ChatRole::Assistant, answer.text.clone()));
        self.phase = Phase::Appending(answer);
        self.record.append_memory(at, session, turn);
    }
}
