//! Texts that are embedded compressed, because hardly anybody reads them.

use std::io::Read as _;

/// A text that is decompressed when it is read.
#[derive(Debug, Clone, Copy)]
pub struct PackedText {
    bytes: usize,
    packed: &'static [u8],
}

impl PackedText {
    /// What the build script has compressed: raw DEFLATE of a text with this number of bytes.
    #[must_use]
    pub const fn new(bytes: usize, packed: &'static [u8]) -> Self {
        Self { bytes, packed }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.bytes);
        // The build script has written it, and a test reads every one.
        let _ = flate2::read::DeflateDecoder::new(self.packed).read_to_string(&mut text);
        text
    }
}
