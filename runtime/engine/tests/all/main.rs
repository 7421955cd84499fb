//! Tests of the engine: a flow goes in, messages start, runs end, debug nodes show values.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and helpers that take owned values read best"
)]

mod budgets;
mod building;
mod cascades;
mod catching;
mod concurrency;
mod crowd;
mod deltas;
mod deploys;
mod doubles;
mod end_to_end;
mod fallback_models;
mod flow_steps;
mod flow_tool_calls;
mod flow_tools;
mod guarantees;
mod images;
mod journals;
mod kit;
mod limits;
mod maintenance;
mod mcp;
mod mcp_double;
mod mcp_waits;
mod measurements;
mod memory;
mod model_requests;
mod presets;
mod queues;
mod recorder;
mod recovery;
mod refusals;
mod registry;
mod replays;
mod requests;
mod result_images;
mod run_events;
mod schedules;
mod secrets;
mod several_effects;
mod simulation;
mod sources;
mod starts;
mod stopping;
mod stream;
mod test_store;
mod tools;
mod usage;
