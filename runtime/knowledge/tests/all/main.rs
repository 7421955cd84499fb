//! Knowledge bases over a real archive.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod base;
mod kit;
mod vectors_again;
