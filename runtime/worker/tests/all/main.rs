//! Tests of documents in real processes. They look at the processes in `/proc`.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod confine;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod harm;
mod html;
mod kit;
mod pdf;
mod pdf_file;
mod processes;
mod random_bytes;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod sandbox;
