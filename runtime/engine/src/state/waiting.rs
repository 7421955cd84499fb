//! Messages that wait until the tools of their agents are known, in the order of their arrival.
//!
//! One wait serves all messages of an agent. While a message of an agent waits, later ones wait behind it.

use crate::origin::{Cause, Origin};
use futures::FutureExt as _;
use futures::future::Shared;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::NodeId;
use redflow_ports::BoxFuture;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub(crate) struct WaitingMessages {
    by_agent: HashMap<NodeId, AgentQueue>,
    /// The number of the last message that waited.
    last: u64,
    /// Ends all waits, because the engine stops.
    pub(crate) stop: CancellationToken,
}

struct AgentQueue {
    wait: Shared<BoxFuture<'static, ()>>,
    messages: VecDeque<WaitingMessage>,
}

/// A message whose run begins when the tools of its agent are known.
pub(crate) struct WaitingMessage {
    number: u64,
    pub(crate) message: Arc<FlowMessage>,
    pub(crate) origin: Origin,
    pub(crate) cause: Option<Cause>,
}

impl WaitingMessages {
    /// Whether messages of this agent wait.
    pub(crate) fn has(&self, agent: &NodeId) -> bool {
        self.by_agent.contains_key(agent)
    }

    /// How many messages of this agent wait, and how many in all.
    pub(crate) fn count(&self, agent: &NodeId) -> (usize, usize) {
        let own = self.by_agent.get(agent).map_or(0, |queue| queue.messages.len());
        (own, self.by_agent.values().map(|queue| queue.messages.len()).sum())
    }

    /// Adds a message, and gives its number and the end of its wait. The first message of an agent brings the wait.
    pub(crate) fn push(
        &mut self,
        agent: &NodeId,
        wait: Option<BoxFuture<'static, ()>>,
        (message, origin, cause): (Arc<FlowMessage>, Origin, Option<Cause>),
    ) -> (u64, BoxFuture<'static, ()>) {
        self.last += 1;
        let number = self.last;
        let queue = self.by_agent.entry(agent.clone()).or_insert_with(|| {
            let wait: BoxFuture<'static, ()> = wait.unwrap_or_else(|| Box::pin(std::future::ready(())));
            AgentQueue { wait: wait.shared(), messages: VecDeque::new() }
        });
        let (ready, stop, cancel) = (queue.wait.clone(), self.stop.clone(), origin.cascade.cancel.clone());
        queue.messages.push_back(WaitingMessage { number, message, origin, cause });
        let end = Box::pin(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = stop.cancelled() => {}
                () = ready => {}
            }
        });
        (number, end)
    }

    /// Takes the messages whose wait has ended with that of this message: the message alone if it was cancelled, else
    /// all messages of its agent. None are left if another message has ended the wait before.
    pub(crate) fn take(&mut self, agent: &NodeId, number: u64) -> VecDeque<WaitingMessage> {
        let Some(queue) = self.by_agent.get_mut(agent) else { return VecDeque::new() };
        let Some(place) = queue.messages.iter().position(|waiting| waiting.number == number) else {
            return VecDeque::new();
        };
        let is_cancelled =
            queue.messages.get(place).is_some_and(|waiting| waiting.origin.cascade.cancel.is_cancelled());
        if is_cancelled && queue.messages.len() > 1 {
            return queue.messages.remove(place).into_iter().collect();
        }
        self.by_agent.remove(agent).map(|queue| queue.messages).unwrap_or_default()
    }
}
