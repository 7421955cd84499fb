//! Remembers which formats of answers the server of a model refuses, so that later calls do not ask for them.

use crate::recent_digests::RecentDigests;
use crate::wire::AnswerFormat;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The most refused schemas that are remembered of one model. The oldest one is forgotten, and asked for once more.
const MAX_REFUSED_SCHEMAS: usize = 32;

/// The refused formats of one model. Text is never refused, and a refused schema says nothing about others.
#[derive(Debug, Default)]
pub struct RefusedFormats(RecentDigests<MAX_REFUSED_SCHEMAS>);

impl RefusedFormats {
    /// Whether the server has refused this format.
    #[must_use]
    pub fn contains(&self, format: AnswerFormat<'_>) -> bool {
        !self.0.is_empty() && digest(format).is_some_and(|digest| self.0.contains(digest))
    }

    /// Remembers a refused format.
    pub fn add(&self, format: AnswerFormat<'_>) {
        if let Some(digest) = digest(format) {
            self.0.add(digest);
        }
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
