//! Sentences that can be shown in any language: the English text, and the key and arguments of the sentence.
//!
//! The English texts are in `phrases.rs`. The other languages are in the palette, by the same keys.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A sentence without its words: which one it is, and what stands in its places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Phrase {
    /// The key in the catalogues. It never changes its meaning.
    pub key: Cow<'static, str>,
    /// What stands in each place, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "codegen", ts(type = "{ [name: string]: PhraseArg }", optional))]
    pub args: BTreeMap<Cow<'static, str>, PhraseArg>,
}

/// What stands in one place of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(untagged)]
pub enum PhraseArg {
    /// The same in every language: a name, an id, a number, a value.
    Text(String),
    /// Words of the catalogue.
    Phrase(Phrase),
}

impl Phrase {
    /// Cuts every argument to a number of characters.
    pub fn truncate(&mut self, chars: usize) {
        for arg in self.args.values_mut() {
            match arg {
                PhraseArg::Text(text) => truncate(text, chars),
                PhraseArg::Phrase(phrase) => phrase.truncate(chars),
            }
        }
    }
}

/// Truncates a text to a number of characters.
pub fn truncate(text: &mut String, chars: usize) {
    if text.len() > chars
        && let Some((end, _)) = text.char_indices().nth(chars)
    {
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
}

/// A sentence in English, with its phrase if it is in the catalogues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// The English text.
    pub text: String,
    /// Absent for texts that have no translation, such as those of another program.
    pub phrase: Option<Phrase>,
}

impl Sentence {
    /// Fills in a template of the table.
    pub(crate) fn fill<const N: usize>(template: &Template, values: [Self; N]) -> Self {
        let mut text = String::new();
        let mut rest = template.english;
        while let Some((before, place)) = rest.split_once('{') {
            text.push_str(before);
            // Braces around other words belong to the text, as in `${NAME}`.
            let filled = template
                .args
                .iter()
                .zip(&values)
                .find_map(|(name, value)| Some((value, place.strip_prefix(name)?.strip_prefix('}')?)));
            rest = match filled {
                Some((value, after)) => {
                    text.push_str(&value.text);
                    after
                }
                None => {
                    text.push('{');
                    place
                }
            };
        }
        text.push_str(rest);
        let names = template.args.iter().map(|name| Cow::Borrowed(*name));
        let args = names.zip(values.into_iter().map(Self::into_arg)).collect();
        Self { text, phrase: Some(Phrase { key: Cow::Borrowed(template.key), args }) }
    }

    fn into_arg(self) -> PhraseArg {
        match self.phrase {
            Some(phrase) => PhraseArg::Phrase(phrase),
            None => PhraseArg::Text(self.text),
        }
    }
}

impl From<String> for Sentence {
    fn from(text: String) -> Self {
        Self { text, phrase: None }
    }
}

impl From<&str> for Sentence {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for Sentence {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

macro_rules! from_numbers {
    ($($number:ty),+) => { $(
        impl From<$number> for Sentence {
            fn from(number: $number) -> Self {
                number.to_string().into()
            }
        }
    )+ };
}

from_numbers!(u32, u64, usize);

/// One row of the table of phrases.
#[derive(Debug)]
pub struct Template {
    /// The key in the catalogues.
    pub key: &'static str,
    /// The English text. A name in braces is the place of an argument.
    pub english: &'static str,
    /// The names of the arguments.
    pub args: &'static [&'static str],
}

/// Declares a table: a function for each phrase, named like its key, and the list of all.
macro_rules! phrases {
    ($($key:ident($($arg:ident),*) $english:literal;)*) => {
        /// Every phrase.
        pub const PHRASES: &[Template] = &[$(Template {
            key: stringify!($key),
            english: $english,
            args: &[$(stringify!($arg)),*],
        }),*];
        $(
            #[doc = $english]
            #[must_use]
            pub fn $key($($arg: impl Into<Sentence>),*) -> Sentence {
                const TEMPLATE: Template =
                    Template { key: stringify!($key), english: $english, args: &[$(stringify!($arg)),*] };
                Sentence::fill(&TEMPLATE, [$($arg.into()),*])
            }
        )*
    };
}

pub(crate) use phrases;
