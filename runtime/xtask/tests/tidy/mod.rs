//! The invariants of the tree. Each check is a function from the tree to its problems.

pub(crate) mod clippy_files;
pub(crate) mod cycles;
pub(crate) mod dependencies;
mod lexer;
pub(crate) mod manifests;
pub(crate) mod packages;
pub(crate) mod repository;
pub(crate) mod security;
pub(crate) mod source;
pub(crate) mod spelling;
pub(crate) mod type_names;
pub(crate) mod words;

use redflow_xtask::{files, process};
use std::path::Path;

/// The crates that do I/O, read a clock or make random numbers, or are used only by developers. All others are pure.
const IMPURE_CRATES: &[(&str, &str)] = &[
    ("access", "listens"),
    ("archive", "SQLite"),
    ("cli", "the program"),
    ("codegen", "for developers"),
    ("egress", "sends requests"),
    ("engine", "a task of tokio"),
    ("faults", "for developers"),
    ("fuzz", "for developers"),
    ("knowledge", "reads a clock and waits for its ports"),
    ("long-memory", "reads a clock and waits for its ports"),
    ("mcp", "starts programs, sends requests"),
    ("memory", "Redis"),
    ("models", "sends requests"),
    ("node-red", "sends requests"),
    ("nodes", "reads a clock"),
    ("ports", "futures, and the places to stop at"),
    ("server", "listens"),
    ("store", "SQLite"),
    ("telemetry", "writes the log"),
    ("testkit", "for developers"),
    ("tools", "sends requests, starts programs"),
    ("worker", "starts a process"),
    ("xtask", "for developers"),
];

/// Crates that do no I/O, read no clock and make no random numbers.
fn pure_crates(root: &Path) -> Vec<String> {
    let is_pure = |name: &String| !IMPURE_CRATES.iter().any(|(impure, _)| impure == name);
    crates(root).into_iter().filter(is_pure).collect()
}

/// The crates of `runtime`.
fn crates(root: &Path) -> Vec<String> {
    let names = files::folders(root, "runtime").into_iter();
    names.map(|folder| folder.trim_start_matches("runtime/").to_owned()).collect()
}

/// The folders of all crates of the workspace.
fn all_crates(root: &Path) -> Vec<String> {
    let outside = ["bench", "tests"].map(str::to_owned);
    files::folders(root, "runtime").into_iter().chain(outside).collect()
}

/// Every exception names a crate that exists.
pub(crate) fn exceptions(root: &Path) -> Vec<String> {
    let known = crates(root);
    let gone = IMPURE_CRATES.iter().filter(|(name, _)| !known.iter().any(|known| known == name));
    gone.map(|(name, _)| format!("IMPURE_CRATES names {name}, which is no crate")).collect()
}

/// The paths that git keeps or would keep; without git, all files.
fn tracked_files(root: &Path) -> Vec<String> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    match process::read(process::program(root, "git", list)) {
        Ok(names) => names
            .split('\0')
            .filter(|name| !name.is_empty() && root.join(name).is_file())
            .map(str::to_owned)
            .collect(),
        Err(_) => files::list(root, ""),
    }
}

/// Reads the tracked files that `wanted` chooses and collects the problems of each.
fn check_files(
    root: &Path,
    wanted: impl Fn(&str) -> bool,
    check: impl Fn(&str, &str) -> Vec<String>,
) -> Vec<String> {
    let paths = tracked_files(root).into_iter().filter(|path| wanted(path)).collect();
    check_paths(root, paths, check)
}

fn check_paths(root: &Path, paths: Vec<String>, check: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    let problems_of = |path: String| match files::read(root, &path) {
        Ok(text) => check(&path, &text),
        Err(problem) => vec![problem],
    };
    paths.into_iter().flat_map(problems_of).collect()
}
