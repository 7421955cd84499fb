//! What every kind of agent shares: the traits of its machine, and the journal of its runs.
//!
//! Owns the journal: writing, reading, replay, resume, and the details of a run. Everything here is a pure
//! function of the facts: no clock, no random number, no I/O.
//!
//! The engine feeds one fact, polls until there are no more effects, does those effects, and feeds their
//! results as facts. A strategy decides; see [`Machine`].

mod agent_machine;
mod call_key;
mod detail;
mod event_buffer;
mod image;
mod iteration;
mod journal;
mod journal_reader;
mod machine;
mod open_effects;
pub mod output;
pub mod plan_check;
mod replay;
mod run_record;
mod spending;
mod status;
mod strategy;
pub mod template;
pub mod text;
mod tool_schema;
mod trace;
mod trace_fold;
pub mod violation;

pub use agent_machine::{AgentMachine, FirstFact, StartRun};
pub use detail::{is_unfinished, iteration_detail, recorded_result, run_detail, run_usage};
pub use image::{ImageSource, MessageImages, TakenImage, image_label, take_images};
pub use journal::{Classify, JournalWriter, ParentRun, Recorder, Step, StepError};
pub use journal_reader::{Journal, MAX_LINE_BYTES, MAX_LINES, read_journal};
pub use machine::{Machine, RunCaller};
pub use open_effects::OpenEffect;
pub use output::{refused_output, requests_consolidation, requests_memory_clear};
pub use redflow_contract::replay::{Difference, DifferenceKind, ReplayReport};
pub use replay::{Compile, Replays, ResumedRun, replay, replay_events, resume};
pub use run_record::{CallMeasure, RunEnding, RunRecord};
pub use spending::RefusedCall;
pub use status::{FeedError, Question, Status};
pub use strategy::{Agent, CompileError, Strategies, Strategy};
pub use tool_schema::{ValueSchema, compile_schema, compile_tool_schemas};
pub use trace::run_trace;
pub use trace_fold::{FactOutline, Tracer};
