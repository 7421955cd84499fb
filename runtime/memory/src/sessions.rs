//! The conversations in the process: by node and session, each limited, and all together.
//!
//! Nothing runs in the background. An idle conversation is removed when it is used, and each append checks a
//! few others. Beyond the limits the least recently used conversation is removed.

use crate::failure::turn_too_large;
use crate::repair;
use crate::settings::MemorySettings;
use crate::trim::{Limits, Size, turns_that_fit};
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The approximate bookkeeping of a conversation, a message and a run id, in bytes.
const CONVERSATION_OVERHEAD: usize = 512;
const MESSAGE_OVERHEAD: usize = 128;
const RUN_OVERHEAD: usize = 32;

/// The node that owns a conversation, with its settings.
pub(crate) struct Owner {
    pub(crate) node: NodeId,
    pub(crate) limits: Limits,
    /// How long an unused conversation stays; none for ever.
    pub(crate) idle: Option<Duration>,
}

type Turn = Arc<[ChatMessage]>;
type Key = Arc<(NodeId, String)>;

pub(crate) struct Sessions {
    settings: MemorySettings,
    conversations: Mutex<Conversations>,
}

#[derive(Default)]
struct Conversations {
    by_key: HashMap<Key, Conversation>,
    /// Least recently used first, by the number of the last use.
    by_last_use: BTreeMap<u64, Key>,
    /// The number of the last use of any conversation.
    uses: u64,
    /// Bytes of all conversations.
    bytes: usize,
    /// Where in `by_last_use` the next search for idle conversations starts.
    sweep_from: u64,
}

struct Conversation {
    /// Oldest first.
    turns: VecDeque<(Size, Turn)>,
    /// The runs that appended last, even if their turns were removed.
    runs: VecDeque<RunId>,
    /// Its share of the bytes of all conversations.
    bytes: usize,
    last_used: Instant,
    last_use: u64,
    idle: Option<Duration>,
}

impl Sessions {
    pub(crate) fn new(settings: MemorySettings) -> Self {
        Self { settings, conversations: Mutex::default() }
    }

    /// The turns within the limits, oldest first.
    pub(crate) fn turns(&self, owner: &Owner, session: &str) -> Vec<Turn> {
        let mut conversations = self.lock();
        let Some(conversation) = conversations.touch(&owner.key(session), owner.idle) else {
            return Vec::new();
        };
        // A deploy may have lowered the limits since the last append.
        let keep = conversation.turns_that_fit(owner.limits);
        let newest = conversation.turns.range(conversation.turns.len() - keep..);
        newest.map(|(_, turn)| Arc::clone(turn)).collect()
    }

    pub(crate) fn append(
        &self,
        owner: &Owner,
        session: &str,
        run: &RunId,
        turn: &[ChatMessage],
    ) -> Result<(), Failure> {
        let turn = repair::stored_messages(turn);
        if turn.is_empty() {
            return Ok(());
        }
        let limits = Limits { bytes: owner.limits.bytes.min(self.settings.max_bytes), ..owner.limits };
        let size = Size::of_turn(&turn);
        if size.bytes > limits.bytes {
            return Err(turn_too_large(size.bytes, limits.bytes));
        }
        let key = owner.key(session);
        let mut conversations = self.lock();
        conversations.remove_some_idle(self.settings.sweep);
        let conversation = conversations.touch_or_create(&key, owner.idle);
        if conversation.runs.contains(run) {
            return Ok(());
        }
        conversation.runs.push_back(run.clone());
        let surplus = conversation.runs.len().saturating_sub(self.settings.max_runs);
        conversation.runs.drain(..surplus);
        conversation.turns.push_back((size, turn.into()));
        let surplus = conversation.turns.len() - conversation.turns_that_fit(limits);
        conversation.turns.drain(..surplus);
        conversations.update_bytes(&key);
        conversations.remove_least_used(&self.settings);
        Ok(())
    }

    pub(crate) fn clear(&self, owner: &Owner, session: &str) {
        self.lock().remove(&owner.key(session));
    }

    fn lock(&self) -> MutexGuard<'_, Conversations> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner {
    fn key(&self, session: &str) -> Key {
        Arc::new((self.node.clone(), session.to_owned()))
    }
}

impl Conversation {
    fn turns_that_fit(&self, limits: Limits) -> usize {
        turns_that_fit(self.turns.iter().rev().map(|(size, _)| *size), limits)
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.idle.is_some_and(|idle| now.duration_since(self.last_used) >= idle)
    }
}

impl Conversations {
    /// Marks a conversation as used; none if it does not exist or was idle too long.
    fn touch(&mut self, key: &Key, idle: Option<Duration>) -> Option<&mut Conversation> {
        let now = Instant::now();
        if self.by_key.get(key)?.is_idle(now) {
            self.remove(key);
            return None;
        }
        self.uses += 1;
        let conversation = self.by_key.get_mut(key)?;
        let known = self.by_last_use.remove(&conversation.last_use).unwrap_or_else(|| Arc::clone(key));
        self.by_last_use.insert(self.uses, known);
        conversation.last_use = self.uses;
        conversation.last_used = now;
        conversation.idle = idle;
        Some(conversation)
    }

    fn touch_or_create(&mut self, key: &Key, idle: Option<Duration>) -> &mut Conversation {
        if self.touch(key, idle).is_none() {
            self.uses += 1;
            self.by_last_use.insert(self.uses, Arc::clone(key));
        }
        let last_use = self.uses;
        self.by_key.entry(Arc::clone(key)).or_insert_with(|| Conversation {
            turns: VecDeque::new(),
            runs: VecDeque::new(),
            bytes: 0,
            last_used: Instant::now(),
            last_use,
            idle,
        })
    }

    fn update_bytes(&mut self, key: &Key) {
        let Some(conversation) = self.by_key.get_mut(key) else { return };
        let names = key.0.as_str().len() + key.1.len();
        let turns = conversation.turns.iter().map(|(size, _)| size.bytes + size.messages * MESSAGE_OVERHEAD);
        let runs = conversation.runs.iter().map(|run| run.as_str().len() + RUN_OVERHEAD);
        let bytes = CONVERSATION_OVERHEAD + names + turns.sum::<usize>() + runs.sum::<usize>();
        self.bytes = self.bytes - conversation.bytes + bytes;
        conversation.bytes = bytes;
    }

    /// Removes the least recently used conversations beyond the limits. The last one stays: it has its own
    /// limit.
    fn remove_least_used(&mut self, settings: &MemorySettings) {
        while self.by_key.len() > 1
            && (self.by_key.len() > settings.max_sessions || self.bytes > settings.max_bytes)
        {
            let Some((_, key)) = self.by_last_use.pop_first() else { return };
            self.remove(&key);
        }
    }

    /// Checks the next few conversations, and removes those that were idle too long.
    fn remove_some_idle(&mut self, limit: usize) {
        let now = Instant::now();
        let checked: Vec<(u64, Key)> = self
            .by_last_use
            .range(self.sweep_from..)
            .take(limit)
            .map(|(number, key)| (*number, Arc::clone(key)))
            .collect();
        self.sweep_from = match checked.last() {
            Some((number, _)) if checked.len() == limit => number + 1,
            _ => 0,
        };
        for (_, key) in checked {
            if self.by_key.get(&key).is_some_and(|conversation| conversation.is_idle(now)) {
                self.remove(&key);
            }
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(conversation) = self.by_key.remove(key) {
            self.by_last_use.remove(&conversation.last_use);
            self.bytes -= conversation.bytes;
        }
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
