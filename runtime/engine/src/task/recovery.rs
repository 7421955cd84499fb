//! Unfinished runs of the store: a recovery resumes them, and a deploy cancels those without an agent.

use crate::run::resume::ResumeIntent;
use crate::state::EngineState;
use crate::state::completion::{Completion, RecoveryPurpose, RecoveryResult, Reply};
use redflow_contract::code::StoreCode;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::StoreError;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

impl EngineState {
    pub(super) fn load_unfinished_runs(&mut self, purpose: RecoveryPurpose) {
        self.pending += 1;
        let ports = Arc::clone(&self.ports);
        self.work.push(Box::pin(async move {
            Completion::UnfinishedRunsLoaded(ports.store.unfinished_runs().await, purpose)
        }));
    }

    pub(super) fn handle_unfinished_runs(
        &mut self,
        loaded: Result<Vec<RunSummary>, StoreError>,
        purpose: RecoveryPurpose,
    ) {
        let (selected, cancel, reply) = match purpose {
            RecoveryPurpose::Recover(cancel, reply) => (None, cancel, Some(reply)),
            RecoveryPurpose::Resume(runs, cancel, reply) => (Some(runs), cancel, Some(reply)),
            RecoveryPurpose::CancelRemoved => (None, CancellationToken::new(), None),
        };
        let (loaded, reply) = match (loaded, reply) {
            (Ok(loaded), reply) => (loaded, reply),
            (Err(error), Some(reply)) => {
                let _ = reply.send(Err(error));
                return;
            }
            // The next recovery cancels the runs without an agent.
            (Err(_), None) => return,
        };
        let intents = match selected {
            Some(runs) => {
                let agents: HashMap<RunId, NodeId> =
                    loaded.into_iter().map(|run| (run.run_id, run.agent.node_id)).collect();
                // Other runs are over or unknown; their resume returns that error.
                let agent = |run: &RunId| agents.get(run).cloned().unwrap_or_else(|| NodeId::from(""));
                runs.into_iter()
                    .map(|run| (agent(&run), run))
                    .map(|(agent, run)| (run, agent, ResumeIntent::Continue))
                    .collect()
            }
            None => {
                let scope = if reply.is_some() { Scope::AllRuns } else { Scope::RemovedAgents };
                loaded.into_iter().filter_map(|run| self.intent_for(run, scope)).collect()
            }
        };
        self.resume_all(intents, &cancel, reply);
    }

    /// What to do with an unfinished run; none to leave it alone.
    fn intent_for(&mut self, run: RunSummary, scope: Scope) -> Option<(RunId, NodeId, ResumeIntent)> {
        let RunSummary { run_id, agent, status, source, hung, .. } = run;
        // A data directory may hold runs of other flows, for example of `redflow run`.
        if agent.instance != self.ports.instance || source.as_deref() != self.ports.source.as_deref() {
            return None;
        }
        let is_orphan = self.flow.as_ref().is_some_and(|flow| !flow.has_agent(&agent.node_id));
        if let Some(live) = self.live_runs.get_mut(&run_id) {
            if is_orphan {
                live.cancel_orphan();
            }
            return None;
        }
        let in_flight = self.results_in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if in_flight.contains(&run_id) {
            return None;
        }
        let intent = match status {
            _ if is_orphan && status.is_over() => {
                // Its result can no longer be sent anywhere.
                self.ports.store.mark_delivered(&run_id);
                return None;
            }
            // Before the next, because a cancel would replay it as well.
            _ if hung => {
                let (run, code) = (run_id.as_str(), StoreCode::RunHung.as_str());
                if scope == Scope::AllRuns {
                    tracing::error!(
                        run,
                        code,
                        "a run held the process before and is not resumed; resume it by hand or cancel it"
                    );
                }
                return None;
            }
            _ if is_orphan => ResumeIntent::Remove,
            // It waits for a person's answer and needs no driver.
            RunStatus::Waiting => return None,
            _ if scope == Scope::AllRuns => ResumeIntent::Continue,
            _ => return None,
        };
        Some((run_id, agent.node_id, intent))
    }

    /// Resumes runs, each in a cascade of its own, and replies when all cascades have ended.
    fn resume_all(
        &mut self,
        runs: Vec<(RunId, NodeId, ResumeIntent)>,
        cancel: &CancellationToken,
        reply: Option<Reply<RecoveryResult>>,
    ) {
        let mut answers = Vec::new();
        for (run, agent, intent) in runs {
            let (reports, answer) = oneshot::channel();
            answers.push(answer);
            let cascade = self.flow_calls.new_cascade(cancel.clone(), Some(reports));
            self.spawn_resume(run, agent, intent, &cascade, None);
        }
        let Some(reply) = reply else { return };
        tokio::spawn(async move {
            let mut all = Vec::new();
            for answer in answers {
                all.extend(answer.await.unwrap_or_default());
            }
            let _ = reply.send(Ok(all));
        });
    }
}

/// Which unfinished runs are resumed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    AllRuns,
    /// Only runs of removed agents, to cancel them.
    RemovedAgents,
}
