//! Slots for runs: a limit in all, a limit for each agent, and fair turns for agents that wait.
//!
//! Decides which run works now and which one comes next. An agent with a thousand waiting runs gets no more
//! turns than one with a single run.

use crate::ports::EngineLimits;
use redflow_contract::id::NodeId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The slots of one engine.
#[derive(Clone)]
pub(crate) struct Slots {
    limits: EngineLimits,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    active: usize,
    queued: usize,
    agents: HashMap<NodeId, Agent>,
    /// Agents that wait and may get another slot, in the order of their turns.
    turns: VecDeque<NodeId>,
}

#[derive(Default)]
struct Agent {
    active: usize,
    queued: usize,
    /// Runs that gave up stay in here until their turn; `queued` does not count them.
    queue: VecDeque<oneshot::Sender<Slot>>,
    has_turn: bool,
}

/// Permission to work. Dropping it gives it back.
pub(crate) struct Slot {
    slots: Slots,
    agent: NodeId,
    /// Whether it counts as active. A slot whose receiver had given up does not.
    is_counted: bool,
}

/// A position in the queue for a slot.
pub(crate) struct Ticket {
    slots: Slots,
    agent: NodeId,
    granted: oneshot::Receiver<Slot>,
    open: bool,
}

impl Slots {
    pub(crate) fn new(limits: EngineLimits) -> Self {
        Self { limits, state: Arc::default() }
    }

    /// A ticket for a new run of an agent; none if the queue is full.
    pub(crate) fn ticket(&self, agent: &NodeId) -> Option<Ticket> {
        let state = self.lock();
        let own = state.agents.get(agent);
        let is_free = state.active < self.limits.max_active
            && own.is_none_or(|own| own.queued == 0 && own.active < self.limits.max_active_per_agent);
        let has_room = state.queued < self.limits.max_queued
            && own.is_none_or(|own| own.queued < self.limits.max_queued_per_agent);
        drop(state);
        (is_free || has_room).then(|| self.unlimited_ticket(agent))
    }

    /// A ticket for a run that was accepted before and cannot be refused now.
    pub(crate) fn unlimited_ticket(&self, agent: &NodeId) -> Ticket {
        let (sender, granted) = oneshot::channel();
        let mut state = self.lock();
        state.queued += 1;
        let own = state.agents.entry(agent.clone()).or_default();
        own.queued += 1;
        if own.queue.len() > 2 * own.queued + 16 {
            own.queue.retain(|waiting| !waiting.is_closed());
        }
        own.queue.push_back(sender);
        let has_turn = std::mem::replace(&mut own.has_turn, true);
        if !has_turn {
            state.turns.push_back(agent.clone());
        }
        drop(state);
        self.grant();
        Ticket { slots: self.clone(), agent: agent.clone(), granted, open: true }
    }

