//! `cargo xtask fuzz`: builds the fuzzers and the real `redflow`, and runs them.

use crate::{Failure, process};
use std::path::Path;
use std::process::ExitCode;

/// Runs the fuzzers with `args`.
///
/// # Errors
/// If they cannot be built or started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    // The whole workspace, so that cargo uses the dependencies that the tests have built.
    let build =
        ["build", "--quiet", "--profile", "test", "--workspace", "--exclude", "redflow-bench", "--bins"];
    process::check(process::cargo(root, build))?;
    let mut command =
        process::cargo(root, ["run", "--quiet", "--profile", "test", "--package", "redflow-fuzz", "--"]);
    command.args(args);
    Ok(process::exit_code(command)?)
}
