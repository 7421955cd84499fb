//! Tests of the client against scripted servers: programs that behave as they should, and hostile ones.

#![cfg(unix)]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "a test writes its values where it uses them")]

mod calls;
mod hostile;
mod http;
mod kit;
mod logins;
mod nodes;
mod peer;
mod pins;
mod programs;
mod times;
