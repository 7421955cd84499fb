//! Pieces of a text replaced, from its beginning to its end. A text without any is not copied.

use std::borrow::Cow;

pub(super) struct Cuts<'a> {
    text: &'a str,
    out: String,
    copied: usize,
}

impl<'a> Cuts<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, out: String::new(), copied: 0 }
    }

    /// Puts a mark in the place of one piece, which lies behind those before it.
    pub(super) fn put(&mut self, start: usize, end: usize, mark: &str) {
        self.out.push_str(&self.text[self.copied..start]);
        self.out.push_str(mark);
        self.copied = end;
    }

    pub(super) fn done(mut self) -> Cow<'a, str> {
        if self.copied == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out.push_str(&self.text[self.copied..]);
        Cow::Owned(self.out)
    }
}
