//! How much a memory does in one day, in UTC.

use redflow_contract::Millis;
use redflow_contract::code::{ArchiveCode, RunErrorCode};
use redflow_contract::day::Day;
use redflow_contract::run_error::Failure;
use redflow_ports::ArchiveError;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The most calls of a model that one memory makes in a day.
pub const MAX_MODEL_CALLS: u32 = 200;
/// The most new facts of one user in a day.
pub const MAX_NEW_FACTS: u64 = 50;

/// The calls that the memories of this process have made today, by the names of the memories. A deploy keeps them.
#[derive(Default)]
pub(crate) struct ModelCalls(Mutex<HashMap<String, (Day, u32)>>);

impl ModelCalls {
    /// Counts one more call of a memory.
    ///
    /// # Errors
    /// When the memory has made as many as it may.
    pub(crate) fn take(&self, memory: &str, now: Millis) -> Result<(), Failure> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let today = Day::of(now);
        let (day, calls) = all.entry(memory.to_owned()).or_insert((today, 0));
        // A clock that is set back does not give the day again.
        if *day < today {
            (*day, *calls) = (today, 0);
        }
        if *calls >= MAX_MODEL_CALLS {
            let message = format!(
                "The long memory has asked its model {MAX_MODEL_CALLS} times today, which is the most: it goes on \
                 tomorrow."
            );
            return Err(Failure { code: RunErrorCode::MemoryError, message });
        }
        *calls += 1;
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

#[cfg(test)]
mod tests {
    use super::{MAX_MODEL_CALLS, ModelCalls};

    #[test]
    fn a_memory_has_its_calls_once_a_day() {
        let (calls, day) = (ModelCalls::default(), 86_400_000);
        for _ in 0..MAX_MODEL_CALLS {
            calls.take("a", day).unwrap();
        }
        assert!(calls.take("a", day).unwrap_err().message.contains("200 times"));
        assert!(calls.take("b", day).is_ok());
        assert!(calls.take("a", 5).is_err(), "the clock was set back");
        assert!(calls.take("a", 2 * day).is_ok());
    }
}
