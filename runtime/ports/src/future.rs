//! The future type that the traits of this crate return.

use std::pin::Pin;

/// A future behind a trait object, so that the traits can be used as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
