//! Runs that were just removed, and what else belongs to them.
//!
//! Owns the rule which chat items and which events hold words of a removed run. Knows no table.

use redflow_contract::Millis;
use redflow_contract::chat::{ChatItem, ChatSpeaker};
use redflow_contract::event::FlowEvent;
use redflow_contract::id::RunId;
use redflow_contract::stream::StreamEvent;
use std::collections::{HashMap, HashSet};

/// Events of the flow do not name the run that they belong to. So an event that shows free text is taken for one of a
/// removed run if it happened this long before its start, while it ran, or this long after its end.
const MARGIN_MS: Millis = 60_000;

/// The first lines of a journal: the header, the plan, and the message that starts the run.
const FIRST_LINES: usize = 3;

/// What stands before the id of a message, and before that of the chat item in it.
const ID_KEYS: [&str; 2] = ["\"_msgid\":\"", "\"id\":\""];

/// Runs that were just removed.
#[derive(Debug, Default)]
pub(crate) struct RemovedRuns {
    /// When each of them started and ended.
    times: HashMap<RunId, (Millis, Millis)>,
    /// The ids in the messages that started them, each with the run.
    messages: HashMap<String, RunId>,
    /// Runs that were removed earlier, but are still named.
    missing: HashSet<RunId>,
    /// The ids of messages that started runs that stay.
    kept_messages: HashSet<String>,
}

impl RemovedRuns {
    /// Adds a run. `journal` begins with the first lines of its journal.
    pub(crate) fn add(&mut self, run: RunId, started_at: Millis, ended_at: Millis, journal: &[u8]) {
        self.messages.extend(first_message_ids(journal).map(|id| (id, run.clone())));
        self.times.insert(run, (started_at, ended_at));
    }

    /// Adds a run that was removed earlier. Only its name is known.
    pub(crate) fn add_missing(&mut self, run: RunId) {
        self.missing.insert(run);
    }

    /// Keeps those of the messages that start a run that stays. `journal` begins with the first lines of its journal.
    pub(crate) fn keep_messages(&mut self, journal: &[u8], messages: &HashSet<String>) {
        self.kept_messages.extend(first_message_ids(journal).filter(|id| messages.contains(id)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.times.is_empty() && self.missing.is_empty()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &RunId> {
        self.times.keys()
    }

    pub(crate) fn contains(&self, run: &RunId) -> bool {
        self.times.contains_key(run) || self.missing.contains(run)
    }

    /// The removed run that an item of a chat names, or whose message it is.
    fn run_of<'a>(&'a self, item: &'a ChatItem) -> Option<&'a RunId> {
        match &item.trace_id {
            Some(run) => Some(run).filter(|run| self.contains(run)),
            None => self.messages.get(&item.id),
        }
    }

    /// Whether an item of a chat names a removed run, or is the message that started one.
    pub(crate) fn has_item(&self, item: &ChatItem) -> bool {
        self.run_of(item).is_some()
    }

    /// Which items of a chat belong to the runs, oldest first. A flow may replace the message of a person on its way
    /// to the agent. So if no message of a run is found, those right before its first item are taken for it, apart
    /// from those that start a run that stays.
    pub(crate) fn select_items(&self, items: &[ChatItem]) -> Vec<bool> {
        let is_person = |item: &ChatItem| item.speaker == ChatSpeaker::User;
        let mut selected: Vec<bool> = items.iter().map(|item| self.has_item(item)).collect();
        let mut answered: HashSet<&RunId> =
            items.iter().filter(|item| is_person(item)).filter_map(|item| self.run_of(item)).collect();
        for (place, item) in items.iter().enumerate().filter(|(_, item)| !is_person(item)) {
            let Some(run) = self.run_of(item) else { continue };
            if answered.insert(run) {
                let before = items.iter().zip(&mut selected).take(place).rev();
                let asked = before.take_while(|(item, _)| is_person(item));
                for (item, selected) in asked {
                    *selected |= item.trace_id.is_none() && !self.kept_messages.contains(&item.id);
                }
            }
        }
        selected
    }

    /// Whether an event may hold words of the runs.
    pub(crate) fn has_event(&self, event: &StreamEvent) -> bool {
        match event {
            StreamEvent::Run { event } => self.contains(&event.run_id),
            StreamEvent::Flow { at, event } => match event {
                FlowEvent::Chat { item, .. } => self.has_item(item),
                FlowEvent::ToolInvoked { call } => call.run_id.as_ref().is_some_and(|run| self.contains(run)),
                FlowEvent::Debug { .. } | FlowEvent::Uncaught { .. } => self.is_near(*at),
                _ => false,
            },
        }
    }

    /// Whether one of the runs was going on at this time, or almost.
    fn is_near(&self, at: Millis) -> bool {
        self.times
            .values()
            .any(|(start, end)| at.saturating_add(MARGIN_MS) >= *start && at <= end.saturating_add(MARGIN_MS))
    }
}

/// The event that takes the place of an event of a removed run.
pub(crate) fn erased_event(event: &StreamEvent) -> StreamEvent {
    let at = match event {
        StreamEvent::Run { event } => event.at,
        StreamEvent::Flow { at, .. } => *at,
    };
    StreamEvent::Flow { at, event: FlowEvent::Erased {} }
}

/// The ids of messages in the first lines of a journal.
fn first_message_ids(journal: &[u8]) -> impl Iterator<Item = String> {
    let lines = journal.split(|byte| *byte == b'\n').take(FIRST_LINES);
    lines.flat_map(|line| message_ids(&String::from_utf8_lossy(line)))
}

/// The ids of messages in a line of a journal.
fn message_ids(line: &str) -> Vec<String> {
    let ends = ID_KEYS.iter().flat_map(|key| line.match_indices(key).map(|(at, key)| at + key.len() - 1));
    ends.filter_map(|at| {
        let mut strings = serde_json::Deserializer::from_str(line.get(at..)?).into_iter::<String>();
        strings.next()?.ok()
    })
    .collect()
}

#[cfg(test)]
#[path = "removed_runs_tests.rs"]
mod tests;
