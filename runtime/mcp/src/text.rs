//! Texts of strangers: without characters that hide something, and bounded.

use serde_json::Value;

/// Whether a character shows nothing, or changes the order of what is shown. People and models would read different
/// texts.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The text without hidden characters.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|c| !is_hidden(*c)).collect()
}

/// The text without hidden characters, cut at a number of characters.
pub(crate) fn clean_and_cut(text: &str, most_chars: usize) -> String {
    let mut kept = text.trim().chars().filter(|c| !is_hidden(*c));
    let mut cleaned: String = kept.by_ref().take(most_chars).collect();
    if kept.next().is_some() {
        cleaned.pop();
        cleaned.push('…');
    }
    cleaned
}

/// One line without hidden characters, cut at a number of characters.
pub(crate) fn clean_line(text: &str, most_chars: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    clean_and_cut(&line, most_chars)
}

/// The most characters of a tool's name.
const MAX_TOOL_NAME_CHARS: usize = 128;

/// The name of a tool as people see it, and give it back in an approval.
pub(crate) fn shown_name(name: &str) -> String {
    clean_line(name, MAX_TOOL_NAME_CHARS)
}

/// The beginning of a text that has at most so many bytes.
pub(crate) fn cut_bytes(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

/// The value with the keys of every object sorted.
pub(crate) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut parts: Vec<_> = map.iter().collect();
            parts.sort_by_key(|(key, _)| *key);
            parts.into_iter().map(|(key, value)| (key.clone(), canonical(value))).collect()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

/// Whether a pattern with `*` for any characters matches a whole text.
pub(crate) fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = left.get(at + part.len()..).unwrap_or_default();
    }
    left.ends_with(last)
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
