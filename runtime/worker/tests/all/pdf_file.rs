//! Writes PDF files: objects, cross-reference table, trailer.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write as _;

/// A PDF that is built object by object. Object 1 is the catalogue, object 2 the list of pages.
#[derive(Default)]
pub(crate) struct PdfFile {
    objects: Vec<Vec<u8>>,
    trailer: String,
}

impl PdfFile {
    /// A document with a page for each text.
    pub(crate) fn with_pages(texts: &[&str]) -> Self {
        let contents = texts.iter().map(|text| format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET").into_bytes());
        Self::with_contents(&contents.collect::<Vec<_>>())
    }

    /// A document with a page for each stream of drawing operators.
    pub(crate) fn with_contents(contents: &[Vec<u8>]) -> Self {
        let mut file = Self::default();
        let kids: Vec<String> = (0..contents.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
        file.add("<< /Type /Catalog /Pages 2 0 R >>");
        file.add(&format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), kids.len()));
        file.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
        for content in contents {
            let next = file.objects.len() + 2;
            file.add(&format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {next} 0 R \
                 /Resources << /Font << /F1 3 0 R >> >> >>"
            ));
            file.add_stream("", content);
        }
        file
    }

    /// Adds an object and returns its number.
    pub(crate) fn add(&mut self, object: &str) -> usize {
        self.objects.push(object.as_bytes().to_vec());
        self.objects.len()
    }

    /// Adds a stream as it is.
    pub(crate) fn add_stream(&mut self, entries: &str, data: &[u8]) -> usize {
        let mut object = format!("<< /Length {} {entries} >>\nstream\n", data.len()).into_bytes();
        object.extend_from_slice(data);
        object.extend_from_slice(b"\nendstream");
        self.objects.push(object);
        self.objects.len()
    }

    /// Replaces an object.
    pub(crate) fn set(&mut self, number: usize, object: &str) {
        self.objects[number - 1] = object.as_bytes().to_vec();
    }

    /// Replaces an object by a stream.
    pub(crate) fn set_stream(&mut self, number: usize, entries: &str, data: &[u8]) {
        self.add_stream(entries, data);
        self.objects[number - 1] = self.objects.pop().unwrap();
    }

    /// Adds entries to the trailer.
    pub(crate) fn set_trailer(&mut self, entries: &str) {
        self.trailer = entries.to_owned();
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut file = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
        let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", self.objects.len() + 1);
        for (index, object) in self.objects.iter().enumerate() {
            table.push_str(&format!("{:010} 00000 n \n", file.len()));
            file.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
            file.extend_from_slice(object);
            file.extend_from_slice(b"\nendobj\n");
        }
        let start = file.len();
        file.extend_from_slice(table.as_bytes());
        let size = self.objects.len() + 1;
        let trailer =
            format!("trailer\n<< /Size {size} /Root 1 0 R {} >>\nstartxref\n{start}\n%%EOF\n", self.trailer);
        file.extend_from_slice(trailer.as_bytes());
        file
    }
}

/// A zlib stream that inflates to so many mebibytes of spaces.
pub(crate) fn inflating_stream(mebibytes: usize) -> Vec<u8> {
    // After a flush the same bytes mean the same again, so one block is enough.
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.flush().unwrap();
    let head = encoder.get_ref().len();
    encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
    encoder.flush().unwrap();
    let stream = encoder.get_ref().clone();
    let (head, block) = stream.split_at(head);
    let mut bomb = head.to_vec();
    for _ in 0..mebibytes {
        bomb.extend_from_slice(block);
    }
    // An empty last block. The checksum is missing.
    bomb.extend_from_slice(&[3, 0]);
    bomb
}
