//! Commands that are programs of their own, because they need the code of the product: builds and starts them.

use crate::{Failure, process};
use std::path::Path;
use std::process::ExitCode;

/// Writes or compares the generated files.
///
/// # Errors
/// If the generator cannot be built or started.
pub(crate) fn codegen(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let mut command = process::cargo(root, ["run", "--quiet", "--package", "redflow-codegen", "--"]);
    command.args(args);
    Ok(process::exit_code(command)?)
}

/// Causes faults in the program, which is built with places to stop at.
///
/// # Errors
/// If something cannot be built or started.
pub(crate) fn faults(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let is_release = args.iter().any(|arg| arg == "--release");
    let mut build =
        process::cargo(root, ["build", "--package", "redflow-cli", "--package", "redflow-faults"]);
    build.args(process::TEST_FEATURES).args(["--profile", if is_release { "release" } else { "test" }]);
    process::check(build)?;
    let folder = crate::tools::target_folder(root)?.join(if is_release { "release" } else { "debug" });
    let program = folder.join(format!("redflow-faults{}", std::env::consts::EXE_SUFFIX));
    let mut command = process::program(root, &program.to_string_lossy(), []);
    command.args(args.iter().filter(|arg| *arg != "--release"));
    Ok(process::exit_code(command)?)
}
