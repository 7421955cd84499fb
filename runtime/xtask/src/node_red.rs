//! `cargo xtask node-red`: installs Node-RED and the packed palette module, and runs the tests with them.

use crate::tools::{check, install, node};
use crate::{Failure, process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The release lines of Node-RED; each has a folder with this name.
const LINES: [&str; 2] = ["4.1", "5"];

/// The beginning of the palette module's tarball, before the version.
const TARBALL: &str = "redflow-node-red-bridge-";

/// Prepares everything and runs the tests. nextest gets `args`, which can choose tests.
///
/// # Errors
/// If an installation or the build fails, or the tests cannot be started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    node(root)?;
    prepare(root)?;
    check(process::cargo(root, ["build", "--profile", "test", "--package", "redflow-cli"]))?;
    let mut tests =
        process::cargo(root, ["nextest", "run", "--package", "redflow-tests", "--test", "node_red"]);
    tests.arg("--no-fail-fast").args(args);
    Ok(process::exit_code(tests)?)
}

/// Installs both lines of Node-RED, and packs and installs the palette module as a user would.
pub(crate) fn prepare(root: &Path) -> Result<(), String> {
    let tests = root.join("tests/node_red");
    for line in LINES {
        install(&tests.join("lines").join(line))?;
    }
    let bridge = root.join("node-red-bridge");
    install(&bridge)?;
    let dist = tests.join("dist");
    let _ = fs::remove_dir_all(&dist);
    let user = dist.join("user");
    fs::create_dir_all(&user).map_err(|error| format!("{}: {error}", user.display()))?;
    let pack = ["pack", "--silent", "--pack-destination", "../tests/node_red/dist"];
    check(process::program(&bridge, "npm", pack))?;
    let manifest = "{\"name\": \"user\", \"private\": true}\n";
    fs::write(user.join("package.json"), manifest).map_err(|error| error.to_string())?;
    let mut add = process::program(&user, "npm", ["install", "--no-audit", "--no-fund", "--prefer-offline"]);
    add.arg(tarball(&dist)?);
    check(add)
}

/// The folder of the Node.js that [`prepare`] installs with the newer line.
pub(crate) fn newer_node(root: &Path) -> PathBuf {
    root.join("tests/node_red/lines/5/node_modules/.bin")
}

fn tarball(dist: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(dist).map_err(|error| error.to_string())?;
    let mut names =
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(TARBALL));
    names.next().map(|entry| entry.path()).ok_or_else(|| format!("`npm pack` made no {TARBALL}*.tgz"))
}
