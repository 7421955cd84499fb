//! Signals: Ctrl-C cancels the runs, SIGTERM suspends them, and the same signal again exits at once.

use crate::terminal::print_note;
use std::io;
use tokio_util::sync::CancellationToken;

/// How the user wants the runs to stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopSignals {
    /// The runs must end.
    pub(crate) cancel: CancellationToken,
    /// The runs must stop after their current step and can be resumed later.
    pub(crate) suspend: CancellationToken,
}

/// What happens to the runs when this process ends, which decides what the signals mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunLifetime {
    /// They are stored and can be resumed.
    Stored,
    /// They are lost, so they are cancelled on both signals.
    Ephemeral,
    /// A sidecar continues them.
    Remote,
    /// This process is the sidecar. The next one resumes them, so both signals suspend.
    Served,
}

/// Listens for signals on its own thread, so that a second signal works even while a write to the output
/// blocks.
pub(crate) fn listen(signals: StopSignals, lifetime: RunLifetime) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupts, mut terminations) =
        runtime.block_on(async { io::Result::Ok((interrupts()?, terminations()?)) })?;
    let listen = async move {
        let (mut interrupted, mut terminated) = (false, false);
        loop {
            tokio::select! {
                Some(()) = interrupts.recv() => {
                    if std::mem::replace(&mut interrupted, true) {
                        exit_now(130);
                    }
                    if lifetime == RunLifetime::Served {
                        print_note("stopping; press Ctrl-C again to exit at once");
                        signals.suspend.cancel();
                    } else {
                        print_note("cancelling; press Ctrl-C again to exit at once");
                        signals.cancel.cancel();
                    }
                }
                Some(()) = terminations.recv() => {
                    if std::mem::replace(&mut terminated, true) {
                        exit_now(143);
                    }
                    match lifetime {
                        RunLifetime::Stored => {
                            print_note("suspending; the runs finish their current step, for at most 10 s");
                            signals.suspend.cancel();
                        }
                        RunLifetime::Ephemeral => {
                            print_note("cancelling: the runs are not stored");
                            signals.cancel.cancel();
                        }
                        RunLifetime::Remote | RunLifetime::Served => signals.suspend.cancel(),
                    }
                }
                else => return,
            }
        }
    };
    std::thread::Builder::new().spawn(move || runtime.block_on(listen)).map(drop)
}

/// Suspends the runs when standard input ends, which happens when the parent process ends for any reason. It
/// needs its own thread, because a blocking read cannot be interrupted.
pub(crate) fn stop_with_stdin(signals: &StopSignals) -> io::Result<()> {
    let suspend = signals.suspend.clone();
    let wait = move || {
        // An input that cannot be read counts as ended.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        print_note("stopping: standard input has ended");
        suspend.cancel();
    };
    std::thread::Builder::new().spawn(wait).map(drop)
}

#[allow(clippy::disallowed_methods, reason = "the user sent the signal twice to exit at once")]
fn exit_now(code: i32) {
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

/// Windows has no SIGTERM; Ctrl-Break is the nearest signal.
#[cfg(windows)]
fn terminations() -> io::Result<tokio::signal::windows::CtrlBreak> {
    tokio::signal::windows::ctrl_break()
}
