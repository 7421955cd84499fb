//! The deadline of a call: one timer for its requests and its body.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The deadline of a call.
pub(crate) struct Deadline(Pin<Box<Sleep>>);

impl Deadline {
    pub(crate) fn after(time: Duration) -> Self {
        Self(Box::pin(sleep_until(Instant::now() + time.min(LONGEST))))
    }

    /// Begins again: the deadline is this time from now.
    pub(crate) fn restart(&mut self, time: Duration) {
        self.0.as_mut().reset(Instant::now() + time.min(LONGEST));
    }

    /// Waits for a future. `None`: the deadline came first.
    pub(crate) async fn wait<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.0.as_mut().poll(cx).map(|()| None),
        })
        .await
    }
}
