//! The engine task: takes commands, delivers messages, and handles what runs send and how they end.

mod command;
pub(crate) mod engine;
mod flow_calls;
mod maintenance;
mod output;
mod recovery;
mod requests;
mod run_loop;
mod schedules;
mod starting;
