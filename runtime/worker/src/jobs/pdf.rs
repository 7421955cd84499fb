//! The job `pdf`: the text of the pages of a PDF.

use super::clean_title;
use crate::error::DocumentProblem;
use crate::limits::{MAX_PAGES, MAX_RESULT_BYTES};
use pdf_extract::{
    ConvertToFmt, Document, MediaBox, OutputDev, OutputError, PlainTextOutput, Transform, output_doc,
};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// The text of a PDF document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PdfText {
    /// Its title, on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text of each page. A page of images is empty.
    #[serde(deserialize_with = "bounded_pages")]
    pub pages: Vec<String>,
}

/// Reads a PDF. The parser panics on many damaged documents.
pub(crate) fn read_pdf(pdf: Vec<u8>) -> Result<PdfText, DocumentProblem> {
    let document = Document::load_mem(&pdf).map_err(|error| problem_of(&error))?;
    drop(pdf);
    if document.is_encrypted() {
        return Err(DocumentProblem::Protected);
    }
    if document.get_pages().len() > MAX_PAGES {
        return Err(DocumentProblem::TooManyPages);
    }
    let pages = Rc::new(RefCell::new(Pages::default()));
    let written = output_doc(&document, &mut PagedOutput::new(&pages));
    let Pages { texts, bytes } = pages.take();
    if bytes > MAX_RESULT_BYTES {
        return Err(DocumentProblem::TextTooLarge);
    }
    written.map_err(|_| DocumentProblem::NotPdf)?;
    let pages: Vec<String> = texts.iter().map(|text| text.trim().to_owned()).collect();
    if pages.iter().all(String::is_empty) {
        return Err(DocumentProblem::NoText);
    }
    Ok(PdfText { title: title_of(&document), pages })
}

fn problem_of(error: &pdf_extract::Error) -> DocumentProblem {
    match error {
        pdf_extract::Error::Decryption(_) => DocumentProblem::Protected,
        _ => DocumentProblem::NotPdf,
    }
}

fn title_of(document: &Document) -> Option<String> {
    let information = document.trailer.get(b"Info").ok()?;
    let (_, information) = document.dereference(information).ok()?;
    let (_, title) = document.dereference(information.as_dict().ok()?.get(b"Title").ok()?).ok()?;
    clean_title(&pdf_extract::decode_text_string(title).ok()?)
}

/// The texts of the pages, and their size.
#[derive(Default)]
struct Pages {
    texts: Vec<String>,
    bytes: usize,
}

/// Appends to the last page, up to the largest result.
struct PageWriter(Rc<RefCell<Pages>>);

impl fmt::Write for PageWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut pages = self.0.borrow_mut();
        pages.bytes += text.len();
        if pages.bytes > MAX_RESULT_BYTES {
            return Err(fmt::Error);
        }
        pages.texts.last_mut().ok_or(fmt::Error)?.push_str(text);
        Ok(())
    }
}

impl ConvertToFmt for PageWriter {
    type Writer = Self;

    fn convert(self) -> Self {
        self
    }
}

/// Writes each page into a text of its own.
struct PagedOutput {
    pages: Rc<RefCell<Pages>>,
    page: PlainTextOutput<PageWriter>,
}

impl PagedOutput {
    fn new(pages: &Rc<RefCell<Pages>>) -> Self {
        Self { pages: Rc::clone(pages), page: PlainTextOutput::new(PageWriter(Rc::clone(pages))) }
    }
}

type OutputResult = Result<(), OutputError>;

impl OutputDev for PagedOutput {
    fn begin_page(
        &mut self,
        number: u32,
        media: &MediaBox,
        art: Option<(f64, f64, f64, f64)>,
    ) -> OutputResult {
        self.pages.borrow_mut().texts.push(String::new());
        self.page = PlainTextOutput::new(PageWriter(Rc::clone(&self.pages)));
        self.page.begin_page(number, media, art)
    }

    fn end_page(&mut self) -> OutputResult {
        self.page.end_page()
    }

    fn output_character(
        &mut self,
        at: &Transform,
        width: f64,
        spacing: f64,
        size: f64,
        text: &str,
    ) -> OutputResult {
        self.page.output_character(at, width, spacing, size, text)
    }

    fn begin_word(&mut self) -> OutputResult {
        self.page.begin_word()
    }

    fn end_word(&mut self) -> OutputResult {
        self.page.end_word()
    }

    fn end_line(&mut self) -> OutputResult {
        self.page.end_line()
    }
}

/// Reads at most [`MAX_PAGES`]: the caller does not trust the list of a worker.
fn bounded_pages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct PagesVisitor;

    impl<'de> Visitor<'de> for PagesVisitor {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX_PAGES} texts")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Vec<String>, A::Error> {
            let mut pages = Vec::new();
            while let Some(page) = texts.next_element()? {
                if pages.len() == MAX_PAGES {
                    return Err(serde::de::Error::invalid_length(MAX_PAGES + 1, &self));
                }
                pages.push(page);
            }
            Ok(pages)
        }
    }

    deserializer.deserialize_seq(PagesVisitor)
}
