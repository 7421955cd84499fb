//! Where the real binary is.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary that was built with these tests; built now if it was not.
pub(crate) fn redflow() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let binary = folder.join(format!("redflow{}", std::env::consts::EXE_SUFFIX));
    if !binary.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--package", "redflow-cli"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().unwrap().success(), "the binary could not be built");
    }
    binary
}
