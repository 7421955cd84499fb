//! Asks a model for one action without an agent, to test the model.

use crate::MACHINE_VERSION;
use crate::compile::{answer_kind, prompt_prefix};
use crate::validate::{ActionRules, validate_answer};
use redflow_contract::answer_kind::AnswerKind;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::limits::RunLimits;
use redflow_contract::run_error::RunError;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use std::sync::Arc;

/// A question to a model that Agent Core could ask.
#[derive(Debug)]
pub struct ActionTest {
    /// The conversation to send: Agent Core's prompt without tools, and the question.
    pub transcript: Transcript,
    /// The form the answer must have.
    pub answer_kind: AnswerKind,
}

impl ActionTest {
    /// A test with this question.
    #[must_use]
    pub fn new(question: &str) -> Self {
        let mut transcript = prompt_prefix(&[]);
        transcript.push(Arc::new(ChatMessage::new(ChatRole::User, question)));
        Self { transcript, answer_kind: answer_kind(&[]) }
    }

    /// Checks that an answer is a valid action.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn check(&self, answer: &ModelAnswer) -> Result<(), RunError> {
        let limits = RunLimits::default();
        let rules = ActionRules { version: MACHINE_VERSION, limits: &limits, tools: &[], input_schemas: &[] };
        validate_answer(rules, answer, 1).map(drop)
    }
}
