//! `cargo xtask node-red`: prepares what the tests with the real Node-RED need, and runs them. Owns where those things
//! lie; never what is tested.

use crate::test::{check, install, node};
use crate::{Failure, process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The lines of Node-RED, by their folders.
const LINES: [&str; 2] = ["4.1", "5"];

/// What `npm pack` makes of the palette module, up to its version.
const TARBALL: &str = "redflow-node-red-bridge-";

/// Prepares everything and runs the tests; what follows on the command line chooses among them.
///
/// # Errors
/// If something cannot be installed or built, or the tests cannot be started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    node(root)?;
    prepare(root)?;
    check(process::cargo(root, ["build", "--package", "redflow-cli"]))?;
    let mut tests =
        process::cargo(root, ["nextest", "run", "--package", "redflow-tests", "--test", "node_red"]);
    tests.args(["--no-fail-fast"]).args(args);
    Ok(process::exit_code(tests)?)
}

/// Both lines of Node-RED, and a user directory with the packed palette module, as npm installs it.
///
/// # Errors
/// If npm does not succeed.
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
    check(process::program(
        &bridge,
        "npm",
        ["pack", "--silent", "--pack-destination", "../tests/node_red/dist"],
    ))?;
    let tarball = tarball(&dist)?;
    let manifest = "{\"name\": \"user\", \"private\": true}\n";
    fs::write(user.join("package.json"), manifest).map_err(|error| error.to_string())?;
    let mut add = process::program(&user, "npm", ["install", "--no-audit", "--no-fund", "--prefer-offline"]);
    add.arg(tarball);
    check(add)
}

/// The folder with the Node.js of the newer line, once it is prepared.
pub(crate) fn newer_node(root: &Path) -> PathBuf {
    root.join("tests/node_red/lines/5/node_modules/.bin")
}

fn tarball(dist: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(dist).map_err(|error| error.to_string())?;
    let mut names =
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(TARBALL));
    names.next().map(|entry| entry.path()).ok_or_else(|| format!("`npm pack` left no {TARBALL}*.tgz"))
}
