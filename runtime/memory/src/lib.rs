//! Memories: conversations of agents, in the process or in Redis.
//!
//! Owns how a conversation is stored, limited, trimmed and repaired. Never decides which conversation a
//! message belongs to, nor whether a run may continue without one: the engine does.
//!
//! Everything is stored by turns. A turn is what one run added; it is stored completely or not at all.

mod address;
mod element;
mod failure;
mod legacy;
mod process_memory;
mod redis_connection;
mod redis_memory;
#[cfg(test)]
#[allow(dead_code, reason = "the integration tests use the rest of it")]
#[path = "../tests/all/redis_server.rs"]
mod redis_server;
mod repair;
mod scripts;
mod sessions;
mod settings;
mod trim;

use process_memory::ProcessMemory;
use redflow_contract::node::{BufferMemoryConfig, WindowMemoryConfig};
use redflow_ports::{Adapters, Memory, MemoryBuilder};
use redis_connection::RedisConnections;
use redis_memory::RedisMemory;
use sessions::Sessions;
pub use settings::MemorySettings;
use std::sync::Arc;

/// Registers the memories of this crate. Conversations in the process live longer than the nodes, so a deploy
/// keeps them.
pub fn register(adapters: &mut Adapters, settings: MemorySettings) {
    let sessions = Arc::new(Sessions::new(settings));
    let connections = Arc::new(RedisConnections::default());

    let shared = Arc::clone(&sessions);
    let buffer: MemoryBuilder = Arc::new(move |config| {
        let BufferMemoryConfig { max_messages, max_bytes, idle, .. } = config.typed_with_options()?;
        let limits = trim::Limits::for_node(&config, max_messages, trim::BUFFER_MESSAGES, max_bytes)?;
        let memory = ProcessMemory::new(Arc::clone(&shared), &config.node.id, limits, idle);
        Ok(Arc::new(memory) as Arc<dyn Memory>)
    });
    let window: MemoryBuilder = Arc::new(move |config| {
        let WindowMemoryConfig { max_messages, max_bytes, idle, .. } = config.typed_with_options()?;
        let limits = trim::Limits::for_node(&config, max_messages, trim::WINDOW_MESSAGES, max_bytes)?;
        let memory = ProcessMemory::new(Arc::clone(&sessions), &config.node.id, limits, idle);
        Ok(Arc::new(memory) as Arc<dyn Memory>)
    });
    let redis: MemoryBuilder =
        Arc::new(move |config| Ok(Arc::new(RedisMemory::build(&config, &connections)?) as Arc<dyn Memory>));
    adapters.memories.extend([("buffer-memory", buffer), ("window-memory", window), ("redis-memory", redis)]);
}
