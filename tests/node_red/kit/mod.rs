//! What the tests are made of. Owns the processes and servers around a test; never what is asserted of them.

pub(crate) mod admin;
pub(crate) mod cable;
pub(crate) mod comms;
pub(crate) mod flow;
pub(crate) mod line;
pub(crate) mod node_red;
pub(crate) mod scene;
pub(crate) mod sidecar;
pub(crate) mod witness;

use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Nothing takes this long; reached only by what went wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until it is there.
#[track_caller]
#[allow(clippy::manual_async_fn, reason = "an async function does not know who called it")]
pub(crate) fn eventually<T>(
    what: impl Into<String>,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    let (what, end) = (what.into(), Instant::now() + PATIENCE);
    async move {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(Instant::now() < end, "{place}: it never came: {what}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// One test per line of Node-RED.
macro_rules! on_both_lines {
    ($($name:ident)*) => { $(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_4_1() {
                super::$name($crate::kit::line::Line::Older).await;
            }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_5() {
                super::$name($crate::kit::line::Line::Newer).await;
            }
        }
    )* };
}

/// A test on the newer line only: what it shows does not depend on the line.
macro_rules! on_the_newer_line {
    ($($name:ident)*) => { $(
        mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_5() {
                super::$name($crate::kit::line::Line::Newer).await;
            }
        }
    )* };
}

pub(crate) use {on_both_lines, on_the_newer_line};
