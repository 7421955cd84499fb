//! Drives agents and flow nodes over the ports. Each engine is one tokio task.
//!
//! A message: `task::engine` → `route::start` → `route::deliver` → `route::agent` → `run::begin` →
//! `run::drive` ⇄ `run::effects` → `task::output` → `route::send` → `route::deliver` → …
//!
//! - `task::engine` sends commands to the task, whose loop is `task::run_loop`. `task::starting` answers
//!   callers that wait for a start; `task::schedules` starts inject nodes by their timers.
//! - `route::start` makes the first message. `route::deliver` queues it and gives it to the next node:
//!   `route::native` runs an ordinary node, `route::agent` begins a run.
//! - `run::begin` stores a run. `run::drive` feeds its machine and stores each step. `run::effects` calls the
//!   model, the memory and the tools.
//! - `route::tool_wait` lets messages wait until the tools of their agents are known. `task::flow_calls` calls flow tools
//!   outside a run; `state::flow_calls` finds them.
//! - `task::output` receives what leaves a run. `route::send` puts it on the wires.
//! - `run::resume` continues an interrupted run; `task::recovery` does so for all runs of the store.
//!
//! Imports point one way: `run` ← `state` ← `route` ← `task`. The other files and `flow` are below all of
//! them. `state` holds the data of the task; `route` and `task` add their methods to it.
//!
//! The crate decides nothing that an agent decides (the machine does), and it knows no adapter.
//!
//! # How a run survives
//!
//! The engine is one task. A working run is a future in it. A waiting or interrupted run is not in memory at all.
//! To continue it, the engine loads its journal, folds it through the real machine and compares every digest. Then
//! it looks at the open effects. Every open `at_most_once` call becomes a fact: its outcome, if the tool knows it
//! (`Tool::recover_outcome`), or `tool_outcome_unknown`. When these facts are stored, model calls and repeatable
//! calls are made again, all at once. The journal line of a call holds its class, so a later version that judges
//! differently cannot repeat it. Answers and cancels for such runs take the same path: load, one fact, on the
//! disk.
//!
//! What a step leads to decides how safely it is kept (`run::stage`). The start, a dangerous or keyed call, its
//! result, a message that leaves, and the end are synced first. A model's answer and the result of a `read` call
//! are written at once but not waited for. Events appear when their step is handed to the store, so a screen may
//! be one flush ahead of the disk.
//!
//! A message that leaves a run carries its origin. A run that it begins has that origin as its unique cause, so a
//! result that is sent again after a crash begins nothing twice. When the message and everything it led to have
//! arrived, the result counts as delivered. If a part could not be delivered, or the flow is missing, the result
//! stays undelivered. There is no table of outgoing messages: the result is folded from the journal again.
//!
//! - A resumed run uses the services of its recorded plan, not of today's flow. Only secrets, which plans do not
//!   hold, come from the flow.
//! - A data directory has one driver, the holder of an OS lock. Other processes read next to it. They leave
//!   cancels and answers in a table that the driver reads four times a second.
//! - `redflow run` resumes nothing by itself, because an interrupted run may belong to another flow. `--resume
//!   all` does.
//! - A sidecar recovers and cancels only runs that began with its own flow file.
//! - A run whose journal cannot be written is suspended, not failed: nothing leaves the result port that the
//!   journal does not know.
//! - Debug output of a result that is sent again after a crash is shown again.
//!
//! # How a tool is called
//!
//! An agent's tools are nodes of their own, or come from a provider: a `registry-tool`, a Node-RED node with
//! operations, or an `mcp-client`. The checker knows only the providers. As a run begins, `registry::bindings`
//! asks them, and the explicit list of tools goes into the first fact. The agent is compiled once per generation
//! of the registry. A run keeps its generation: its futures hold the tools.
//!
//! Before a call, `run::admit` asks the policy and the limits. A refusal is the fact of a failed result with a
//! `code`, so a replay needs no policy. `run::call_tool` sets the deadline, repeats what may be repeated and
//! checks the output's schema. `invoke` does the same for calls outside a run. A resumed run looks its tools up by
//! id and compares the digest of the definition: a missing or changed tool fails its calls.
//!
//! The registry is one snapshot behind a lock. Each change of the manifest, of a registration or of a package
//! makes a new one. A manifest with problems changes nothing, because the policy is in it. A sidecar does not
//! start with such a manifest for the same reason.
//!
//! A flow tool gets its call as a message with `_agentCore` and a new `_msgid`. A message with either is the
//! result. The engine knows at build time which nodes only such calls reach: any other message from them is
//! dropped and reported. It counts the messages of a call. When none is left and none returned, the call has
//! ended.
//!
//! The principal of a run is in its first fact. A cascade carries it from run to run, also after a crash.
//!
//! # How a memory works after a run
//!
//! The first fact of a run says whose message it is, when it was made, and its tags (`run::input_details`). The
//! effects `recall_memory` and `append_memory` carry these values without being digested: they follow from the
//! fact.
//!
//! When a turn is added, the run sends its memory to the engine task, and does not wait. The task lets two
//! memories work at a time (`task::maintenance`): after a turn, when a conversation is idle, at the times of a crontab,
//! and when a message asks. What is not done when the process stops is done later: only the memory knows which
//! turns it has not worked on. So nothing about it is stored here.

mod cascade;
mod clock;
mod flow;
mod invoke;
mod observe;
mod origin;
mod ports;
mod registry;
mod report;
mod route;
mod run;
mod start;
mod state;
mod task;

pub use clock::SystemClock;
pub use flow::agent::BuiltAgent;
pub use flow::build::build_flow;
pub use flow::choose_start::refuse_images;
pub use flow::{BuiltFlow, FlowTool};
pub use invoke::{FlowToolRequest, InvokeError, ToolRequest};
pub use ports::{EngineLimits, Ports};
pub use registry::{Definitions, Registry, RegistrySnapshot, entry_of_manifest_tool, entry_of_operation};
pub use report::{RunEnd, RunReport};
pub use run::computations::{Computation, ComputationKind};
pub use start::{Start, StartError, StartKey, StartOrder, StartOutcome};
pub use task::engine::Engine;
