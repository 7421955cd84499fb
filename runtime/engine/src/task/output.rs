//! What leaves a run: model responses, tool calls and streamed text while it works, and its result at the end.

use crate::origin::{Emission, EmissionKind, Origin};
use crate::report::RunEnd;
use crate::run::control::engine_stopped;
use crate::run::exit::RunExit;
use crate::run::outgoing::{ModelResponse, Outgoing, StreamMessage};
use crate::run::resume::AGENT_REMOVED;
use crate::state::{EngineState, LiveRun};
use redflow_contract::effect::Ending;
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run_error::Failure;
use redflow_ports::{FlowStep, StepOutcome, failpoint};
use std::sync::Arc;

impl EngineState {
    pub(super) fn handle_outgoing(&mut self, message: Outgoing) {
        match message {
            Outgoing::Response(response) => self.handle_response(response),
            Outgoing::Call(call) => self.send_call(*call),
            Outgoing::Maintenance(job) => self.add_maintenance(*job),
            Outgoing::Stream(StreamMessage { run, agent, message }) => {
                if let Some(live) = self.live_runs.get(&run) {
                    let origin = Origin::external(Arc::clone(&live.cascade)).of_user(live.user.get());
                    self.send_stream(&agent, message, &origin);
                }
            }
        }
    }

    fn handle_response(&mut self, response: ModelResponse) {
        let ModelResponse { run, agent, effect, message, arrived } = response;
        if let Some(live) = self.live_runs.get(&run) {
            let kind = EmissionKind::Response(arrived);
            let emission = Emission { run, effect, resent: live.resumed, kind };
            let origin = Origin::from_run(Arc::clone(&live.cascade), emission).of_user(live.user.get());
            self.send_model_response(&agent, message, origin);
        }
    }

    pub(super) fn handle_run_exit(
        &mut self,
        run: RunId,
        report: usize,
        agent: Option<NodeSummary>,
        exit: RunExit,
        live: LiveRun,
    ) {
        let agent = agent.unwrap_or_else(|| self.agent_summary(&live.agent));
        let LiveRun { cascade, user, resumed, is_orphan, cancel_replies, .. } = live;
        for reply in cancel_replies {
            let _ = reply.send(match &exit {
                RunExit::Suspended(Some(error)) | RunExit::NotStored(error, _) => Err(error.clone()),
                RunExit::Suspended(None) | RunExit::Waiting(_) => Err(engine_stopped()),
                RunExit::Finished { .. } | RunExit::Duplicate(_) => Ok(()),
            });
        }
        let report_done = |outcome| {
            if cascade.observer.is_watched() {
                cascade.observer.report(FlowStep::Done { node: &agent, outcome });
            }
        };
        let end = match exit {
            RunExit::Finished { ending, message, .. } if is_orphan => {
                if let Ending::Failed { code } = ending {
                    report_done(StepOutcome::Failed(&Failure { code, message: AGENT_REMOVED.to_owned() }));
                }
                self.ports.store.mark_delivered(&run);
                RunEnd::Finished { ending, message }
            }
            RunExit::Finished { effect, ending, message, resent } => {
                failpoint("output.before_delivery");
                let kind = EmissionKind::Result(Arc::clone(&self.results_in_flight));
                let emission = Emission { run, effect, resent: resent || resumed, kind };
                let origin = Origin::from_run(Arc::clone(&cascade), emission).of_user(user.get());
                self.send_result(&agent, ending, &message, origin);
                RunEnd::Finished { ending, message }
            }
            RunExit::Waiting(calls) => {
                report_done(StepOutcome::Waiting);
                RunEnd::Waiting(calls)
            }
            RunExit::Suspended(why) => {
                report_done(StepOutcome::Waiting);
                RunEnd::Suspended { why }
            }
            RunExit::NotStored(error, incoming) => {
                let origin = Origin::external(cascade).of_user(user.get());
                return self.refuse_unstored_run(run, report, agent, (&error, &incoming), &origin);
            }
            RunExit::Duplicate(_) => return,
        };
        cascade.set_run_end(report, agent, end);
    }
}
