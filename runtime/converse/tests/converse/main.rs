//! Runs of AI Agents, fact by fact.

mod answers;
mod budgets;
mod calls;
mod endings;
mod golden;
mod kit;
mod memory;
mod output;
mod properties;
