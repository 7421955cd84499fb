//! `cargo xtask bench`: the benchmarks, built for release.

use crate::{Failure, process};
use std::path::Path;
use std::process::ExitCode;

/// Runs the benchmarks with whatever follows on the command line.
///
/// # Errors
/// If they cannot be started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let mut command = process::cargo(root, ["run", "--release", "--package", "redflow-bench", "--"]);
    command.args(args);
    Ok(process::exit_code(command)?)
}
