//! Splits a text into the tokens of BERT's uncased vocabulary.
//!
//! Owns the steps of that: normal form, words, and the longest parts of words that the vocabulary has. No text
//! makes a special token: `[SEP]` in a text is three ordinary ones.

use super::{TOKENIZER_FILE, VOCABULARY_FILE, invalid};
use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use redflow_ports::ArchiveError;
use serde::Deserialize;
use std::collections::HashMap;

/// The number of tokens that the model knows.
pub(super) const VOCABULARY: usize = 30_522;
/// The most tokens of a text, the first and the last one included.
pub(super) const MAX_TOKENS: usize = 256;
/// The most characters of a word. A longer one is unknown.
const MAX_WORD_CHARS: usize = 100;

/// Splits texts into tokens.
pub(super) struct Tokenizer {
    /// The words, and the parts that words begin with.
    begins: HashMap<Box<str>, u32>,
    /// The parts that words continue with.
    continues: HashMap<Box<str>, u32>,
    /// The most bytes of a part.
    longest: usize,
    first: u32,
    last: u32,
    unknown: u32,
}

impl Tokenizer {
    /// Reads a list of tokens, one on each line.
    pub(super) fn from_list(list: &str) -> Result<Self, ArchiveError> {
        Self::new(list.lines().zip(0..)).ok_or_else(|| invalid(VOCABULARY_FILE))
    }

    /// Reads the vocabulary in the file of Hugging Face's tokenizers.
    pub(super) fn from_json(json: &str) -> Result<Self, ArchiveError> {
        #[derive(Deserialize)]
        struct TokenizerFile {
            model: TokenizerModel,
        }
        #[derive(Deserialize)]
        struct TokenizerModel {
            vocab: HashMap<String, u32>,
        }
        let file: TokenizerFile = serde_json::from_str(json).map_err(|_| invalid(TOKENIZER_FILE))?;
        let tokens = file.model.vocab.iter().map(|(token, id)| (token.as_str(), *id));
        Self::new(tokens).ok_or_else(|| invalid(TOKENIZER_FILE))
    }

    /// None if the vocabulary does not fit the model.
    fn new<'a>(tokens: impl Iterator<Item = (&'a str, u32)>) -> Option<Self> {
        let (mut begins, mut continues) = (HashMap::new(), HashMap::new());
        let mut longest = 0;
        for (token, id) in tokens {
            if usize::try_from(id).ok()? >= VOCABULARY {
                return None;
            }
            let (map, token) = match token.strip_prefix("##") {
                Some(rest) if !rest.is_empty() => (&mut continues, rest),
                _ => (&mut begins, token),
            };
            longest = longest.max(token.len());
            map.insert(Box::from(token), id);
        }
        let special = |name: &str| begins.get(name).copied();
        let (first, last, unknown) = (special("[CLS]")?, special("[SEP]")?, special("[UNK]")?);
        Some(Self { begins, continues, longest, first, last, unknown })
    }

    /// The tokens of a text, between the first and the last one. Never more than [`MAX_TOKENS`].
    pub(super) fn tokens(&self, text: &str) -> Vec<u32> {
        let mut tokens = vec![self.first];
        for word in words(&normal_form(text)) {
            if tokens.len() >= MAX_TOKENS {
                break;
            }
            self.add_word(word, &mut tokens);
        }
        tokens.truncate(MAX_TOKENS - 1);
        tokens.push(self.last);
        tokens
    }

    /// Adds the longest parts of a word, from its begin to its end. One unknown part makes the word unknown.
    fn add_word(&self, word: &str, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        if word.chars().nth(MAX_WORD_CHARS).is_some() {
            tokens.push(self.unknown);
            return;
        }
        let (mut rest, mut parts) = (word, &self.begins);
        while !rest.is_empty() {
            let mut end = rest.floor_char_boundary(self.longest);
            let found = loop {
                if end == 0 {
                    break None;
                }
                if let Some(id) = parts.get(&rest[..end]) {
                    break Some(*id);
                }
                end = rest.floor_char_boundary(end - 1);
            };
            let Some(id) = found else {
                tokens.truncate(before);
                tokens.push(self.unknown);
                return;
            };
            tokens.push(id);
            rest = &rest[end..];
            parts = &self.continues;
        }
    }
}

fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

/// A text in lower case, without accents and control characters. Chinese characters stand alone.
fn normal_form(text: &str) -> String {
    use GeneralCategory::{Control, Format, PrivateUse};
    let is_kept = |c: &char| {
        let is_control = || matches!(category(*c), Control | Format | PrivateUse);
        c.is_whitespace() || (*c != char::REPLACEMENT_CHARACTER && (c.is_ascii_graphic() || !is_control()))
    };
    let spaced = text.chars().filter(is_kept).flat_map(|c| {
        let around = if is_chinese(c) { Some(' ') } else { None };
        let c = if c.is_whitespace() { ' ' } else { c };
        around.into_iter().chain([c]).chain(around)
    });
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize_iter(spaced);
    let is_accent = |c: char| !c.is_ascii() && category(c) == GeneralCategory::NonspacingMark;
    decomposed.filter(|c| !is_accent(*c)).flat_map(char::to_lowercase).collect()
}

/// The words of a normal form. A punctuation mark is a word of its own.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = if is_punctuation(first) {
                first.len_utf8()
            } else {
                rest.find(is_punctuation).unwrap_or(rest.len())
            };
            let (word, after) = rest.split_at(end);
            rest = after;
            Some(word)
        })
    })
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    GeneralCategoryGroup::Punctuation.contains(category(c))
}

/// The ideographs of Chinese, which Japanese and Korean use too.
fn is_chinese(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F | 0x2B740..=0x2B81F
        | 0x2B820..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
mod tests;
