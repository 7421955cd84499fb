//! The conversations of the process: by node and session, bounded each and together.
//!
//! Nothing runs in the background. What nobody used for long enough is gone when it is asked for, and each
//! append looks at a few others; what is used least goes when there is no room.

use crate::trim::{Limits, Size, kept};
use crate::{MemorySettings, repair, too_large};
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What a conversation, a message and a run id take beside their text, about.
const CONVERSATION_OVERHEAD: usize = 512;
const MESSAGE_OVERHEAD: usize = 128;
const RUN_OVERHEAD: usize = 32;

/// The node whose conversations are meant, and how it keeps them.
pub(crate) struct Owner {
    pub(crate) node: NodeId,
    pub(crate) limits: Limits,
    /// None: for ever.
    pub(crate) idle: Option<Duration>,
}

type Turn = Arc<[ChatMessage]>;
type Key = Arc<(NodeId, String)>;

pub(crate) struct Sessions {
    settings: MemorySettings,
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    conversations: HashMap<Key, Conversation>,
    /// By the moment of the last use, which is a number of its own for each use.
    order: BTreeMap<u64, Key>,
    uses: u64,
    /// Of all conversations.
    bytes: usize,
    /// Where in `order` the next look for idle conversations begins.
    swept: u64,
}

struct Conversation {
    /// Oldest first.
    turns: VecDeque<(Size, Turn)>,
    /// The runs that appended last, also those whose turn is gone.
    runs: VecDeque<RunId>,
    /// What it adds to the shelf's bytes.
    bytes: usize,
    used: Instant,
    use_number: u64,
    idle: Option<Duration>,
}

impl Sessions {
    pub(crate) fn new(settings: MemorySettings) -> Self {
        Self { settings, shelf: Mutex::default() }
    }

    /// The turns a model is reminded of, oldest first.
    pub(crate) fn turns(&self, owner: &Owner, session: &str) -> Vec<Turn> {
        let mut shelf = self.lock();
        let Some(conversation) = shelf.used(&owner.key(session), owner.idle) else { return Vec::new() };
        // A redeploy may have made the limits smaller since.
        let keep = conversation.kept(owner.limits);
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
        let turn = repair::without_system(turn);
        if turn.is_empty() {
            return Ok(());
        }
        let limits = Limits { bytes: owner.limits.bytes.min(self.settings.max_bytes), ..owner.limits };
        let size = Size::of(&turn);
        if size.bytes > limits.bytes {
            return Err(too_large(size.bytes, limits.bytes));
        }
        let key = owner.key(session);
        let mut shelf = self.lock();
        shelf.sweep(self.settings.sweep);
        let conversation = shelf.used_or_new(&key, owner.idle);
        if conversation.runs.contains(run) {
            return Ok(());
        }
        conversation.runs.push_back(run.clone());
        let forgotten = conversation.runs.len().saturating_sub(self.settings.max_runs);
        conversation.runs.drain(..forgotten);
        conversation.turns.push_back((size, turn.into()));
        let evicted = conversation.turns.len() - conversation.kept(limits);
        conversation.turns.drain(..evicted);
        shelf.weigh(&key);
        shelf.raise_open_file_limit(&self.settings);
        Ok(())
    }

    pub(crate) fn clear(&self, owner: &Owner, session: &str) {
        self.lock().remove(&owner.key(session));
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner {
    fn key(&self, session: &str) -> Key {
        Arc::new((self.node.clone(), session.to_owned()))
    }
}

impl Conversation {
    fn kept(&self, limits: Limits) -> usize {
        kept(self.turns.iter().rev().map(|(size, _)| *size), limits)
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.idle.is_some_and(|idle| now.duration_since(self.used) >= idle)
    }
}

impl Shelf {
    /// The conversation, used just now; none if there is none, or nobody used it for too long.
    fn used(&mut self, key: &Key, idle: Option<Duration>) -> Option<&mut Conversation> {
        let now = Instant::now();
        if self.conversations.get(key)?.is_idle(now) {
            self.remove(key);
            return None;
        }
        self.uses += 1;
        let conversation = self.conversations.get_mut(key)?;
        let known = self.order.remove(&conversation.use_number).unwrap_or_else(|| Arc::clone(key));
        self.order.insert(self.uses, known);
        conversation.use_number = self.uses;
        conversation.used = now;
        conversation.idle = idle;
        Some(conversation)
    }

    fn used_or_new(&mut self, key: &Key, idle: Option<Duration>) -> &mut Conversation {
        if self.used(key, idle).is_none() {
            self.uses += 1;
            self.order.insert(self.uses, Arc::clone(key));
        }
        let use_number = self.uses;
        self.conversations.entry(Arc::clone(key)).or_insert_with(|| Conversation {
            turns: VecDeque::new(),
            runs: VecDeque::new(),
            bytes: 0,
            used: Instant::now(),
            use_number,
            idle,
        })
    }

    fn weigh(&mut self, key: &Key) {
        let Some(conversation) = self.conversations.get_mut(key) else { return };
        let names = key.0.as_str().len() + key.1.len();
        let turns = conversation.turns.iter().map(|(size, _)| size.bytes + size.messages * MESSAGE_OVERHEAD);
        let runs = conversation.runs.iter().map(|run| run.as_str().len() + RUN_OVERHEAD);
        let bytes = CONVERSATION_OVERHEAD + names + turns.sum::<usize>() + runs.sum::<usize>();
        self.bytes = self.bytes - conversation.bytes + bytes;
        conversation.bytes = bytes;
    }

    /// Forgets what is used least. The last conversation stays: it has its own limit.
    fn raise_open_file_limit(&mut self, settings: &MemorySettings) {
        while self.conversations.len() > 1
            && (self.conversations.len() > settings.max_sessions || self.bytes > settings.max_bytes)
        {
            let Some((_, key)) = self.order.pop_first() else { return };
            self.remove(&key);
        }
    }

    /// Looks at the next few conversations, and forgets those that nobody used for too long.
    fn sweep(&mut self, most: usize) {
        let now = Instant::now();
        let looked: Vec<(u64, Key)> = self
            .order
            .range(self.swept..)
            .take(most)
            .map(|(number, key)| (*number, Arc::clone(key)))
            .collect();
        self.swept = match looked.last() {
            Some((number, _)) if looked.len() == most => number + 1,
            _ => 0,
        };
        for (_, key) in looked {
            if self.conversations.get(&key).is_some_and(|conversation| conversation.is_idle(now)) {
                self.remove(&key);
            }
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(conversation) = self.conversations.remove(key) {
            self.order.remove(&conversation.use_number);
            self.bytes -= conversation.bytes;
        }
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
