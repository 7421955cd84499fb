//! Remembers which formats of answers the server of a model refuses, so that later calls do not ask for them.

use crate::wire::AnswerFormat;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most refused schemas that are remembered of one model. The oldest one is forgotten, and asked for once more.
const MAX_REFUSED_SCHEMAS: usize = 32;

/// The refused formats of one model. Text is never refused, and a refused schema says nothing about others.
#[derive(Debug, Default)]
pub struct RefusedFormats {
    /// Whether there are any. Most servers refuse none.
    any: AtomicBool,
    digests: Mutex<VecDeque<u64>>,
}

impl RefusedFormats {
    /// Whether the server has refused this format.
    #[must_use]
    pub fn contains(&self, format: AnswerFormat<'_>) -> bool {
        self.any.load(Ordering::Relaxed)
            && digest(format).is_some_and(|digest| {
                self.digests.lock().unwrap_or_else(PoisonError::into_inner).contains(&digest)
            })
    }

    /// Remembers a refused format.
    pub fn add(&self, format: AnswerFormat<'_>) {
        let Some(digest) = digest(format) else { return };
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if digests.contains(&digest) {
            return;
        }
        if digests.len() == MAX_REFUSED_SCHEMAS {
            digests.pop_front();
        }
        digests.push_back(digest);
        self.any.store(true, Ordering::Relaxed);
    }
}

fn digest(format: AnswerFormat<'_>) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    match format {
        AnswerFormat::Text => return None,
        AnswerFormat::JsonObject => {}
        AnswerFormat::JsonSchema { schema, .. } => schema.get().hash(&mut hasher),
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::{MAX_REFUSED_SCHEMAS, RefusedFormats};
    use crate::wire::{AnswerFormat, SchemaKind};
    use serde_json::value::RawValue;

    fn schema(number: usize) -> Box<RawValue> {
        RawValue::from_string(number.to_string()).unwrap()
    }

    fn format(schema: &RawValue) -> AnswerFormat<'_> {
        AnswerFormat::JsonSchema { name: "action", schema, kind: SchemaKind::Whole }
    }

    #[test]
    fn the_oldest_of_many_refused_schemas_is_forgotten() {
        let refused = RefusedFormats::default();
        assert!(!refused.contains(format(&schema(0))));
        for number in 0..=MAX_REFUSED_SCHEMAS {
            refused.add(format(&schema(number)));
            refused.add(format(&schema(number)));
        }
        let kept: Vec<usize> = (0..=MAX_REFUSED_SCHEMAS + 1)
            .filter(|number| refused.contains(format(&schema(*number))))
            .collect();
        assert_eq!(kept, (1..=MAX_REFUSED_SCHEMAS).collect::<Vec<_>>());
        assert!(!refused.contains(AnswerFormat::JsonObject));
        refused.add(AnswerFormat::Text);
        assert!(!refused.contains(AnswerFormat::Text), "text is the last resort");
    }
}
