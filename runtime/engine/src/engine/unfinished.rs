//! Runs that are not over, and that nobody drives: brought back in a recovery, ended when their agent is gone.
//!
//! Owns what is wished of each of them. How one is brought back is `open`'s.

use super::{Done, Loop, Recovered, Reply};
use crate::build::BuiltFlow;
use crate::open::Wish;
use crate::trail::Chain;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::StoreError;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// What runs that are not over are looked for.
pub(super) enum Purpose {
    Recover(CancellationToken, Reply<Recovered>),
    /// Only these.
    Resume(Vec<RunId>, CancellationToken, Reply<Recovered>),
    CancelRemoved,
}

impl Loop {
    pub(super) fn deploy(&mut self, flow: BuiltFlow) {
        // Messages that are under way know the places of the old flow.
        while let Some(delivery) = self.queue.pop_front() {
            self.deliver(delivery);
        }
        // Of a run that was brought back only the store knows whose it is: it is looked at below.
        for live in self.live.values_mut().filter(|live| !live.again && !flow.has_agent(&live.agent)) {
            live.remove();
        }
        self.flow = Some(Arc::new(flow));
        self.set_timers();
        self.look_for_unfinished(Purpose::CancelRemoved);
    }

    pub(super) fn look_for_unfinished(&mut self, purpose: Purpose) {
        self.owed += 1;
        let ports = Arc::clone(&self.ports);
        self.works.push(Box::pin(async move { Done::Unfinished(ports.store.unfinished().await, purpose) }));
    }

    pub(super) fn found_unfinished(&mut self, found: Result<Vec<RunSummary>, StoreError>, purpose: Purpose) {
        let (wanted, cancel, reply) = match purpose {
            Purpose::Recover(cancel, reply) => (None, cancel, Some(reply)),
            Purpose::Resume(runs, cancel, reply) => (Some(runs), cancel, Some(reply)),
            Purpose::CancelRemoved => (None, CancellationToken::new(), None),
        };
        let found = match (found, reply) {
            (Ok(found), reply) => (found, reply),
            (Err(error), Some(reply)) => {
                let _ = reply.send(Err(error));
                return;
            }
            // The next recovery cancels them.
            (Err(_), None) => return,
        };
        let (found, reply) = found;
        let wishes = match wanted {
            Some(runs) => {
                let agents: HashMap<RunId, NodeId> =
                    found.into_iter().map(|run| (run.run_id, run.agent.node_id)).collect();
                // What is not among them is over or unknown, and says so when it is brought back.
                let agent = |run: &RunId| agents.get(run).cloned().unwrap_or_else(|| NodeId::from(""));
                runs.into_iter()
                    .map(|run| (agent(&run), run))
                    .map(|(agent, run)| (run, agent, Wish::GoOn))
                    .collect()
            }
            None => {
                let recovers = reply.is_some();
                found.into_iter().filter_map(|run| self.wish_for(run, recovers)).collect()
            }
        };
        self.bring_back_all(wishes, &cancel, reply);
    }

    /// What is to be done with a run that is not finished, in a recovery or only because the flow has changed.
    fn wish_for(&mut self, run: RunSummary, recovers: bool) -> Option<(RunId, NodeId, Wish)> {
        let RunSummary { run_id, agent, status, source, .. } = run;
        // A data directory may hold runs of other flows: `redflow run` was there, or another file was served.
        if agent.instance != self.ports.instance || source.as_deref() != self.ports.source.as_deref() {
            return None;
        }
        let is_orphan = self.flow.as_ref().is_some_and(|flow| !flow.has_agent(&agent.node_id));
        if let Some(live) = self.live.get_mut(&run_id) {
            if is_orphan {
                live.remove();
            }
            return None;
        }
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        if sending.contains(&run_id) {
            return None;
        }
        let wish = match status {
            _ if is_orphan && status.is_over() => {
                // There is nowhere left to send its result to.
                self.ports.store.delivered(&run_id);
                return None;
            }
            _ if is_orphan => Wish::Remove,
            // It waits for a person, and needs nobody to drive it.
            RunStatus::Waiting => return None,
            _ if recovers => Wish::GoOn,
            _ => return None,
        };
        Some((run_id, agent.node_id, wish))
    }

    /// Brings runs back, each with a start of its own, and reports of all when the last has come to rest.
    fn bring_back_all(
        &mut self,
        runs: Vec<(RunId, NodeId, Wish)>,
        cancel: &CancellationToken,
        reply: Option<Reply<Recovered>>,
    ) {
        let mut answers = Vec::new();
        for (run, agent, wish) in runs {
            let (reports, answer) = oneshot::channel();
            answers.push(answer);
            let chain = Chain::new(&self.ports, self.limits, cancel.clone(), Some(reports));
            self.bring_back(run, agent, wish, &chain, None);
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
