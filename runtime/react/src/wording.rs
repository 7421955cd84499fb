//! How foreign text gets into our sentences: short, on one line, without control characters.
//!
//! Owns cutting and quoting. Never decides what may be shown: a value of a model's answer may not.

use redflow_contract::json::push_pointer;

/// The longest name or key that is quoted, in characters.
const QUOTED_CHARS: usize = 64;

/// The longest JSON pointer that is shown, in characters. Its keys may be a stranger's.
const POINTER_CHARS: usize = 256;

/// How much of a text a preview shows, in characters.
const PREVIEW_CHARS: usize = 200;

/// A name or key of a stranger in backticks.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", cut(text, QUOTED_CHARS))
}

/// A JSON pointer, perhaps with foreign keys in it.
pub(crate) fn shown_pointer(pointer: &str) -> String {
    cut(pointer, POINTER_CHARS)
}

/// The pointer to one key below another pointer.
pub(crate) fn pointer_to(parent: &str, key: &str) -> String {
    let mut pointer = parent.to_owned();
    push_pointer(&mut pointer, key);
    shown_pointer(&pointer)
}

/// What someone else says happened, inside a sentence of ours.
pub(crate) fn remark(text: &str) -> String {
    cut(text, PREVIEW_CHARS)
}

/// The beginning of a text, untouched.
pub(crate) fn preview(text: &str) -> String {
    text.chars().take(PREVIEW_CHARS).collect()
}

fn cut(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit * 2));
    for (count, c) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        if c.is_control() || turns_text(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// Invisible characters that could make a log line read backwards.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{pointer_to, preview, quoted, shown_pointer};

    #[test]
    fn foreign_text_is_cut_and_escaped() {
        assert_eq!(quoted("calculator"), "`calculator`");
        assert_eq!(quoted("a\nb\u{1b}[31m"), r"`a\u{a}b\u{1b}[31m`");
        assert_eq!(quoted("x\u{202e}y"), r"`x\u{202e}y`");
        assert_eq!(quoted(&"é".repeat(65)), format!("`{}…`", "é".repeat(64)));
        assert_eq!(quoted(&"é".repeat(64)), format!("`{}`", "é".repeat(64)));
        assert_eq!(pointer_to("/input", "a/b~c"), "/input/a~1b~0c");
        assert_eq!(shown_pointer(&"/a".repeat(500)).chars().count(), 257);
    }

    #[test]
    fn a_preview_is_the_beginning() {
        assert_eq!(preview("short\n"), "short\n");
        assert_eq!(preview(&"é".repeat(300)), "é".repeat(200));
    }
}
