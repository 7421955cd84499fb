//! The long memories of a sidecar.

use super::problems::{unknown, unknown_entry};
use crate::sidecar::SidecarClient;
use redflow_contract::api::ApiError;
use redflow_contract::archive::{Entry, SearchHit};
use redflow_contract::memory_api::{
    Decision, ForgetAnswer, ForgetRequest, MAX_ENTRIES_PAGE, MemoryCollection, MemoryEntryDetail,
    MemoryEntryList, MemoryFilter, MemoryList, MemoryPut, MemoryReview, MemoryReviewed, MemorySearch,
    MemorySearchResult,
};
use redflow_ports::{Memories, MemoriesAnswer};
use serde_json::Value;

pub(crate) struct RemoteMemories {
    sidecar: SidecarClient,
}

impl RemoteMemories {
    pub(crate) fn new(sidecar: SidecarClient) -> Self {
        Self { sidecar }
    }
}

/// Whether a name would change the path of a request.
fn changes_path(name: &str) -> bool {
    matches!(name, "" | "." | "..")
}

/// The path of a memory. A name that would change the path is refused, because no memory has it.
fn path<'a>(memory: &'a str, rest: &[&'a str]) -> Result<Vec<&'a str>, ApiError> {
    if changes_path(memory) {
        return Err(unknown(memory));
    }
    Ok(["api", "memory", memory].into_iter().chain(rest.iter().copied()).collect())
}

/// The path of an entry.
fn entry_path<'a>(memory: &'a str, key: &'a str) -> Result<Vec<&'a str>, ApiError> {
    let path = path(memory, &["entries", key])?;
    if changes_path(key) { Err(unknown_entry(memory, key)) } else { Ok(path) }
}

/// The name of a kind or a state, as JSON writes it.
fn word(value: &impl serde::Serialize) -> Option<String> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Some(word),
        _ => None,
    }
}

/// A filter as a query.
fn query_of(filter: &MemoryFilter) -> Vec<(&'static str, String)> {
    let fields = [
        ("user", filter.user.clone()),
        ("session", filter.session.clone()),
        ("state", filter.state.as_ref().and_then(word)),
        ("kind", filter.kind.as_ref().and_then(word)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

impl Memories for RemoteMemories {
    fn list(&self) -> MemoriesAnswer<'_, Vec<MemoryCollection>> {
        Box::pin(async {
            let list: MemoryList = self.sidecar.get(&["api", "memory"], &[]).await?;
            Ok(list.memories)
        })
    }

    fn entries<'a>(
        &'a self,
        memory: &'a str,
        filter: &'a MemoryFilter,
        after: Option<&'a str>,
        limit: usize,
    ) -> MemoriesAnswer<'a, MemoryEntryList> {
        Box::pin(async move {
            let mut query = query_of(filter);
            query.push(("limit", limit.min(MAX_ENTRIES_PAGE).to_string()));
            query.extend(after.map(|after| ("after", after.to_owned())));
            self.sidecar.get(&path(memory, &["entries"])?, &query).await
        })
    }

    fn show<'a>(&'a self, memory: &'a str, key: &'a str) -> MemoriesAnswer<'a, MemoryEntryDetail> {
        Box::pin(async move { self.sidecar.get(&entry_path(memory, key)?, &[]).await })
    }

    fn search<'a>(&'a self, memory: &'a str, search: MemorySearch) -> MemoriesAnswer<'a, Vec<SearchHit>> {
        Box::pin(async move {
            let path = path(memory, &["search"])?;
            let found: MemorySearchResult = self.sidecar.post_long(&path, &search).await?;
            Ok(found.results)
        })
    }

    fn put<'a>(
        &'a self,
        memory: &'a str,
        key: &'a str,
        entry: MemoryPut,
        expected: Option<u32>,
    ) -> MemoriesAnswer<'a, Entry> {
        Box::pin(async move {
            let condition = expected.map(|version| match version {
                0 => ("if-none-match", "*".to_owned()),
                version => ("if-match", format!("\"{version}\"")),
            });
            self.sidecar.put_long(&entry_path(memory, key)?, condition, &entry).await
        })
    }

    fn remove_entry<'a>(&'a self, memory: &'a str, key: &'a str) -> MemoriesAnswer<'a, ()> {
        Box::pin(async move { self.sidecar.delete(&entry_path(memory, key)?, &[]).await })
    }

    fn remove<'a>(&'a self, memory: &'a str) -> MemoriesAnswer<'a, ()> {
        Box::pin(async move { self.sidecar.delete(&path(memory, &[])?, &[]).await })
    }

    fn review<'a>(
        &'a self,
        memory: &'a str,
        keys: Vec<String>,
        decision: Decision,
    ) -> MemoriesAnswer<'a, u64> {
        Box::pin(async move {
            let review = MemoryReview { memory: memory.to_owned(), keys, decision };
            let done: MemoryReviewed = self.sidecar.post_long(&["api", "memory", "review"], &review).await?;
            Ok(done.decided)
        })
    }

    fn forget(&self, request: ForgetRequest) -> MemoriesAnswer<'_, ForgetAnswer> {
        Box::pin(async move { self.sidecar.post_long(&["api", "memory", "forget"], &request).await })
    }
}
