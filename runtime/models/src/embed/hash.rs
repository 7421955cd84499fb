//! An embedder without weights and without a network: it counts words and parts of words.
//!
//! Owns which parts of a text count and how much. The same text has the same vector on every machine.

use super::{cut, normalise};
use redflow_ports::{ArchiveError, BoxFuture, EmbedPurpose, Embedded, Embedder, EmbedderInfo};

const DIMENSIONS: usize = 512;
const MAX_BYTES: usize = 64 * 1024;

/// How much a word, a pair of neighbouring words and a part of a word count.
const WORD_WEIGHT: f64 = 1.0;
const PAIR_WEIGHT: f64 = 0.5;
const GRAM_WEIGHT: f64 = 0.2;

/// The lengths of the parts of a word, in letters.
const GRAM_LENGTHS: [usize; 3] = [3, 4, 5];

/// After this many texts, other tasks have their turn.
const TEXTS_PER_TURN: usize = 16;

/// Makes vectors that show which words a text has. It knows nothing about meaning.
#[derive(Debug)]
pub struct HashEmbedder {
    info: EmbedderInfo,
}

impl Default for HashEmbedder {
    fn default() -> Self {
        Self {
            info: EmbedderInfo {
                id: "hash".to_owned(),
                dimensions: DIMENSIONS as u32,
                max_bytes: MAX_BYTES,
                finds_meaning: false,
                is_cached: false,
            },
        }
    }
}

impl Embedder for HashEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        _: EmbedPurpose,
    ) -> BoxFuture<'a, Result<Embedded, ArchiveError>> {
        Box::pin(async move {
            let mut vectors = Vec::with_capacity(texts.len());
            for some in texts.chunks(TEXTS_PER_TURN) {
                vectors.extend(some.iter().map(|text| vector_of(text)));
                tokio::task::yield_now().await;
            }
            Ok(Embedded { vectors, tokens: 0, cost: None })
        })
    }
}

/// What is counted. The kind is hashed too, so that a word and an equal part of a word differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Word,
    Pair,
    Gram,
}

impl Kind {
    fn weight(self) -> f64 {
        match self {
            Self::Word => WORD_WEIGHT,
            Self::Pair => PAIR_WEIGHT,
            Self::Gram => GRAM_WEIGHT,
        }
    }

    /// FNV-1a with 64 bits, and a last step that spreads all bits.
    fn hash(self, parts: &[&str]) -> u64 {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        add(self as u8);
        for part in parts {
            part.bytes().for_each(&mut add);
            add(0);
        }
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^ (hash >> 33)
    }
}

fn vector_of(text: &str) -> Vec<f32> {
    let lower = cut(text, MAX_BYTES).to_lowercase();
    let mut features = Vec::new();
    let mut previous = None;
    let mut starts = Vec::new();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        features.push((Kind::Word, Kind::Word.hash(&[word])));
        if let Some(previous) = previous.replace(word) {
            features.push((Kind::Pair, Kind::Pair.hash(&[previous, word])));
        }
        starts.clear();
        starts.extend(word.char_indices().map(|(start, _)| start).chain([word.len()]));
        for length in GRAM_LENGTHS {
            let grams = starts.iter().zip(starts.iter().skip(length));
            features.extend(grams.map(|(start, end)| (Kind::Gram, Kind::Gram.hash(&[&word[*start..*end]]))));
        }
    }
    // Sums of floats depend on their order.
    features.sort_unstable();
    let mut sums = [0.0_f64; DIMENSIONS];
    for equal in features.chunk_by(|a, b| a == b) {
        let (kind, hash) = equal[0];
        let value = kind.weight() * (1.0 + ln(equal.len()));
        sums[hash as usize % DIMENSIONS] += if hash >> 63 == 0 { value } else { -value };
    }
    let mut vector = sums.map(|sum| sum as f32).to_vec();
    if !normalise(&mut vector) {
        // A text without words has a direction too.
        vector.fill(0.0);
        vector[0] = 1.0;
    }
    vector
}

/// The natural logarithm of a whole number from 1. That of the system may differ in the last digit.
fn ln(number: usize) -> f64 {
    let exponent = number.max(1).ilog2();
    let mantissa = number.max(1) as f64 / (1_u64 << exponent) as f64;
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let series = (0..16).rev().fold(0.0, |sum, i| sum * square + 1.0 / f64::from(2 * i + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * ratio * series
}

#[cfg(test)]
#[path = "hash_tests.rs"]
mod tests;
