//! CSV: every row is written as lines of `name: value`.

use super::clean::clean;
use super::names::{one_line, unreadable};
use super::packer::Packer;
use super::{
    HEADING_CHARS, PASSAGE_CHARS, Passages, Place, ReadDocument, WHOLE_CHARS, count_chars, first_chars,
};
use csv::{ReaderBuilder, StringRecord};
use redflow_ports::ArchiveError;

/// Reads CSV. The first row has the names of the columns.
pub(super) fn read_rows(name: &str, text: &str) -> Result<ReadDocument, ArchiveError> {
    let mut passages = Passages::new(name);
    let text = clean(text);
    let text = text.trim_start_matches('\n');
    if text.trim_start().is_empty() {
        return passages.finish(None);
    }
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter(name, text))
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut record = StringRecord::new();
    let mut read = |record: &mut StringRecord| {
        reader.read_record(record).map_err(|error| {
            let line = error.position().map_or(1, csv::Position::line);
            unreadable(name, &format!("is not CSV in line {line}: correct that line"))
        })
    };
    read(&mut record)?;
    mask_fields(&mut record, &mut passages);
    let columns = Columns::new(&record);
    let names: Vec<_> = record.iter().map(str::trim).filter(|name| !name.is_empty()).collect();
    let header = names.join(", ");
    let mut group = RowGroup::default();
    let mut row = 0;
    while read(&mut record)? {
        row += 1;
        mask_fields(&mut record, &mut passages);
        group.add(&columns.write(&record), row, &mut passages)?;
    }
    group.close(&mut passages)?;
    if passages.list.is_empty() {
        Packer::new(&header, Place::Whole, &mut passages).pack_paragraphs()?;
    }
    passages.finish(None)
}

/// Replaces secrets, each field for itself: what looks like one may go across two fields.
fn mask_fields(record: &mut StringRecord, passages: &mut Passages<'_>) {
    let masked: Vec<Option<String>> = record.iter().map(|field| passages.mask(field)).collect();
    if masked.iter().any(Option::is_some) {
        let field = |(field, masked): (&str, Option<String>)| masked.unwrap_or_else(|| field.to_owned());
        *record = record.iter().zip(masked).map(field).collect();
    }
}

/// The sign between fields: a tab in `.tsv`, else the more frequent one of the first line, outside quotes.
fn delimiter(name: &str, text: &str) -> u8 {
    if name.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("tsv")) {
        return b'\t';
    }
    let (mut commas, mut semicolons, mut is_quoted) = (0_usize, 0_usize, false);
    for byte in text.bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' if !is_quoted => break,
            b',' if !is_quoted => commas += 1,
            b';' if !is_quoted => semicolons += 1,
            _ => {}
        }
    }
    if semicolons > commas { b';' } else { b',' }
}

/// The names of the columns.
struct Columns(Vec<String>);

impl Columns {
    fn new(header: &StringRecord) -> Self {
        let name = |(field, number): (&str, usize)| match one_line(first_chars(field, HEADING_CHARS)) {
            name if name.is_empty() => format!("column {number}"),
            name => name,
        };
        Self(header.iter().zip(1..).map(name).collect())
    }

    /// A row as text, without the fields that are blank.
    fn write(&self, row: &StringRecord) -> String {
        let mut text = String::new();
        for (index, field) in row.iter().enumerate() {
            let field = field.trim();
            if field.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            match self.0.get(index) {
                Some(name) => text.push_str(name),
                None => text.push_str(&format!("column {}", index + 1)),
            }
            text.push_str(": ");
            text.push_str(field);
        }
        text
    }
}

/// Rows that are joined to one passage.
#[derive(Default)]
struct RowGroup {
    text: String,
    chars: usize,
    first_row: u64,
}

impl RowGroup {
    fn add(&mut self, row: &str, number: u64, passages: &mut Passages<'_>) -> Result<(), ArchiveError> {
        if row.is_empty() {
            return Ok(());
        }
        let chars = count_chars(row);
        if !self.text.is_empty() && self.chars + 2 + chars <= PASSAGE_CHARS {
            self.text.push_str("\n\n");
            self.text.push_str(row);
            self.chars += 2 + chars;
            return Ok(());
        }
        self.close(passages)?;
        if chars > WHOLE_CHARS {
            return Packer::new(row, Place::Row(number), passages).pack_paragraphs();
        }
        row.clone_into(&mut self.text);
        self.chars = chars;
        self.first_row = number;
        Ok(())
    }

    fn close(&mut self, passages: &mut Passages<'_>) -> Result<(), ArchiveError> {
        let text = std::mem::take(&mut self.text);
        passages.add(&text, &[], Place::Row(self.first_row))
    }
}
