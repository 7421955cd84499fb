//! `cargo xtask`: the commands live in the library, so that `tests/` can call them.

use std::process::ExitCode;

fn main() -> ExitCode {
    redflow_xtask::exit("cargo xtask", redflow_xtask::run)
}
