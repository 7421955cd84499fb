//! The memories as the engine uses them, with a paused clock and a real Redis.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod kit;
mod process_memory;
mod redis_concurrency;
mod redis_failures;
mod redis_fake;
mod redis_legacy_format;
mod redis_server;
mod redis_storage;
mod redis_tls;
mod redis_users;
mod summary_memory;
mod tags_and_limits;
