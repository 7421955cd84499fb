//! `cargo xtask faults`: uses the `redflow` that stands beside it.

use redflow_xtask::root;
use std::process::ExitCode;

fn main() -> ExitCode {
    redflow_xtask::exit("cargo xtask faults", |args| redflow_faults::run(&root(), args))
}
