//! Measures how late the thread is that everything waits on.

use redflow_ports::{Measurement, Meter};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How often the thread is measured.
const INTERVAL: Duration = Duration::from_millis(50);

/// A delay is reported for at least this time, and for at most twice this time.
const WINDOW: Duration = Duration::from_secs(30);

/// Measures until the future is dropped.
pub(crate) async fn measure_loop_delay(meter: Arc<dyn Meter>) {
    let (mut worst, mut reported) = (WorstDelay::new(Instant::now()), Duration::ZERO);
    loop {
        let due = Instant::now() + INTERVAL;
        sleep_until(due).await;
        let now = Instant::now();
        let delay = worst.add(now.saturating_duration_since(due), now);
        if delay != reported {
            meter.record(Measurement::LoopDelay { worst: delay });
            reported = delay;
        }
    }
}

/// The worst delay of this window and of the one before.
struct WorstDelay {
    began: Instant,
    current: Duration,
    before: Duration,
}

impl WorstDelay {
    fn new(now: Instant) -> Self {
        Self { began: now, current: Duration::ZERO, before: Duration::ZERO }
    }

    /// Adds a delay and gives the worst one.
    fn add(&mut self, delay: Duration, now: Instant) -> Duration {
        if now.saturating_duration_since(self.began) >= WINDOW {
            *self = Self { before: self.current, ..Self::new(now) };
        }
        self.current = self.current.max(delay);
        self.current.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::{WINDOW, WorstDelay};
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn a_delay_is_reported_for_at_least_one_window() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let mut worst = WorstDelay::new(start);
        assert_eq!(worst.add(ms(2), start), ms(2));
        assert_eq!(worst.add(ms(700), start + WINDOW / 2), ms(700));
        assert_eq!(worst.add(ms(1), start + WINDOW), ms(700));
        assert_eq!(worst.add(ms(3), start + WINDOW * 2 - ms(1)), ms(700));
        assert_eq!(worst.add(ms(1), start + WINDOW * 2), ms(3));
    }
}
