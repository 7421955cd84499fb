//! Characters that are removed from texts.

use std::borrow::Cow;

/// Removes characters that show nothing or turn the direction of text. Every end of a line becomes `\n`.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_removed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            c if is_removed(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Invisible characters, and characters that change the direction of the text after them. Names and titles have none.
pub(super) fn is_hidden(c: char) -> bool {
    is_removed(c)
        || matches!(c, '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Control characters except `\n` and tab, marks of direction, and the byte order mark.
fn is_removed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{feff}' => true,
        c => c.is_control(),
    }
}
