//! Signals: Ctrl-C cancels the runs, a request to terminate suspends them; either one again leaves at once. The end of
//! standard input is such a request too, where that was asked for.

use crate::terminal::talk;
use std::io;
use tokio_util::sync::CancellationToken;

/// What the user may ask for while runs are driven.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    /// The runs are to end.
    pub(crate) cancel: CancellationToken,
    /// The runs are to stop where they can go on later.
    pub(crate) suspend: CancellationToken,
}

/// What becomes of the runs without this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// They can go on later.
    Kept,
    /// They are gone.
    Lost,
    /// They go on: another process drives them.
    Elsewhere,
    /// They go on with the next sidecar. Either signal means the same.
    Served,
}

/// Listens from now on, on a thread of its own: a second signal is heard even while the output waits for its
/// reader. Runs that are not kept cannot go on later, so they are cancelled either way.
pub(crate) fn listen(wishes: Wishes, runs: Runs) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupts, mut terminations) =
        runtime.block_on(async { io::Result::Ok((interrupts()?, terminations()?)) })?;
    let watch = async move {
        let (mut interrupted, mut terminated) = (false, false);
        loop {
            tokio::select! {
                Some(()) = interrupts.recv() => {
                    if std::mem::replace(&mut interrupted, true) {
                        leave(130);
                    }
                    if runs == Runs::Served {
                        talk("stopping; press Ctrl-C again to leave at once");
                        wishes.suspend.cancel();
                    } else {
                        talk("cancelling; press Ctrl-C again to leave at once");
                        wishes.cancel.cancel();
                    }
                }
                Some(()) = terminations.recv() => {
                    if std::mem::replace(&mut terminated, true) {
                        leave(143);
                    }
                    match runs {
                        Runs::Kept => {
                            talk("suspending; the runs finish the step they are at, for at most 10 s");
                            wishes.suspend.cancel();
                        }
                        Runs::Lost => {
                            talk("cancelling: the runs are not kept");
                            wishes.cancel.cancel();
                        }
                        Runs::Elsewhere | Runs::Served => wishes.suspend.cancel(),
                    }
                }
                else => return,
            }
        }
    };
    std::thread::Builder::new().spawn(move || runtime.block_on(watch)).map(drop)
}

/// Suspends the runs when standard input ends, which it does with the process that holds its other end, however that
/// process came to its end. On a thread of its own: nothing can interrupt a read.
pub(crate) fn stop_with_stdin(wishes: &Wishes) -> io::Result<()> {
    let suspend = wishes.suspend.clone();
    let watch = move || {
        // An input that cannot be read is at its end as well.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        talk("stopping: standard input has ended");
        suspend.cancel();
    };
    std::thread::Builder::new().spawn(watch).map(drop)
}

#[allow(clippy::disallowed_methods, reason = "the user asked twice to leave at once")]
fn leave(code: i32) {
    std::process::exit(code);
}

#[cfg(unix)]
fn interrupts() -> io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(unix)]
fn terminations() -> io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
}

#[cfg(windows)]
fn interrupts() -> io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

/// Windows has no SIGTERM; Ctrl-Break is what comes nearest.
#[cfg(windows)]
fn terminations() -> io::Result<tokio::signal::windows::CtrlBreak> {
    tokio::signal::windows::ctrl_break()
}
