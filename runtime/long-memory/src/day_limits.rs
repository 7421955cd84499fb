//! How much a memory does in one day, in UTC.

use crate::owner::Owner;
use crate::store::{EntryStore, PAGE};
use redflow_contract::Millis;
use redflow_contract::archive::{Entry, EntryKind};
use redflow_contract::code::{ArchiveCode, RunErrorCode};
use redflow_contract::day::Day;
use redflow_contract::run_error::Failure;
use redflow_ports::{ArchiveError, EntryFilter};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// The most calls of a model that one memory makes in a day.
pub const MAX_MODEL_CALLS: u32 = 200;
/// The most new facts of one user in a day.
pub const MAX_NEW_FACTS: u64 = 50;

/// The kinds that count in the limit of new entries: all but turns and copies of resources.
const COUNTED: [EntryKind; 6] = [
    EntryKind::Fact,
    EntryKind::Preference,
    EntryKind::Decision,
    EntryKind::Summary,
    EntryKind::Log,
    EntryKind::Chunk,
];
/// The days that are kept of a memory.
const KEPT_DAYS: usize = 8;

/// The calls that the memories of this process have made, by the names of the memories and by day. A deploy keeps them.
///
/// Each day has a count of its own, whatever the clock does. So a clock that was ahead takes nothing from the days before,
/// and one that is set back does not give a day again.
#[derive(Default)]
pub(crate) struct ModelCalls(Mutex<HashMap<String, BTreeMap<Day, u32>>>);

impl ModelCalls {
    /// Counts one more call of a memory.
    ///
    /// # Errors
    /// When the memory has made as many as it may.
    pub(crate) fn take(&self, memory: &str, now: Millis) -> Result<(), Failure> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (days, today) = (all.entry(memory.to_owned()).or_default(), Day::of(now));
        let calls = days.entry(today).or_default();
        if *calls >= MAX_MODEL_CALLS {
            let message = format!(
                "The long memory has asked its model {MAX_MODEL_CALLS} times today, which is the most: it goes on \
                 tomorrow."
            );
            return Err(Failure { code: RunErrorCode::MemoryError, message });
        }
        *calls += 1;
        // The day that is the farthest from today is the least likely to come again.
        while days.len() > KEPT_DAYS
            && let Some(day) = days.keys().max_by_key(|day| day.0.abs_diff(today.0)).copied()
        {
            days.remove(&day);
        }
        Ok(())
    }
}

/// There are too many new facts today.
pub(crate) fn too_many_facts() -> ArchiveError {
    ArchiveError::new(
        ArchiveCode::ArchiveFull,
        format!(
            "{MAX_NEW_FACTS} new entries were stored for this user today, which is the most: go on tomorrow."
        ),
    )
}

/// How many entries of an owner were stored today, besides turns. Stops at the limit of the day. Entries of later days
/// do not count: the clock was set back.
pub(crate) async fn new_facts(store: &EntryStore, owner: &Owner, now: Millis) -> Result<u64, ArchiveError> {
    let today = Day::of(now);
    let filter = EntryFilter { kinds: COUNTED.to_vec(), since: Some(today.start()), ..owner.entry_filter() };
    let (mut count, mut after) = (0, None::<String>);
    loop {
        let page = store.list(filter.clone(), after.as_deref(), PAGE).await?;
        let is_counted = |entry: &&Entry| owner.has(entry) && Day::of(entry.created_at) == today;
        count += page.iter().filter(is_counted).count() as u64;
        if page.len() < PAGE || count >= MAX_NEW_FACTS {
            return Ok(count);
        }
        after = page.last().map(|entry| entry.key.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_DAYS, MAX_MODEL_CALLS, ModelCalls};

    const DAY: u64 = 86_400_000;

    fn take_all(calls: &ModelCalls, memory: &str, at: u64) {
        for _ in 0..MAX_MODEL_CALLS {
            calls.take(memory, at).unwrap();
        }
    }

    #[test]
    fn a_memory_has_its_calls_once_a_day() {
        let calls = ModelCalls::default();
        take_all(&calls, "a", DAY);
        assert!(calls.take("a", DAY).unwrap_err().message.contains("200 times"));
        assert!(calls.take("b", DAY).is_ok());
        assert!(calls.take("a", 2 * DAY).is_ok());
    }

    #[test]
    fn a_clock_that_is_set_gives_no_day_twice() {
        let calls = ModelCalls::default();
        take_all(&calls, "a", 400 * DAY);
        // The clock was ahead.
        take_all(&calls, "a", DAY);
        for _ in 0..10 {
            for at in [400 * DAY, DAY, DAY + 5] {
                assert!(calls.take("a", at).is_err(), "{at}");
            }
        }
    }

    #[test]
    fn few_days_are_kept() {
        let calls = ModelCalls::default();
        for day in 0..100 {
            calls.take("a", day * DAY).unwrap();
        }
        let all = calls.0.lock().unwrap();
        let days: Vec<i64> = all["a"].keys().map(|day| day.0).collect();
        assert_eq!(days.len(), KEPT_DAYS);
        assert_eq!(days.last(), Some(&99), "those before today");
    }
}
