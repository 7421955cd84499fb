//! Conversations that agents are reminded of: in the process, or in Redis.
//!
//! Owns how a conversation is kept, bounded, trimmed and mended. Never decides which conversation a message
//! belongs to, nor whether a run may go on without one: the engine does.
//!
//! All of it is kept by the turn, which is what one run added: a turn is there whole or not at all.

mod address;
mod element;
mod legacy;
mod link;
mod process_memory;
mod redis_memory;
#[cfg(test)]
#[allow(dead_code, reason = "the integration tests use the rest of it")]
#[path = "../tests/all/redis_server.rs"]
mod redis_server;
mod repair;
mod scripts;
mod sessions;
mod trim;

use process_memory::ProcessMemory;
use redflow_contract::code::RunErrorCode;
use redflow_contract::run_error::Failure;
use redflow_contract::service_config::{BufferMemoryConfig, WindowMemoryConfig};
use redflow_ports::{Adapters, Memory, MemoryBuilder};
use redis_memory::RedisMemory;
use sessions::Sessions;
use std::sync::Arc;

/// Bounds of what all memories of the process hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// Conversations kept in the process. One more, and the one that nobody used for longest is forgotten.
    pub max_sessions: usize,
    /// Bytes they may have together, bookkeeping included. The same goes for one more.
    pub max_bytes: usize,
    /// Run ids remembered per conversation in the process: a run that appends again after so many others have
    /// appended would be taken for a new one.
    pub max_runs: usize,
    /// Conversations looked at per append for whether nobody used them for long enough.
    pub sweep: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { max_sessions: 10_000, max_bytes: 256 * 1024 * 1024, max_runs: 1_000, sweep: 16 }
    }
}

/// Adds the memories of this crate. Conversations in the process outlive the nodes that are built: a redeploy
/// keeps them.
pub fn register(adapters: &mut Adapters, settings: MemorySettings) {
    let sessions = Arc::new(Sessions::new(settings));
    let links = Arc::new(link::Links::default());

    let shared = Arc::clone(&sessions);
    let buffer: MemoryBuilder = Arc::new(move |config| {
        let BufferMemoryConfig { max_messages, max_bytes, idle, .. } = config.typed_with_options()?;
        let limits = trim::Limits::of(&config, max_messages, trim::BUFFER_MESSAGES, max_bytes)?;
        let memory = ProcessMemory::new(Arc::clone(&shared), &config.node.id, limits, idle);
        Ok(Arc::new(memory) as Arc<dyn Memory>)
    });
    let window: MemoryBuilder = Arc::new(move |config| {
        let WindowMemoryConfig { max_messages, max_bytes, idle, .. } = config.typed_with_options()?;
        let limits = trim::Limits::of(&config, max_messages, trim::WINDOW_MESSAGES, max_bytes)?;
        let memory = ProcessMemory::new(Arc::clone(&sessions), &config.node.id, limits, idle);
        Ok(Arc::new(memory) as Arc<dyn Memory>)
    });
    let redis: MemoryBuilder =
        Arc::new(move |config| Ok(Arc::new(RedisMemory::build(&config, &links)?) as Arc<dyn Memory>));
    adapters.memories.extend([("buffer-memory", buffer), ("window-memory", window), ("redis-memory", redis)]);
}

/// A failure of a memory.
fn failed(message: impl Into<String>) -> Failure {
    Failure { code: RunErrorCode::MemoryError, message: message.into() }
}

/// A turn that no conversation has room for.
fn too_large(bytes: usize, most: usize) -> Failure {
    failed(format!("the turn has {bytes} bytes; the limit is {most}"))
}
