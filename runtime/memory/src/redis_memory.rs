//! `redis-memory`: conversations in Redis.

use crate::redis_connection::RedisConnections;
use crate::redis_forget;
use crate::redis_store::RedisStore;
use crate::stored_turn::{after_summary, join_complete, recallable};
use redflow_contract::memory::{DataOwner, Forgotten};
use redflow_ports::{
    BuildError, Memory, MemoryAnswer, NodeConfig, Recall, Recalled, SummarisedConversation, Summary,
    SummaryStore, Turn,
};

pub(crate) struct RedisMemory(RedisStore);

impl RedisMemory {
    pub(crate) fn build(node: &NodeConfig<'_>, connections: &RedisConnections) -> Result<Self, BuildError> {
        RedisStore::build(node, connections).map(Self)
    }
}

impl Memory for RedisMemory {
    fn recall<'a>(&'a self, recall: Recall<'a>) -> MemoryAnswer<'a, Recalled> {
        Box::pin(async move {
            let stored = self.0.load(recall.session, false).await?;
            let turns = recallable(stored.newest_first.iter(), &self.0.filter, self.0.limits);
            Ok(Recalled { turns: join_complete(&turns), sources: Vec::new() })
        })
    }

    fn append<'a>(&'a self, turn: Turn<'a>) -> MemoryAnswer<'a, ()> {
        Box::pin(self.0.append(turn))
    }

    fn clear<'a>(&'a self, session: &'a str) -> MemoryAnswer<'a, ()> {
        Box::pin(async move { self.0.clear(&self.0.keys(session)).await.map(|_| ()) })
    }

    fn forget<'a>(&'a self, owner: &'a DataOwner) -> MemoryAnswer<'a, Forgotten> {
        Box::pin(async move {
            let conversations = redis_forget::forget(&self.0, owner).await?;
            Ok(Forgotten { conversations, ..Forgotten::default() })
        })
    }

    fn summaries(&self) -> Option<&dyn SummaryStore> {
        Some(self)
    }

    fn check(&self) -> MemoryAnswer<'_, ()> {
        Box::pin(self.0.check())
    }
}

impl SummaryStore for RedisMemory {
    fn load<'a>(&'a self, session: &'a str) -> MemoryAnswer<'a, SummarisedConversation> {
        Box::pin(async move {
            let stored = self.0.load(session, true).await?;
            let (turns, filter) = (stored.newest_first.iter(), &self.0.filter);
            Ok(after_summary(stored.summary, stored.removals, turns, filter, self.0.limits))
        })
    }

    fn replace<'a>(
        &'a self,
        session: &'a str,
        loaded: &'a SummarisedConversation,
        summary: Summary,
    ) -> MemoryAnswer<'a, bool> {
        Box::pin(async move { self.0.replace_summary(session, loaded, &summary).await })
    }
}
