//! `buffer-memory` and `window-memory`: conversations in the process. They differ only in their default
//! limits.

use crate::sessions::{Owner, Sessions};
use crate::stored_turn::{TagFilter, join_complete};
use crate::trim::Limits;
use redflow_contract::id::NodeId;
use redflow_contract::memory::{DataOwner, Forgotten, MemoryStats};
use redflow_ports::{
    Memory, MemoryAnswer, Recall, Recalled, SummarisedConversation, Summary, SummaryStore, Turn,
};
use std::sync::Arc;
use std::time::Duration;

/// Seconds after which an unused conversation is removed, unless the node has its own value.
const DEFAULT_IDLE_SECONDS: u64 = 3_600;

pub(crate) struct ProcessMemory {
    sessions: Arc<Sessions>,
    owner: Owner,
}

impl ProcessMemory {
    pub(crate) fn new(
        sessions: Arc<Sessions>,
        node: &NodeId,
        limits: Limits,
        filter: TagFilter,
        idle: Option<u64>,
    ) -> Self {
        let idle = Some(idle.unwrap_or(DEFAULT_IDLE_SECONDS))
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        let owner = Owner { node: node.clone(), limits, filter, idle };
        Self { sessions, owner }
    }
}

impl Memory for ProcessMemory {
    fn recall<'a>(&'a self, recall: Recall<'a>) -> MemoryAnswer<'a, Recalled> {
        Box::pin(async move {
            let turns = join_complete(&self.sessions.turns(&self.owner, recall.session));
            Ok(Recalled { turns, sources: Vec::new() })
        })
    }

    fn append<'a>(&'a self, turn: Turn<'a>) -> MemoryAnswer<'a, ()> {
        Box::pin(async move { self.sessions.append(&self.owner, turn) })
    }

    fn clear<'a>(&'a self, session: &'a str) -> MemoryAnswer<'a, ()> {
        Box::pin(async move {
            self.sessions.clear(&self.owner, session);
            Ok(())
        })
    }

    fn forget<'a>(&'a self, owner: &'a DataOwner) -> MemoryAnswer<'a, Forgotten> {
        Box::pin(async move {
            Ok(Forgotten { conversations: self.sessions.forget(owner), ..Forgotten::default() })
        })
    }

    fn stats(&self) -> MemoryAnswer<'_, MemoryStats> {
        Box::pin(async move {
            let conversations = Some(self.sessions.count(&self.owner.node));
            Ok(MemoryStats { conversations, ..MemoryStats::default() })
        })
    }

    fn summaries(&self) -> Option<&dyn SummaryStore> {
        Some(self)
    }
}

impl SummaryStore for ProcessMemory {
    fn load<'a>(&'a self, session: &'a str) -> MemoryAnswer<'a, SummarisedConversation> {
        Box::pin(async move { Ok(self.sessions.load(&self.owner, session)) })
    }

    fn replace<'a>(
        &'a self,
        session: &'a str,
        loaded: &'a SummarisedConversation,
        summary: Summary,
    ) -> MemoryAnswer<'a, bool> {
        Box::pin(async move { Ok(self.sessions.replace_summary(&self.owner, session, loaded, summary)) })
    }
}
