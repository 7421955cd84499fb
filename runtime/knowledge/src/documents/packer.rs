//! Divides a text into passages: lengths, joining of short neighbours, overlap.
//!
//! A passage is a slice of the text. The packer takes units (a paragraph, a table) in their order and joins them
//! while they fit. It divides a unit only if the unit is too long for a passage.

use super::units::{next_letters, next_line, next_sentence, next_word, skip_blank};
use super::{OVERLAP_CHARS, PASSAGE_CHARS, Passages, Place, WHOLE_CHARS, count_chars};
use redflow_ports::ArchiveError;
use std::ops::Range;

/// An overlap that begins at a sentence may be this long, in characters.
const SENTENCE_OVERLAP: usize = 200;

/// A shorter overlap is not worth its room, in characters.
const MIN_OVERLAP: usize = 40;

/// A longer word may be cut to fill a passage, in characters. Shorter ones stay whole.
const LONG_WORD: usize = 200;

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Heading,
    Paragraph,
    Sentence,
    Line,
    Word,
    Letters,
    /// A fenced block of code.
    Code,
    Table,
    TableRow,
}

impl Unit {
    /// The units that it is divided into, if it is too long. Letters are always short enough.
    fn parts(self) -> Self {
        match self {
            Self::Paragraph => Self::Sentence,
            Self::Sentence | Self::Code => Self::Line,
            Self::Line | Self::Heading | Self::TableRow => Self::Word,
            Self::Word | Self::Letters => Self::Letters,
            Self::Table => Self::TableRow,
        }
    }

    /// Whether it should stay whole.
    fn is_whole(self) -> bool {
        matches!(self, Self::Code | Self::Table | Self::TableRow)
    }

    /// Its longest passage, in characters.
    fn limit(self) -> usize {
        if self.is_whole() { WHOLE_CHARS } else { PASSAGE_CHARS }
    }
}

/// Joins the units of a text to passages.
pub(super) struct Packer<'t, 'p, 'n> {
    text: &'t str,
    place: Place,
    passages: &'p mut Passages<'n>,
    headings: Vec<String>,
    /// The passage that grows; empty if there is none.
    open: Range<usize>,
    /// Its characters.
    chars: usize,
    /// Whether it has more than headings.
    has_body: bool,
    /// Whether a heading is being added.
    in_heading: bool,
    /// An overlap begins at this byte or later: no part of a heading or a table is repeated.
    floor: usize,
}

impl<'t, 'p, 'n> Packer<'t, 'p, 'n> {
    pub(super) fn new(text: &'t str, place: Place, passages: &'p mut Passages<'n>) -> Self {
        Self {
            text,
            place,
            passages,
            headings: Vec::new(),
            open: 0..0,
            chars: 0,
            has_body: false,
            in_heading: false,
            floor: 0,
        }
    }

    /// The same, with headings that all passages get.
    pub(super) fn with_headings(mut self, headings: &[String]) -> Self {
        self.headings = headings.to_vec();
        self
    }

