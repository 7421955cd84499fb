//! Agent Core, the strategy `react`.
//!
//! Owns the prompt, the validation of model answers, the state of a run, and its messages on ports 3 and 4.
//! Everything here is a pure function of the facts: no clock, no random number, no I/O.
//!
//! - Agent Core has one open effect at most. The engine awaits it in place.
//! - Its compiled agent has the JSON Schemas of the agent's actions: a union of branches, and one object, or none
//!   if a tool's schema is outside the subset that all providers take.
//! - It drops the reasoning of a provider.

mod action_schema;
mod compile;
mod machine;
mod model_test;
mod plan_check;
mod prompt;
mod run;
mod strategy;
mod validate;

pub use compile::CompiledAgent;
pub use machine::ReactMachine;
pub use model_test::ActionTest;
pub use strategy::React;

/// The version of the machine of new runs, which journals record. What a machine of one version does with
/// given facts never changes.
///
/// Version 2 bounds the work of checking a tool's input, and refuses integers that would change. Version 3 says
/// whether reasoning used up the limit of an answer that was cut off.
pub const MACHINE_VERSION: u32 = 3;
