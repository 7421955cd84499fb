//! The exit codes of `redflow`.

use std::process::ExitCode;

/// How a command ends. Worse ends are larger, so `max` joins the ends of several steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Success = 0,
    /// The flow or the run failed.
    Failure = 1,
    /// The input cannot be used.
    Unusable = 2,
    /// A run waits for a person, or must be resumed.
    Waiting = 3,
}

/// The end of a command. With `Err` it stopped early, and the reason is printed already.
pub(crate) type CommandResult = Result<Exit, Exit>;

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
