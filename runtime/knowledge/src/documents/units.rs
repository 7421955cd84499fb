//! Where a text may be cut: sentences, lines, words, letters.
//!
//! Every function looks at each character of its range a fixed number of times.

use std::ops::Range;

/// Marks that belong to the letter before them are looked for this far back.
const MAX_MARKS: usize = 32;

/// The next sentence from this byte on, without the white space around it. A list item begins one, too.
pub(super) fn next_sentence(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let start = skip_blank(text, &range)?;
    let mut state = Ending::Open;
    for (offset, c) in text[start..range.end].char_indices() {
        let at = start + offset;
        state = match (state, c) {
            (_, '。' | '！' | '？' | '｡') => Ending::Here,
            (_, '.' | '!' | '?' | '…') => Ending::AtBlank,
            (Ending::Here, c) if !is_closing(c) => return Some(start..at),
            (Ending::AtBlank, c) if c.is_whitespace() => return Some(start..at),
            (_, '\n') if begins_list_item(&text[at + 1..range.end]) => return Some(trimmed(text, start..at)),
            (Ending::Open, _) => Ending::Open,
            (state, c) => {
                if is_closing(c) {
                    state
                } else {
                    Ending::Open
                }
            }
        };
    }
    Some(trimmed(text, start..range.end))
}

/// Whether a sentence can end.
#[derive(Clone, Copy)]
enum Ending {
    /// In the middle.
    Open,
    /// After a mark that ends a sentence if white space follows.
    AtBlank,
    /// After a mark that always ends a sentence.
    Here,
}

/// Quotes, brackets and emphasis that close after the end of a sentence.
fn is_closing(c: char) -> bool {
    matches!(c, ')' | ']' | '"' | '\'' | '”' | '’' | '»' | '」' | '』' | '）' | '*' | '_')
}

fn begins_list_item(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    let digits = line.bytes().take(9).take_while(u8::is_ascii_digit).count();
    let mark = if digits > 0 {
        line[digits..].strip_prefix(['.', ')'])
    } else {
        line.strip_prefix(['-', '*', '+', '•'])
    };
    mark.is_some_and(|rest| rest.starts_with([' ', '\t']))
}

/// The next line with text from this byte on. Its indentation stays.
pub(super) fn next_line(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let first = skip_blank(text, &range)?;
    let start = text[range.start..first].rfind('\n').map_or(range.start, |at| range.start + at + 1);
    let end = text[first..range.end].find('\n').map_or(range.end, |at| first + at);
    Some(trimmed(text, start..end))
}

/// The next word from this byte on.
pub(super) fn next_word(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let start = skip_blank(text, &range)?;
    let end = text[start..range.end].find(char::is_whitespace).map_or(range.end, |at| start + at);
    Some(start..end)
}

/// The next letters from this byte on, at most this many. A letter keeps its marks where it can.
pub(super) fn next_letters(text: &str, range: Range<usize>, most: usize) -> Option<Range<usize>> {
    let start = skip_blank(text, &range)?;
    let rest = &text[start..range.end];
    let Some((cut, _)) = rest.char_indices().nth(most) else { return Some(start..range.end) };
    let is_between = |cut: usize| {
        let joins_next = |c: char| c == '\u{200d}';
        !rest[cut..].starts_with(is_mark) && !rest[..cut].ends_with(joins_next)
    };
    let before = rest[..cut].char_indices().rev().take(MAX_MARKS).map(|(at, _)| at);
    let good = std::iter::once(cut).chain(before).find(|&at| at > 0 && is_between(at));
    Some(start..start + good.unwrap_or(cut))
}

/// The first byte of a character that is not white space.
pub(super) fn skip_blank(text: &str, range: &Range<usize>) -> Option<usize> {
    text[range.clone()].find(|c: char| !c.is_whitespace()).map(|at| range.start + at)
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    range.start..range.start + text[range].trim_end().len()
}

/// Whether a character changes the one before it: combining marks, joiners, variants, skin tones. The common ones.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6dc}' | '\u{900}'..='\u{903}'
        | '\u{93a}'..='\u{93c}' | '\u{93e}'..='\u{94f}' | '\u{981}'..='\u{983}' | '\u{9bc}'..='\u{9cd}'
        | '\u{bbe}'..='\u{bcd}' | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{200c}' | '\u{200d}'
        | '\u{20d0}'..='\u{20ff}' | '\u{3099}' | '\u{309a}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{fe20}'..='\u{fe2f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0100}'..='\u{e01ef}')
}
