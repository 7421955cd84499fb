//! The texts of one iteration, read from a journal: what the model was asked, what it answered, and what its tools
//! got and gave.
//!
//! Owns the cut of long texts. The engine has scrubbed the facts, so a journal has no known secret.

use crate::output::{render_calls, render_prompt};
use redflow_contract::effect::Effect;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::EffectId;
use redflow_contract::replay::{CallRecord, CallText, ITERATION_TEXT_CHARS, IterationText};
use redflow_contract::transcript::{ChatMessage, ChatRole};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// What a replay collects of one iteration.
pub(crate) struct ModelTexts {
    id: EffectId,
    prompt: String,
    answer: Option<String>,
    output: Option<String>,
    /// Whether a later iteration has begun.
    is_past: bool,
}

impl ModelTexts {
    /// Begins with the model call of the wanted iteration, and ends with the next one or with the result.
    pub(crate) fn add_effect(texts: &mut Option<Self>, wanted: u32, effect: &Effect) {
        match (effect, &mut *texts) {
            (Effect::CallModel { id, iteration, transcript, .. }, None) if *iteration == wanted => {
                let prompt = cut(&newest_part(transcript.segments()));
                *texts = Some(Self { id: *id, prompt, answer: None, output: None, is_past: false });
            }
            (Effect::CallModel { .. }, Some(texts)) => texts.is_past = true,
            (Effect::Finish { message, .. }, Some(texts)) if !texts.is_past => {
                texts.output = message.get("payload").map(value_text);
            }
            _ => {}
        }
    }

    /// The texts of the iteration, with those of its calls among all calls of the run.
    pub(crate) fn with_calls(self, iteration: u32, calls: Vec<CallRecord>) -> IterationText {
        let Self { prompt, answer, output, .. } = self;
        let calls = calls.into_iter().filter(|call| call.iteration == iteration).map(|call| CallText {
            call_id: call.call_id,
            input: to_text(&call.input),
            result: call.result.as_ref().map(result_text),
        });
        IterationText { iteration, prompt, answer, calls: calls.collect(), output }
    }

    pub(crate) fn add_fact(&mut self, fact: &Fact) {
        if let Fact::ModelAnswered { effect, answer, .. } = fact
            && *effect == self.id
        {
            self.answer = Some(cut(&render_calls(&answer.text, &answer.tool_calls)));
        }
    }
}

/// What follows the last answer of a model: the input, or the results of its calls.
fn newest_part(segments: &[Arc<ChatMessage>]) -> String {
    let is_older =
        |segment: &Arc<ChatMessage>| matches!(segment.role, ChatRole::System | ChatRole::Assistant);
    let start = segments.iter().rposition(is_older).map_or(0, |last| last + 1);
    match &segments[start..] {
        [only] => only.content.clone(),
        several => render_prompt(several),
    }
}

fn result_text(result: &ToolResult) -> String {
    match &result.error {
        Some(error) => cut(error),
        None => result.output.as_ref().map(value_text).unwrap_or_default(),
    }
}

/// A text as it is, and any other value as JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text),
        value => to_text(value),
    }
}

fn to_text(value: &impl Serialize) -> String {
    cut(&serde_json::to_string_pretty(value).unwrap_or_default())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(ITERATION_TEXT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
