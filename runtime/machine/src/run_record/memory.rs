//! What a run records about its memory.

use super::RunRecord;
use crate::output::{new_event, requests_consolidation, requests_memory_clear, to_value};
use redflow_contract::effect::{Effect, RecallInput};
use redflow_contract::envelope::{EnvelopeAction, EnvelopeEvent};
use redflow_contract::event::RunEventKind;
use redflow_contract::run_error::Failure;
use redflow_contract::source::{Source, add_sources};
use redflow_contract::transcript::ChatMessage;
use redflow_contract::{Message, Millis};
use serde_json::json;

impl RunRecord {
    /// Reads the memory, or clears it if the message asks for that. Returns whether there is one. `text` is what the
    /// model will read.
    pub fn recall_memory(&mut self, at: Millis, text: &str) -> bool {
        let Some(session) = self.session.clone() else { return false };
        let clears = requests_memory_clear(&self.message);
        self.consolidates = requests_consolidation(&self.message);
        let id = self.open_effect(at);
        self.effects.push_back(if clears {
            // This run clears the memory, so the next agent must not get the request too.
            self.message.shift_remove("memory");
            Effect::ClearMemory { id, session }
        } else {
            let input = RecallInput { text: text.to_owned(), details: self.details.clone(), at };
            Effect::RecallMemory { id, session, input }
        });
        true
    }

    /// Records what the memory returned.
    pub fn memory_recalled(&mut self, at: Millis, turns: &[ChatMessage], sources: Vec<Source>) {
        let count = u32::try_from(turns.len()).unwrap_or(u32::MAX);
        add_sources(&mut self.envelope.provenance, &sources);
        self.emit(at, || RunEventKind::MemoryRecalled { messages: count, sources });
        let mut memory = Message::new();
        memory.insert("sessionId".to_owned(), json!(self.session));
        memory.insert("messages".to_owned(), to_value(&turns));
        self.envelope.memory = Some(memory);
    }

    /// Records that the memory failed.
    pub fn memory_failed(&mut self, at: Millis, error: Failure) {
        self.emit(at, || RunEventKind::MemoryFailed { error: error.clone() });
        let duration_ms = Some(self.elapsed_ms(at));
        let event = new_event(self.iteration(), EnvelopeAction::MemoryError, at);
        self.add_event(EnvelopeEvent { duration_ms, error: Some(error), ..event });
    }

    /// Adds a turn to the memory of a session.
    pub fn append_memory(&mut self, at: Millis, session: String, turn: Vec<ChatMessage>) {
        let run_id = self.run_id().clone();
        let id = self.open_effect(at);
        // Also what tools found in a memory, and the resources of servers. A memory must not learn again what it gave
        // itself. It gets all sources: at the limit it knows that there may have been others.
        let (details, sources) = (self.details.clone(), self.envelope.provenance.clone());
        let consolidates = self.consolidates;
        self.push_effect(Effect::AppendMemory { id, session, run_id, turn, details, sources, consolidates });
    }
}
