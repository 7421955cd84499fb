//! `cargo xtask test`: everything that must pass, on any machine that has cargo.
//!
//! Every step runs even if an earlier one failed, so that all problems are seen at once. What a step needs and
//! can fetch by itself, it fetches; what it cannot, it names.

use crate::{Failure, demo, faults, node_red, process, switches};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant, SystemTime};

/// The oldest Node.js that runs the bindings' tests. The mock of the providers wants a newer one; its tests fetch
/// that from npm themselves.
const OLDEST_NODE: u32 = 18;

/// The oldest Node.js that runs the palette module.
const OLDEST_NODE_OF_PALETTE: u32 = 20;

/// What the program of Chromium is called.
const CHROMIUM: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

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

/// Runs every step and sums up.
///
/// # Errors
/// If a step failed.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [fast] = switches(args, ["--fast"])?;
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let began = Instant::now();
    let mut reports = vec![
        step("format", || component(root, ci, "rustfmt", &["fmt"], &["fmt", "--all", "--check"])),
        step("lints", || {
            let lint = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
            component(root, ci, "clippy", &["clippy"], &lint)
        }),
    ];
    // The tests of memories and of live models talk to the real ones.
    let redis = step("Redis", || redis(root).into());
    let node = (!fast).then(|| step("Node.js", || node(root).into()));
    let has_node = node.as_ref().is_some_and(|(_, outcome)| *outcome == Outcome::Passed);
    reports.push(redis);
    reports.extend(node);
    if has_node {
        // The Rust tests start it, with the palette module.
        reports.push(step("Node-RED", || node_red::prepare(root).into()));
    }
    reports.push(step("Rust tests", || rust_tests(root, fast)));
    reports.push(step("traces", || traces(root)));
    reports.push(step("faults", || faults::quick(root).into()));
    if fast {
        println!("\n== golden bodies, bindings, palette, browser, editor\nskipped: --fast");
    } else {
        reports.extend(node_steps(root, has_node));
    }
    let (line, passed) = summary(&reports, began.elapsed());
    println!("\n{line}");
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is only in builds with the feature `otel`, and no other test compiles.
fn traces(root: &Path) -> Outcome {
    // Together: each choice of packages has features of its own, and its dependencies would be built for each.
    let features = "redflow-cli/otel,redflow-telemetry/otel";
    let mut command =
        process::cargo(root, ["test", "--package", "redflow-telemetry", "--package", "redflow-cli"]);
    command.args(["--features", features, "--lib", "--test", "all", "otel"]);
    check(command).into()
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

/// Says the command, then runs it in the open.
pub(crate) fn check(command: Command) -> Result<(), String> {
    println!("$ {}", process::shown(&command));
    process::check(command)
}

/// Runs a command of a rustup component, if that is installed.
fn component(root: &Path, ci: bool, name: &str, probe: &[&str], args: &[&str]) -> Outcome {
    let command = |args: &[&str]| {
        let mut command = process::cargo(root, []);
        command.args(args);
        command
    };
    let mut version = command(probe);
    version.arg("--version");
    if process::works(version) { check(command(args)).into() } else { absent(ci, name) }
}

fn absent(ci: bool, name: &str) -> Outcome {
    let why = format!("{name} not installed (`rustup component add {name}`)");
    if ci { Outcome::Failed(why) } else { Outcome::Skipped(why) }
}

fn rust_tests(root: &Path, fast: bool) -> Outcome {
    let nextest = process::works(process::cargo(root, ["nextest", "--version"]));
    let mut command = if nextest {
        process::cargo(root, ["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        process::cargo(root, ["test", "--workspace", "--no-fail-fast"])
    };
    if fast {
        // They need Node.js.
        command.args(["--exclude", "redflow-tests"]);
    }
    check(command).into()
}

fn node_steps(root: &Path, ready: bool) -> [Report; 6] {
    let (peers, folder) = (root.join("tests/peers"), root.join("bindings"));
    let (palette, pages) = (root.join("node-red-bridge"), root.join("tests/browser"));
    let needs_node = || Outcome::Skipped("needs Node.js".into());
    let golden = step("golden bodies", || {
        if ready { install(&peers).and_then(|()| golden_bodies(&peers)).into() } else { needs_node() }
    });
    let bindings = step("bindings", || {
        if ready {
            install(&folder).and_then(|()| npm_run(root, &folder, "test")).into()
        } else {
            needs_node()
        }
    });
    let output = step("output against the bindings", || {
        if ready { typed_output(root, &folder).into() } else { needs_node() }
    });
    let palette = step("palette", || {
        if ready {
            install(&palette).and_then(|()| palette_test(root, &palette)).into()
        } else {
            needs_node()
        }
    });
    let in_browser = |script: &str| {
        let named = std::env::var("CHROMIUM").ok().filter(|name| !name.is_empty());
        chromium(root, named.as_deref())?;
        install(&pages)?;
        npm_run(root, &pages, script)
    };
    let browser = step("browser", || if ready { in_browser("test").into() } else { needs_node() });
    let editor = step("editor", || if ready { in_browser("test:editor").into() } else { needs_node() });
    [golden, bindings, output, palette, browser, editor]
}

/// Finds Node.js and npm; on Debian, as root, installs them.
pub(crate) fn node(root: &Path) -> Result<(), String> {
    let advice = format!(
        "the tests need Node.js {OLDEST_NODE} or newer with npm: install them from your system's packages or \
         https://nodejs.org, or run `cargo xtask test --fast` without them"
    );
    needs(root, &["npm", "node"], &["nodejs", "npm"], &advice)?;
    let version = process::read(process::program(root, "node", ["--version"]))?;
    println!("node {}", version.trim());
    match node_major(&version) {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => Err(format!("Node.js {} is too old: the tests need {OLDEST_NODE} or newer", version.trim())),
    }
}

/// Finds Redis; on Debian, as root, installs it.
fn redis(root: &Path) -> Result<(), String> {
    let advice = "the tests need a real Redis: install the program redis-server from your system's packages";
    needs(root, &["redis-server"], &["redis-server"], advice)
}

/// Finds Chromium, under the name that somebody gave it or one of its own; on Debian, as root, installs it.
fn chromium(root: &Path, named: Option<&str>) -> Result<(), String> {
    let there = |name: &str| process::works(process::program(root, name, ["--version"]));
    if let Some(named) = named {
        return if there(named) {
            Ok(())
        } else {
            Err(format!("CHROMIUM names `{named}`, which does not run"))
        };
    }
    if CHROMIUM.iter().any(|name| there(name)) {
        return Ok(());
    }
    let advice = "the tests need Chromium or Chrome: install it from your system's packages, name its program in the \
                  variable CHROMIUM, or run `cargo xtask test --fast` without it";
    needs(root, &["chromium"], &["chromium"], advice)
}

/// Finds programs; if one of them is missing, installs packages on Debian as root, and gives advice elsewhere.
fn needs(root: &Path, programs: &[&str], packages: &[&str], advice: &str) -> Result<(), String> {
    let there = |name: &&str| process::works(process::program(root, name, ["--version"]));
    if programs.iter().all(there) {
        return Ok(());
    }
    let root_user = process::read(process::program(root, "id", ["-u"])).is_ok_and(|id| id.trim() == "0");
    let debian = Path::new("/etc/debian_version").exists();
    if !(root_user && debian) {
        return Err(advice.to_owned());
    }
    println!("{} is not installed; fetching Debian's packages", programs.join(" or "));
    check(apt(root, &["update"]))?;
    check(apt(root, &[&["install", "-y", "--no-install-recommends"], packages].concat()))
}

fn apt(root: &Path, args: &[&str]) -> Command {
    let mut command = process::program(root, "apt-get", []);
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn node_major(version: &str) -> Option<u32> {
    version.trim().trim_start_matches('v').split('.').next()?.parse().ok()
}

/// Installs what the lock file names, unless that was done since it last changed.
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

/// The golden request bodies are what the providers' own clients would send.
fn golden_bodies(peers: &Path) -> Result<(), String> {
    check(process::program(peers, "npm", ["run", "--silent", "check-golden"]))
}

/// What is written in JavaScript talks to a real sidecar.
fn npm_run(root: &Path, folder: &Path, script: &str) -> Result<(), String> {
    let mut command = process::program(folder, "npm", ["run", script]);
    command.env("REDFLOW_BIN", binary(root)?);
    check(command)
}

/// The palette module's own tests, on the system's Node.js or, where that is too old for it, on that of Node-RED's newer
/// line.
fn palette_test(root: &Path, folder: &Path) -> Result<(), String> {
    let version = process::read(process::program(root, "node", ["--version"]))?;
    let mut command = process::program(folder, "npm", ["test"]);
    if node_major(&version).is_none_or(|major| major < OLDEST_NODE_OF_PALETTE) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(node_red::newer_node(root)).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).map_err(|error| error.to_string())?);
    }
    command.env("REDFLOW_BIN", binary(root)?);
    check(command)
}

/// The binary the tests have just built: building the package alone would compile its dependencies again with fewer
/// features.
fn binary(root: &Path) -> Result<String, String> {
    let folder = target_folder(root)?;
    Ok(format!("{}/debug/redflow{}", folder.display(), std::env::consts::EXE_SUFFIX))
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder(root: &Path) -> Result<PathBuf, String> {
    let metadata = process::read(process::cargo(root, ["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    Ok(metadata["target_directory"].as_str().ok_or("cargo names no target folder")?.into())
}

/// What the command line prints is what the bindings say it prints.
fn typed_output(root: &Path, folder: &Path) -> Result<(), String> {
    let run = process::program(root, &binary(root)?, ["run", demo::FLOW, "--json", "--ephemeral"]);
    let judge = process::program(folder, "npm", ["run", "--silent", "check-output", "--", "-"]);
    println!("$ {} | {}", process::shown(&run), process::shown(&judge));
    let output = process::read(run)?;
    process::check_with_input(judge, &output)
}

/// The last line, and whether all is well.
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
    use super::{Outcome, absent, chromium, is_stale, needs, node_major, node_steps, summary};
    use crate::root;
    use std::time::{Duration, SystemTime};

    #[test]
    fn one_failed_step_fails_the_whole_and_is_named() {
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
        assert!(
            matches!(absent(false, "rustfmt"), Outcome::Skipped(why) if why.contains("rustfmt not installed"))
        );
        assert!(matches!(absent(true, "rustfmt"), Outcome::Failed(_)));
    }

    #[test]
    fn an_install_is_stale_when_anything_it_came_from_is_newer() {
        let at = |seconds: u64| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(is_stale(None, &[at(1)]));
        assert!(is_stale(at(2), &[at(1), at(3)]));
        assert!(is_stale(at(2), &[None]));
        assert!(!is_stale(at(2), &[at(1), at(2)]));
    }

    #[test]
    fn what_is_there_is_not_installed_again() {
        assert_eq!(needs(&root(), &["cargo"], &["no-such-package"], "advice"), Ok(()));
    }

    #[test]
    fn a_browser_that_was_named_is_the_one() {
        assert_eq!(chromium(&root(), Some("cargo")), Ok(()));
        let error = chromium(&root(), Some("no-such-browser")).unwrap_err();
        assert_eq!(error, "CHROMIUM names `no-such-browser`, which does not run");
    }

    #[test]
    fn without_node_its_steps_are_skipped_not_failed() {
        let steps = node_steps(&root(), false);
        assert!(steps.iter().all(|(_, outcome)| matches!(outcome, Outcome::Skipped(_))), "{steps:?}");
    }

    #[test]
    fn node_versions_are_read() {
        assert_eq!(node_major("v20.20.2\n"), Some(20));
        assert_eq!(node_major("what"), None);
    }
}
