//! What a single line of Markdown is.

use crate::documents::{HEADING_CHARS, first_chars};

/// A heading and its level, 1 to 6.
#[derive(Clone, Copy)]
pub(super) struct Heading<'t> {
    pub(super) level: usize,
    pub(super) text: &'t str,
}

/// The line that opened a block of code.
pub(super) struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// A fence may be indented by any number of blanks, because it may be in a list.
    pub(super) fn opened_by(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|&c| c == '`' || c == '~')?;
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some(Self { mark, length })
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.trim_start_matches(self.mark).is_empty()
    }
}

/// A heading with `#`. One without text is ordinary text.
pub(super) fn heading(line: &str) -> Option<Heading<'_>> {
    let line = unindented(line)?;
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if !(1..=6).contains(&level) || !rest.starts_with([' ', '\t']) {
        return None;
    }
    let text = rest.trim();
    let without_end = text.trim_end_matches('#');
    let text = if without_end.ends_with([' ', '\t']) { without_end.trim_end() } else { text };
    let is_empty = text.trim_matches('#').is_empty();
    (!is_empty).then_some(Heading { level, text })
}

/// A heading of one line that the next line underlines with `=` or `-`.
pub(super) fn underlined_heading<'t>(line: &'t str, underline: &str) -> Option<Heading<'t>> {
    let underline = unindented(underline)?;
    let level = match underline.chars().next()? {
        '=' => 1,
        '-' => 2,
        _ => return None,
    };
    let is_underline = underline.trim_start_matches(['=', '-'][level - 1]).is_empty();
    let text = unindented(line)?;
    let is_other = text.starts_with(['>', '|'])
        || text.strip_prefix(['-', '*', '+']).is_some_and(|rest| rest.starts_with([' ', '\t']));
    (is_underline && !is_other).then_some(Heading { level, text })
}

/// A line without its indentation. None if it is indented like code.
fn unindented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= 3).then_some(text)
}

/// The row below the header of a table.
pub(super) fn is_delimiter_row(line: &str) -> bool {
    line.contains('|')
        && line.contains('-')
        && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// A line that only divides: three or more `-`, `*` or `_`.
pub(super) fn is_break(line: &str) -> bool {
    let line = line.trim_start();
    let Some(mark) = line.chars().next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
    line.chars().all(|c| c == mark || c == ' ' || c == '\t')
        && line.chars().filter(|&c| c == mark).count() >= 3
}

/// A heading without links, strong emphasis and code marks.
pub(super) fn plain_heading(text: &str) -> String {
    // Links may be longer than the heading that is left.
    let mut rest = first_chars(text, 8 * HEADING_CHARS);
    let mut out = String::with_capacity(rest.len());
    while let Some((before, after)) = rest.split_once("](")
        && let Some((text, label)) = before.rsplit_once('[')
        && let Some((_, after)) = after.split_once(')')
    {
        out.push_str(text.strip_suffix('!').unwrap_or(text));
        out.push_str(label);
        rest = after;
    }
    out.push_str(rest);
    out.replace("**", "").replace('`', "")
}
