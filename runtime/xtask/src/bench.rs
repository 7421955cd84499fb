//! `cargo xtask bench`: builds the benchmarks for release, installs what they need, and runs them.

use crate::{Failure, console, node_red, process, tools};
use std::path::Path;
use std::process::ExitCode;

/// The sections that start the `redflow` binary.
const WITH_BINARY: [&str; 3] = ["serve", CONSOLE, NODE_RED];

/// The section that needs a real Node-RED with our palette module.
const NODE_RED: &str = "node-red";

/// The section that needs a browser and the built console.
const CONSOLE: &str = "console";

/// An option with a value. The value is not a section.
const LINE: &str = "--line";

/// Runs the benchmarks with `args`.
///
/// # Errors
/// If a preparation fails or the benchmarks cannot be started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let sections = sections(args);
    if includes(&sections, &[NODE_RED]) {
        tools::node(root)?;
        node_red::prepare(root)?;
    }
    if includes(&sections, &[CONSOLE]) {
        // The binary embeds it.
        console::prepare(root)?;
        tools::browser_tests(root)?;
    }
    if includes(&sections, &WITH_BINARY) {
        process::check(process::cargo(root, ["build", "--release", "--package", "redflow-cli"]))?;
    }
    let mut command = process::cargo(root, ["run", "--release", "--package", "redflow-bench", "--"]);
    command.args(args);
    Ok(process::exit_code(command)?)
}

/// Whether one of these sections is measured. Without a name, all are.
fn includes(sections: &[&str], names: &[&str]) -> bool {
    sections.is_empty() || names.iter().any(|name| sections.contains(name))
}

/// The names of sections in `args`.
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
    use super::{CONSOLE, NODE_RED, WITH_BINARY, includes, sections};

    #[test]
    fn the_value_of_an_option_is_no_section() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            sections(&words).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(parse(&["--line", "4.1", "--quick"]), Vec::<String>::new());
        assert_eq!(parse(&["node-red", "--line", "4.1", "serve"]), ["node-red", "serve"]);
    }

    #[test]
    fn a_section_prepares_only_what_it_needs() {
        assert!(includes(&[], &[NODE_RED]) && includes(&[], &[CONSOLE]) && includes(&[], &WITH_BINARY));
        assert!(includes(&["console"], &[CONSOLE]) && includes(&["console"], &WITH_BINARY));
        assert!(!includes(&["console"], &[NODE_RED]) && !includes(&["serve"], &[CONSOLE]));
        assert!(!includes(&["step", "run"], &WITH_BINARY));
    }
}
