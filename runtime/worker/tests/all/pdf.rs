//! PDF documents: ordinary ones and hostile ones.

use crate::kit::{SHORT, read_pdf, read_pdf_within};
use crate::pdf_file::{PdfFile, inflating_stream};
use pretty_assertions::assert_eq;
use redflow_worker::{DocumentProblem, MAX_PAGES, PdfText, WorkerError};

fn unreadable(problem: DocumentProblem) -> Result<PdfText, WorkerError> {
    Err(WorkerError::Unreadable(problem))
}

// SECURITY: worker-confined
#[test]
fn a_document_is_read_page_by_page() {
    let mut file = PdfFile::with_pages(&["The pump has two valves.", "Close both \\(left first\\)."]);
    let info = file.add("<< /Title (Pump manual) /Producer (a test) >>");
    file.set_trailer(&format!("/Info {info} 0 R"));
    let PdfText { title, pages } = read_pdf(file.bytes()).unwrap();
    assert_eq!(title.as_deref(), Some("Pump manual"));
    assert_eq!(pages, ["The pump has two valves.", "Close both (left first)."]);
}

// SECURITY: worker-confined
#[test]
fn a_title_may_be_in_utf_16_or_missing() {
    let mut file = PdfFile::with_pages(&["text"]);
    assert_eq!(read_pdf(file.bytes()).unwrap().title, None);
    let info = file.add("<< /Title <FEFF00500075006D0070006500FC> >>");
    file.set_trailer(&format!("/Info {info} 0 R"));
    assert_eq!(read_pdf(file.bytes()).unwrap().title.as_deref(), Some("Pumpeü"));
    file.set(info, "<< /Title 7 >>");
    assert_eq!(read_pdf(file.bytes()).unwrap().title, None);
}

// SECURITY: worker-confined
#[test]
fn compressed_pages_and_lines_are_read() {
    use std::io::Write as _;
    let text = b"BT /F1 12 Tf 72 700 Td (first line) Tj 0 -20 Td (second line) Tj ET";
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    let mut file = PdfFile::with_pages(&["x"]);
    file.set_stream(5, "/Filter /FlateDecode", &encoder.finish().unwrap());
    let lines: Vec<String> = read_pdf(file.bytes()).unwrap().pages[0].lines().map(str::to_owned).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["first line", "second line"]);
}

// SECURITY: worker-confined
#[test]
fn a_document_without_text_says_so() {
    let file = PdfFile::with_contents(&[b"0 0 100 100 re f".to_vec(), Vec::new()]);
    assert_eq!(read_pdf(file.bytes()), unreadable(DocumentProblem::NoText));
    let one_page = PdfFile::with_contents(&[b"0 0 1 1 re f".to_vec(), b"BT /F1 9 Tf (a) Tj ET".to_vec()]);
    assert_eq!(read_pdf(one_page.bytes()).unwrap().pages, ["", "a"]);
    let error = read_pdf(PdfFile::with_contents(&[]).bytes()).unwrap_err();
    assert!(matches!(error, WorkerError::Unreadable(_) | WorkerError::Ended), "{error}");
}

// SECURITY: worker-confined
#[test]
fn a_document_with_a_password_says_so() {
    let mut file = PdfFile::with_pages(&["secret"]);
    let key = "00".repeat(32);
    let encryption =
        file.add(&format!("<< /Filter /Standard /V 2 /R 3 /Length 128 /O <{key}> /U <{key}> /P -44 >>"));
    file.set_trailer(&format!("/Encrypt {encryption} 0 R /ID [<00112233> <00112233>]"));
    let error = read_pdf(file.bytes()).unwrap_err();
    assert_eq!(error, WorkerError::Unreadable(DocumentProblem::Protected));
    assert_eq!(error.to_string(), "the document cannot be read: it is protected by a password");
}

// SECURITY: worker-confined
#[test]
fn other_bytes_are_not_a_document() {
    for bytes in
        [&b""[..], b"%PDF-1.7", b"hello", b"<html></html>", &[0; 5000], b"%PDF-1.7\nstartxref\n0\n%%EOF"]
    {
        assert_eq!(read_pdf(bytes), unreadable(DocumentProblem::NotPdf));
    }
}

/// An error, in time: which one depends on the parser.
fn fails(what: &str, file: Vec<u8>) {
    match read_pdf(file) {
        Err(WorkerError::Ended | WorkerError::TimedOut | WorkerError::Unreadable(_)) => {}
        other => panic!("{what}: {other:?}"),
    }
}

// SECURITY: worker-confined
#[test]
fn a_truncated_document_ends_in_time() {
    let file = PdfFile::with_pages(&["one", "two"]).bytes();
    for part in 1..8 {
        fails("truncated", file[..file.len() * part / 8].to_vec());
    }
}

