//! What providers refuse, and what later requests leave out because of it.
//!
//! A model that is newer than this program, and a server that is not the provider's own, may refuse a field that
//! others take. The call is then made once more without it, and the deployed node remembers that. A deploy forgets it.

mod change;
mod edit;
pub mod formats;
mod texts;
pub mod thoughts;

pub use change::{Change, Interface};
pub(crate) use texts::{RefusedRequest, find_change, is_lasting};

use crate::call_error::shorten;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The most changes for one call, so that it makes at most one request more.
pub const MAX_CHANGES_OF_CALL: u32 = 3;

/// The most changes that are remembered of one node.
const MAX_LEARNT: usize = 16;

/// The changes that a node has learnt.
#[derive(Debug, Default)]
pub struct LearntChanges {
    /// Whether there are any. Most models have none.
    any: AtomicBool,
    changes: Mutex<Arc<[Change]>>,
}

impl LearntChanges {
    /// The changes, in the order in which they were learnt.
    #[must_use]
    pub fn get(&self) -> Arc<[Change]> {
        if !self.any.load(Ordering::Acquire) {
            return Arc::default();
        }
        Arc::clone(&self.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a change. A later change of the same field replaces an earlier one.
    pub fn add(&self, change: &Change) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = changes.iter().filter(|earlier| !change.replaces(earlier));
        let all: Vec<Change> = earlier.chain([change]).cloned().collect();
        let first = all.len().saturating_sub(MAX_LEARNT);
        *changes = all.into_iter().skip(first).collect();
        self.any.store(true, Ordering::Release);
    }
}

/// The longest name of a field that is shown.
const MAX_FIELD_CHARS: usize = 100;

/// The name of the field that is refused, for the log and for the run. `extraBody` can give it any name.
pub(crate) fn shown_field(change: &Change) -> String {
    shorten(&change.field(), MAX_FIELD_CHARS)
}

/// The limit of output tokens of an encoded request; none if it has none.
pub(crate) fn read_limit(body: &str) -> Option<u32> {
    edit::find(body, change::present(body, &change::LIMITS)?)?.parse().ok()
}

/// Applies changes to an encoded request.
pub(crate) fn apply(changes: &[Change], body: Vec<u8>) -> Vec<u8> {
    if changes.is_empty() {
        return body;
    }
    let Ok(mut text) = String::from_utf8(body) else { return Vec::new() };
    for change in changes {
        if let Some(changed) = change.apply(&text) {
            text = changed;
        }
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{Change, Interface, LearntChanges, MAX_LEARNT, apply};

    #[test]
    fn a_later_change_of_a_field_replaces_an_earlier_one() {
        let learnt = LearntChanges::default();
        assert!(learnt.get().is_empty());
        for change in [
            Change::Interface(Interface::Responses),
            Change::FreeChoice,
            Change::Effort("high"),
            Change::Interface(Interface::Chat),
            Change::FreeChoice,
            Change::Effort("low"),
        ] {
            learnt.add(&change);
        }
        let expected = [Change::Interface(Interface::Chat), Change::FreeChoice, Change::Effort("low")];
        assert_eq!(*learnt.get(), expected);
    }

    #[test]
    fn the_oldest_of_many_changes_is_forgotten() {
        let learnt = LearntChanges::default();
        let change = |number: usize| Change::Omit([format!("f{number}").into()].into());
        (0..=MAX_LEARNT).for_each(|number| learnt.add(&change(number)));
        assert_eq!(learnt.get().len(), MAX_LEARNT);
        assert_eq!(learnt.get().first(), Some(&change(1)));
    }

    #[test]
    fn changes_apply_in_their_order() {
        let body = br#"{"max_tokens":5,"seed":1}"#.to_vec();
        let changes = [
            Change::LimitName("max_completion_tokens"),
            Change::Omit(["seed".into()].into()),
            Change::Limit(9),
        ];
        assert_eq!(apply(&changes, body.clone()), br#"{"max_completion_tokens":9}"#);
        assert_eq!(apply(&[], body.clone()), body);
    }
}
