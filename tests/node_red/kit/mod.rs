//! The processes and servers around a test. It asserts nothing about their behaviour.

pub(crate) mod admin;
pub(crate) mod cable;
pub(crate) mod comms;
pub(crate) mod flow;
pub(crate) mod node_red;
pub(crate) mod release_line;
pub(crate) mod scene;
pub(crate) mod sidecar;
pub(crate) mod witness;

use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time limit of every wait.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Polls until `look` gives a value.
#[track_caller]
#[allow(clippy::manual_async_fn, reason = "an async function does not know its caller")]
pub(crate) fn eventually<T>(
    what: impl Into<String>,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    let (what, end) = (what.into(), Instant::now() + TIME_LIMIT);
    async move {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(Instant::now() < end, "{place}: timeout: {what}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// One test per release line of Node-RED.
macro_rules! on_both_lines {
    ($($name:ident)*) => { $(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_4_1() {
                super::$name($crate::kit::release_line::ReleaseLine::Older).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_5() {
                super::$name($crate::kit::release_line::ReleaseLine::Newer).await;
            }
        }
    )* };
}

/// A test on the newer line only, because its subject does not depend on the line.
macro_rules! on_the_newer_line {
    ($($name:ident)*) => { $(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_5() {
                super::$name($crate::kit::release_line::ReleaseLine::Newer).await;
            }
        }
    )* };
}

pub(crate) use {on_both_lines, on_the_newer_line};
