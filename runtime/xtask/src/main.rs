//! `cargo xtask`: the commands live in the library, so that `tests/` can call them.

#![allow(clippy::print_stderr, reason = "the command writes to a terminal")]

use redflow_xtask::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match redflow_xtask::run(&args) {
        Ok(code) => code,
        Err(Failure::Usage(message)) => {
            eprintln!("cargo xtask: {message}\n\n{}", redflow_xtask::usage());
            ExitCode::from(2)
        }
        Err(Failure::Failed(message)) => {
            eprintln!("cargo xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
