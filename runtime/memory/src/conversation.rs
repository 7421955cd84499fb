//! One conversation in the process: its turns, its summaries, and whose turns it had.

use crate::stored_turn::StoredTurn;
use crate::trim::{Limits, Size};
use redflow_contract::id::RunId;
use redflow_ports::{SummarisedConversation, Summary};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The approximate bookkeeping of a conversation, a message and a short text, in bytes.
const CONVERSATION_OVERHEAD: usize = 512;
const MESSAGE_OVERHEAD: usize = 128;
const TEXT_OVERHEAD: usize = 32;
/// The most users whom a conversation remembers. Beyond it, its summary may have words of any user.
const MAX_USERS: usize = 256;

pub(crate) struct Conversation {
    pub(crate) last_used: Instant,
    pub(crate) last_use: u64,
    pub(crate) idle: Option<Duration>,
    /// Oldest first.
    turns: VecDeque<Arc<StoredTurn>>,
    total: Size,
    /// The runs that appended last, even if their turns were removed.
    runs: VecDeque<RunId>,
    /// By the name of the tag filter whose turns a summary covers: a change of the filter must not hide other turns.
    summaries: BTreeMap<String, Summary>,
    /// Users who had a turn, also one that was removed by a limit: a summary may have their words.
    users: BTreeSet<String>,
    has_more_users: bool,
    removals: u64,
    bytes: usize,
}

impl Conversation {
    /// An empty conversation whose names have this many bytes.
    pub(crate) fn new(names: usize, last_use: u64, idle: Option<Duration>) -> Self {
        Self {
            last_used: Instant::now(),
            last_use,
            idle,
            turns: VecDeque::new(),
            total: Size::default(),
            runs: VecDeque::new(),
            summaries: BTreeMap::new(),
            users: BTreeSet::new(),
            has_more_users: false,
            removals: 0,
            bytes: CONVERSATION_OVERHEAD + names,
        }
    }

    /// Its share of the bytes of all conversations.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The turns, oldest first.
    pub(crate) fn turns(&self) -> impl DoubleEndedIterator<Item = &Arc<StoredTurn>> + Clone {
        self.turns.iter()
    }

    /// The summary of the turns that pass the filter with this name.
    pub(crate) fn summary(&self, filter: &str) -> Option<&Summary> {
        self.summaries.get(filter)
    }

    /// How often turns of a user were removed.
    pub(crate) fn removals(&self) -> u64 {
        self.removals
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        self.idle.is_some_and(|idle| now.duration_since(self.last_used) >= idle)
    }

    /// Adds a turn, unless its run has added one, and removes the oldest beyond the limits. The new one stays.
    pub(crate) fn append(&mut self, turn: StoredTurn, limits: Limits, max_runs: usize) {
        if self.runs.contains(&turn.run) {
            return;
        }
        self.bytes += turn.run.as_str().len() + TEXT_OVERHEAD;
        self.runs.push_back(turn.run.clone());
        while self.runs.len() > max_runs
            && let Some(run) = self.runs.pop_front()
        {
            self.bytes -= run.as_str().len() + TEXT_OVERHEAD;
        }
        if let Some(user) = turn.user.as_ref().filter(|user| !self.users.contains(*user)) {
            if self.users.len() < MAX_USERS {
                self.bytes += user.len() + TEXT_OVERHEAD;
                self.users.insert(user.clone());
            } else {
                self.has_more_users = true;
            }
        }
        self.total = self.total + turn.size;
        self.bytes += bytes_of(&turn);
        self.turns.push_back(Arc::new(turn));
        while self.turns.len() > 1
            && !limits.allow(self.total)
            && let Some(oldest) = self.turns.pop_front()
        {
            self.subtract(&oldest);
        }
    }

    /// Replaces the summary for the filter with this name if it is still the loaded one and nothing was removed since. A first summary also needs its last
    /// turn: without it the conversation was cleared meanwhile.
    pub(crate) fn replace_summary(
        &mut self,
        filter: &str,
        loaded: &SummarisedConversation,
        summary: Summary,
    ) -> bool {
        let until = |summary: Option<&Summary>| summary.map(|summary| summary.until.clone());
        let is_same =
            until(self.summary(filter)) == until(loaded.summary.as_ref()) && self.removals == loaded.removals;
        let is_stored = || self.turns.iter().rev().any(|turn| turn.run == summary.until);
        if !is_same || !(loaded.summary.is_some() || is_stored()) {
            return false;
        }
        self.bytes += summary_bytes(filter, &summary);
        if let Some(old) = self.summaries.insert(filter.to_owned(), summary) {
            self.bytes -= summary_bytes(filter, &old);
        }
        true
    }

    /// Removes the turns of a user, and all summaries: each may have words of the user. Returns whether there was any.
    pub(crate) fn forget_user(&mut self, user: &str) -> bool {
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.turns).into_iter().partition(|turn| turn.user.as_deref() == Some(user));
        self.turns = kept.into();
        gone.iter().for_each(|turn| self.subtract(turn));
        let was_known = self.users.remove(user);
        if was_known {
            self.bytes -= user.len() + TEXT_OVERHEAD;
        }
        if gone.is_empty() && !was_known && !self.has_more_users {
            return false;
        }
        self.removals += 1;
        self.remove_summaries() || !gone.is_empty()
    }

    fn remove_summaries(&mut self) -> bool {
        let summaries = std::mem::take(&mut self.summaries);
        self.bytes -= summaries_bytes(&summaries);
        !summaries.is_empty()
    }

    fn subtract(&mut self, turn: &StoredTurn) {
        self.total = self.total - turn.size;
        self.bytes -= bytes_of(turn);
    }
}

fn bytes_of(turn: &StoredTurn) -> usize {
    let tags = turn.tags.iter().map(|tag| tag.len() + TEXT_OVERHEAD);
    let texts = turn.user.as_ref().map_or(0, String::len) + tags.sum::<usize>();
    turn.size.bytes + turn.size.messages * MESSAGE_OVERHEAD + texts
}

fn summary_bytes(filter: &str, summary: &Summary) -> usize {
    filter.len() + summary.text.len() + summary.until.as_str().len() + TEXT_OVERHEAD
}

fn summaries_bytes(summaries: &BTreeMap<String, Summary>) -> usize {
    summaries.iter().map(|(filter, summary)| summary_bytes(filter, summary)).sum()
}

#[cfg(test)]
impl Conversation {
    /// Its bytes, counted anew.
    pub(crate) fn count_bytes(&self, names: usize) -> usize {
        let turns: usize = self.turns.iter().map(|turn| bytes_of(turn)).sum();
        let runs: usize = self.runs.iter().map(|run| run.as_str().len() + TEXT_OVERHEAD).sum();
        let users: usize = self.users.iter().map(|user| user.len() + TEXT_OVERHEAD).sum();
        CONVERSATION_OVERHEAD + names + turns + runs + users + summaries_bytes(&self.summaries)
    }

    pub(crate) fn total(&self) -> Size {
        self.total
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = String> {
        self.runs.iter().map(ToString::to_string)
    }
}
