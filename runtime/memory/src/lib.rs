//! Memories: conversations of agents, in the process or in Redis.
//!
//! Owns how a conversation is stored, limited, trimmed and repaired. Never decides which conversation a
//! message belongs to, nor whether a run may continue without one: the engine does.
//!
//! Everything is stored by turns. A turn is what one run added; it is stored completely or not at all. `summary-memory` has
//! no store: it keeps its summaries beside the turns of another memory.
//!
//! - A memory's key is `FLOW:NAME`. The flow's id is escaped so that the first colon separates them. A name over
//!   256 bytes is replaced by its digest.
//! - `msg.memory = "clear"` with a payload is a run whose first effect is `clear_memory`. Without a payload it is
//!   no run, because nothing would leave the result port. `msg.memory = "consolidate"` stays in the message,
//!   unlike `"clear"`, so recorded runs of earlier versions with this message replay unchanged.
//! - What a memory recalls from elsewhere than the conversation has sources. They stand in the fact, in the event
//!   and in `envelope.provenance`.
//! - A summary is made after a run. The engine says when (`Memory::maintain`), and a memory itself knows which turns
//!   it has not worked on.

mod address;
mod cipher;
mod conversation;
mod element;
mod failure;
mod legacy;
mod process_memory;
mod redis_connection;
mod redis_forget;
mod redis_memory;
#[cfg(test)]
#[allow(dead_code, reason = "the integration tests use the rest of it")]
#[path = "../tests/all/redis_server.rs"]
mod redis_server;
mod redis_store;
mod repair;
mod scripts;
mod sessions;
mod settings;
mod stored_turn;
mod summary_memory;
mod summary_text;
mod trim;

use process_memory::ProcessMemory;
use redflow_contract::node::{BufferMemoryConfig, WindowMemoryConfig};
use redflow_ports::{Adapters, Memory, MemoryBuilder};
use redis_connection::RedisConnections;
use redis_memory::RedisMemory;
use sessions::Sessions;
pub use settings::MemorySettings;
use std::sync::Arc;
use stored_turn::TagFilter;
use summary_memory::SummaryMemory;
use trim::{Limits, OwnLimits};

/// Registers the memories of this crate. Conversations in the process live longer than the nodes, so a deploy
/// keeps them.
pub fn register(adapters: &mut Adapters, settings: MemorySettings) {
    let sessions = Arc::new(Sessions::new(settings));
    let connections = Arc::new(RedisConnections::default());

    let shared = Arc::clone(&sessions);
    let buffer: MemoryBuilder = Arc::new(move |config| {
        let own: BufferMemoryConfig = config.typed_with_options()?;
        let (messages, bytes, turns) = (own.max_messages, own.max_bytes, own.max_turns);
        let limits = OwnLimits { messages, bytes, turns, tokens: own.max_tokens };
        let limits = Limits::for_node(&config, limits, trim::BUFFER_MESSAGES)?;
        let filter = TagFilter::new(own.recall_tags.as_ref(), own.tag_match);
        let memory = ProcessMemory::new(Arc::clone(&shared), &config.node.id, limits, filter, own.idle);
        Ok(Arc::new(memory) as Arc<dyn Memory>)
    });
    let window: MemoryBuilder = Arc::new(move |config| {
        let own: WindowMemoryConfig = config.typed_with_options()?;
        let (messages, bytes, turns) = (own.max_messages, own.max_bytes, own.max_turns);
        let limits = OwnLimits { messages, bytes, turns, tokens: own.max_tokens };
        let limits = Limits::for_node(&config, limits, trim::WINDOW_MESSAGES)?;
        let filter = TagFilter::new(own.recall_tags.as_ref(), own.tag_match);
        let memory = ProcessMemory::new(Arc::clone(&sessions), &config.node.id, limits, filter, own.idle);
        Ok(Arc::new(memory) as Arc<dyn Memory>)
    });
    let redis: MemoryBuilder =
        Arc::new(move |config| Ok(Arc::new(RedisMemory::build(&config, &connections)?) as Arc<dyn Memory>));
    let summary: MemoryBuilder =
        Arc::new(|config| Ok(Arc::new(SummaryMemory::build(&config)?) as Arc<dyn Memory>));
    adapters.memories.extend([
        ("buffer-memory", buffer),
        ("window-memory", window),
        ("redis-memory", redis),
        ("summary-memory", summary),
    ]);
}
