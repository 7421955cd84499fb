//! Replaces parts of a text, from its start to its end. A text without replacements is not copied.

use std::borrow::Cow;

pub(super) struct Replacer<'a> {
    text: &'a str,
    out: String,
    copied: usize,
}

impl<'a> Replacer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, out: String::new(), copied: 0 }
    }

    /// Replaces one part, which must follow the parts replaced before.
    pub(super) fn replace(&mut self, start: usize, end: usize, placeholder: &str) {
        self.out.push_str(&self.text[self.copied..start]);
        self.out.push_str(placeholder);
        self.copied = end;
    }

    pub(super) fn finish(mut self) -> Cow<'a, str> {
        if self.copied == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out.push_str(&self.text[self.copied..]);
        Cow::Owned(self.out)
    }
}
