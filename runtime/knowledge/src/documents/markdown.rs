//! Markdown: headings, fences, tables and front matter.

mod front_matter;
mod lines;

use super::names::title_of;
use super::packer::{Packer, Unit};
use super::{MAX_HEADINGS, Passages, Place, ReadDocument, check_size};
use lines::{Fence, Heading};
use redflow_ports::ArchiveError;
use std::ops::Range;

/// Reads Markdown, also the Markdown that was made of HTML.
///
/// # Errors
/// `DOCUMENT_TOO_LARGE` beyond the limits of this module, `DOCUMENT_UNREADABLE` if there is no text.
pub fn read_markdown(name: &str, text: &str) -> Result<ReadDocument, ArchiveError> {
    check_size(name, text.len())?;
    let mut passages = Passages::new(name);
    let text = passages.prepare(text.strip_prefix('\u{feff}').unwrap_or(text));
    let (front_title, body) = front_matter::divide(&text);
    let mut reader = Reader {
        text: body,
        packer: Packer::new(body, Place::Whole, &mut passages),
        sections: Vec::new(),
        title: None,
        open: Block::None,
    };
    reader.read()?;
    let title = front_title.or(reader.title.take());
    reader.packer.finish()?;
    passages.finish(title)
}

/// The block that the next line may continue.
enum Block {
    None,
    Paragraph {
        range: Range<usize>,
        /// Where its last line begins.
        last_line: usize,
    },
    Code {
        range: Range<usize>,
        fence: Fence,
    },
    Table(Range<usize>),
}

/// Finds the blocks of a text, line by line.
struct Reader<'t, 'p, 'n> {
    text: &'t str,
    packer: Packer<'t, 'p, 'n>,
    /// The open sections, the outermost first: level and heading.
    sections: Vec<(usize, String)>,
    /// The first heading of level 1.
    title: Option<String>,
    open: Block,
}

impl Reader<'_, '_, '_> {
    fn read(&mut self) -> Result<(), ArchiveError> {
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            let range = at..at + line.trim_end().len();
            at += line.len();
            self.read_line(range)?;
        }
        self.close_block()
    }

    fn read_line(&mut self, range: Range<usize>) -> Result<(), ArchiveError> {
        let line = &self.text[range.clone()];
        match &mut self.open {
            Block::Code { range: code, fence } => {
                code.end = range.end.max(code.end);
                return if fence.is_closed_by(line) { self.close_block() } else { Ok(()) };
            }
            Block::Table(table) if line.contains('|') => {
                table.end = range.end;
                return Ok(());
            }
            _ => {}
        }
        if let Some(fence) = Fence::opened_by(line) {
            self.close_block()?;
            self.open = Block::Code { range, fence };
            return Ok(());
        }
        if let Some(heading) = lines::heading(line) {
            self.close_block()?;
            return self.add_heading(range, heading);
        }
        if let Some((paragraph, last_line)) = self.paragraph() {
            let last = &self.text[last_line..paragraph.end];
            if last_line == paragraph.start
                && let Some(heading) = lines::underlined_heading(last, line)
            {
                self.open = Block::None;
                return self.add_heading(paragraph.start..range.end, heading);
            }
            if lines::is_delimiter_row(line) && last.contains('|') {
                self.open = Block::None;
                if last_line > paragraph.start {
                    self.packer.add(Unit::Paragraph, paragraph.start..last_line - 1)?;
                }
                self.open = Block::Table(last_line..range.end);
                return Ok(());
            }
        }
        if line.is_empty() || lines::is_break(line) {
            return self.close_block();
        }
        let start = match self.paragraph() {
            Some((paragraph, _)) => paragraph.start,
            None => {
                self.close_block()?;
                range.start
            }
        };
        self.open = Block::Paragraph { range: start..range.end, last_line: range.start };
        Ok(())
    }

    fn paragraph(&self) -> Option<(Range<usize>, usize)> {
        match &self.open {
            Block::Paragraph { range, last_line } => Some((range.clone(), *last_line)),
            _ => None,
        }
    }

    fn close_block(&mut self) -> Result<(), ArchiveError> {
        match std::mem::replace(&mut self.open, Block::None) {
            Block::None => Ok(()),
            Block::Paragraph { range, .. } => self.packer.add(Unit::Paragraph, range),
            Block::Code { range, .. } => self.packer.add(Unit::Code, range),
            Block::Table(range) => self.packer.add(Unit::Table, range),
        }
    }

    fn add_heading(&mut self, range: Range<usize>, heading: Heading<'_>) -> Result<(), ArchiveError> {
        let text = title_of(&lines::plain_heading(heading.text));
        if heading.level == 1 && self.title.is_none() {
            self.title.clone_from(&text);
        }
        self.sections.retain(|(level, _)| *level < heading.level);
        self.sections.extend(text.map(|text| (heading.level, text)));
        let headings = self.sections.iter().map(|(_, text)| text.clone()).take(MAX_HEADINGS).collect();
        self.packer.add_heading(range, headings)
    }
}
