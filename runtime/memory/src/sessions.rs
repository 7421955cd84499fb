//! The conversations in the process: by node and session, each limited, and all together.
//!
//! Nothing runs in the background. An idle conversation is removed when it is used, and each append checks a
//! few others. Beyond the limits the least recently used conversation is removed.

use crate::conversation::Conversation;
use crate::failure::turn_too_large;
use crate::repair;
use crate::settings::MemorySettings;
use crate::stored_turn::{StoredTurn, TagFilter, after_summary, recallable};
use crate::trim::{Limits, Size};
use redflow_contract::id::NodeId;
use redflow_contract::input::user_name;
use redflow_contract::memory::DataOwner;
use redflow_contract::run_error::Failure;
use redflow_ports::{SummarisedConversation, Summary, Turn};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The node that owns a conversation, with its settings.
pub(crate) struct Owner {
    pub(crate) node: NodeId,
    pub(crate) limits: Limits,
    /// The turns that it recalls.
    pub(crate) filter: TagFilter,
    /// How long an unused conversation stays; none for ever.
    pub(crate) idle: Option<Duration>,
}

type ConversationKey = Arc<(NodeId, String)>;

pub(crate) struct Sessions {
    settings: MemorySettings,
    conversations: Mutex<Conversations>,
}

#[derive(Default)]
struct Conversations {
    by_key: HashMap<ConversationKey, Conversation>,
    /// Least recently used first, by the number of the last use.
    by_last_use: BTreeMap<u64, ConversationKey>,
    /// The number of the last use of any conversation.
    uses: u64,
    /// Bytes of all conversations.
    bytes: usize,
    /// Where in `by_last_use` the next search for idle conversations starts.
    sweep_from: u64,
}

impl Sessions {
    pub(crate) fn new(settings: MemorySettings) -> Self {
        Self { settings, conversations: Mutex::default() }
    }

    /// The turns that the owner recalls, oldest first. A deploy may have lowered its limits since the last append.
    pub(crate) fn turns(&self, owner: &Owner, session: &str) -> Vec<Arc<StoredTurn>> {
        let mut conversations = self.lock();
        match conversations.touch(&owner.key(session), owner.idle) {
            Some(conversation) => recallable(conversation.turns().rev(), &owner.filter, owner.limits),
            None => Vec::new(),
        }
    }

    /// The summary of a conversation and the turns after it.
    pub(crate) fn load(&self, owner: &Owner, session: &str) -> SummarisedConversation {
        let mut conversations = self.lock();
        let Some(conversation) = conversations.touch(&owner.key(session), owner.idle) else {
            return SummarisedConversation::default();
        };
        let summary = conversation.summary(&owner.filter.name()).cloned();
        let removals = conversation.removals();
        after_summary(summary, removals, conversation.turns().rev(), &owner.filter, owner.limits)
    }

    /// Replaces a summary, if the conversation has not lost turns or its summary since it was loaded.
    pub(crate) fn replace_summary(
        &self,
        owner: &Owner,
        session: &str,
        loaded: &SummarisedConversation,
        summary: Summary,
    ) -> bool {
        let mut conversations = self.lock();
        let key = owner.key(session);
        let replaced = conversations
            .change(&key, |conversation| conversation.replace_summary(&owner.filter.name(), loaded, summary))
            .unwrap_or(false);
        conversations.remove_least_used(&self.settings);
        replaced
    }

    pub(crate) fn append(&self, owner: &Owner, turn: Turn<'_>) -> Result<(), Failure> {
        let messages = repair::stored_messages(turn.messages);
        if messages.is_empty() {
            return Ok(());
        }
        let limits = owner.stored_limits().with_bytes(self.settings.max_bytes);
        let size = Size::of_turn(&messages);
        if size.bytes > limits.largest().bytes {
            return Err(turn_too_large(size.bytes, limits.largest().bytes));
        }
        let (user, tags) = (turn.user.map(str::to_owned), turn.tags.to_vec());
        let stored = StoredTurn { run: turn.run.clone(), user, tags, messages, size };
        let key = owner.key(turn.session);
        let mut conversations = self.lock();
        conversations.remove_some_idle(self.settings.sweep);
        conversations.touch_or_create(&key, owner.idle);
        conversations
            .change(&key, |conversation| conversation.append(stored, limits, self.settings.max_runs));
        conversations.remove_least_used(&self.settings);
        Ok(())
    }

    pub(crate) fn clear(&self, owner: &Owner, session: &str) {
        self.lock().remove(&owner.key(session));
    }

    /// Removes what belongs to the owner of data, in the conversations of all nodes. Returns how many conversations lost
    /// something.
    pub(crate) fn forget(&self, owner: &DataOwner) -> u64 {
        let mut conversations = self.lock();
        let keys: Vec<ConversationKey> = conversations.by_key.keys().map(Arc::clone).collect();
        // The name as it is stored.
        let user = match owner {
            DataOwner::User(user) => user_name(user),
            DataOwner::Session(_) | DataOwner::Source(_) => None,
        };
        let mut count = 0;
        for key in keys {
            let lost = match owner {
                DataOwner::Session(session) if key.1 == *session => {
                    conversations.remove(&key);
                    true
                }
                DataOwner::User(_) => {
                    let Some(user) = user.as_deref() else { continue };
                    let lost = conversations.change(&key, |conversation| conversation.forget_user(user));
                    if conversations.by_key.get(&key).is_some_and(Conversation::is_empty) {
                        conversations.remove(&key);
                    }
                    lost.unwrap_or(false)
                }
                DataOwner::Session(_) | DataOwner::Source(_) => false,
            };
            count += u64::from(lost);
        }
        count
    }

    /// How many conversations a node has.
    pub(crate) fn count(&self, node: &NodeId) -> u64 {
        let now = Instant::now();
        let conversations = self.lock();
        let own = conversations.by_key.iter().filter(|(key, one)| key.0 == *node && !one.is_idle(now));
        u64::try_from(own.count()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Conversations> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner {
    fn key(&self, session: &str) -> ConversationKey {
        Arc::new((self.node.clone(), session.to_owned()))
    }

    fn stored_limits(&self) -> Limits {
        if self.filter.is_empty() { self.limits } else { self.limits.without_filter() }
    }
}

impl Conversations {
    /// Marks a conversation as used; none if it does not exist or was idle too long.
    fn touch(&mut self, key: &ConversationKey, idle: Option<Duration>) -> Option<&mut Conversation> {
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

    fn touch_or_create(&mut self, key: &ConversationKey, idle: Option<Duration>) {
        if self.touch(key, idle).is_some() {
            return;
        }
        self.uses += 1;
        self.by_last_use.insert(self.uses, Arc::clone(key));
        let conversation = Conversation::new(key.0.as_str().len() + key.1.len(), self.uses, idle);
        self.bytes += conversation.bytes();
        self.by_key.insert(Arc::clone(key), conversation);
    }

    /// Changes a conversation, and counts its bytes again.
    fn change<T>(&mut self, key: &ConversationKey, change: impl FnOnce(&mut Conversation) -> T) -> Option<T> {
        let conversation = self.by_key.get_mut(key)?;
        let before = conversation.bytes();
        let result = change(conversation);
        self.bytes = self.bytes - before + conversation.bytes();
        Some(result)
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
        let checked: Vec<(u64, ConversationKey)> = self
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

    fn remove(&mut self, key: &ConversationKey) {
        if let Some(conversation) = self.by_key.remove(key) {
            self.by_last_use.remove(&conversation.last_use);
            self.bytes -= conversation.bytes();
        }
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
