//! Places for runs: so many at once, so many of one agent, and a fair turn for each agent that waits.
//!
//! Owns who may work now and who comes next. An agent with a thousand waiting runs gets no more turns than
//! one with a single run.

use crate::report::EngineLimits;
use redflow_contract::id::NodeId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// All places.
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
    /// Agents that wait and may have another place, in the order of their turns.
    turns: VecDeque<NodeId>,
}

#[derive(Default)]
struct Agent {
    active: usize,
    queued: usize,
    /// Those that gave up are still in here until their turn comes; `queued` does not count them.
    queue: VecDeque<oneshot::Sender<Slot>>,
    has_turn: bool,
}

/// A place; whoever drops it gives it back.
pub(crate) struct Slot {
    slots: Slots,
    agent: NodeId,
    /// Whether it was ever given to anyone.
    given: bool,
}

/// A place in the queue for a place.
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

    /// A ticket for a run of an agent; none if too many wait already.
    pub(crate) fn ticket(&self, agent: &NodeId) -> Option<Ticket> {
        let state = self.lock();
        let own = state.agents.get(agent);
        let at_once = state.active < self.limits.max_active
            && own.is_none_or(|own| own.queued == 0 && own.active < self.limits.max_active_per_agent);
        let room = state.queued < self.limits.max_queued
            && own.is_none_or(|own| own.queued < self.limits.max_queued_per_agent);
        drop(state);
        (at_once || room).then(|| self.ticket_in_any_case(agent))
    }

    /// A ticket for a run that has begun already and cannot be refused any more.
    pub(crate) fn ticket_in_any_case(&self, agent: &NodeId) -> Ticket {
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

    /// Gives away what is free, one to each agent in turn.
    fn grant(&self) {
        let mut state = self.lock();
        while state.active < self.limits.max_active {
            let Some(agent) = state.turns.pop_front() else { break };
            let Some(own) = state.agents.get_mut(&agent) else { continue };
            // One that has all it may have gets its turn back when it gives a place back.
            own.has_turn = false;
            if own.active >= self.limits.max_active_per_agent {
                continue;
            }
            while let Some(waiting) = own.queue.pop_front() {
                let slot = Slot { slots: self.clone(), agent: agent.clone(), given: true };
                match waiting.send(slot) {
                    Ok(()) => {
                        own.active += 1;
                        own.queued = own.queued.saturating_sub(1);
                        state.active += 1;
                        state.queued = state.queued.saturating_sub(1);
                        break;
                    }
                    // It gave up, so there is nothing to give back.
                    Err(mut slot) => slot.given = false,
                }
            }
            state.pass_turn(&agent);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here can fail half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Puts an agent at the end of the turns if it waits and has no turn; forgets it if it does nothing.
    fn pass_turn(&mut self, agent: &NodeId) {
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
        if !self.given {
            return;
        }
        let mut state = self.slots.lock();
        state.active = state.active.saturating_sub(1);
        if let Some(own) = state.agents.get_mut(&self.agent) {
            own.active = own.active.saturating_sub(1);
        }
        state.pass_turn(&self.agent);
        drop(state);
        self.slots.grant();
    }
}

impl Ticket {
    /// Waits for the place.
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
            // It came in the last moment, and goes back by its own drop.
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
    use crate::report::EngineLimits;

    fn slots(max_active: usize, max_active_per_agent: usize) -> Slots {
        Slots::new(EngineLimits { max_active, max_active_per_agent, ..EngineLimits::default() })
    }

    async fn now(ticket: &mut Ticket) -> bool {
        tokio::select! {
            biased;
            slot = ticket.wait() => { drop(slot); true }
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn who_gives_up_is_forgotten_and_takes_no_turn() {
        let slots = slots(1, 1);
        let mut first = slots.ticket(&"a".into()).unwrap();
        let held = first.wait().await;
        let last = {
            // Far more than may wait at once, but never so many at a time.
            for _ in 0..100_000 {
                drop(slots.ticket(&"a".into()).unwrap());
            }
            slots.ticket(&"a".into()).unwrap()
        };
        {
            let state = slots.lock();
            assert_eq!((state.active, state.queued), (1, 1));
            let kept = state.agents["a"].queue.len();
            assert!(kept < 100, "{kept}");
        }
        let mut last = last;
        assert!(!now(&mut last).await);
        drop(held);
        assert!(last.wait().await.is_some());
        drop(slots.ticket(&"b".into()));
        let state = slots.lock();
        assert_eq!((state.active, state.queued, state.turns.len()), (0, 0, 0));
        assert!(state.agents.values().all(|agent| agent.active == 0 && agent.queued == 0));
    }

    #[tokio::test]
    async fn a_place_that_comes_as_one_gives_up_goes_on_to_the_next() {
        let slots = slots(1, 1);
        let held = slots.ticket(&"a".into()).unwrap().wait().await;
        let (second, mut third) = (slots.ticket(&"a".into()).unwrap(), slots.ticket(&"b".into()).unwrap());
        // It is given to the second, who never looks.
        drop(held);
        assert!(!now(&mut third).await);
        drop(second);
        assert!(third.wait().await.is_some());
    }

    #[tokio::test]
    async fn an_agent_that_has_its_share_does_not_hold_up_others() {
        let slots = slots(3, 1);
        let mut tickets: Vec<Ticket> =
            ["a", "a", "a", "b"].iter().map(|agent| slots.ticket(&(*agent).into()).unwrap()).collect();
        let b = tickets[3].wait().await;
        let a = tickets[0].wait().await;
        assert!(b.is_some() && !now(&mut tickets[1]).await);
        drop(a);
        assert!(tickets[1].wait().await.is_some());
        assert!(tickets[2].wait().await.is_some());
    }
}
