//! Drives machines and flow nodes over the ports.
//!
//! Owns the way of a message: through the flow's wires, into runs and out again. Decides nothing an agent
//! decides; that is the machine's. Knows no adapter.

mod build;
mod catch;
mod clock;
mod drive;
mod engine;
mod session;

pub use build::{BuiltAgent, BuiltFlow, build_flow};
pub use clock::SystemClock;
pub use engine::{Engine, EngineLimits, Ports, RunEnd, RunReport, Start};
