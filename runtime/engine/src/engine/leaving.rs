//! What leaves a run: answers of its model while it goes on, and its result when it is over.

use super::{Live, Loop, gone};
use crate::drive::{Exit, ModelResponse, Outgoing};
use crate::open::REMOVED;
use crate::report::RunEnd;
use crate::trail::{Chain, Emission, Emitted, Trail};
use redflow_contract::effect::Ending;
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run_error::Failure;
use redflow_ports::{FlowStep, StepOutcome, failpoint};
use std::sync::Arc;

impl Loop {
    pub(super) fn leave(&mut self, out: Outgoing) {
        match out {
            Outgoing::Response(response) => self.respond(response),
            Outgoing::Call(call) => self.send_call(*call),
        }
    }

    /// What a run that is at work belongs to.
    pub(crate) fn chain_of(&self, run: &RunId) -> Option<Arc<Chain>> {
        self.live.get(run).map(|live| Arc::clone(&live.chain))
    }

    /// Runs that are at work or wait for a place.
    pub(crate) fn open_runs(&self) -> usize {
        self.live.len()
    }

    fn respond(&mut self, response: ModelResponse) {
        let ModelResponse { run, agent, effect, message, arrived } = response;
        if let Some(live) = self.live.get(&run) {
            let what = Emitted::Response(arrived);
            let emission = Emission { run, effect, again: live.again, what };
            let trail = Trail::from_run(Arc::clone(&live.chain), emission);
            self.send_model_response(&agent, message, trail);
        }
    }

    pub(super) fn ended(
        &mut self,
        run: RunId,
        place: usize,
        agent: Option<NodeSummary>,
        exit: Exit,
        live: Live,
    ) {
        let agent = agent.unwrap_or_else(|| self.summary(&live.agent));
        let Live { chain, again, is_orphan, cancelling, .. } = live;
        for reply in cancelling {
            let _ = reply.send(match &exit {
                Exit::Suspended(Some(error)) | Exit::NotBegun(error, _) => Err(error.clone()),
                Exit::Suspended(None) | Exit::Waiting(_) => Err(gone()),
                Exit::Finished { .. } | Exit::Repeated(_) => Ok(()),
            });
        }
        if matches!(exit, Exit::Waiting(_) | Exit::Suspended(_)) && chain.onlooker.looks() {
            chain.onlooker.moved(FlowStep::Done { node: &agent, outcome: StepOutcome::Waiting });
        }
        let end = match exit {
            Exit::Finished { ending, message, .. } if is_orphan => {
                if let (Ending::Failed { code }, true) = (ending, chain.onlooker.looks()) {
                    let failure = Failure { code, message: REMOVED.to_owned() };
                    chain
                        .onlooker
                        .moved(FlowStep::Done { node: &agent, outcome: StepOutcome::Failed(&failure) });
                }
                self.ports.store.delivered(&run);
                RunEnd::Finished { ending, message }
            }
            Exit::Finished { effect, ending, message, again: sent } => {
                failpoint("output.before_delivery");
                let what = Emitted::Result(Arc::clone(&self.sending));
                let emission = Emission { run, effect, again: sent || again, what };
                self.send_result(&agent, ending, &message, Trail::from_run(Arc::clone(&chain), emission));
                RunEnd::Finished { ending, message }
            }
            Exit::Waiting(call) => RunEnd::Waiting(call),
            Exit::Suspended(why) => RunEnd::Suspended { why },
            Exit::NotBegun(error, incoming) => {
                return self.not_begun(run, place, agent, (&error, &incoming), &chain);
            }
            Exit::Repeated(_) => return,
        };
        chain.end(place, agent, end);
    }
}
