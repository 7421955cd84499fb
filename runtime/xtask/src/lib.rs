//! The commands for developers, run as `cargo xtask COMMAND`.
//!
//! Owns the test command, the demo and release packages. It builds in seconds, so that the demo does: what needs the
//! code of the product (generators, fault tests, benchmarks, fuzzers) is in crates of its own, which it starts. The
//! product neither contains nor uses this crate.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the commands write to a terminal")]

pub mod bench;
mod built;
pub mod console;
pub mod demo;
pub mod files;
pub mod fuzz;
pub mod node_red;
pub mod package;
pub mod process;
pub mod test;
pub mod tidy;
mod tools;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why a command did not succeed.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The arguments are wrong: the process prints the usage and exits with code 2.
    Usage(String),
    /// The work failed: the process exits with code 1.
    Failed(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

struct XtaskCommand {
    name: &'static str,
    options: &'static str,
    about: &'static str,
    run: fn(&Path, &[String]) -> Result<ExitCode, Failure>,
}

const COMMANDS: &[XtaskCommand] = &[
    XtaskCommand {
        name: "demo",
        options: "[--once] [--json]",
        about: "build redflow and run an agent that uses a calculator; no network, no keys",
        run: demo::run,
    },
    XtaskCommand {
        name: "test",
        options: "[--fast]",
        about: "run everything that must pass; --fast skips the steps that need npm",
        run: test::run,
    },
    XtaskCommand {
        name: "console",
        options: "",
        about: "build the console, which the next build of redflow embeds; needs npm",
        run: console::run,
    },
    XtaskCommand {
        name: "node-red",
        options: "[ARGS…]",
        about: "prepare Node-RED and run the tests with it; nextest gets ARGS, such as the name of a test",
        run: node_red::run,
    },
    XtaskCommand {
        name: "tidy",
        options: "",
        about: "check the invariants of the tree alone (they are Rust tests too)",
        run: tidy::run,
    },
    XtaskCommand {
        name: "codegen",
        options: "[--check]",
        about: "write bindings/src/types.ts and schemas/; --check only compares them",
        run: built::codegen,
    },
    XtaskCommand {
        name: "bench",
        options: "[ARGS…]",
        about: "run the benchmarks, built for release",
        run: bench::run,
    },
    XtaskCommand {
        name: "faults",
        options: "[--quick|--long] [--release] [SUITE…]",
        about: "provoke crashes, kills, full disks and dead peers, and count the results (RELIABILITY.md)",
        run: built::faults,
    },
    XtaskCommand {
        name: "fuzz",
        options: "[ARGS…]",
        about: "send random and hostile inputs to every reader for some seconds each; see --help",
        run: fuzz::run,
    },
    XtaskCommand {
        name: "package",
        options: "[ARGS…]",
        about: "make the tarballs of a release: redflow for each platform, and the palette; see --help",
        run: package::run,
    },
    XtaskCommand { name: "help", options: "", about: "print this list", run: help },
];

/// Runs the command that the first argument names.
///
/// # Errors
/// If the command is unknown, its arguments are wrong, or it fails.
pub fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let (name, rest) = match args {
        [] => return Err(Failure::Usage("no command given".into())),
        [name, ..] if name == "--help" || name == "-h" => ("help", &args[..0]),
        [name, rest @ ..] => (name.as_str(), rest),
    };
    let command = COMMANDS
        .iter()
        .find(|command| command.name == name)
        .ok_or_else(|| Failure::Usage(format!("unknown command `{name}`")))?;
    (command.run)(&root(), rest)
}

/// The text of `cargo xtask help`: one line for each command.
#[must_use]
pub fn usage() -> String {
    let mut out = String::from("Usage: cargo xtask COMMAND\n\n");
    for XtaskCommand { name, options, about, .. } in COMMANDS {
        let _ = writeln!(out, "  {:<40}{about}", format!("{name} {options}"));
    }
    out.pop();
    out
}

fn help(_root: &Path, _args: &[String]) -> Result<ExitCode, Failure> {
    println!("{}", usage());
    Ok(ExitCode::SUCCESS)
}

/// The folder of the workspace's `Cargo.toml`.
#[must_use]
pub fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).unwrap_or(crate_folder).to_owned()
}

/// The end of a command's process: prints why it did not succeed.
pub fn exit(command: &str, run: impl FnOnce(&[String]) -> Result<ExitCode, Failure>) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(code) => code,
        Err(Failure::Usage(message)) => {
            eprintln!("{command}: {message}\n\n{}", usage());
            ExitCode::from(2)
        }
        Err(Failure::Failed(message)) => {
            eprintln!("{command}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// For each `known` switch, whether `args` contains it.
///
/// # Errors
/// If an argument is unknown.
pub fn switches<const N: usize>(args: &[String], known: [&str; N]) -> Result<[bool; N], Failure> {
    let mut given = [false; N];
    for arg in args {
        match known.iter().position(|switch| switch == arg) {
            Some(index) => given[index] = true,
            None => return Err(Failure::Usage(format!("unknown argument `{arg}`"))),
        }
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, Failure, root, run, switches, usage};

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn reports_an_unknown_command_or_switch_as_a_usage_error() {
        for line in [
            "",
            "no-such-command",
            "demo --no-such-switch",
            "console --no-such-switch",
            "tidy check",
            "tidy --all",
        ] {
            assert!(matches!(run(&words(line)), Err(Failure::Usage(_))), "{line}");
        }
    }

    #[test]
    fn help_names_every_command() {
        for command in COMMANDS {
            assert!(usage().contains(&format!("  {} ", command.name)), "{}", command.name);
        }
        for line in ["help", "--help", "-h"] {
            assert!(run(&words(line)).is_ok(), "{line}");
        }
    }

    #[test]
    fn accepts_switches_in_any_order() {
        assert_eq!(switches(&words("--b"), ["--a", "--b"]), Ok([false, true]));
        assert_eq!(switches(&words("--b --a"), ["--a", "--b"]), Ok([true, true]));
    }

    #[test]
    fn the_root_is_the_workspace() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }
}
