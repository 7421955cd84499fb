//! Whether the memories of a Node-RED's agents can be used.
//!
//! An agent runs on without its memory, so its runs alone do not show that a memory fails. Each memory is checked
//! after a deploy, after a run could not use one, and while it fails.

use super::session::BridgeSession;
use redflow_contract::api::AgentState;
use redflow_contract::bridge::{BridgeMessage, ServiceProblem};
use redflow_contract::code::RunErrorCode;
use redflow_contract::id::{NodeId, NodeSummary};
use redflow_contract::phrase::Sentence;
use redflow_contract::phrases;
use redflow_engine::BuiltAgent;
use redflow_ports::Memory;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The time between two checks of a memory that fails.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// The longest time of a check, whatever time limit the memory has.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct MemoryHealth {
    shared: Arc<Shared>,
    /// One task for each memory. Dropping them ends them.
    checks: Mutex<JoinSet<()>>,
}

struct Shared {
    session: Arc<BridgeSession>,
    /// Each agent that is watched, with the failure of its memory.
    agents: Mutex<BTreeMap<NodeId, Option<ServiceProblem>>>,
    memory_failed: Arc<Notify>,
}

/// A memory and the agents that use it.
struct WatchedMemory {
    node: NodeSummary,
    memory: Arc<dyn Memory>,
    agents: Vec<NodeId>,
}

impl MemoryHealth {
    /// `memory_failed` wakes the checks when a run could not use its memory.
    pub(super) fn new(session: Arc<BridgeSession>, memory_failed: Arc<Notify>) -> Self {
        let shared = Arc::new(Shared { session, agents: Mutex::default(), memory_failed });
        Self { shared, checks: Mutex::default() }
    }

    /// Watches the memories of these agents in place of those before.
    pub(super) fn watch(&self, states: &[AgentState], agents: &HashMap<NodeId, Arc<BuiltAgent>>) {
        let mut memories: BTreeMap<&NodeId, WatchedMemory> = BTreeMap::new();
        for state in states {
            let memory = agents.get(&state.node.id).and_then(|agent| agent.memory());
            if let (Some(node), Some(memory)) = (&state.memory, memory) {
                let watched = memories.entry(&node.id).or_insert_with(|| WatchedMemory {
                    node: node.clone(),
                    memory: Arc::clone(memory),
                    agents: Vec::new(),
                });
                watched.agents.push(state.node.id.clone());
            }
        }
        self.shared.replace_agents(memories.values().flat_map(|memory| &memory.agents));
        let mut checks = JoinSet::new();
        for memory in memories.into_values() {
            checks.spawn(Arc::clone(&self.shared).check_again_and_again(memory));
        }
        *self.checks.lock().unwrap_or_else(PoisonError::into_inner) = checks;
    }

    /// Reports all watched agents to a Node-RED that has just connected: it may have missed a change.
    pub(super) fn report_all(&self) {
        for (agent, problem) in self.shared.lock().iter() {
            self.shared.send(agent, problem.as_ref());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Option<ServiceProblem>>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, agent: &NodeId, problem: Option<&ServiceProblem>) {
        let (node, problem) = (agent.clone(), problem.cloned());
        self.session.set_status(agent, &BridgeMessage::Health { node, problem });
    }

    /// Keeps what is known of agents that are watched on, and reports the others as healthy.
    fn replace_agents<'a>(&self, agents: impl Iterator<Item = &'a NodeId>) {
        let mut known = self.lock();
        let mut before = std::mem::take(&mut *known);
        *known = agents.map(|agent| (agent.clone(), before.remove(agent).flatten())).collect();
        for (agent, _) in before.iter().filter(|(_, problem)| problem.is_some()) {
            self.send(agent, None);
        }
    }

    async fn check_again_and_again(self: Arc<Self>, watched: WatchedMemory) {
        loop {
            // From before the check, so that no failure of a run is missed.
            let memory_failed = self.memory_failed.notified();
            let problem = check(&watched).await.err();
            let is_healthy = problem.is_none();
            self.update(&watched.agents, problem.as_ref());
            if is_healthy {
                memory_failed.await;
            } else {
                sleep(RETRY_DELAY).await;
            }
        }
    }

    fn update(&self, agents: &[NodeId], problem: Option<&ServiceProblem>) {
        let mut known = self.lock();
        for agent in agents {
            if let Some(before) = known.get_mut(agent).filter(|before| before.as_ref() != problem) {
                *before = problem.cloned();
                self.send(agent, problem);
            }
        }
    }
}

async fn check(watched: &WatchedMemory) -> Result<(), ServiceProblem> {
    let NodeSummary { id, name, .. } = &watched.node;
    let label = if name.is_empty() { id.as_str() } else { name };
    let code = RunErrorCode::MemoryError;
    let problem = match timeout(CHECK_TIMEOUT, watched.memory.check()).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(failure)) => reason_of(failure.message),
        Err(_) => phrases::memory_silent(),
    };
    let Sentence { text: message, phrase } = phrases::memory_fails(problem, label);
    Err(ServiceProblem { code, message, phrase })
}

/// Why a memory fails, in the user's language where the catalogues have the sentence.
fn reason_of(message: String) -> Sentence {
    let unreachable = phrases::redis_unreachable();
    if message == unreachable.text { unreachable } else { message.into() }
}

#[cfg(test)]
mod tests {
    use super::reason_of;

    #[test]
    fn the_reason_has_a_phrase_if_the_catalogues_have_it() {
        let key = |message: &str| reason_of(message.to_owned()).phrase.map(|phrase| phrase.key.to_string());
        assert_eq!(key("Redis cannot be reached").as_deref(), Some("redis_unreachable"));
        assert_eq!(key("Redis is out of memory"), None);
    }
}
