//! OpenAI's embeddings.

use super::fields::{Finder, Kind, optional, required};
use serde_json::Value;

/// The most texts of a request.
const MAX_TEXTS: usize = 2_048;

pub(super) fn check(finder: &mut Finder, body: &Value) {
    let fields = [
        required("model", Kind::Text),
        required("input", Kind::List),
        optional("encoding_format", Kind::OneOf(&["float", "base64"])),
        optional("dimensions", Kind::Whole(1)),
    ];
    finder.fields("", body, &fields);
    let texts = finder.items("/input", body.get("input"));
    finder.add_if(texts.is_empty() || texts.len() > MAX_TEXTS, "/input", "not 1 to 2048 texts");
    for (at, text) in texts {
        finder.add_if(text.as_str().is_none_or(str::is_empty), &at, "no text");
    }
}
