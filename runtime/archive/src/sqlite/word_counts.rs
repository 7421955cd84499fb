//! How many entries have a word. To count a frequent word takes longer than a search, so its number is kept.

use std::collections::HashMap;

/// The most numbers that are kept. When there are more, all are counted again.
const MAX_KEPT: usize = 4_096;

/// A smaller number is counted each time: that is fast.
const LEAST_KEPT: i64 = 64;

/// A number is counted again after so many changes of the archive: a part of the number itself.
const DRIFT_SHARE: i64 = 8;

/// About the bytes of a number with its word.
const BYTES: usize = 128;

/// The numbers of frequent words of a collection. Each is right but for an eighth.
#[derive(Debug, Default)]
pub(super) struct WordCounts(HashMap<String, WordCount>);

#[derive(Debug, Clone, Copy)]
struct WordCount {
    entries: i64,
    /// The last change of the archive that it counts.
    seq: i64,
}

impl WordCounts {
    /// The number of entries with a word, when `seq` is the last change of the archive.
    pub(super) fn get(
        &mut self,
        word: &str,
        seq: i64,
        count: impl FnOnce() -> rusqlite::Result<i64>,
    ) -> rusqlite::Result<i64> {
        if let Some(known) = self.0.get(word) {
            // A change adds or removes the word in one entry at most.
            let changes = seq - known.seq;
            if (0..=known.entries / DRIFT_SHARE).contains(&changes) {
                return Ok(known.entries);
            }
        }
        let entries = count()?;
        self.0.remove(word);
        if entries >= LEAST_KEPT {
            if self.0.len() >= MAX_KEPT {
                self.0.clear();
            }
            self.0.insert(word.to_owned(), WordCount { entries, seq });
        }
        Ok(entries)
    }

    /// The bytes that it holds, about.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAST_KEPT, MAX_KEPT, WordCounts};
    use pretty_assertions::assert_eq;

    fn get(counts: &mut WordCounts, word: &str, seq: i64, now: i64) -> i64 {
        counts.get(word, seq, || Ok(now)).unwrap()
    }

    #[test]
    fn a_number_is_kept_until_much_has_changed() {
        let mut counts = WordCounts::default();
        assert_eq!(get(&mut counts, "the", 1_000, 800), 800);
        assert_eq!(get(&mut counts, "the", 1_100, 900), 800, "an eighth may differ");
        assert_eq!(get(&mut counts, "the", 1_101, 901), 901);
        assert_eq!(get(&mut counts, "the", 1_000, 800), 800, "an earlier state is another one");
    }

    #[test]
    fn a_rare_word_is_counted_each_time() {
        let mut counts = WordCounts::default();
        assert_eq!(get(&mut counts, "pump", 1, LEAST_KEPT - 1), LEAST_KEPT - 1);
        assert_eq!(get(&mut counts, "pump", 1, 3), 3);
        assert_eq!(counts.0.len(), 0);
        // It was frequent once.
        get(&mut counts, "pump", 1, 80);
        assert_eq!(get(&mut counts, "pump", 100, 3), 3);
        assert_eq!(counts.0.len(), 0);
    }

    #[test]
    fn the_numbers_are_bounded() {
        let mut counts = WordCounts::default();
        for number in 0..=MAX_KEPT {
            get(&mut counts, &number.to_string(), 1, LEAST_KEPT);
            assert!(counts.0.len() <= MAX_KEPT);
        }
        assert_eq!(counts.0.len(), 1);
        assert!(counts.bytes() > 0);
    }
}
