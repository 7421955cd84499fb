//! Embedders: they make vectors of texts, over HTTP or on this machine.
//!
//! Owns which embedders there are and what each may read. The HTTP ones use the transport, the rules of retries
//! and the price table of the chat models.

mod choice;
mod hash;
mod http;
mod minilm;
mod source;
mod wire;

pub use choice::{EmbedderSettings, build_embedder};
pub use hash::HashEmbedder;
pub use minilm::{MINILM_DIR, Minilm, install_minilm, is_minilm_installed};
pub use source::{EmbedderFactory, embedder_sources};

use redflow_contract::code::ArchiveCode;
use redflow_ports::ArchiveError;

/// An error of an embedder.
fn failed(message: impl Into<String>) -> ArchiveError {
    ArchiveError::new(ArchiveCode::EmbeddingsFailed, message)
}

/// The beginning of a text with at most this many bytes.
fn cut(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// Gives a vector the length 1. False if that is not possible, because it has no direction.
fn normalise(vector: &mut [f32]) -> bool {
    let square: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    let length = square.sqrt();
    if !length.is_finite() || length <= 0.0 {
        return false;
    }
    for x in vector {
        *x = (f64::from(*x) / length) as f32;
    }
    true
}
