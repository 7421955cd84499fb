//! `cargo xtask tidy`: runs the invariants of the tree, which are tests in `tests/invariants.rs`.

use crate::{Failure, process, switches};
use std::path::Path;
use std::process::ExitCode;

/// Runs the invariants alone.
///
/// # Errors
/// If the tests cannot be started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [] = switches(args, [])?;
    let tests = ["test", "--quiet", "--package", "redflow-xtask", "--test", "invariants"];
    Ok(process::exit_code(process::cargo(root, tests))?)
}
