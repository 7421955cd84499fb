//! What a run records about a summary of its old messages. A summary is a model call, but no iteration.

use super::RunRecord;
use redflow_contract::Millis;
use redflow_contract::answer_kind::AnswerKind;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::transcript::Transcript;
use std::sync::Arc;

impl RunRecord {
    /// The iteration that the next model call begins.
    #[must_use]
    pub fn next_iteration(&self) -> u32 {
        self.iteration().saturating_add(1)
    }

    /// Calls the model for a summary, with messages of its own. The call belongs to the next iteration.
    pub fn call_for_summary(&mut self, at: Millis, transcript: Transcript, answer_kind: AnswerKind) {
        self.spending.start_summary();
        self.report_low_budget(at);
        let (id, iteration) = (self.open_effect(at), self.next_iteration());
        self.effects.push_back(Effect::CallModel {
            id,
            iteration,
            transcript,
            spec: Arc::clone(&self.spec),
            answer_kind,
            first_model: self.first_model,
        });
    }

    /// Counts a summary that was made of these messages, and records the models that failed before.
    pub fn summary_answered(&mut self, at: Millis, answer: &ModelAnswer, sent: &Transcript) {
        self.skip_failed_models(at, self.next_iteration(), answer);
        let ms = self.elapsed_ms(at);
        self.spending.add_answer(answer, sent, sent.segments().len(), ms);
        self.report_low_budget(at);
    }

    /// Replaces the conversation with a shorter one.
    pub fn replace_transcript(&mut self, transcript: Transcript) {
        self.sent_segments = self.sent_segments.min(transcript.segments().len());
        self.transcript = transcript;
    }

    /// Records the models that failed before one answered. They are not called again.
    pub(super) fn skip_failed_models(&mut self, at: Millis, iteration: u32, answer: &ModelAnswer) {
        for failed in &answer.fell_over {
            self.first_model += 1;
            if !failed.skipped {
                let (model, code) = (failed.model.clone(), failed.code);
                self.emit(at, || RunEventKind::ModelFellOver { iteration, model, code });
            }
        }
    }
}
