//! `cargo xtask test`: runs everything that must pass, on any machine that has cargo.
//!
//! Every step runs even if an earlier one failed, so that a developer sees all problems at once. A step installs
//! what it needs if it can, and names what it cannot install.

use crate::{Failure, demo, faults, node_red, process, switches};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime};

/// The oldest Node.js that runs the bindings' tests. The mock of the providers needs a newer one; its tests fetch
/// that from npm.
const OLDEST_NODE: u32 = 18;

/// The oldest Node.js that runs the palette module.
const OLDEST_NODE_OF_PALETTE: u32 = 20;

/// The names that systems give to the program.
const CHROMIUM: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The steps that need Node.js, in order. The Rust tests have built the binary that they start.
const NODE_STEPS: &[(&str, NodeStep)] = &[
    ("golden bodies", golden_bodies),
    ("bindings", bindings),
    ("output against the bindings", typed_output),
    ("palette", palette),
    ("browser", |root| run_in_browser(root, "test")),
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

/// What happens without a rustup component.
#[derive(Clone, Copy)]
enum IfMissing {
    Skip,
    Fail,
}

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
    let if_missing = if on_ci { IfMissing::Fail } else { IfMissing::Skip };
    let began = Instant::now();
    let lint = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let mut reports = vec![
        step("format", || component(root, "rustfmt", &["fmt", "--all", "--check"], if_missing)),
        step("lints", || component(root, "clippy", &lint, if_missing)),
        // The tests of memories and of live models use a real Redis.
        step("Redis", || redis(root).into()),
    ];
    let mut node_js = NodeJs::NotWanted;
    if !fast {
        reports.push(step("Node.js", || node(root).into()));
        node_js = NodeJs::Missing;
    }
    if reports.contains(&("Node.js", Outcome::Passed)) {
        node_js = NodeJs::Found;
        // The Rust tests start Node-RED with the palette module.
        reports.push(step("Node-RED", || node_red::prepare(root).into()));
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

/// Prints the command, then runs it.
pub(crate) fn check(command: Command) -> Result<(), String> {
    println!("$ {}", process::command_line(&command));
    process::check(command)
}

/// Runs a cargo command of a rustup component.
fn component(root: &Path, name: &str, args: &[&str], if_missing: IfMissing) -> Outcome {
    let command = |args: &[&str]| {
        let mut command = process::cargo(root, []);
        command.args(args);
        command
    };
    let is_installed = process::works(command(&[args[0], "--version"]));
    if is_installed { check(command(args)).into() } else { missing_component(name, if_missing) }
}

fn missing_component(name: &str, if_missing: IfMissing) -> Outcome {
    let why = format!("{name} not installed (`rustup component add {name}`)");
    match if_missing {
        IfMissing::Fail => Outcome::Failed(why),
        IfMissing::Skip => Outcome::Skipped(why),
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
    check(command)
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

/// Tests the palette module on the system's Node.js, or on that of the newer Node-RED if the system's is too old.
fn palette(root: &Path) -> Result<(), String> {
    let folder = root.join("node-red-bridge");
    install(&folder)?;
    let version = process::read(process::program(root, "node", ["--version"]))?;
    let mut command = process::program(&folder, "npm", ["test"]);
    if node_major(&version).is_none_or(|major| major < OLDEST_NODE_OF_PALETTE) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(node_red::newer_node(root)).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).map_err(|error| error.to_string())?);
    }
    run_with_sidecar(root, command)
}

fn run_in_browser(root: &Path, script: &str) -> Result<(), String> {
    let given = std::env::var("CHROMIUM").ok().filter(|name| !name.is_empty());
    chromium(root, given.as_deref())?;
    let folder = root.join("tests/browser");
    install(&folder)?;
    run_with_sidecar(root, process::program(&folder, "npm", ["run", script]))
}

/// Runs a command of npm that starts a real sidecar.
fn run_with_sidecar(root: &Path, mut command: Command) -> Result<(), String> {
    command.env("REDFLOW_BIN", binary(root)?);
    check(command)
}

/// The binary that the Rust tests have built. To build its package alone would compile the dependencies again with
/// fewer features.
fn binary(root: &Path) -> Result<String, String> {
    let folder = target_folder(root)?;
    Ok(format!("{}/debug/redflow{}", folder.display(), std::env::consts::EXE_SUFFIX))
}

/// The folder of cargo's build results.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf, String> {
    let metadata = process::read(process::cargo(root, ["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    Ok(metadata["target_directory"].as_str().ok_or("cargo names no target folder")?.into())
}

/// Finds Node.js and npm, or installs them.
pub(crate) fn node(root: &Path) -> Result<(), String> {
    let advice = format!(
        "the tests need Node.js {OLDEST_NODE} or newer with npm: install them from your system's packages or \
         https://nodejs.org, or run `cargo xtask test --fast` without them"
    );
    find_or_install(root, &["npm", "node"], &["nodejs", "npm"], &advice)?;
    let version = process::read(process::program(root, "node", ["--version"]))?;
    println!("node {}", version.trim());
    match node_major(&version) {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => Err(format!("Node.js {} is too old: the tests need {OLDEST_NODE} or newer", version.trim())),
    }
}

fn node_major(version: &str) -> Option<u32> {
    version.trim().trim_start_matches('v').split('.').next()?.parse().ok()
}

/// Finds Redis, or installs it.
fn redis(root: &Path) -> Result<(), String> {
    let advice = "the tests need a real Redis: install the program redis-server from your system's packages";
    find_or_install(root, &["redis-server"], &["redis-server"], advice)
}

/// Finds Chromium under the given name or its usual names, or installs it.
fn chromium(root: &Path, given: Option<&str>) -> Result<(), String> {
    if let Some(name) = given {
        let problem = || format!("CHROMIUM names `{name}`, which does not run");
        return is_program(root, name).then_some(()).ok_or_else(problem);
    }
    if CHROMIUM.iter().any(|name| is_program(root, name)) {
        return Ok(());
    }
    let advice = "the tests need Chromium or Chrome: install it from your system's packages, name its program in \
                  the variable CHROMIUM, or run `cargo xtask test --fast` without it";
    find_or_install(root, &["chromium"], &["chromium"], advice)
}

fn is_program(root: &Path, name: &str) -> bool {
    process::works(process::program(root, name, ["--version"]))
}

/// Finds the programs. If one is missing, root on Debian installs the packages, and others get the advice.
fn find_or_install(root: &Path, programs: &[&str], packages: &[&str], advice: &str) -> Result<(), String> {
    if programs.iter().all(|name| is_program(root, name)) {
        return Ok(());
    }
    let is_root = process::read(process::program(root, "id", ["-u"])).is_ok_and(|id| id.trim() == "0");
    let is_debian = Path::new("/etc/debian_version").exists();
    if !(is_root && is_debian) {
        return Err(advice.to_owned());
    }
    println!("{} is not installed; installing Debian's packages", programs.join(" or "));
    check(apt_get(root, &["update"]))?;
    check(apt_get(root, &[&["install", "-y", "--no-install-recommends"], packages].concat()))
}

fn apt_get(root: &Path, args: &[&str]) -> Command {
    let mut command = process::program(root, "apt-get", []);
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Installs the packages of the lock file, unless nothing has changed since the last time.
pub(crate) fn install(folder: &Path) -> Result<(), String> {
    let changed = |name: &str| std::fs::metadata(folder.join(name)).and_then(|data| data.modified()).ok();
    // npm writes this file last.
    let installed = changed("node_modules/.package-lock.json");
    if is_stale(installed, &[changed("package.json"), changed("package-lock.json")]) {
        check(process::program(folder, "npm", ["ci", "--no-audit", "--no-fund"]))?;
    }
    Ok(())
}

fn is_stale(installed: Option<SystemTime>, sources: &[Option<SystemTime>]) -> bool {
    installed.is_none_or(|installed| sources.iter().any(|source| source.is_none_or(|at| at > installed)))
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
    use super::{
        IfMissing, NodeJs, Outcome, chromium, find_or_install, is_stale, missing_component, node_major,
        node_steps, summary,
    };
    use crate::root;
    use std::time::{Duration, SystemTime};

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
    fn a_missing_component_fails_only_on_ci() {
        let skipped = missing_component("rustfmt", IfMissing::Skip);
        assert!(matches!(skipped, Outcome::Skipped(why) if why.contains("rustfmt not installed")));
        assert!(matches!(missing_component("rustfmt", IfMissing::Fail), Outcome::Failed(_)));
    }

    #[test]
    fn an_installation_is_stale_when_a_source_is_newer() {
        let at = |seconds: u64| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(is_stale(None, &[at(1)]));
        assert!(is_stale(at(2), &[at(1), at(3)]));
        assert!(is_stale(at(2), &[None]));
        assert!(!is_stale(at(2), &[at(1), at(2)]));
    }

    #[test]
    fn does_not_install_a_program_that_exists() {
        assert_eq!(find_or_install(&root(), &["cargo"], &["no-such-package"], "advice"), Ok(()));
    }

    #[test]
    fn uses_only_the_browser_that_is_given() {
        assert_eq!(chromium(&root(), Some("cargo")), Ok(()));
        let error = chromium(&root(), Some("no-such-browser")).unwrap_err();
        assert_eq!(error, "CHROMIUM names `no-such-browser`, which does not run");
    }

    #[test]
    fn skips_the_steps_that_need_node_without_it() {
        let steps = node_steps(&root(), NodeJs::Missing);
        assert_eq!(steps.len(), 6);
        assert!(steps.iter().all(|(_, outcome)| matches!(outcome, Outcome::Skipped(_))), "{steps:?}");
    }

    #[test]
    fn reads_node_versions() {
        assert_eq!(node_major("v20.20.2\n"), Some(20));
        assert_eq!(node_major("what"), None);
    }
}
