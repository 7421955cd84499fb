//! `cargo xtask bench`: the benchmarks, built for release.

use crate::{Failure, process};
use std::path::Path;
use std::process::ExitCode;

/// The section that measures the command line itself, which has to be there.
const SERVES: &str = "serve";

/// Runs the benchmarks with whatever follows on the command line.
///
/// # Errors
/// If they cannot be started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let mut sections = args.iter().filter(|arg| !arg.starts_with("--")).peekable();
    if sections.peek().is_none() || sections.any(|section| section == SERVES) {
        process::check(process::cargo(root, ["build", "--release", "--package", "redflow-cli"]))?;
    }
    let mut command = process::cargo(root, ["run", "--release", "--package", "redflow-bench", "--"]);
    command.args(args);
    Ok(process::exit_code(command)?)
}
