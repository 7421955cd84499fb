//! `cargo xtask test`: runs everything that must pass, on any machine that has cargo.
//!
//! Every step runs even if an earlier one failed, so that a developer sees all problems at once. A step
//! installs what it needs if it can, and names what it cannot install.

use crate::tools::{self, check, install, install_for_this_system};
use crate::{Failure, console, demo, faults, node_red, process, switches};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// The oldest Node.js that runs the tests of the palette module and of the console.
const OLDEST_NODE_OF_PACKAGES: u32 = 20;

/// The steps that need Node.js, in order. The Rust tests have built the binary that they start.
const NODE_STEPS: &[(&str, NodeStep)] = &[
    ("golden bodies", golden_bodies),
    ("bindings", bindings),
    ("output against the bindings", typed_output),
    ("palette", |root| test_package(root, "node-red-bridge")),
    ("console tests", |root| test_package(root, "console")),
    ("browser", |root| run_in_browser(root, "test")),
    ("console in a browser", |root| run_in_browser(root, "test:console")),
    ("editor", |root| run_in_browser(root, "test:editor")),
];

type NodeStep = fn(&Path) -> Result<(), String>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Passed)
    }
}

type Report = (&'static str, Outcome);

/// Whether the steps that need Node.js can run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeJs {
    Found,
    Missing,
    /// `--fast` was given.
    NotWanted,
}

/// Runs every step and prints a summary.
///
/// # Errors
/// If the arguments are wrong. A failed step is in the exit code.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [fast] = switches(args, ["--fast"])?;
    let on_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let if_missing = if on_ci { Outcome::Failed } else { Outcome::Skipped };
    let began = Instant::now();
    let lint = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let mut reports = vec![
        step("format", || component(root, "rustfmt", &["fmt", "--all", "--check"], if_missing)),
        step("lints", || component(root, "clippy", &lint, if_missing)),
        // The tests of memories and of live models use a real Redis.
        step("Redis", || tools::redis(root).into()),
    ];
    let mut node_js = NodeJs::NotWanted;
    if !fast {
        let advice = |why| format!("{why}, or run `cargo xtask test --fast` without them");
        reports.push(step("Node.js", || tools::node(root).map_err(advice).into()));
        node_js = NodeJs::Missing;
    }
    if reports.contains(&("Node.js", Outcome::Passed)) {
        node_js = NodeJs::Found;
        // The Rust tests build the program, which embeds the console.
        reports.push(step("console", || console::compare_builds(root).into()));
        // The Rust tests start Node-RED with the palette module.
        reports.push(step("Node-RED", || node_red::prepare(root).into()));
        // They also start servers and clients of MCP that are not ours.
        reports.push(step("MCP peers", || install_for_this_system(&root.join("tests/mcp")).into()));
    }
    reports.push(step("Rust tests", || rust_tests(root, node_js).into()));
    reports.push(step("traces", || traces(root).into()));
    reports.push(step("faults", || faults::quick(root).into()));
    if fast {
        let names: Vec<&str> = NODE_STEPS.iter().map(|(name, _)| *name).collect();
        println!("\n== {}\nskipped: --fast", names.join(", "));
    }
    reports.extend(node_steps(root, node_js));
    let (line, passed) = summary(&reports, began.elapsed());
    println!("\n{line}");
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn step(name: &'static str, work: impl FnOnce() -> Outcome) -> Report {
    println!("\n== {name}");
    let began = Instant::now();
    let outcome = work();
    let time = seconds(began.elapsed());
    match &outcome {
        Outcome::Passed => println!("passed in {time}"),
        Outcome::Skipped(why) => println!("skipped: {why}"),
        Outcome::Failed(why) => println!("FAILED after {time}: {why}"),
    }
    (name, outcome)
}

/// Runs a cargo command of a rustup component.
fn component(root: &Path, name: &str, args: &[&str], if_missing: fn(String) -> Outcome) -> Outcome {
    let command = |args: &[&str]| {
        let mut command = process::cargo(root, []);
        command.args(args);
        command
    };
    let is_installed = process::works(command(&[args[0], "--version"]));
    if is_installed {
        check(command(args)).into()
    } else {
        if_missing(format!("{name} not installed (`rustup component add {name}`)"))
    }
}

fn rust_tests(root: &Path, node_js: NodeJs) -> Result<(), String> {
    let has_nextest = process::works(process::cargo(root, ["nextest", "--version"]));
    let run: &[&str] = if has_nextest { &["nextest", "run"] } else { &["test"] };
    let mut command = process::cargo(root, []);
    command.args(run).args(["--workspace", "--no-fail-fast"]);
    if node_js == NodeJs::NotWanted {
        command.args(["--exclude", "redflow-tests"]);
    }
    check(command)?;
    // nextest leaves out the examples in the docs.
    if has_nextest { check(process::cargo(root, ["test", "--workspace", "--doc"])) } else { Ok(()) }
}

/// Tests the code of the feature `otel`, which no other step compiles.
fn traces(root: &Path) -> Result<(), String> {
    // Both packages in one command: cargo would build the dependencies again for each choice of packages.
    let packages = ["test", "--package", "redflow-telemetry", "--package", "redflow-cli"];
    let mut command = process::cargo(root, packages);
    command.args(["--features", "redflow-cli/otel,redflow-telemetry/otel", "--lib", "--test", "all", "otel"]);
    check(command)
}

