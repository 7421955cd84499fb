//! Rates, and buckets that limit how often each caller may do something.
//!
//! Owns the counting only: the time is an argument, and nothing waits. The number of buckets is bounded.

use crate::Millis;
use std::collections::HashMap;
use std::sync::Arc;

/// The most calls that a rate may name.
pub const MAX_RATE_CALLS: u32 = 1_000_000;

/// More than the tokens and sessions that can exist together.
const MAX_BUCKETS: usize = 1024;

/// The units of time that a rate may name, in milliseconds.
const UNITS: [(&str, Millis); 4] = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A number of calls in a time, such as `30/m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    calls: u32,
    /// In milliseconds.
    period: Millis,
}

impl Rate {
    /// A number of calls each second.
    #[must_use]
    pub const fn per_second(calls: u32) -> Self {
        Self { calls, period: 1_000 }
    }

    /// Reads a rate such as `30/m`: the number of calls per `s`, `m`, `h` or `d`.
    ///
    /// # Errors
    /// What a rate looks like, if the text is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = || {
            format!(
                "a number from 1 to {MAX_RATE_CALLS} and a unit, such as `30/m`; the units are `s`, `m`, `h` and `d`"
            )
        };
        let (calls, unit) = text.split_once('/').ok_or_else(form)?;
        let (_, period) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(form)?;
        let is_number = !calls.starts_with('0') && calls.bytes().all(|byte| byte.is_ascii_digit());
        let calls = calls.parse().ok().filter(|calls| is_number && *calls <= MAX_RATE_CALLS);
        Ok(Self { calls: calls.ok_or_else(form)?, period })
    }

    /// The number of calls.
    #[must_use]
    pub fn calls(self) -> u32 {
        self.calls
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = UNITS.iter().find(|(_, period)| *period == self.period).map_or("", |(name, _)| name);
        write!(f, "{}/{unit}", self.calls)
    }
}

/// A token bucket: each call takes one turn, and time refills it up to the burst.
#[derive(Debug, Clone)]
pub struct RateBucket {
    rate: Rate,
    /// A turn is as many units as its period has milliseconds, so that a millisecond adds a whole number.
    burst: u64,
    level: u64,
    at: Millis,
}

impl RateBucket {
    /// A full bucket. `burst` is the most turns that it holds.
    #[must_use]
    pub fn new(rate: Rate, burst: u32, now: Millis) -> Self {
        let burst = u64::from(burst).saturating_mul(rate.period);
        Self { rate, burst, level: burst, at: now }
    }

    /// Takes a turn. False if none is left.
    pub fn take(&mut self, now: Millis) -> bool {
        self.fill(now);
        let left = self.level.checked_sub(self.rate.period);
        self.level = left.unwrap_or(self.level);
        left.is_some()
    }

    /// Whether a turn is left.
    fn has_turn(&mut self, now: Millis) -> bool {
        self.fill(now);
        self.level >= self.rate.period
    }

    /// A clock that was set back changes nothing.
    fn fill(&mut self, now: Millis) {
        let gained = now.saturating_sub(self.at).saturating_mul(u64::from(self.rate.calls));
        self.level = self.level.saturating_add(gained).min(self.burst);
        self.at = now;
    }
}

/// One [`RateBucket`] for each name.
#[derive(Debug)]
pub struct RateLimiter {
    rate: Rate,
    burst: u32,
    buckets: HashMap<Arc<str>, RateBucket>,
}

impl RateLimiter {
    /// A limiter whose buckets all have this rate and burst.
    #[must_use]
    pub fn new(rate: Rate, burst: u32) -> Self {
        Self { rate, burst, buckets: HashMap::new() }
    }

    /// Whether the bucket of this name has a turn. A new bucket has one, unless the burst is 0.
    pub fn has_turn(&mut self, name: &Arc<str>, now: Millis) -> bool {
        self.buckets.get_mut(name).map_or(self.burst > 0, |bucket| bucket.has_turn(now))
    }

    /// Takes a turn from the bucket of this name. False if none is left.
    pub fn take(&mut self, name: &Arc<str>, now: Millis) -> bool {
        if let Some(bucket) = self.buckets.get_mut(name) {
            return bucket.take(now);
        }
        if self.buckets.len() >= MAX_BUCKETS {
            self.evict(now);
        }
        let mut bucket = RateBucket::new(self.rate, self.burst, now);
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
    use super::{MAX_BUCKETS, MAX_RATE_CALLS, Rate, RateBucket, RateLimiter};
    use std::sync::Arc;

    #[test]
    fn a_rate_is_a_number_and_a_unit() {
        for text in ["1/s", "30/m", "5/h", "1000000/d"] {
            assert_eq!(Rate::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Rate::parse("7/s"), Ok(Rate::per_second(7)));
        let above = format!("{}/s", MAX_RATE_CALLS + 1);
        for text in [
            "", "30", "/m", "30/", "0/s", "-1/s", "+1/s", "1.5/s", "030/m", "30/min", "30 /m", "30/m ",
            &above,
        ] {
            assert!(Rate::parse(text).unwrap_err().contains("such as `30/m`"), "{text}");
        }
    }

    // SECURITY: rate-limit
    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        // (now, turns taken in ten attempts)
        let steps = [(0, 3), (0, 0), (499, 0), (500, 1), (1000, 1), (9000, 3), (8000, 0), (8500, 1)];
        let mut bucket = RateBucket::new(Rate::per_second(2), 3, 0);
        for (now, expected) in steps {
            let taken = (0..10).filter(|_| bucket.take(now)).count();
            assert_eq!(taken, expected, "at {now}");
        }
    }

    #[test]
    fn a_bucket_refills_by_its_unit() {
        for (rate, turn) in [("2/s", 500), ("2/m", 30_000), ("2/h", 1_800_000), ("2/d", 43_200_000)] {
            let mut bucket = RateBucket::new(Rate::parse(rate).unwrap(), 1, 0);
            let taken = [0, turn - 1, turn, turn + 1, 2 * turn].map(|now| bucket.take(now));
            assert_eq!(taken, [true, false, true, false, true], "{rate}");
        }
    }

    #[test]
    fn a_bucket_does_not_overflow() {
        let mut bucket = RateBucket::new(Rate::per_second(u32::MAX), u32::MAX, 0);
        assert!(bucket.take(u64::MAX));
        assert!(RateBucket::new(Rate::parse("1000000/d").unwrap(), u32::MAX, 0).take(u64::MAX));
        assert!(!RateBucket::new(Rate::per_second(0), 0, 0).take(u64::MAX));
    }

    // SECURITY: sign-in-rate, rate-limit
    #[test]
    fn each_name_has_its_own_bucket_and_their_number_is_bounded() {
        let mut limiter = RateLimiter::new(Rate::per_second(1), 1);
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
