//! Runs of AI Agents, fact by fact.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod budgets;
mod calls;
mod endings;
mod golden;
mod images;
mod iterations;
mod kit;
mod memory;
mod output;
mod plans;
mod properties;
mod result_images;
mod sources;
mod task_properties;
mod task_sizes;
mod tasks;
mod traces;
