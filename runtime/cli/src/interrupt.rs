//! Ctrl-C: the first cancels the runs, the second leaves at once.

use crate::terminal::talk;
use std::io;
use tokio_util::sync::CancellationToken;

/// Listens from now on, on a thread of its own: a second Ctrl-C is heard even while the output waits for its
/// reader.
pub(crate) fn listen(cancel: CancellationToken) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut heard = runtime.block_on(async { interrupts() })?;
    let watch = async move {
        if heard.recv().await.is_none() {
            return;
        }
        talk("cancelling; press Ctrl-C again to leave at once");
        cancel.cancel();
        if heard.recv().await.is_some() {
            #[allow(clippy::disallowed_methods, reason = "the user asked twice to leave at once")]
            std::process::exit(130);
        }
    };
    std::thread::Builder::new().spawn(move || runtime.block_on(watch)).map(drop)
}

#[cfg(unix)]
fn interrupts() -> io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn interrupts() -> io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}
