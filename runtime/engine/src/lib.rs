//! Drives agents and flow nodes over the ports. Each engine is one tokio task.
//!
//! A message: `task::engine` → `route::start` → `route::deliver` → `route::agent` → `run::begin` →
//! `run::drive` ⇄ `run::effects` → `task::output` → `route::send` → `route::deliver` → …
//!
//! - `task::engine` sends commands to the task, whose loop is `task::run_loop`. `task::starting` answers
//!   callers that wait for a start; `task::schedules` starts inject nodes by their timers.
//! - `route::start` makes the first message. `route::deliver` queues it and gives it to the next node:
//!   `route::native` runs an ordinary node, `route::agent` begins a run.
//! - `run::begin` stores a run. `run::drive` feeds its machine and stores each step. `run::effects` calls the
//!   model, the memory and the tools.
//! - `route::tool_wait` lets messages wait until the tools of their agents are known. `task::flow_calls` calls flow tools
//!   outside a run; `state::flow_calls` finds them.
//! - `task::output` receives what leaves a run. `route::send` puts it on the wires.
//! - `run::resume` continues an interrupted run; `task::recovery` does so for all runs of the store.
//!
//! Imports point one way: `run` ← `state` ← `route` ← `task`. The other files and `flow` are below all of
//! them. `state` holds the data of the task; `route` and `task` add their methods to it.
//!
//! The crate decides nothing that an agent decides (the machine does), and it knows no adapter.

mod cascade;
mod clock;
mod flow;
mod invoke;
mod observe;
mod origin;
mod ports;
mod registry;
mod report;
mod route;
mod run;
mod start;
mod state;
mod task;

pub use clock::SystemClock;
pub use flow::agent::BuiltAgent;
pub use flow::build::build_flow;
pub use flow::choose_start::refuse_images;
pub use flow::{BuiltFlow, FlowTool};
pub use invoke::{FlowToolRequest, InvokeError, ToolRequest};
pub use ports::{EngineLimits, Ports};
pub use registry::{Definitions, Registry, RegistrySnapshot, entry_of_manifest_tool, entry_of_operation};
pub use report::{RunEnd, RunReport};
pub use run::computations::{Computation, ComputationKind};
pub use start::{Start, StartError, StartKey, StartOrder, StartOutcome};
pub use task::engine::Engine;
