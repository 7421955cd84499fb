//! The transformer of all-MiniLM-L6-v2: makes a vector of the tokens of a text.
//!
//! Owns the shape of the model and the names of its weights.

use super::matrix::{Panels, gelu, layer_norm, softmax};
use super::tokenizer::VOCABULARY;
use super::weights::Weights;
use crate::embed::normalise;
use fearless_simd::Level;
use redflow_ports::ArchiveError;
use std::io::{Read, Seek};

/// The length of the vectors.
pub(super) const DIMENSIONS: usize = 384;
const LAYERS: usize = 6;
const HEADS: usize = 12;
const HEAD_SIZE: usize = DIMENSIONS / HEADS;
const INNER: usize = 1_536;

/// Texts are computed together until they have this many tokens.
const TOKENS_AT_ONCE: usize = 256;

/// The name of a product with a matrix, and how many numbers it makes of how many.
type LinearName = (&'static str, usize, usize);

const QUERY: LinearName = ("attention.self.query", DIMENSIONS, DIMENSIONS);
const KEY: LinearName = ("attention.self.key", DIMENSIONS, DIMENSIONS);
const VALUE: LinearName = ("attention.self.value", DIMENSIONS, DIMENSIONS);
const OUTPUT: LinearName = ("attention.output.dense", DIMENSIONS, DIMENSIONS);
const UP: LinearName = ("intermediate.dense", INNER, DIMENSIONS);
const DOWN: LinearName = ("output.dense", DIMENSIONS, INNER);
const ATTENTION_NORM: &str = "attention.output.LayerNorm";
const OUTPUT_NORM: &str = "output.LayerNorm";
const EMBEDDING_NORM: &str = "embeddings.LayerNorm";

/// The tables that tokens, their positions and the texts of a pair are looked up in.
const TOKENS: (&str, [usize; 2]) = ("embeddings.word_embeddings.weight", [VOCABULARY, DIMENSIONS]);
const POSITIONS: (&str, [usize; 2]) = ("embeddings.position_embeddings.weight", [512, DIMENSIONS]);
const TEXTS: (&str, [usize; 2]) = ("embeddings.token_type_embeddings.weight", [2, DIMENSIONS]);

/// The weights of the model, as they are used.
pub(super) struct Encoder {
    level: Level,
    tokens: Vec<f32>,
    positions: Vec<f32>,
    /// Of the first of two texts. There is no second one.
    text: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Makes queries, keys and values, side by side.
    attention: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    norm: Norm,
}

/// A product with a matrix, and a sum.
struct Linear {
    weight: Panels,
    bias: Vec<f32>,
}

struct Norm {
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Encoder {
    /// Checks that a file has all weights of this model.
    pub(super) fn check<R: Read + Seek>(weights: &Weights<R>) -> Result<(), ArchiveError> {
        for (name, shape) in [TOKENS, POSITIONS, TEXTS] {
            weights.check(name, &shape)?;
        }
        let mut norms = vec![EMBEDDING_NORM.to_owned()];
        for layer in 0..LAYERS {
            for (name, outputs, inputs) in [QUERY, KEY, VALUE, OUTPUT, UP, DOWN] {
                let name = layer_part(layer, name);
                weights.check(&format!("{name}.weight"), &[outputs, inputs])?;
                weights.check(&format!("{name}.bias"), &[outputs])?;
            }
            norms.extend([ATTENTION_NORM, OUTPUT_NORM].map(|name| layer_part(layer, name)));
        }
        for name in norms {
            weights.check(&format!("{name}.weight"), &[DIMENSIONS])?;
            weights.check(&format!("{name}.bias"), &[DIMENSIONS])?;
        }
        Ok(())
    }

    /// Reads the weights.
    pub(super) fn load<R: Read + Seek>(weights: &mut Weights<R>) -> Result<Self, ArchiveError> {
        let tables = [TOKENS, POSITIONS, TEXTS].map(|(name, shape)| weights.read(name, &shape));
        let [tokens, positions, text] = tables;
        let (tokens, positions, mut text) = (tokens?, positions?, text?);
        text.truncate(DIMENSIONS);
        let norm = Norm::load(weights, EMBEDDING_NORM)?;
        let layers = (0..LAYERS).map(|layer| Layer::load(weights, layer)).collect::<Result<_, _>>()?;
        Ok(Self { level: Level::new(), tokens, positions, text, norm, layers })
    }

    /// The vectors of texts, of which the tokens are given. None if a vector has no direction.
    pub(super) fn vectors(&self, texts: &[Vec<u32>]) -> Option<Vec<Vec<f32>>> {
        let (mut vectors, mut rest) = (Vec::with_capacity(texts.len()), texts);
        while !rest.is_empty() {
            let mut count = 0;
            let is_enough = |text: &Vec<u32>| {
                count += text.len();
                count >= TOKENS_AT_ONCE
            };
            let end = rest.iter().position(is_enough).map_or(rest.len(), |last| last + 1);
            let (some, others) = rest.split_at(end);
            rest = others;
            let states = self.states(some);
            let mut states = states.chunks_exact(DIMENSIONS);
            for text in some {
                // The mean of the tokens. Its length does not matter.
                let mut vector = vec![0.0; DIMENSIONS];
                states.by_ref().take(text.len()).for_each(|state| add(&mut vector, state));
                vectors.push(normalise(&mut vector).then_some(vector)?);
            }
        }
        Some(vectors)
    }

    /// The states of all tokens of some texts after the last layer.
    fn states(&self, texts: &[Vec<u32>]) -> Vec<f32> {
        let count: usize = texts.iter().map(Vec::len).sum();
        let mut states = Vec::with_capacity(count * DIMENSIONS);
        for text in texts {
            for (token, position) in text.iter().zip(self.positions.chunks_exact(DIMENSIONS)) {
                let begin = *token as usize * DIMENSIONS;
                let token = &self.tokens[begin..begin + DIMENSIONS];
                let parts = token.iter().zip(position).zip(&self.text);
                states.extend(parts.map(|((token, position), text)| token + position + text));
            }
        }
        self.norm.apply(self.level, &mut states);
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        for layer in &self.layers {
            layer.apply(self.level, &mut states, &lengths);
        }
        states
    }
}

impl Layer {
    fn load<R: Read + Seek>(weights: &mut Weights<R>, layer: usize) -> Result<Self, ArchiveError> {
        Ok(Self {
            attention: Linear::load(weights, layer, &[QUERY, KEY, VALUE])?,
            attention_output: Linear::load(weights, layer, &[OUTPUT])?,
            attention_norm: Norm::load(weights, &layer_part(layer, ATTENTION_NORM))?,
            up: Linear::load(weights, layer, &[UP])?,
            down: Linear::load(weights, layer, &[DOWN])?,
            norm: Norm::load(weights, &layer_part(layer, OUTPUT_NORM))?,
        })
    }

    fn apply(&self, level: Level, states: &mut [f32], lengths: &[usize]) {
        let seen = self.attention.apply(level, states);
        let mut found = Vec::with_capacity(states.len());
        let mut rest = &*seen;
        for length in lengths {
            let (text, others) = rest.split_at(length * 3 * DIMENSIONS);
            rest = others;
            attend(level, text, *length, &mut found);
        }
        add(states, &self.attention_output.apply(level, &found));
        self.attention_norm.apply(level, states);
        let mut inner = self.up.apply(level, states);
        gelu(level, &mut inner);
        add(states, &self.down.apply(level, &inner));
        self.norm.apply(level, states);
    }
}

/// Adds what each token of a text finds among its tokens. Each token has a query, a key and a value.
fn attend(level: Level, text: &[f32], length: usize, found: &mut Vec<f32>) {
    let begin = found.len();
    found.resize(begin + length * DIMENSIONS, 0.0);
    let number = |token: usize, kind: usize, place: usize| {
        if token < length { text[(token * 3 + kind) * DIMENSIONS + place] } else { 0.0 }
    };
    let mut queries = Vec::with_capacity(length * HEAD_SIZE);
    for first in (0..DIMENSIONS).step_by(HEAD_SIZE) {
        queries.clear();
        for token in text.chunks_exact(3 * DIMENSIONS) {
            queries.extend_from_slice(&token[first..first + HEAD_SIZE]);
        }
        let keys = Panels::new(HEAD_SIZE, length, |place, token| number(token, 1, first + place));
        let width = keys.columns();
        let mut shares = vec![0.0; length * width];
        keys.add_product(level, &queries, &mut shares);
        softmax(level, &mut shares, width, length, (HEAD_SIZE as f32).sqrt().recip());
        let values = Panels::new(width, HEAD_SIZE, |token, place| number(token, 2, first + place));
        let mut results = vec![0.0; length * HEAD_SIZE];
        values.add_product(level, &shares, &mut results);
        let places = found[begin..].chunks_exact_mut(DIMENSIONS);
        for (place, result) in places.zip(results.chunks_exact(HEAD_SIZE)) {
            place[first..first + HEAD_SIZE].copy_from_slice(result);
        }
    }
}

impl Linear {
    /// Reads some products of a layer with the same input, as one.
    fn load<R: Read + Seek>(
        weights: &mut Weights<R>,
        layer: usize,
        names: &[LinearName],
    ) -> Result<Self, ArchiveError> {
        let (mut weight, mut bias, mut width) = (Vec::new(), Vec::new(), 0);
        for (name, outputs, inputs) in names {
            let name = layer_part(layer, name);
            weight.extend(weights.read(&format!("{name}.weight"), &[*outputs, *inputs])?);
            bias.extend(weights.read(&format!("{name}.bias"), &[*outputs])?);
            width = *inputs;
        }
        let weight = Panels::new(width, bias.len(), |input, output| weight[output * width + input]);
        Ok(Self { weight, bias })
    }

    fn apply(&self, level: Level, rows: &[f32]) -> Vec<f32> {
        let mut result = self.bias.repeat(rows.len() / self.weight.rows());
        self.weight.add_product(level, rows, &mut result);
        result
    }
}

impl Norm {
    fn load<R: Read + Seek>(weights: &mut Weights<R>, name: &str) -> Result<Self, ArchiveError> {
        let scale = weights.read(&format!("{name}.weight"), &[DIMENSIONS])?;
        Ok(Self { scale, shift: weights.read(&format!("{name}.bias"), &[DIMENSIONS])? })
    }

    fn apply(&self, level: Level, rows: &mut [f32]) {
        layer_norm(level, rows, &self.scale, &self.shift);
    }
}

fn layer_part(layer: usize, name: &str) -> String {
    format!("encoder.layer.{layer}.{name}")
}

fn add(sums: &mut [f32], numbers: &[f32]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum += number;
    }
}
