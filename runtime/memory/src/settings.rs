//! Limits for all memories of a process.

/// Limits for all conversations in the process together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// Conversations in the process. Beyond the limit the least recently used one is removed.
    pub max_sessions: usize,
    /// Bytes of all conversations, bookkeeping included. Beyond the limit the least recently used one is
    /// removed.
    pub max_bytes: usize,
    /// Run ids remembered per conversation. A run that appends again after this many other runs counts as
    /// new.
    pub max_runs: usize,
    /// Conversations that each append checks for being idle too long.
    pub sweep: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { max_sessions: 10_000, max_bytes: 256 * 1024 * 1024, max_runs: 1_000, sweep: 16 }
    }
}