    /// Makes passages of a text without structure: its paragraphs have blank lines between them.
    pub(super) fn pack_paragraphs(mut self) -> Result<(), ArchiveError> {
        let mut paragraph: Option<Range<usize>> = None;
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            let range = at..at + line.trim_end().len();
            at += line.len();
            if range.is_empty() {
                if let Some(paragraph) = paragraph.take() {
                    self.add(Unit::Paragraph, paragraph)?;
                }
            } else {
                paragraph = Some(paragraph.map_or(range.start, |open| open.start)..range.end);
            }
        }
        if let Some(paragraph) = paragraph {
            self.add(Unit::Paragraph, paragraph)?;
        }
        self.finish()
    }

    /// Adds a heading. It begins a section with these headings, unless headings are all there is so far.
    pub(super) fn add_heading(
        &mut self,
        range: Range<usize>,
        headings: Vec<String>,
    ) -> Result<(), ArchiveError> {
        if self.has_body {
            self.close()?;
        }
        self.headings = headings;
        self.in_heading = true;
        let added = self.add(Unit::Heading, range);
        self.in_heading = false;
        added
    }

    /// Adds a unit after all earlier ones.
    pub(super) fn add(&mut self, unit: Unit, range: Range<usize>) -> Result<(), ArchiveError> {
        if self.is_open() {
            let chars = self.chars + count_chars(&self.text[self.open.end..range.end]);
            // What stays whole may be longer than a passage with its heading, too.
            let limit = if self.needs_body() { unit.limit() } else { PASSAGE_CHARS };
            if chars <= limit {
                self.extend(unit, range.end, chars);
                return Ok(());
            }
        }
        let own_chars = count_chars(&self.text[range.clone()]);
        if own_chars > unit.limit() || (self.needs_body() && can_fill(unit, own_chars)) {
            return self.add_parts(unit.parts(), range);
        }
        let start = self.overlap_start(&range).unwrap_or(range.start);
        self.close()?;
        self.open = start..start;
        let chars = count_chars(&self.text[start..range.start]) + own_chars;
        self.extend(unit, range.end, chars);
        Ok(())
    }

    /// Adds the last passage.
    pub(super) fn finish(mut self) -> Result<(), ArchiveError> {
        self.close()
    }

    fn add_parts(&mut self, part: Unit, range: Range<usize>) -> Result<(), ArchiveError> {
        let mut rest = range.start..range.end;
        while let Some(next) = self.next_part(part, rest.clone()) {
            rest.start = next.end;
            self.add(part, next)?;
        }
        Ok(())
    }

    fn next_part(&self, part: Unit, rest: Range<usize>) -> Option<Range<usize>> {
        match part {
            Unit::Sentence => next_sentence(self.text, rest),
            Unit::Line | Unit::TableRow => next_line(self.text, rest),
            Unit::Letters => {
                let most = self.room_for_letters(rest.start);
                next_letters(self.text, rest, most)
            }
            _ => next_word(self.text, rest),
        }
    }

    /// How many letters of a word that is cut come next: they fill the open passage, or leave room for an overlap.
    fn room_for_letters(&self, start: usize) -> usize {
        if !self.is_open() {
            return PASSAGE_CHARS;
        }
        let gap = count_chars(&self.text[self.open.end..start]);
        match PASSAGE_CHARS.saturating_sub(self.chars + gap) {
            room if room >= LONG_WORD || (self.needs_body() && room > 0) => room,
            _ => PASSAGE_CHARS - OVERLAP_CHARS,
        }
    }

    fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the open passage is only headings, and this is not one more.
    fn needs_body(&self) -> bool {
        self.is_open() && !self.has_body && !self.in_heading
    }

    fn extend(&mut self, unit: Unit, end: usize, chars: usize) {
        self.open.end = end;
        self.chars = chars;
        self.has_body |= !self.in_heading;
        if self.in_heading || unit.is_whole() {
            self.floor = end;
        }
    }

    fn close(&mut self) -> Result<(), ArchiveError> {
        let range = std::mem::replace(&mut self.open, 0..0);
        self.chars = 0;
        self.has_body = false;
        if range.is_empty() {
            return Ok(());
        }
        self.passages.add(&self.text[range], &self.headings, self.place.clone())
    }

    /// Where a new passage with this unit begins, if it repeats the end of the open one.
    fn overlap_start(&self, next: &Range<usize>) -> Option<usize> {
        let end = self.open.end;
        if !self.is_open() || self.in_heading {
            return None;
        }
        let needed = count_chars(&self.text[end..next.end]);
        let room = PASSAGE_CHARS.checked_sub(needed).filter(|&room| room >= MIN_OVERLAP)?;
        let floor = self.floor.max(self.open.start);
        let window = |chars: usize| {
            let before = self.text[floor..end].char_indices().rev().take(chars.min(room)).last();
            before.map_or(end, |(at, _)| floor + at)
        };
        // The window may begin inside a sentence or a word, so the second one of it is the first whole one.
        let start = window(SENTENCE_OVERLAP);
        let first = next_sentence(self.text, start..end)?;
        if let Some(second) = next_sentence(self.text, first.end..end)
            && count_chars(&self.text[second.start..end]) >= OVERLAP_CHARS / 2
        {
            return Some(second.start);
        }
        let start = window(OVERLAP_CHARS);
        let first = next_word(self.text, start..end)?;
        match next_word(self.text, first.end..end) {
            Some(second) => Some(second.start),
            // One long word: letters, and no mark without its letter.
            None if first.start == start => {
                let rest = &self.text[start..end];
                rest.char_indices().find(|(_, c)| !super::units::is_mark(*c)).map(|(at, _)| start + at)
            }
            None => Some(first.start),
        }
        .filter(|&start| skip_blank(self.text, &(start..end)).is_some())
    }
}

/// Whether a unit may be divided to fill a passage that has only a heading.
fn can_fill(unit: Unit, chars: usize) -> bool {
    match unit {
        Unit::Letters => false,
        Unit::Word => chars > LONG_WORD,
        _ => true,
    }
}
