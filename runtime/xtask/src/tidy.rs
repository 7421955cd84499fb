//! `cargo xtask tidy`: the invariants of the tree. Each is a function from the tree to its problems, and each
//! is a test of its own in `tests/invariants.rs`.

pub mod dependencies;
pub mod lints;
pub mod manifests;
pub mod repository;
pub mod source;

use crate::{Failure, switches};
use std::path::Path;
use std::process::ExitCode;

/// One invariant: its name, and the problems it finds in a tree.
pub type Check = (&'static str, fn(&Path) -> Vec<String>);

/// Crates that do no I/O, read no clock and know no randomness.
pub const PURE: &[&str] = &["contract", "flow", "react"];

/// Every invariant.
pub const CHECKS: &[Check] = &[
    ("pure_crates_depend_on_nothing_impure", dependencies::pure_crates),
    ("pure_crates_touch_no_system", source::pure_code),
    ("pure_crates_have_clippy_bans", lints::clippy_files),
    ("shipped_binary_carries_no_derives", dependencies::shipped_binary),
    ("files_are_short", source::short_files),
    ("no_panics_and_no_unsafe", source::no_panics),
    ("every_crate_takes_the_workspace_lints", manifests::lints),
    ("doors_open_downward", manifests::doors),
    ("versions_agree", manifests::versions),
    ("no_private_paths", repository::private_paths),
    ("lock_files_name_no_private_host", repository::lock_files),
    ("examples_are_described", repository::examples),
    ("codes_are_tested", repository::codes),
    ("generated_files_are_current", generated),
];

/// Prints every problem of every invariant.
///
/// # Errors
/// If there are any.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [] = switches(args, [])?;
    let mut count = 0;
    for (name, check) in CHECKS {
        let problems = check(root);
        println!("{} {name}", if problems.is_empty() { "ok    " } else { "FAILED" });
        for problem in &problems {
            println!("         {problem}");
        }
        count += problems.len();
    }
    match count {
        0 => Ok(ExitCode::SUCCESS),
        1 => Err(Failure::Failed("1 problem".into())),
        _ => Err(Failure::Failed(format!("{count} problems"))),
    }
}

/// `schemas/` and `bindings/src/types.ts` are what `cargo xtask codegen` writes.
#[must_use]
pub fn generated(root: &Path) -> Vec<String> {
    match crate::codegen::problems(root) {
        Ok(problems) => {
            problems.into_iter().map(|text| format!("{text}: run `cargo xtask codegen`")).collect()
        }
        Err(problem) => vec![problem],
    }
}
