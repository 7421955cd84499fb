//! The machine of Agent Core. The decisions are in `run`.

use crate::compile::CompiledAgent;
use crate::run::Run;
use redflow_machine::{AgentMachine, FirstFact, StartRun};
use std::sync::Arc;

/// One run of one agent.
pub type ReactMachine = AgentMachine<CompiledAgent>;

impl StartRun for CompiledAgent {
    type Run = Run;

    fn start_run(self: Arc<Self>, first: FirstFact, observed: bool) -> Run {
        Run::start(self, observed, first)
    }
}
