//! How often somebody may ask.
//!
//! Owns counting alone: time comes in, nothing waits. The number of buckets is bounded.

use redflow_contract::Millis;
use std::collections::HashMap;
use std::sync::Arc;

/// The most buckets kept. Tokens and sessions together are fewer.
const MAX_BUCKETS: usize = 1024;

/// A bucket of turns that fills by itself, up to its burst.
#[derive(Debug, Clone)]
pub struct RateBucket {
    per_second: u64,
    /// Thousandths of a turn: what a millisecond adds is a whole number then.
    burst: u64,
    level: u64,
    at: Millis,
}

impl RateBucket {
    /// A full one.
    #[must_use]
    pub fn new(per_second: u32, burst: u32, now: Millis) -> Self {
        let burst = u64::from(burst) * 1000;
        Self { per_second: u64::from(per_second), burst, level: burst, at: now }
    }

    /// Takes a turn, if there is one.
    pub fn take(&mut self, now: Millis) -> bool {
        self.fill(now);
        let left = self.level.checked_sub(1000);
        self.level = left.unwrap_or(self.level);
        left.is_some()
    }

    /// A clock that was set back adds nothing, and takes nothing away.
    fn fill(&mut self, now: Millis) {
        let gained = now.saturating_sub(self.at).saturating_mul(self.per_second);
        self.level = self.level.saturating_add(gained).min(self.burst);
        self.at = now;
    }
}

/// A bucket for each name.
#[derive(Debug)]
pub struct RateLimiter {
    per_second: u32,
    burst: u32,
    buckets: HashMap<Arc<str>, RateBucket>,
}

impl RateLimiter {
    /// None yet.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self { per_second, burst, buckets: HashMap::new() }
    }

    /// Takes a turn from the bucket of this name, if there is one.
    pub fn take(&mut self, name: &Arc<str>, now: Millis) -> bool {
        if let Some(bucket) = self.buckets.get_mut(name) {
            return bucket.take(now);
        }
        if self.buckets.len() >= MAX_BUCKETS {
            self.raise_open_file_limit(now);
        }
        let mut bucket = RateBucket::new(self.per_second, self.burst, now);
        let taken = bucket.take(now);
        self.buckets.insert(Arc::clone(name), bucket);
        taken
    }

    /// A full bucket is worth as much as none. If all are in use, the one that was not used for longest goes.
    fn raise_open_file_limit(&mut self, now: Millis) {
        self.buckets.retain(|_, bucket| {
            let mut filled = bucket.clone();
            filled.fill(now);
            filled.level < filled.burst
        });
        if self.buckets.len() >= MAX_BUCKETS {
            let oldest =
                self.buckets.iter().min_by_key(|(_, bucket)| bucket.at).map(|(name, _)| Arc::clone(name));
            oldest.map(|name| self.buckets.remove(&name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_BUCKETS, RateBucket, RateLimiter};
    use std::sync::Arc;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        // (now, turns that are given of ten asked for)
        let steps = [(0, 3), (0, 0), (499, 0), (500, 1), (1000, 1), (9000, 3), (8000, 0), (8500, 1)];
        let mut bucket = RateBucket::new(2, 3, 0);
        for (now, expected) in steps {
            let given = (0..10).filter(|_| bucket.take(now)).count();
            assert_eq!(given, expected, "at {now}");
        }
    }

    #[test]
    fn a_bucket_counts_no_further_than_its_numbers() {
        let mut bucket = RateBucket::new(u32::MAX, u32::MAX, 0);
        assert!(bucket.take(u64::MAX));
        assert!(!RateBucket::new(0, 0, 0).take(u64::MAX));
    }

    #[test]
    fn names_do_not_share_and_their_number_is_bounded() {
        let mut rates = RateLimiter::new(1, 1);
        let name = |n: usize| Arc::<str>::from(format!("t{n}"));
        assert!(rates.take(&name(0), 0) && rates.take(&name(1), 0));
        assert!(!rates.take(&name(0), 0));
        for n in 2..3 * MAX_BUCKETS {
            assert!(rates.take(&name(n), 1));
            assert!(rates.buckets.len() <= MAX_BUCKETS);
        }
        // All those are full again: one more name finds room by their going.
        assert!(rates.take(&name(9999), 5000));
        assert_eq!(rates.buckets.len(), 1);
    }
}
