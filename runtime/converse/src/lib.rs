//! AI Agent, the strategy `converse`.
//!
//! Owns the conversation with a model that calls tools natively: the groups of tool calls, the check of the final
//! answer, and the message of the result. Everything here is a pure function of the facts: no clock, no random
//! number, no I/O.

mod answer_form;
mod compile;
mod final_answer;
mod group;
mod plan_check;
mod requested_call;
mod run;
mod strategy;
mod summary;
mod task;
mod task_result;
mod text_call;

pub use compile::CompiledAgent;
pub use strategy::Converse;

/// The version of the machine of new runs, which journals record. What a machine of one version does with given
/// facts never changes.
///
/// Version 2 asks an agent for one thing without tools for JSON or text instead of a call, takes a result that is
/// written as text, keeps the list of tools as it is, and says when a cost is unknown.
pub const MACHINE_VERSION: u32 = 2;