// SECURITY: worker-confined
#[test]
fn loops_end_in_time() {
    let file = PdfFile::with_pages(&["text"]).bytes();
    let text = String::from_utf8_lossy(&file).into_owned();
    let start = text.find("xref\n0").unwrap();
    // Both may be read: the loop is in an earlier version of the document, which adds nothing.
    let looped = text.replace("/Root 1 0 R", &format!("/Root 1 0 R /Prev {start}"));
    let _ = read_pdf(looped.into_bytes());
    let mut pages = PdfFile::with_pages(&["text"]);
    pages.set(2, "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>");
    fails("pages in themselves", pages.bytes());
    let mut form = PdfFile::with_contents(&[b"/X Do".to_vec()]);
    let number = form.add_stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>",
        b"/X Do",
    );
    form.set(4, &format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 5 0 R /Resources << /XObject << /X {number} 0 R >> >> >>"));
    fails("a form in itself", form.bytes());
    let mut parent = PdfFile::with_pages(&["text"]);
    parent.set(4, "<< /Type /Page /Parent 4 0 R /Contents 5 0 R >>");
    fails("a page that is its own parent", parent.bytes());
    let mut reference = PdfFile::with_pages(&["text"]);
    reference.set(5, "5 0 R");
    fails("a reference to itself", reference.bytes());
}

// SECURITY: worker-confined
#[test]
fn huge_counts_end_in_time() {
    let mut count = PdfFile::with_pages(&["text"]);
    count.set(2, "<< /Type /Pages /Kids [4 0 R] /Count 99999999999 >>");
    let _ = read_pdf(count.bytes());
    let text = String::from_utf8_lossy(&PdfFile::with_pages(&["text"]).bytes()).into_owned();
    let _ = read_pdf(text.replace("xref\n0 6", "xref\n0 999999999999").into_bytes());
    let _ = read_pdf(text.replace("/Size 6", "/Size 99999999999").into_bytes());
    let mut length = PdfFile::with_pages(&["text"]);
    length.set(5, "<< /Length 99999999999 >>\nstream\nBT\nendstream");
    fails("length", length.bytes());
    let mut boxes = PdfFile::with_pages(&["text"]);
    boxes.set(4, "<< /Type /Page /Parent 2 0 R /MediaBox [0] /Contents 5 0 R >>");
    fails("a box of one number", boxes.bytes());
    let mut pages = PdfFile::with_pages(&["text"]);
    pages.set(2, &format!("<< /Type /Pages /Kids [{}] /Count 1 >>", "4 0 R ".repeat(1_000_000)));
    let _ = read_pdf_within(SHORT, pages.bytes());
}

// SECURITY: worker-confined
#[test]
fn a_document_with_too_many_pages_says_so() {
    let mut pages = PdfFile::with_pages(&["text"]);
    let page = "<< /Type /Page /Parent 2 0 R >>";
    let kids: Vec<String> = (0..=MAX_PAGES).map(|_| format!("{} 0 R", pages.add(page))).collect();
    pages.set(2, &format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), kids.len()));
    assert_eq!(read_pdf(pages.bytes()), unreadable(DocumentProblem::TooManyPages));
}

// SECURITY: worker-confined
#[test]
fn deep_nesting_ends_in_time() {
    for (open, close) in [("[", "]"), ("<< /A ", ">>"), ("(", ")")] {
        let mut nested = PdfFile::with_pages(&["text"]);
        nested.set(1, &format!("{}{}", open.repeat(200_000), close.repeat(200_000)));
        fails(open, nested.bytes());
    }
    let nested = format!("{} 0 Tj", "[".repeat(500_000));
    let _ = read_pdf(PdfFile::with_contents(&[nested.into_bytes()]).bytes());
    let saved = "q ".repeat(2_000_000);
    let _ = read_pdf_within(SHORT, PdfFile::with_contents(&[saved.into_bytes()]).bytes());
}

// SECURITY: worker-confined
#[test]
fn streams_that_inflate_to_gigabytes_end_in_time() {
    let bomb = inflating_stream(2048);
    let mut content = PdfFile::with_pages(&["text"]);
    content.set_stream(5, "/Filter /FlateDecode", &bomb);
    fails("content", content.bytes());
    let mut objects = PdfFile::with_pages(&["text"]);
    objects.add_stream("/Type /ObjStm /N 1000000 /First 10 /Filter /FlateDecode", &bomb);
    let _ = read_pdf(objects.bytes());
}

// SECURITY: worker-confined
#[test]
fn a_document_with_much_text_is_bounded() {
    // The font makes 500 characters of each one.
    let text = format!("BT /F1 12 Tf ({}) Tj ET", "a".repeat(80_000));
    let mut file = PdfFile::with_contents(&[text.into_bytes()]);
    let map = format!(
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def \
         1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar <61> <{}> endbfchar endcmap \
         CMapName currentdict /CMap defineresource pop end end",
        "0062".repeat(500)
    );
    let map = file.add_stream("", map.as_bytes());
    file.set(3, &format!("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {map} 0 R >>"));
    assert_eq!(read_pdf(file.bytes()), unreadable(DocumentProblem::TextTooLarge));
}
