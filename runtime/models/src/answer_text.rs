//! The text of an answer whose model may think in it first, between `<think>` and `</think>`.
//!
//! Servers that do not know the model's tags leave them in the text. Thoughts are not part of the answer.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A text that arrives in parts.
#[derive(Debug)]
pub(crate) struct AnswerText {
    all: String,
    begin: Begin,
}

/// Where the answer begins.
#[derive(Debug, Clone, Copy)]
enum Begin {
    /// Unknown: from here on, there may be a tag.
    Unknown(usize),
    /// After a tag that is to be found from here on.
    AfterThought(usize),
    /// Here.
    At(usize),
}

impl AnswerText {
    /// An empty text. Without thoughts, all of it is the answer.
    pub(crate) fn new(may_have_thoughts: bool) -> Self {
        Self { all: String::new(), begin: if may_have_thoughts { Begin::Unknown(0) } else { Begin::At(0) } }
    }

    pub(crate) fn push(&mut self, part: &str) {
        self.all.push_str(part);
        loop {
            match self.begin {
                Begin::At(_) => return,
                Begin::AfterThought(from) => match self.all.get(from..).and_then(|rest| rest.find(CLOSE)) {
                    Some(at) => self.begin = Begin::Unknown(from + at + CLOSE.len()),
                    None => {
                        // The tag may have begun.
                        let end =
                            self.all.floor_char_boundary(self.all.len().saturating_sub(CLOSE.len() - 1));
                        self.begin = Begin::AfterThought(from.max(end));
                        return;
                    }
                },
                Begin::Unknown(from) => {
                    let rest = self.all.get(from..).unwrap_or_default().trim_start();
                    let at = self.all.len() - rest.len();
                    if rest.starts_with(OPEN) {
                        self.begin = Begin::AfterThought(at + OPEN.len());
                    } else if rest.starts_with(CLOSE) {
                        // Some templates write the first tag themselves, or an empty thought.
                        self.begin = Begin::Unknown(at + CLOSE.len());
                    } else if OPEN.starts_with(rest) || CLOSE.starts_with(rest) {
                        return;
                    } else {
                        self.begin = Begin::At(if from == 0 { 0 } else { at });
                    }
                }
            }
        }
    }

    /// The answer so far.
    pub(crate) fn visible(&self) -> &str {
        let Begin::At(at) = self.begin else { return "" };
        self.all.get(at..).unwrap_or_default()
    }

    /// All of the text, with thoughts.
    pub(crate) fn all(&self) -> &str {
        &self.all
    }

    /// The answer, and the whole text if that has thoughts too. There is none if the thoughts have no end.
    pub(crate) fn finish(mut self) -> (String, Option<String>) {
        let at = match self.begin {
            Begin::At(at) => at,
            Begin::Unknown(0) => 0,
            Begin::Unknown(from) => {
                self.all.len() - self.all.get(from..).unwrap_or_default().trim_start().len()
            }
            Begin::AfterThought(_) => return Default::default(),
        };
        if at == 0 {
            return (self.all, None);
        }
        let answer = self.all.split_off(at);
        self.all.push_str(&answer);
        (answer, Some(self.all))
    }
}

/// A whole text without its thoughts.
pub(crate) fn without_thoughts(text: &str) -> String {
    let mut whole = AnswerText::new(true);
    whole.push(text);
    whole.finish().0
}

#[cfg(test)]
#[path = "answer_text_tests.rs"]
mod tests;
