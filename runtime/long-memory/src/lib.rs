//! Long memories: what fits a message is recalled from all earlier conversations, and finished turns become facts.
//!
//! | module | what it owns |
//! |---|---|
//! | `memory`, `settings` | the node `long-memory`: recall, append, maintenance |
//! | `store`, `owner`, `names` | its collection in the archive, whose entries are seen, and their names |
//! | `episode`, `recalled`, `clean`, `tags` | turns as entries, without secrets, and what their runs have recalled |
//! | `spans` | resources of MCP servers that are recalled with every message |
//! | `notes`, `days` | recalled entries as one message, and the days that a message names |
//! | `consolidate`, `questions`, `judge`, `neighbours`, `prompt_injection`, `imperatives`, `words` | turns become facts: what the model is asked, and what is kept |
//! | `entries` | the entries for `memory-tool` |
//! | `day_limits`, `waiting` | how much happens in one day, and turns that wait for the next one |
//!
//! Stores nothing itself, makes no vector and calls no provider: an archive, an embedder and a model do.
//!
//! # How a long memory remembers
//!
//! Each finished turn is stored as an episode, even if the short memory fails. A recall searches the entries of
//! the user, or of the wider or narrower scope of the node. They become one message of the user before the turns:
//! a fixed heading, and one line of JSON for each, so that no text can leave its frame. Without vectors the search
//! is by words. A message that names a day gets the entries of that day first.
//!
//! The resources of MCP servers that the node names come before the entries. A task of its own reads each and
//! stores the copy, so a recall waits two seconds at most, and only if there is no copy.
//!
//! With a model, `Memory::maintain` consolidates. Its properties (`afterTurns`, `idleSeconds`, `schedule`) stand in
//! the node itself, not in an object, because a dialog has fields. Everything that the model says is checked:
//!
//! - An entry is kept only if its quote stands in a turn from word to word, and its text has the words, numbers
//!   and negations of the quote.
//! - Its trust is that of the speaker of the quote. Prompt injection is dropped if the assistant said it,
//!   and quarantined if the user did. So is a sentence in the form of an imperative.
//! - What the run had recalled is dropped, so that the memory does not learn from itself.
//! - An entry that says what is known confirms it. About close ones the model is asked once more; its default is
//!   to do nothing. It cannot end an entry that is pinned, has more trust, or was said later.
//! - The new entries and the episodes, which are archived then, are one transaction that expects the versions that
//!   were read. So two processes, or a second try, change nothing.
//! - Three answers that are no answers, or refusals, archive the episodes without entries. A call that fails for
//!   another reason does not count.
//!
//! An episode with an answer has the trust `agent`, because the answer may repeat a page. One with prompt injection has
//! the trust `external`. The calls of a model are counted by day in the process, the new entries of a user in the
//! archive. Episodes whose entries have no room on a day wait for the next one.

mod clean;
mod consolidate;
mod day_limits;
mod days;
mod entries;
mod episode;
mod imperatives;
mod judge;
mod memory;
mod names;
mod neighbours;
mod notes;
mod owner;
mod pending;
mod prompt_injection;
mod questions;
mod recalled;
mod settings;
mod spans;
mod store;
mod tags;
mod waiting;
mod words;

pub use day_limits::{MAX_MODEL_CALLS, MAX_NEW_FACTS};

use day_limits::ModelCalls;
use memory::LongMemory;
use recalled::RecalledKeys;
use redflow_contract::node::LongMemoryConfig;
use redflow_ports::{
    Adapters, Archive, BuildError, Builder, Clock, ContextSource, EmbedderSource, Memory, MemoryBuilder,
    Meter, NodeConfig,
};
use settings::{Settings, embedder_settings};
use spans::{SpanSettings, Spans};
use std::sync::{Arc, Mutex};
use store::EntryStore;

/// What long memories share.
#[derive(Clone)]
pub struct LongMemorySettings {
    /// Keeps the entries.
    pub archive: Arc<dyn Archive>,
    /// Reads the key and the model of a node.
    pub embedder: Builder<EmbedderSource>,
    /// Counts vectors.
    pub meter: Arc<dyn Meter>,
    /// The source of times.
    pub clock: Arc<dyn Clock>,
    /// Reads resources of MCP servers; none if there are no servers.
    pub context: Option<Arc<dyn ContextSource>>,
}

/// Registers `long-memory`.
pub fn register(adapters: &mut Adapters, settings: LongMemorySettings) {
    let calls = Arc::new(ModelCalls::default());
    let long: MemoryBuilder = Arc::new(move |config| build(config, &settings, &calls));
    adapters.memories.insert("long-memory", long);
}

fn build(
    config: NodeConfig<'_>,
    shared: &LongMemorySettings,
    calls: &Arc<ModelCalls>,
) -> Result<Arc<dyn Memory>, BuildError> {
    if config.flow.is_empty() {
        // Its entries would be those of another memory.
        return Err(config.error("its node is not in the flow any more"));
    }
    let node: LongMemoryConfig = config.typed_with_options()?;
    let settings = Settings::new(&node);
    let store = EntryStore {
        archive: Arc::clone(&shared.archive),
        name: names::memory_name(config.flow, config.node.id.as_str(), settings.scope),
        source: (shared.embedder)(config)?,
        embedder_settings: embedder_settings(&node),
        meter: Arc::clone(&shared.meter),
        timeout: settings.timeout,
        embedder: Mutex::default(),
    };
    let store = Arc::new(store);
    let wanted = SpanSettings::all(node.context.as_deref().unwrap_or_default());
    let spans = shared.context.as_ref().filter(|_| !wanted.is_empty()).map(|source| {
        let (source, store, clock) = (Arc::clone(source), Arc::clone(&store), Arc::clone(&shared.clock));
        Arc::new(Spans { wanted, source, store, clock, reads: Mutex::default() })
    });
    Ok(Arc::new(LongMemory {
        short: config.memory(node.short_memory.as_deref())?,
        model: config.model(node.model.as_deref())?,
        spans,
        store,
        settings: Arc::new(settings),
        calls: Arc::clone(calls),
        clock: Arc::clone(&shared.clock),
        recalled: RecalledKeys::default(),
        last_session: Mutex::default(),
    }))
}
