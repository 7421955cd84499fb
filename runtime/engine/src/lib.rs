//! Drives agents and flow nodes over the ports. Each engine is one tokio task.
//!
//! The path of a message, file by file:
//!
//! 1. `task::engine` takes a start and hands it to the task; `task::starting` answers callers that wait for it.
//! 2. `route::start` makes the first message. `route::deliver` queues it and gives it to the next node.
//! 3. `route::native` runs an ordinary node. `route::agent` begins a run of an agent.
//! 4. `run::begin` stores the run. `run::drive` feeds the machine and stores each step; `run::effects` calls the
//!    model, the memory and the tools.
//! 5. `task::output` receives what leaves the run. `route::send` puts it on the wires: back to step 2.
//!
//! `run::resume` brings an interrupted run back to step 4; `task::recovery` does that for all runs of the store.
//!
//! Imports point one way: `clock`, `ports`, `report`, `start`, `flow`, `observe`, `cascade`, `origin` ← `run` ←
//! `state` ← `route` ← `task`. `state` holds the data of the task; `route` and `task` add their methods to it.
//!
//! The crate decides nothing that an agent decides (the machine does), and it knows no adapter.

mod cascade;
mod clock;
mod flow;
mod observe;
mod origin;
mod ports;
mod report;
mod route;
mod run;
mod start;
mod state;
mod task;

pub use clock::SystemClock;
pub use flow::BuiltFlow;
pub use flow::agent::BuiltAgent;
pub use flow::build::build_flow;
pub use ports::{EngineLimits, Ports};
pub use report::{RunEnd, RunReport};
pub use start::{Start, StartError, StartOrder, StartOutcome};
pub use task::engine::Engine;
