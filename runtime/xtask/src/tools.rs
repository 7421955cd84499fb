//! Finds the programs that the commands need, and installs programs and npm packages.

use crate::process;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The oldest Node.js that runs the bindings' tests. The mock of the providers needs a newer one, which its
/// tests fetch from npm.
const OLDEST_NODE: u32 = 18;

/// The names that systems give to the program.
const CHROMIUM: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Prints the command, then runs it.
pub(crate) fn check(command: Command) -> Result<(), String> {
    println!("$ {}", process::command_line(&command));
    process::check(command)
}

/// The folder of cargo's build results.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf, String> {
    let metadata = process::read(process::cargo(root, ["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    Ok(metadata["target_directory"].as_str().ok_or("cargo names no target folder")?.into())
}

/// Finds Node.js and npm, or installs them.
pub(crate) fn node(root: &Path) -> Result<(), String> {
    let advice = format!(
        "Node.js {OLDEST_NODE} or newer with npm is missing: install both from your system's packages or \
         https://nodejs.org"
    );
    find_or_install(root, &["npm", "node"], &["nodejs", "npm"], &advice)?;
    let version = process::read(process::program(root, "node", ["--version"]))?;
    println!("node {}", version.trim());
    match node_major(&version) {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => Err(format!("Node.js {} is too old: install {OLDEST_NODE} or newer", version.trim())),
    }
}

/// The first number of a version of Node.js.
pub(crate) fn node_major(version: &str) -> Option<u32> {
    version.trim().trim_start_matches('v').split('.').next()?.parse().ok()
}

/// Finds Redis, or installs it.
pub(crate) fn redis(root: &Path) -> Result<(), String> {
    let advice = "the tests need a real Redis: install the program redis-server from your system's packages";
    find_or_install(root, &["redis-server"], &["redis-server"], advice)
}

/// Finds Chromium under the given name or its usual names, or installs it.
fn chromium(root: &Path, given: Option<&str>) -> Result<(), String> {
    if let Some(name) = given {
        let problem = || format!("CHROMIUM names `{name}`, which does not run");
        return is_program(root, name).then_some(()).ok_or_else(problem);
    }
    if CHROMIUM.iter().any(|name| is_program(root, name)) {
        return Ok(());
    }
    let advice = "the tests need Chromium or Chrome: install it from your system's packages, name its \
                  program in the variable CHROMIUM, or run `cargo xtask test --fast` without it";
    find_or_install(root, &["chromium"], &["chromium"], advice)
}

/// Finds or installs Chromium and the packages of the browser tests. Returns their folder.
pub(crate) fn browser_tests(root: &Path) -> Result<PathBuf, String> {
    let given = std::env::var("CHROMIUM").ok().filter(|name| !name.is_empty());
    chromium(root, given.as_deref())?;
    let folder = root.join("tests/browser");
    install(&folder)?;
    Ok(folder)
}

fn is_program(root: &Path, name: &str) -> bool {
    process::works(process::program(root, name, ["--version"]))
}

/// Finds the programs. If one is missing, root on Debian installs the packages, and others get the advice.
fn find_or_install(root: &Path, programs: &[&str], packages: &[&str], advice: &str) -> Result<(), String> {
    if programs.iter().all(|name| is_program(root, name)) {
        return Ok(());
    }
    let is_root = process::read(process::program(root, "id", ["-u"])).is_ok_and(|id| id.trim() == "0");
    let is_debian = Path::new("/etc/debian_version").exists();
    if !(is_root && is_debian) {
        return Err(advice.to_owned());
    }
    println!("{} is not installed; installing Debian's packages", programs.join(" or "));
    check(apt_get(root, &["update"]))?;
    check(apt_get(root, &[&["install", "-y", "--no-install-recommends"], packages].concat()))
}

fn apt_get(root: &Path, args: &[&str]) -> Command {
    let mut command = process::program(root, "apt-get", []);
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Installs the packages of the lock file, unless nothing has changed since the last time.
pub(crate) fn install(folder: &Path) -> Result<(), String> {
    install_by(folder, &["ci", "--no-audit", "--no-fund"])
}

/// The same for packages with parts for other systems: `npm ci` wants all of them, and a registry may lack some.
pub(crate) fn install_for_this_system(folder: &Path) -> Result<(), String> {
    install_by(folder, &["install", "--no-save", "--no-audit", "--no-fund"])
}

fn install_by(folder: &Path, args: &[&str]) -> Result<(), String> {
    let changed = |name: &str| std::fs::metadata(folder.join(name)).and_then(|data| data.modified()).ok();
    // npm writes this file last.
    let installed = changed("node_modules/.package-lock.json");
    if is_stale(installed, &[changed("package.json"), changed("package-lock.json")]) {
        let mut npm = process::program(folder, "npm", []);
        npm.args(args);
        check(npm)?;
    }
    Ok(())
}

fn is_stale(installed: Option<SystemTime>, sources: &[Option<SystemTime>]) -> bool {
    installed.is_none_or(|installed| sources.iter().any(|source| source.is_none_or(|at| at > installed)))
}

#[cfg(test)]
mod tests {
    use super::{chromium, find_or_install, is_stale, node_major};
    use crate::root;
    use std::time::{Duration, SystemTime};

    #[test]
    fn an_installation_is_stale_when_a_source_is_newer() {
        let at = |seconds: u64| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(is_stale(None, &[at(1)]));
        assert!(is_stale(at(2), &[at(1), at(3)]));
        assert!(is_stale(at(2), &[None]));
        assert!(!is_stale(at(2), &[at(1), at(2)]));
    }

    #[test]
    fn does_not_install_a_program_that_exists() {
        assert_eq!(find_or_install(&root(), &["cargo"], &["no-such-package"], "advice"), Ok(()));
    }

    #[test]
    fn uses_only_the_browser_that_is_given() {
        assert_eq!(chromium(&root(), Some("cargo")), Ok(()));
        let error = chromium(&root(), Some("no-such-browser")).unwrap_err();
        assert_eq!(error, "CHROMIUM names `no-such-browser`, which does not run");
    }

    #[test]
    fn reads_node_versions() {
        assert_eq!(node_major("v20.20.2\n"), Some(20));
        assert_eq!(node_major("what"), None);
    }
}
