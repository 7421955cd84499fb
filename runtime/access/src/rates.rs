//! Limits how often each caller may send requests.
//!
//! Owns the counting only: the time is an argument, and nothing waits. The number of buckets is bounded.

use redflow_contract::Millis;
use std::collections::HashMap;
use std::sync::Arc;

/// More than the tokens and sessions that can exist together.
const MAX_BUCKETS: usize = 1024;

/// A token bucket: each request takes one turn, and time refills it up to the burst.
#[derive(Debug, Clone)]
pub struct RateBucket {
    per_second: u64,
    /// In thousandths of a turn, so that a millisecond adds a whole number.
    burst: u64,
    level: u64,
    at: Millis,
}

impl RateBucket {
    /// A full bucket. `burst` is the most turns that it holds.
    #[must_use]
    pub fn new(per_second: u32, burst: u32, now: Millis) -> Self {
        let burst = u64::from(burst) * 1000;
        Self { per_second: u64::from(per_second), burst, level: burst, at: now }
    }

    /// Takes a turn. False if none is left.
    pub fn take(&mut self, now: Millis) -> bool {
        self.fill(now);
        let left = self.level.checked_sub(1000);
        self.level = left.unwrap_or(self.level);
        left.is_some()
    }

    /// A clock that was set back changes nothing.
    fn fill(&mut self, now: Millis) {
        let gained = now.saturating_sub(self.at).saturating_mul(self.per_second);
        self.level = self.level.saturating_add(gained).min(self.burst);
        self.at = now;
    }
}

/// One [`RateBucket`] for each name.
#[derive(Debug)]
pub struct RateLimiter {
    per_second: u32,
    burst: u32,
    buckets: HashMap<Arc<str>, RateBucket>,
}

impl RateLimiter {
    /// A limiter whose buckets all have this rate and burst.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self { per_second, burst, buckets: HashMap::new() }
    }

    /// Takes a turn from the bucket of this name. False if none is left.
    pub fn take(&mut self, name: &Arc<str>, now: Millis) -> bool {
        if let Some(bucket) = self.buckets.get_mut(name) {
            return bucket.take(now);
        }
        if self.buckets.len() >= MAX_BUCKETS {
            self.evict(now);
        }
        let mut bucket = RateBucket::new(self.per_second, self.burst, now);
        let taken = bucket.take(now);
        self.buckets.insert(Arc::clone(name), bucket);
        taken
    }

    /// Removes full buckets, because a new one would be full too. If none is full, removes the least recently
    /// used one.
    fn evict(&mut self, now: Millis) {
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
        // (now, turns taken in ten attempts)
        let steps = [(0, 3), (0, 0), (499, 0), (500, 1), (1000, 1), (9000, 3), (8000, 0), (8500, 1)];
        let mut bucket = RateBucket::new(2, 3, 0);
        for (now, expected) in steps {
            let taken = (0..10).filter(|_| bucket.take(now)).count();
            assert_eq!(taken, expected, "at {now}");
        }
    }

    #[test]
    fn a_bucket_does_not_overflow() {
        let mut bucket = RateBucket::new(u32::MAX, u32::MAX, 0);
        assert!(bucket.take(u64::MAX));
        assert!(!RateBucket::new(0, 0, 0).take(u64::MAX));
    }

    #[test]
    fn each_name_has_its_own_bucket_and_their_number_is_bounded() {
        let mut limiter = RateLimiter::new(1, 1);
        let name = |n: usize| Arc::<str>::from(format!("t{n}"));
        assert!(limiter.take(&name(0), 0) && limiter.take(&name(1), 0));
        assert!(!limiter.take(&name(0), 0));
        for n in 2..3 * MAX_BUCKETS {
            assert!(limiter.take(&name(n), 1));
            assert!(limiter.buckets.len() <= MAX_BUCKETS);
        }
        // All those buckets are full again, so one more name evicts them.
        assert!(limiter.take(&name(9999), 5000));
        assert_eq!(limiter.buckets.len(), 1);
    }
}
