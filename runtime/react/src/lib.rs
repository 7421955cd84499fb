//! The Agent Core machine: strategy "react" and nothing else.
//!
//! Owns the prompt, the validation of model answers, the run's state and what leaves on ports 3 and 4, and
//! the journal of a run with its replay. Everything here is a pure function of the facts it is fed: it reads
//! no clock, makes no random number and does no I/O. A driver feeds one fact, polls until there is no more
//! effect, does those effects, and feeds what came of them as facts.

mod action_schema;
mod compile;
mod detail;
mod journal;
mod machine;
mod observer;
mod output;
mod plan_check;
mod prompt;
mod read;
mod replay;
mod run;
mod validate;
mod wording;

pub use compile::{CompileError, CompiledAgent, compile_schema};
pub use detail::{is_open, run_detail};
pub use journal::{Classify, JournalWriter, ParentRun, Recorder, Step, StepError};
pub use machine::{FeedError, Machine, Status};
pub use output::refused_output;
pub use read::{Journal, MAX_LINE_BYTES, MAX_LINES, read_journal};
pub use redflow_contract::replay::{Difference, DifferenceKind, ReplayReport};
pub use replay::{Compile, ResumedRun, replay, replay_events, resume};
pub use run::requests_memory_clear;
pub use validate::{ValidAnswer, validate_answer};

/// The version of the machine. A journal names the one it was written with; what a machine of one version
/// does with given facts never changes.
pub const MACHINE_VERSION: u32 = 1;
