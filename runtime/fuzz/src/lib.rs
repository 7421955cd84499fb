//! Fuzzers for everything that reads what strangers send: flows, schemas, model answers, journals, manifests,
//! addresses, messages of MCP servers and clients, metadata of OAuth, frames of the process that reads documents, and the
//! bodies and frames of a real sidecar.
//!
//! Each target changes its seeds at random and looks at the outcome of each input. A panic, a wrong answer or
//! a hang is a finding, and its input is kept in `cases/`. The tests run all kept cases again. The same seed
//! number always gives the same inputs.

mod inputs;
mod run;
mod targets;

pub use run::{Finding, Limits, fuzz, run_case, run_cases};
pub use targets::{Outcome, RunningSidecar, Target, in_process, of_sidecar};
