//! `cargo xtask test`: runs everything that must pass, on any machine that has cargo.
//!
//! Every step runs even if an earlier one failed, so that a developer sees all problems at once. A step
//! installs what it needs if it can, and names what it cannot install. Steps that mostly wait run beside the
//! compiler and beside the Rust tests.

mod report;
mod side;

use crate::tools::{self, check, install, install_for_this_system};
use crate::{Failure, console, demo, node_red, process};
use report::{Outcome, Report, step};
use side::Side;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// The oldest Node.js that runs the tests of the palette module and of the console.
const OLDEST_NODE_OF_PACKAGES: u32 = 20;

/// What the Rust tests start: packages of npm, and the console, which the program embeds.
const PREPARATIONS: &[Step] = &[
    // The tests of memories and of live models use a real Redis.
    Step::new("Redis", tools::redis),
    Step::new("Node.js", |root| {
        let advice = |why| format!("{why}, or run `cargo xtask test --fast` without them");
        tools::node(root).map_err(advice)
    }),
    Step::new("console", console::compare_builds),
    Step::new("Node-RED", node_red::prepare),
    // Servers and clients of MCP that are not ours.
    Step::new("MCP peers", |root| install_for_this_system(&root.join("tests/mcp"))),
];

/// The steps beside the Rust tests, in order. They start the binary that the Rust tests have built.
const BESIDE: &[Step] = &[
    Step::new("golden bodies", golden_bodies),
    Step::new("bindings", bindings),
    Step::new("output against the bindings", typed_output),
    Step::new("palette", |root| test_package(root, "node-red-bridge")),
    Step::new("console tests", |root| test_package(root, "console")),
    Step::new("browser", |root| run_in_browser(root, "test")),
    Step::new("console in a browser", |root| run_in_browser(root, "test:console")),
    Step::new("editor", |root| run_in_browser(root, "test:editor")),
];

/// Kills under load want a quiet machine: they run when everything else has ended.
const FAULTS: Step = Step::new("faults", faults);

/// The steps that a bare machine without Node.js can run.
const WITHOUT_NODE: [&str; 1] = ["Redis"];

const USAGE: &str = "use --fast, --keep-times, or --only STEP,STEP,…";

struct Step {
    name: &'static str,
    run: fn(&Path) -> Result<(), String>,
}

impl Step {
    const fn new(name: &'static str, run: fn(&Path) -> Result<(), String>) -> Self {
        Self { name, run }
    }

    fn report(&self, root: &Path) -> Report {
        step(self.name, || (self.run)(root).into())
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Without the steps that need npm.
    fast: bool,
    /// Writes the times of the steps into the repository.
    keep_times: bool,
    /// Runs these steps alone; what they need is there.
    only: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.as_slice().first()) {
            ("--fast", _) => options.fast = true,
            ("--keep-times", _) => options.keep_times = true,
            ("--only", Some(names)) => {
                options.only = names.split(',').map(str::to_owned).collect();
                args.next();
            }
            _ => return Err(Failure::Usage(format!("unknown argument `{arg}`: {USAGE}"))),
        }
    }
    let known: Vec<&str> = named_steps().map(|step| step.name).collect();
    if let Some(unknown) = options.only.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::Usage(format!("unknown step `{unknown}`; there are {}", known.join(", "))));
    }
    Ok(options)
}

/// The steps that can run alone.
fn named_steps() -> impl Iterator<Item = &'static Step> {
    PREPARATIONS.iter().chain(BESIDE).chain([&FAULTS])
}

