//! `cargo xtask tidy`: runs the invariants of the tree, which are tests in `tests/invariants.rs`, and the
//! comparison of generated files.

use crate::{Failure, process, switches};
use std::path::Path;
use std::process::ExitCode;

/// Runs the invariants alone.
///
/// # Errors
/// If the tests cannot be started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [] = switches(args, [])?;
    let mut tests = process::cargo(root, ["test", "--quiet", "--no-fail-fast"]);
    // The second compares the generated files.
    tests.args(["--package", "redflow-xtask", "--test", "invariants"]);
    tests.args(["--package", "redflow-codegen", "--test", "current"]);
    Ok(process::exit_code(tests)?)
}
