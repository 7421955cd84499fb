//! The wire formats of embeddings: OpenAI's, which Azure and many servers share, and Ollama's.
//!
//! Owns the bodies of requests, and what an answer may hold. Pure: sees no socket and no key.

use super::normalise;
use crate::lenient::{parse_object, parse_provider_error};
use crate::openai::{token_count, valid_or_none};
use crate::wire::WireError;
use redflow_contract::archive::MAX_DIMENSIONS;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// The most texts of a request.
pub(super) const MAX_TEXTS: usize = 96;

/// The most bytes of an answer: a number of a vector has up to 32, with its spaces, and the rest is short.
pub(super) const fn max_answer_bytes(texts: usize) -> usize {
    64 * 1024 + texts * (MAX_DIMENSIONS * 32 + 256)
}

/// One of the wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmbedWire {
    /// OpenAI's `/embeddings`.
    Openai,
    /// Ollama's `/api/embed`.
    Ollama,
}

/// The vectors of an answer, in the order of the texts.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) vectors: Vec<Vec<f32>>,
    /// None if the provider counts none.
    pub(super) tokens: Option<u64>,
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    input: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding_format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
}

impl EmbedWire {
    /// The body of a request.
    pub(super) fn encode(
        self,
        model: Option<&str>,
        texts: &[&str],
        dimensions: Option<u32>,
    ) -> serde_json::Result<Vec<u8>> {
        let encoding_format = (self == Self::Openai).then_some("float");
        serde_json::to_vec(&Body { model, input: texts, encoding_format, dimensions })
    }

    /// Reads the answer for this many texts. The vectors have the length 1.
    pub(super) fn decode(
        self,
        body: &[u8],
        texts: usize,
        dimensions: Option<u32>,
    ) -> Result<Answer, WireError> {
        let (mut vectors, tokens) = match self {
            Self::Openai => {
                let answer: OpenaiAnswer = parse_object(body)?;
                check_not_error(answer.error.is_some() && answer.data.0.is_empty(), body)?;
                let usage = answer.usage.unwrap_or_default();
                (in_order(answer.data.0, texts)?, usage.prompt_tokens.or(usage.total_tokens))
            }
            Self::Ollama => {
                let answer: OllamaAnswer = parse_object(body)?;
                check_not_error(answer.error.is_some() && answer.embeddings.0.is_empty(), body)?;
                check_count(answer.embeddings.0.len(), texts)?;
                let vectors = answer.embeddings.0.into_iter().map(|vector| vector.0).collect();
                (vectors, answer.prompt_eval_count)
            }
        };
        check_vectors(&mut vectors, dimensions)?;
        Ok(Answer { vectors, tokens })
    }
}

#[derive(Deserialize)]
struct OpenaiAnswer {
    #[serde(default)]
    data: List<Item, { MAX_TEXTS + 1 }>,
    #[serde(default, deserialize_with = "valid_or_none")]
    usage: Option<EmbedUsage>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    index: Option<u64>,
    embedding: Vector,
}

#[derive(Default, Deserialize)]
struct EmbedUsage {
    #[serde(default, deserialize_with = "token_count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count")]
    total_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OllamaAnswer {
    #[serde(default)]
    embeddings: List<Vector, { MAX_TEXTS + 1 }>,
    #[serde(default, deserialize_with = "token_count")]
    prompt_eval_count: Option<u64>,
    error: Option<IgnoredAny>,
}

/// A list of which at most `N` elements are kept.
struct List<T, const N: usize>(Vec<T>);

type Vector = List<f32, { MAX_DIMENSIONS + 1 }>;

impl<T, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for List<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for ListVisitor<T, N> {
    type Value = List<T, N>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while list.len() < N {
            let Some(element) = elements.next_element()? else { return Ok(List(list)) };
            list.push(element);
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(List(list))
    }
}

/// Some servers report an error with a status of success.
fn check_not_error(is_error: bool, body: &[u8]) -> Result<(), WireError> {
    if is_error { Err(WireError::Provider(parse_provider_error(500, body))) } else { Ok(()) }
}

fn check_count(vectors: usize, texts: usize) -> Result<(), WireError> {
    if vectors == texts { Ok(()) } else { Err(WireError::Malformed("it has not one vector for each text")) }
}

/// The vectors in the order of the texts. Some servers number none of them.
fn in_order(items: Vec<Item>, texts: usize) -> Result<Vec<Vec<f32>>, WireError> {
    check_count(items.len(), texts)?;
    if items.iter().all(|item| item.index.is_none()) {
        return Ok(items.into_iter().map(|item| item.embedding.0).collect());
    }
    let mut vectors = vec![None; texts];
    for item in items {
        let place = item.index.and_then(|index| vectors.get_mut(usize::try_from(index).ok()?));
        match place {
            Some(place @ None) => *place = Some(item.embedding.0),
            _ => return Err(WireError::Malformed("its vectors are not numbered as the texts are")),
        }
    }
    Ok(vectors.into_iter().flatten().collect())
}

fn check_vectors(vectors: &mut [Vec<f32>], dimensions: Option<u32>) -> Result<(), WireError> {
    let length = vectors.first().map_or(0, Vec::len);
    if vectors.iter().any(|vector| vector.len() != length) {
        return Err(WireError::Malformed("its vectors have different numbers of dimensions"));
    }
    if length > MAX_DIMENSIONS {
        return Err(WireError::Malformed("its vectors have more than 4096 dimensions"));
    }
    if dimensions.is_some_and(|wanted| usize::try_from(wanted) != Ok(length)) {
        return Err(WireError::Malformed("its vectors have another number of dimensions than `dimensions`"));
    }
    for vector in vectors {
        if !vector.iter().all(|number| number.is_finite()) || !normalise(vector) {
            return Err(WireError::Malformed("a vector has only zeros, or a number that is too large"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
