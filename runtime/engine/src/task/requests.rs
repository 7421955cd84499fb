//! Requests about runs and about the flow: cancel, resolve, suspend, deploy.

use crate::flow::BuiltFlow;
use crate::run::control::{Control, engine_stopped};
use crate::run::resume::ResumeIntent;
use crate::state::EngineState;
use crate::state::completion::{Completion, RecoveryPurpose, Reply};
use redflow_contract::code::StoreCode;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::run::RunRequest;
use redflow_ports::StoreError;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Answers for one run that wait until an earlier one is stored.
const MAX_LATER_ANSWERS: usize = 64;

impl EngineState {
    pub(super) fn handle_request(
        &mut self,
        run: RunId,
        request: RunRequest,
        reply: Reply<Result<(), StoreError>>,
    ) {
        // Two people may answer two questions of a run at once.
        if let RunRequest::Resolve { .. } = request
            && let Some(later) = self.later_answers.get_mut(&run)
            && later.len() < MAX_LATER_ANSWERS
        {
            return later.push((request, reply));
        }
        let (intent, reply) = match (self.live_runs.get_mut(&run), request) {
            (Some(live), RunRequest::Cancel { reason }) => {
                live.cancel(&reason);
                live.cancel_replies.push(reply);
                return;
            }
            (Some(_), RunRequest::Resolve { .. }) => {
                let error =
                    StoreError::new(StoreCode::RunNotWaiting, "the run is at work and waits for nothing");
                let _ = reply.send(Err(error));
                return;
            }
            (None, RunRequest::Cancel { reason }) => (ResumeIntent::Cancel(reason), reply),
            (None, RunRequest::Resolve { call_id, result }) => {
                (ResumeIntent::Resolve(call_id, result), self.hold_later_answers(run.clone(), reply))
            }
        };
        let cascade = self.flow_calls.new_cascade(CancellationToken::new(), None);
        self.spawn_resume(run, NodeId::from(""), intent, &cascade, Some(reply));
    }

    /// Holds further answers for a run back until one is stored. Gives the reply for that one.
    fn hold_later_answers(
        &mut self,
        run: RunId,
        reply: Reply<Result<(), StoreError>>,
    ) -> Reply<Result<(), StoreError>> {
        let (own_reply, answer) = oneshot::channel();
        self.pending += 1;
        self.later_answers.insert(run.clone(), Vec::new());
        self.work.push(Box::pin(async move {
            let answer = answer.await.unwrap_or_else(|_| Err(engine_stopped()));
            Completion::AnswerStored { run, answer, reply }
        }));
        own_reply
    }

    /// Takes the answers that were held back. A run that waits for another one is not live any more.
    pub(super) fn handle_later_answers(&mut self, run: &RunId) {
        for (request, reply) in self.later_answers.remove(run).unwrap_or_default() {
            self.handle_request(run.clone(), request, reply);
        }
    }

    pub(super) fn suspend_live_runs(&self, control: &Control) {
        for live in self.live_runs.values() {
            // A cancel wins: such a run does not continue later.
            live.control.send_if_modified(|current| {
                let is_cancelled = matches!(current, Control::Cancel(_));
                if !is_cancelled {
                    current.clone_from(control);
                }
                !is_cancelled
            });
        }
    }

    pub(super) fn deploy(&mut self, flow: BuiltFlow) {
        // Queued messages hold node indexes of the old flow.
        while let Some(delivery) = self.queue.pop_front() {
            self.deliver(delivery);
        }
        // The agent of a resumed run is known for certain only from the store: see below.
        let is_removed = |agent: &NodeId| !flow.has_agent(agent);
        for live in self.live_runs.values_mut().filter(|live| !live.resumed && is_removed(&live.agent)) {
            live.cancel_orphan();
        }
        self.flow_calls.set_tools(&flow.flow_tools);
        let before = self.flow.replace(Arc::new(flow));
        // To free a large flow takes long.
        tokio::task::spawn_blocking(move || drop(before));
        self.set_timers();
        self.load_unfinished_runs(RecoveryPurpose::CancelRemoved);
    }
}
