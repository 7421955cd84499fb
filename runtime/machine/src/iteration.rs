//! One iteration, read from a journal: what the model was asked, what it answered, and what its tools got and gave.
//!
//! Owns the cut of long texts. The engine has scrubbed the facts, so a journal has no known secret.

use crate::output::{render_calls, render_content, render_prompt};
use redflow_contract::Millis;
use redflow_contract::console::{CallDetail, CutText, ITERATION_BYTES, IterationDetail};
use redflow_contract::effect::Effect;
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult};
use redflow_contract::id::EffectId;
use redflow_contract::replay::CallRecord;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// What a replay collects of one iteration.
pub(crate) struct IterationRecord {
    id: EffectId,
    /// When the model was called; none if the budget did not allow it.
    called_at: Option<Millis>,
    prompt: String,
    /// The answer, and when it was known.
    answer: Option<(Millis, ModelAnswer)>,
    output: Option<String>,
    /// Whether a later iteration has begun.
    is_past: bool,
}

impl IterationRecord {
    /// Begins with the model call of the wanted iteration, and ends with the next one or with the result.
    pub(crate) fn add_effect(record: &mut Option<Self>, wanted: u32, at: Millis, effect: &Effect) {
        match (effect, &mut *record) {
            // A summary is no iteration.
            (Effect::CallModel { answer_kind, .. }, _) if answer_kind.is_summary() => {}
            (Effect::CallModel { id, iteration, transcript, .. }, None) if *iteration == wanted => {
                let prompt = newest_part(transcript.segments());
                let (id, called_at) = (*id, Some(at));
                *record = Some(Self { id, called_at, prompt, answer: None, output: None, is_past: false });
            }
            (Effect::CallModel { .. }, Some(record)) => record.is_past = true,
            (Effect::Finish { message, .. }, Some(record)) if !record.is_past => {
                record.output = message.get("payload").map(value_text);
            }
            _ => {}
        }
    }

    pub(crate) fn add_fact(&mut self, fact: &Fact) {
        if fact.effect() != Some(self.id) {
            return;
        }
        match fact {
            Fact::ModelAnswered { at, answer, .. } => self.answer = Some((*at, answer.clone())),
            Fact::BudgetReached { .. } => self.called_at = None,
            _ => {}
        }
    }

    /// The details of the iteration, with its events and calls among all those of the run. Each text has at most
    /// `text_bytes`.
    pub(crate) fn into_detail(
        self,
        iteration: u32,
        events: &[RunEvent],
        calls: Vec<CallRecord>,
        text_bytes: usize,
    ) -> IterationDetail {
        let Self { called_at, prompt, answer, output, .. } = self;
        let mut cutter = TextCutter { text_bytes, left: ITERATION_BYTES };
        let (answered_at, answer) = answer.unzip();
        let text = answer.as_ref().map(|answer| render_calls(&answer.text, &answer.tool_calls));
        let mut answer = answer.unwrap_or_default();
        let raw = answer.raw.take();
        // The answer and the output come first: they get their room if there is not enough for all.
        let (text, output) = (text.map(|text| cutter.cut(text)), output.map(|output| cutter.cut(output)));
        IterationDetail {
            iteration,
            called_at,
            duration_ms: answered_at.and_then(|at| Some(at.saturating_sub(called_at?))),
            prompt: cutter.cut(prompt),
            answer: text,
            confidence: events.iter().find_map(|event| confidence_in(event, iteration)),
            model: answer.model,
            request_id: answer.request_id,
            usage: answer.usage,
            fell_over: answer.fell_over,
            refused: answer.refused,
            calls: calls
                .into_iter()
                .filter(|call| call.iteration == iteration)
                .map(|call| call_detail(call, &mut cutter))
                .collect(),
            output,
            // The last one: the parts of the response are in the other texts.
            raw: raw.map(|raw| cutter.cut(raw)),
        }
    }
}

/// The confidence of the model's answer in an iteration.
fn confidence_in(event: &RunEvent, wanted: u32) -> Option<f64> {
    match &event.event {
        RunEventKind::ModelAnswered { iteration, confidence, .. } if *iteration == wanted => *confidence,
        _ => None,
    }
}

fn call_detail(call: CallRecord, cutter: &mut TextCutter) -> CallDetail {
    CallDetail {
        call_id: call.call_id,
        tool: call.tool,
        id: call.id,
        effect: call.effect,
        started_at: call.started_at,
        duration_ms: call.duration_ms,
        tries: call.tries,
        input: cutter.cut(to_text(&call.input)),
        success: call.result.as_ref().map(|result| result.success),
        result: call.result.map(|result| cutter.cut(result_text(result))),
    }
}

/// Cuts texts at characters: each one, and all together.
struct TextCutter {
    /// The most bytes of one text.
    text_bytes: usize,
    /// The bytes that are left for all texts.
    left: usize,
}

impl TextCutter {
    fn cut(&mut self, mut text: String) -> CutText {
        let whole = text.len();
        let end = text.floor_char_boundary(self.text_bytes.min(self.left));
        text.truncate(end);
        self.left -= end;
        let bytes = if end < whole { u64::try_from(whole).ok() } else { None };
        CutText { text, bytes }
    }
}

/// What follows the last answer of a model: the input, or the results of its calls.
fn newest_part(segments: &[Arc<ChatMessage>]) -> String {
    let is_older =
        |segment: &Arc<ChatMessage>| matches!(segment.role, ChatRole::System | ChatRole::Assistant);
    let start = segments.iter().rposition(is_older).map_or(0, |last| last + 1);
    match &segments[start..] {
        [only] => render_content(only).into_owned(),
        several => render_prompt(several),
    }
}

/// The error or the output, and what the runtime tells the model about it.
fn result_text(result: ToolResult) -> String {
    let text = match result.error {
        Some(error) => error,
        None => result.output.as_ref().map(value_text).unwrap_or_default(),
    };
    match result.note {
        Some(note) if text.is_empty() => note,
        Some(note) => format!("{text}\n\n{note}"),
        None => text,
    }
}

/// A text as it is, and any other value as JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => to_text(value),
    }
}

fn to_text(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