    /// Grants the free slots, one to each agent in turn.
    fn grant(&self) {
        let mut state = self.lock();
        while state.active < self.limits.max_active {
            let Some(agent) = state.turns.pop_front() else { break };
            let Some(own) = state.agents.get_mut(&agent) else { continue };
            // An agent at its limit gets its turn back when it returns a slot.
            own.has_turn = false;
            if own.active >= self.limits.max_active_per_agent {
                continue;
            }
            while let Some(waiting) = own.queue.pop_front() {
                let slot = Slot { slots: self.clone(), agent: agent.clone(), is_counted: true };
                match waiting.send(slot) {
                    Ok(()) => {
                        own.active += 1;
                        own.queued = own.queued.saturating_sub(1);
                        state.active += 1;
                        state.queued = state.queued.saturating_sub(1);
                        break;
                    }
                    // The run gave up, so the slot must not be counted back.
                    Err(mut slot) => slot.is_counted = false,
                }
            }
            state.queue_turn(&agent);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No holder of the lock leaves the state half changed, so a poisoned lock is still good.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Gives an agent that waits a turn at the end of the queue. Removes an agent without runs.
    fn queue_turn(&mut self, agent: &NodeId) {
        let Some(own) = self.agents.get_mut(agent) else { return };
        if own.queue.is_empty() {
            if own.active == 0 && own.queued == 0 && !own.has_turn {
                self.agents.remove(agent);
            }
        } else if !own.has_turn {
            own.has_turn = true;
            self.turns.push_back(agent.clone());
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_counted {
            return;
        }
        let mut state = self.slots.lock();
        state.active = state.active.saturating_sub(1);
        if let Some(own) = state.agents.get_mut(&self.agent) {
            own.active = own.active.saturating_sub(1);
        }
        state.queue_turn(&self.agent);
        drop(state);
        self.slots.grant();
    }
}

impl Ticket {
    /// Waits for the slot; none if the engine was dropped.
    pub(crate) async fn wait(&mut self) -> Option<Slot> {
        let slot = (&mut self.granted).await.ok();
        self.open = false;
        slot
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        self.granted.close();
        if self.granted.try_recv().is_ok() {
            // The slot was granted at the last moment; its own drop returns it.
            return;
        }
        let mut state = self.slots.lock();
        state.queued = state.queued.saturating_sub(1);
        if let Some(own) = state.agents.get_mut(&self.agent) {
            own.queued = own.queued.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Slots, Ticket};
    use crate::ports::EngineLimits;

    fn slots(max_active: usize, max_active_per_agent: usize) -> Slots {
        Slots::new(EngineLimits { max_active, max_active_per_agent, ..EngineLimits::default() })
    }

    async fn is_granted(ticket: &mut Ticket) -> bool {
        tokio::select! {
            biased;
            slot = ticket.wait() => { drop(slot); true }
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn a_dropped_ticket_takes_no_turn() {
        let slots = slots(1, 1);
        let mut first = slots.ticket(&"a".into()).unwrap();
        let held = first.wait().await;
        let last = {
            // Far more than may wait at once, but one after the other.
            for _ in 0..100_000 {
                drop(slots.ticket(&"a".into()).unwrap());
            }
            slots.ticket(&"a".into()).unwrap()
        };
        {
            let state = slots.lock();
            assert_eq!((state.active, state.queued), (1, 1));
            let queued = state.agents["a"].queue.len();
            assert!(queued < 100, "{queued}");
        }
        let mut last = last;
        assert!(!is_granted(&mut last).await);
        drop(held);
        assert!(last.wait().await.is_some());
        drop(slots.ticket(&"b".into()));
        let state = slots.lock();
        assert_eq!((state.active, state.queued, state.turns.len()), (0, 0, 0));
        assert!(state.agents.values().all(|agent| agent.active == 0 && agent.queued == 0));
    }

    #[tokio::test]
    async fn a_slot_granted_to_a_dropped_ticket_goes_to_the_next_one() {
        let slots = slots(1, 1);
        let held = slots.ticket(&"a".into()).unwrap().wait().await;
        let (second, mut third) = (slots.ticket(&"a".into()).unwrap(), slots.ticket(&"b".into()).unwrap());
        // The second ticket gets the slot and never takes it.
        drop(held);
        assert!(!is_granted(&mut third).await);
        drop(second);
        assert!(third.wait().await.is_some());
    }

    #[tokio::test]
    async fn an_agent_at_its_limit_does_not_block_others() {
        let slots = slots(3, 1);
        let mut tickets: Vec<Ticket> =
            ["a", "a", "a", "b"].iter().map(|agent| slots.ticket(&(*agent).into()).unwrap()).collect();
        let b = tickets[3].wait().await;
        let a = tickets[0].wait().await;
        assert!(b.is_some() && !is_granted(&mut tickets[1]).await);
        drop(a);
        assert!(tickets[1].wait().await.is_some());
        assert!(tickets[2].wait().await.is_some());
    }
}
