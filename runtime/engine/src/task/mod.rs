//! The engine task: takes commands, delivers messages, drives runs, and handles what they send and how they end.

mod command;
pub(crate) mod engine;
mod output;
mod recovery;
mod requests;
mod run_loop;
mod schedules;
mod starting;
