//! `cargo xtask bench`: the benchmarks, built for release, and what some of them need beside.

use crate::{Failure, node_red, process, test};
use std::path::Path;
use std::process::ExitCode;

/// The sections that measure the command line itself, which has to be there.
const SERVES: [&str; 2] = ["serve", NODE_RED];

/// The section that needs a real Node-RED, with our palette module.
const NODE_RED: &str = "node-red";

/// The option whose value is no section.
const LINE: &str = "--line";

/// Runs the benchmarks with whatever follows on the command line.
///
/// # Errors
/// If they cannot be started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let sections = sections(args);
    let wants = |names: &[&str]| sections.is_empty() || names.iter().any(|name| sections.contains(name));
    if wants(&[NODE_RED]) {
        test::node(root)?;
        node_red::prepare(root)?;
    }
    if wants(&SERVES) {
        process::check(process::cargo(root, ["build", "--release", "--package", "redflow-cli"]))?;
    }
    let mut command = process::cargo(root, ["run", "--release", "--package", "redflow-bench", "--"]);
    command.args(args);
    Ok(process::exit_code(command)?)
}

/// The sections that are asked for by name.
fn sections(args: &[String]) -> Vec<&str> {
    let mut args = args.iter().map(String::as_str);
    let mut sections = Vec::new();
    while let Some(arg) = args.next() {
        if arg == LINE {
            args.next();
        } else if !arg.starts_with("--") {
            sections.push(arg);
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::sections;

    #[test]
    fn what_follows_an_option_is_no_section() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            sections(&words).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of(&["--line", "4.1", "--quick"]), Vec::<String>::new());
        assert_eq!(of(&["node-red", "--line", "4.1", "serve"]), ["node-red", "serve"]);
    }
}
