//! What every kind of agent shares: the traits of its machine, and the journal of its runs.
//!
//! Owns the journal: writing, reading, replay, resume, and the details of a run. Everything here is a pure
//! function of the facts: no clock, no random number, no I/O.
//!
//! The engine feeds one fact, polls until there are no more effects, does those effects, and feeds their
//! results as facts. A strategy decides; see [`Machine`].
//!
//! # How a run is recorded
//!
//! A journal is JSON lines. Each line holds the digest of the bytes before it: the header, the plan, then each
//! fact with the digests of the effects it caused, and last the digest of the message that left the result port.
//! The digest of a model call uses the running hash of the transcript, so the twentieth step costs as much as the
//! first. A line must equal its own re-serialisation. So a journal can be written in only one way, and any changed
//! byte shows.
//!
//! Resolved environment values enter the first fact of the run with the whole `AgentSpec`; the plan keeps
//! `${NAME}`. Values of secret properties are replaced before they reach a plan.
//!
//! - The header names the strategy and the version of its machine. Without a name the strategy is `react`, Agent
//!   Core's. What a machine of one version does with given facts never changes.
//! - A machine may have several open effects. Each fact names the effect it answers, and facts may come in any
//!   order. Facts that are ready together are one batch.
//! - The line of an effect may carry a `class`. The machine does not know it, and journals without it replay.
//! - The result of a run stays in its parts (`contract::flow_message`) until a node reads it whole. Its digest,
//!   its answer to a caller and a debug node that shows the payload need no object of all its properties.
//! - A journal that ends before its run does is a difference: equality of an unfinished run cannot be proved.
//! - Replay refuses a journal with more than [`MAX_LINES`] lines.
//!
//! # How a run counts what it uses
//!
//! `spending` counts calls, tokens and cost in the machine, because the events of a run, its full output and its
//! replay need the same numbers. The engine only compares the tally with the budget. At a limit it feeds
//! `budget_reached` instead of making the call. The machine lets open calls return and then ends. A call that is
//! repeated after a crash counts once, because the tally comes from the journal.
//!
//! If a fallback model has answered, the machine remembers it: the next call of the run starts with that model
//! (`firstModel`), also after a crash.

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
pub use journal_reader::{Journal, MAX_LINE_BYTES, MAX_LINES, read_journal, read_line};
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
