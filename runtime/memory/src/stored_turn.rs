//! One stored turn, and which turns of a conversation are recalled.

use crate::repair;
use crate::trim::{Limits, Size, turns_that_fit};
use redflow_contract::id::RunId;
use redflow_contract::input::kept_tags;
use redflow_contract::node::{TagMatch, TextList};
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{SummarisedConversation, Summary};
use std::sync::Arc;

/// What one run added to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredTurn {
    pub(crate) run: RunId,
    /// Whose turn it is; none if that is not known.
    pub(crate) user: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) size: Size,
}

/// Which turns a node recalls.
#[derive(Debug, Clone, Default)]
pub(crate) struct TagFilter {
    /// If it is empty, all turns pass.
    tags: Vec<String>,
    tag_match: TagMatch,
}

impl TagFilter {
    pub(crate) fn new(tags: Option<&TextList>, tag_match: Option<TagMatch>) -> Self {
        let tags = tags.map(TextList::list).unwrap_or_default();
        Self { tags: kept_tags(tags), tag_match: tag_match.unwrap_or_default() }
    }

    /// Whether every turn passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// A text that is the same for filters that pass the same turns; empty if every turn passes.
    pub(crate) fn name(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut tags: Vec<&str> = self.tags.iter().map(String::as_str).collect();
        tags.sort_unstable();
        // One tag is any of them, and all of them.
        let needs_all = self.tag_match == TagMatch::All && tags.len() > 1;
        serde_json::json!([needs_all, tags]).to_string()
    }

    fn passes(&self, tags: &[String]) -> bool {
        match self.tag_match {
            TagMatch::Any => self.is_empty() || self.tags.iter().any(|tag| tags.contains(tag)),
            TagMatch::All => self.tags.iter().all(|tag| tags.contains(tag)),
        }
    }
}

/// The turns that pass the filter and then are within the limits, oldest first.
pub(crate) fn recallable<'a>(
    newest_first: impl Iterator<Item = &'a Arc<StoredTurn>> + Clone,
    filter: &TagFilter,
    limits: Limits,
) -> Vec<Arc<StoredTurn>> {
    let passing = newest_first.filter(|turn| filter.passes(&turn.tags));
    let keep = turns_that_fit(passing.clone().map(|turn| turn.size), limits);
    let mut turns: Vec<Arc<StoredTurn>> = passing.take(keep).map(Arc::clone).collect();
    turns.reverse();
    turns
}

/// The messages of the complete turns.
pub(crate) fn join_complete(turns: &[Arc<StoredTurn>]) -> Vec<ChatMessage> {
    repair::join_complete_turns(turns.iter().map(|turn| &turn.messages))
}

/// The summary, and the complete turns after it that may be recalled. If the last turn of the summary is no longer stored,
/// all turns are later.
pub(crate) fn after_summary<'a>(
    summary: Option<Summary>,
    removals: u64,
    newest_first: impl Iterator<Item = &'a Arc<StoredTurn>> + Clone,
    filter: &TagFilter,
    limits: Limits,
) -> SummarisedConversation {
    let until = summary.as_ref().map(|summary| &summary.until);
    let later = recallable(newest_first.take_while(|turn| Some(&turn.run) != until), filter, limits);
    let complete = later.iter().filter(|turn| repair::is_complete(&turn.messages));
    let turns = complete.map(|turn| (turn.run.clone(), turn.messages.clone())).collect();
    SummarisedConversation { summary, turns, removals }
}
