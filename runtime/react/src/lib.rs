//! The Agent Core machine (strategy "react"), and the journal of its runs.
//!
//! Owns the prompt, the validation of model answers, the state of a run, its messages on ports 3 and 4, and
//! the journal with its replay. Everything here is a pure function of the facts: no clock, no random number,
//! no I/O.
//!
//! The engine feeds one fact, polls until there are no more effects, does those effects, and feeds their
//! results as facts.

mod action_schema;
mod compile;
mod detail;
mod event_buffer;
mod journal;
mod journal_reader;
mod machine;
mod output;
mod plan_check;
mod prompt;
mod replay;
mod run;
mod status;
mod text;
mod validate;

pub use compile::{CompileError, CompiledAgent, compile_schema};
pub use detail::{is_unfinished, run_detail};
pub use journal::{Classify, JournalWriter, ParentRun, Recorder, Step, StepError};
pub use journal_reader::{Journal, MAX_LINE_BYTES, MAX_LINES, read_journal};
pub use machine::Machine;
pub use output::refused_output;
pub use redflow_contract::replay::{Difference, DifferenceKind, ReplayReport};
pub use replay::{Compile, ResumedRun, replay, replay_events, resume};
pub use run::requests_memory_clear;
pub use status::{FeedError, Status};
pub use validate::{ValidAnswer, validate_answer};

/// The version of the machine, which journals record. What a machine of one version does with given facts
/// never changes.
pub const MACHINE_VERSION: u32 = 1;