/// Runs every step and prints a summary.
///
/// # Errors
/// If the arguments are wrong. A failed step is in the exit code.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let options = parse(args)?;
    let began = Instant::now();
    let reports = if options.only.is_empty() {
        all(root, options.fast)?
    } else {
        let wanted = |step: &&Step| options.only.iter().any(|name| name == step.name);
        named_steps().filter(wanted).map(|step| step.report(root)).collect()
    };
    if !options.only.is_empty() {
        let failed = reports.iter().any(|report| matches!(report.outcome, Outcome::Failed(_)));
        return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let (text, passed) = report::summary(root, &reports, began.elapsed());
    println!("\n{text}");
    if options.keep_times && passed && !options.fast {
        report::keep_times(root, &reports)?;
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn all(root: &Path, fast: bool) -> Result<Vec<Report>, Failure> {
    let on_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let if_missing = if on_ci { Outcome::Failed } else { Outcome::Skipped };
    let lint =
        [&["clippy", "--workspace", "--all-targets"][..], &process::TEST_FEATURES, &["--", "-D", "warnings"]];
    let mut reports =
        vec![step("format", || component(root, "rustfmt", &["fmt", "--all", "--check"], if_missing))];
    let preparations = PREPARATIONS.iter().filter(|step| !fast || WITHOUT_NODE.contains(&step.name));
    let preparations = Side::start(root, "preparations", preparations.map(|step| step.name).collect())?;
    reports.push(step("lints", || component(root, "clippy", &lint.concat(), if_missing)));
    reports.extend(preparations.reports());
    let has_node = !fast && passed(&reports, "Node.js");
    // Without the steps of Node.js, also the Rust tests that start Node-RED are left out.
    let scope = if fast { &["--exclude", "redflow-tests"][..] } else { &[] };
    reports.push(step("build", || rust(root, &["--no-run"], scope).into()));
    let beside = match (passed(&reports, "build"), has_node) {
        (true, true) => Some(Side::start(root, "beside", BESIDE.iter().map(|step| step.name).collect())?),
        _ => None,
    };
    reports.push(step("Rust tests", || rust_tests(root, scope).into()));
    match beside {
        Some(side) => reports.extend(side.reports()),
        None => {
            let why = if fast { "--fast" } else { "needs Node.js and the build" };
            let skipped = |step: &Step| Report::new(step.name, Outcome::Skipped(why.to_owned()));
            reports.extend(BESIDE.iter().map(skipped));
        }
    }
    reports.push(FAULTS.report(root));
    Ok(reports)
}

fn passed(reports: &[Report], name: &str) -> bool {
    reports.iter().any(|report| report.name == name && report.outcome == Outcome::Passed)
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

fn has_nextest(root: &Path) -> bool {
    process::works(process::cargo(root, ["nextest", "--version"]))
}

/// Builds or runs the tests of all crates.
fn rust(root: &Path, args: &[&str], scope: &[&str]) -> Result<(), String> {
    let run: &[&str] = if has_nextest(root) { &["nextest", "run"] } else { &["test"] };
    let mut command = process::cargo(root, []);
    command.args(run).arg("--workspace").args(process::TEST_FEATURES).args(scope).args(args);
    check(command)
}

fn rust_tests(root: &Path, scope: &[&str]) -> Result<(), String> {
    if !has_nextest(root) {
        return rust(root, &["--no-fail-fast"], scope);
    }
    // One more than the processors, because many tests wait for other processes.
    let at_once =
        std::thread::available_parallelism().map_or(2, |processors| processors.get() + 1).to_string();
    let tests = rust(root, &["--no-fail-fast", "--test-threads", &at_once], scope);
    // nextest leaves out the examples in the docs.
    let mut examples = process::cargo(root, ["test", "--quiet", "--workspace", "--doc"]);
    examples.args(process::TEST_FEATURES).args(scope);
    tests.and(check(examples))
}

fn faults(root: &Path) -> Result<(), String> {
    let name = format!("redflow-faults{}", std::env::consts::EXE_SUFFIX);
    let program = tools::target_folder(root)?.join("debug").join(name);
    check(process::program(root, &program.to_string_lossy(), ["--quick"]))
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

#[cfg(test)]
mod tests {
    use super::{BESIDE, FAULTS, Options, Outcome, PREPARATIONS, component, parse};
    use crate::{Failure, root};

    fn words(line: &str) -> Vec<String> {
        line.split('|').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn reads_the_options() {
        assert_eq!(parse(&[]), Ok(Options::default()));
        let wanted = Options { fast: true, keep_times: true, only: vec!["editor".into(), "Node-RED".into()] };
        assert_eq!(parse(&words("--only|editor,Node-RED|--fast|--keep-times")), Ok(wanted));
        for line in ["--only", "--only|no such step", "--slow"] {
            assert!(matches!(parse(&words(line)), Err(Failure::Usage(_))), "{line}");
        }
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
    fn every_step_has_a_name_of_its_own() {
        let mut names: Vec<&str> =
            PREPARATIONS.iter().chain(BESIDE).chain([&FAULTS]).map(|step| step.name).collect();
        assert_eq!(names.len(), 14);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 14);
        assert!(names.iter().all(|name| !name.contains(',')));
    }
}
