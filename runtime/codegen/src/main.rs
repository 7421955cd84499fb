//! `cargo xtask codegen`: the work is in the library, so that a test can compare the files.

use redflow_xtask::root;
use std::process::ExitCode;

fn main() -> ExitCode {
    redflow_xtask::exit("cargo xtask codegen", |args| redflow_codegen::run(&root(), args))
}
