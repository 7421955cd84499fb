//! Prepares untrusted text for our sentences: short, on one line, without control characters.
//!
//! Owns truncating and quoting. The callers decide what may be quoted: never a value of a model's answer.

use redflow_contract::json::push_pointer;

/// The longest quoted name or key, in characters.
const QUOTED_CHARS: usize = 64;

/// The longest JSON pointer, in characters. Its keys may be untrusted text.
const POINTER_CHARS: usize = 256;

/// The length of a preview, in characters.
const PREVIEW_CHARS: usize = 200;

/// Quotes an untrusted name or key in backticks.
#[must_use]
pub fn quote(text: &str) -> String {
    format!("`{}`", truncate(text, QUOTED_CHARS))
}

/// Truncates a JSON pointer, which may have untrusted keys.
#[must_use]
pub fn display_pointer(pointer: &str) -> String {
    truncate(pointer, POINTER_CHARS)
}

/// Appends a key to a pointer, and truncates the result.
#[must_use]
pub fn pointer_to(parent: &str, key: &str) -> String {
    let mut pointer = parent.to_owned();
    push_pointer(&mut pointer, key);
    display_pointer(&pointer)
}

/// Truncates a reason that a person or another system gave, for a sentence.
#[must_use]
pub fn truncate_reason(text: &str) -> String {
    truncate(text, PREVIEW_CHARS)
}

/// The start of a text, unchanged.
#[must_use]
pub fn preview(text: &str) -> String {
    text.chars().take(PREVIEW_CHARS).collect()
}

fn truncate(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit * 2));
    for (count, c) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        if c.is_control() || is_invisible(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// Whether a character is invisible and can reverse the direction of a log line.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{display_pointer, pointer_to, preview, quote};

    #[test]
    fn truncates_and_escapes_untrusted_text() {
        assert_eq!(quote("calculator"), "`calculator`");
        assert_eq!(quote("a\nb\u{1b}[31m"), r"`a\u{a}b\u{1b}[31m`");
        assert_eq!(quote("x\u{202e}y"), r"`x\u{202e}y`");
        assert_eq!(quote(&"é".repeat(65)), format!("`{}…`", "é".repeat(64)));
        assert_eq!(quote(&"é".repeat(64)), format!("`{}`", "é".repeat(64)));
        assert_eq!(pointer_to("/input", "a/b~c"), "/input/a~1b~0c");
        assert_eq!(display_pointer(&"/a".repeat(500)).chars().count(), 257);
    }

    #[test]
    fn a_preview_is_the_start_of_the_text() {
        assert_eq!(preview("short\n"), "short\n");
        assert_eq!(preview(&"é".repeat(300)), "é".repeat(200));
    }
}
