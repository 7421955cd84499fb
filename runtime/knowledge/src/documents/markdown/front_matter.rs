//! The front matter of a Markdown file: lines between `---` and `---` at its very beginning.

use crate::documents::names::title_of;

/// Takes the front matter off a text. Returns its title, if it has one, and the rest of the text.
pub(super) fn divide(text: &str) -> (Option<String>, &str) {
    let Some(after) = text.split_once('\n').filter(|(first, _)| first.trim_end() == "---") else {
        return (None, text);
    };
    let (mut title, mut at) = (None, 0);
    for line in after.1.split_inclusive('\n') {
        at += line.len();
        let line = line.trim_end();
        if line == "---" || line == "..." {
            return (title, &after.1[at..]);
        }
        if title.is_none() {
            title = line.strip_prefix("title:").and_then(|value| title_of(unquoted(value.trim())));
        }
    }
    // Without an end it is no front matter: the text begins with a break.
    (None, text)
}

fn unquoted(value: &str) -> &str {
    ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value)
}
