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
pub(crate) mod words;

use redflow_xtask::{codegen, files, process};
use std::path::Path;

/// Crates that do no I/O, read no clock and make no random numbers.
const PURE: &[&str] = &["contract", "json-schema", "flow", "machine", "converse", "react", "strategies"];

/// `schemas/` and `bindings/src/types.ts` are what `cargo xtask codegen` writes.
pub(crate) fn generated_files(root: &Path) -> Vec<String> {
    match codegen::problems(root) {
        Ok(problems) => problems.iter().map(|text| format!("{text}: run `cargo xtask codegen`")).collect(),
        Err(problem) => vec![problem],
    }
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
