//! Long memories as people see them: of a data directory, or of a sidecar.

use crate::future::BoxFuture;
use redflow_contract::api::ApiError;
use redflow_contract::archive::{Entry, SearchHit};
use redflow_contract::memory_api::{
    Decision, ForgetAnswer, ForgetRequest, MemoryCollection, MemoryEntryDetail, MemoryEntryList,
    MemoryFilter, MemoryPut, MemorySearch,
};

/// The answer of long memories.
pub type MemoriesAnswer<'a, T> = BoxFuture<'a, Result<T, ApiError>>;

/// All that people can do with long memories.
pub trait Memories: Send + Sync {
    /// All long memories, sorted by name.
    fn list(&self) -> MemoriesAnswer<'_, Vec<MemoryCollection>>;

    /// The entries after a key, sorted by key.
    fn entries<'a>(
        &'a self,
        memory: &'a str,
        filter: &'a MemoryFilter,
        after: Option<&'a str>,
        limit: usize,
    ) -> MemoriesAnswer<'a, MemoryEntryList>;

    /// An entry with its former versions.
    fn show<'a>(&'a self, memory: &'a str, key: &'a str) -> MemoriesAnswer<'a, MemoryEntryDetail>;

    /// Searches, the best entry first.
    fn search<'a>(&'a self, memory: &'a str, search: MemorySearch) -> MemoriesAnswer<'a, Vec<SearchHit>>;

    /// Stores an entry with the trust of the operator. `expected` is the version that it replaces; 0 if there must be
    /// none.
    fn put<'a>(
        &'a self,
        memory: &'a str,
        key: &'a str,
        entry: MemoryPut,
        expected: Option<u32>,
    ) -> MemoriesAnswer<'a, Entry>;

    /// Removes an entry with its former versions.
    fn remove_entry<'a>(&'a self, memory: &'a str, key: &'a str) -> MemoriesAnswer<'a, ()>;

    /// Removes a memory with all its entries.
    fn remove<'a>(&'a self, memory: &'a str) -> MemoriesAnswer<'a, ()>;

    /// Decides about entries that wait for a review. Returns how many there were.
    fn review<'a>(
        &'a self,
        memory: &'a str,
        keys: Vec<String>,
        decision: Decision,
    ) -> MemoriesAnswer<'a, u64>;

    /// Removes the data of an owner that these memories keep, so that no byte is left. Those of a data directory keep
    /// entries; the caller removes conversations and runs. Those of a sidecar remove all.
    fn forget(&self, request: ForgetRequest) -> MemoriesAnswer<'_, ForgetAnswer>;
}
