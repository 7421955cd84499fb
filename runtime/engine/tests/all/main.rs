//! The engine, as a user sees it: a flow in, a message started, runs ended and debug nodes filled.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and reads best when its helpers take what they are given"
)]

mod building;
mod catching;
mod chains;
mod crowd;
mod deltas;
mod deploys;
mod doubles;
mod eventlog;
mod flow_tools;
mod journals;
mod kit;
mod limits;
mod memory;
mod metered;
mod moves;
mod promises;
mod queues;
mod recovery;
mod refused;
mod requests;
mod schedules;
mod secrets;
mod several;
mod shelf;
mod simulation;
mod starts;
mod stopping;
mod tools;
mod watch;
mod whole;
