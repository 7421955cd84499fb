//! Finds the binary that tests start as a process.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The `redflow` of the same build as the running test. Builds it if it is missing.
///
/// # Errors
/// If the test has no path, or the build fails.
pub fn redflow_binary() -> Result<PathBuf, String> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = test.parent().and_then(Path::parent).ok_or("the test is in no target folder")?;
    let binary = folder.join(format!("redflow{}", std::env::consts::EXE_SUFFIX));
    if !binary.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--package", "redflow-cli"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        let status = build.status().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err(format!("cargo cannot build redflow-cli ({status})"));
        }
    }
    Ok(binary)
}