fn node_steps(root: &Path, node_js: NodeJs) -> Vec<Report> {
    let run = |(name, work): &(&'static str, NodeStep)| match node_js {
        NodeJs::Found => Some(step(name, || work(root).into())),
        NodeJs::Missing => Some(step(name, || Outcome::Skipped("needs Node.js".into()))),
        NodeJs::NotWanted => None,
    };
    NODE_STEPS.iter().filter_map(run).collect()
}

/// Compares the golden request bodies with those of the providers' own clients.
fn golden_bodies(root: &Path) -> Result<(), String> {
    let folder = root.join("tests/peers");
    install(&folder)?;
    check(process::program(&folder, "npm", ["run", "--silent", "check-golden"]))
}

fn bindings(root: &Path) -> Result<(), String> {
    let folder = root.join("bindings");
    install(&folder)?;
    run_with_sidecar(root, process::program(&folder, "npm", ["test"]))
}

/// Compares what the command line prints with the types of the bindings.
fn typed_output(root: &Path) -> Result<(), String> {
    let run = process::program(root, &binary(root)?, ["run", demo::FLOW, "--json", "--ephemeral"]);
    let compare = ["run", "--silent", "check-output", "--", "-"];
    let compare = process::program(&root.join("bindings"), "npm", compare);
    println!("$ {} | {}", process::command_line(&run), process::command_line(&compare));
    let output = process::read(run)?;
    process::check_with_input(compare, &output)
}

/// Tests a package on the system's Node.js. If that is too old, on the one of the newer Node-RED.
fn test_package(root: &Path, name: &str) -> Result<(), String> {
    let folder = root.join(name);
    install(&folder)?;
    let version = process::read(process::program(root, "node", ["--version"]))?;
    let mut command = process::program(&folder, "npm", ["test"]);
    if tools::node_major(&version).is_none_or(|major| major < OLDEST_NODE_OF_PACKAGES) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(node_red::newer_node(root)).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).map_err(|error| error.to_string())?);
    }
    run_with_sidecar(root, command)
}

fn run_in_browser(root: &Path, script: &str) -> Result<(), String> {
    let folder = tools::browser_tests(root)?;
    run_with_sidecar(root, process::program(&folder, "npm", ["run", script]))
}

/// Runs a command of npm that starts a real sidecar.
fn run_with_sidecar(root: &Path, mut command: Command) -> Result<(), String> {
    command.env("REDFLOW_BIN", binary(root)?);
    check(command)
}

/// The binary that the Rust tests have built. To build its package alone would compile the dependencies again
/// with fewer features.
fn binary(root: &Path) -> Result<String, String> {
    let folder = tools::target_folder(root)?;
    Ok(format!("{}/debug/redflow{}", folder.display(), std::env::consts::EXE_SUFFIX))
}

/// The last line of the output, and whether no step failed.
fn summary(reports: &[Report], time: Duration) -> (String, bool) {
    let names = |wanted: fn(&Outcome) -> bool| -> Vec<&str> {
        reports.iter().filter(|(_, outcome)| wanted(outcome)).map(|(name, _)| *name).collect()
    };
    let passed = names(|outcome| *outcome == Outcome::Passed);
    let skipped = names(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let failed = names(|outcome| matches!(outcome, Outcome::Failed(_)));
    let mut line = if failed.is_empty() {
        format!("cargo xtask test: ok, {} passed", passed.len())
    } else {
        format!("cargo xtask test: FAILED: {}; {} passed", failed.join(", "), passed.len())
    };
    if !skipped.is_empty() {
        line += &format!(", {} skipped ({})", skipped.len(), skipped.join(", "));
    }
    (format!("{line} in {}", seconds(time)), failed.is_empty())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{NodeJs, Outcome, component, node_steps, summary};
    use crate::root;
    use std::time::Duration;

    #[test]
    fn the_summary_names_the_failed_steps() {
        let failed = || Outcome::Failed("why".into());
        let reports = [
            ("format", Outcome::Passed),
            ("lints", Outcome::Skipped("not here".into())),
            ("Rust tests", failed()),
            ("Node.js", failed()),
        ];
        let (line, passed) = summary(&reports, Duration::from_millis(1234));
        assert!(!passed);
        let wanted = "cargo xtask test: FAILED: Rust tests, Node.js; 1 passed, 1 skipped (lints) in 1.2 s";
        assert_eq!(line, wanted);
        let (line, passed) = summary(&reports[..1], Duration::ZERO);
        assert!(passed);
        assert_eq!(line, "cargo xtask test: ok, 1 passed in 0.0 s");
    }

    #[test]
    fn a_missing_component_is_skipped_or_fails() {
        let missing = |if_missing| component(&root(), "absent", &["no-such-command"], if_missing);
        assert!(
            matches!(missing(Outcome::Skipped), Outcome::Skipped(why) if why.contains("absent not installed"))
        );
        assert!(matches!(missing(Outcome::Failed), Outcome::Failed(_)));
    }

    #[test]
    fn skips_the_steps_that_need_node_without_it() {
        let steps = node_steps(&root(), NodeJs::Missing);
        assert_eq!(steps.len(), 8);
        assert!(steps.iter().all(|(_, outcome)| matches!(outcome, Outcome::Skipped(_))), "{steps:?}");
    }
}
