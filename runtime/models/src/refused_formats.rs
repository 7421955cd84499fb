//! Remembers which formats of answers the server of a model refuses, so that later calls do not ask for them.

use crate::wire::{AnswerFormat, SchemaKind};
use std::sync::atomic::{AtomicU8, Ordering};

/// The refused formats of one model, one bit for each. Text is never refused.
#[derive(Debug, Default)]
pub struct RefusedFormats(AtomicU8);

impl RefusedFormats {
    /// Whether the server has refused this format.
    #[must_use]
    pub fn contains(&self, format: AnswerFormat<'_>) -> bool {
        self.0.load(Ordering::Relaxed) & bit(format) != 0
    }

    /// Remembers a refused format.
    pub fn add(&self, format: AnswerFormat<'_>) {
        self.0.fetch_or(bit(format), Ordering::Relaxed);
    }
}

fn bit(format: AnswerFormat<'_>) -> u8 {
    match format {
        AnswerFormat::Text => 0,
        AnswerFormat::JsonObject => 1,
        AnswerFormat::JsonSchema { kind: SchemaKind::Strict, .. } => 2,
        AnswerFormat::JsonSchema { kind: SchemaKind::Whole, .. } => 4,
    }
}
