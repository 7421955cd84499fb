//! Drives machines and flow nodes over the ports.
//!
//! Owns the way of a message through the flow's wires, into runs and out again, and the life of a run: its
//! place, its deadline, its end, and its return after a crash. Decides nothing an agent decides; that is the
//! machine's. Knows no adapter.

mod build;
mod catch;
mod chats;
mod clock;
mod drive;
mod effects;
mod engine;
mod forget;
mod host;
mod measure;
mod onlook;
mod open;
mod plan_build;
mod report;
mod schedule;
mod session;
mod slots;
mod start;
mod tool_chain;
mod trail;
mod walk;

pub use build::{BuiltAgent, BuiltFlow, build_flow};
pub use clock::SystemClock;
pub use engine::Engine;
pub use report::{EngineLimits, Ports, RunEnd, RunReport, Start};
pub use start::{StartError, StartOrder, StartOutcome};
