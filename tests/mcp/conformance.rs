//! The official conformance suite against our server and our client, for both eras of the protocol.
//!
//! `conformance/*.yml` list the scenarios that fail, each with its number of passed and failed checks and the reason. A
//! scenario that fails and is not listed fails the test, and so does a listed one with fewer passed checks or another
//! number of failed ones: the lists can only shrink. `cargo nextest run -p redflow-tests --test mcp conformance --no-capture` prints the figures.

use crate::kit::{Home, folder, node, package};
use redflow_testkit::{Exit, LoggedProcess, redflow_binary};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

/// The time limit of a whole suite.
const SUITE_LIMIT: Duration = Duration::from_secs(240);

/// The time limit of one scenario, in milliseconds. Two cores may start thirty clients at once.
const SCENARIO_LIMIT_MS: &str = "90000";

/// Scenarios that measure milliseconds. The suite starts all scenarios at once, which makes every client late, so these
/// are tried again alone if they fail.
const MEASURES_TIME: &[&str] = &["sse-retry"];

/// How often such a scenario is tried alone: other tests run at the same time.
const TRIES_ALONE: usize = 4;

/// One direction and one era.
struct Suite {
    /// The first word of the command: which side is tested.
    side: &'static str,
    era: &'static str,
    /// What chooses the scenarios of the era.
    choice: &'static [&'static str],
    /// How many scenarios the suite has. Another number is another suite.
    scenarios: usize,
}

const OLDER: &[&str] = &["--suite", "all", "--spec-version", "2025-11-25"];
const NEWER: &[&str] = &["--requirements", "2026-07-28"];

impl Suite {
    fn command(&self, choice: &[&str]) -> Command {
        let mut command = Command::new(node());
        command.arg(package(&format!("conformance-{}/dist/index.js", self.era)));
        command.arg(self.side).args(choice);
        command
    }

    /// The outcome of each scenario.
    fn outcomes(&self, command: Command) -> (BTreeMap<String, Checks>, Exit) {
        let exit = LoggedProcess::start(command).unwrap().wait(SUITE_LIMIT).unwrap();
        (outcomes(&exit.stdout), exit)
    }

    /// Compares the outcome of each scenario with the list of those that fail.
    #[track_caller]
    #[expect(clippy::print_stdout, reason = "prints the figures of docs/mcp.md")]
    fn check(&self, outcomes: &BTreeMap<String, Checks>, exit: &Exit) {
        let Self { side, era, .. } = self;
        let path = folder().join(format!("conformance/{side}-{era}.yml"));
        let list = std::fs::read_to_string(&path).unwrap();
        let passed = outcomes.values().filter(|checks| checks.have_passed()).count();
        println!("conformance {side} {era}: {passed} of {} scenarios passed", outcomes.len());
        assert_eq!(outcomes.len(), self.scenarios, "{}{}", exit.stdout, exit.stderr);
        let differences = differences(&listed_failures(&list), outcomes);
        assert!(
            differences.is_empty(),
            "other outcomes than in {}:\n{}\n{}{}",
            path.display(),
            differences.join("\n"),
            exit.stdout,
            exit.stderr
        );
    }
}

/// The checks of one scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Checks {
    passed: usize,
    failed: usize,
}

impl Checks {
    /// Reads `3 passed, 1 failed`.
    fn of_summary(text: &str) -> Option<Self> {
        let (passed, failed) = text.split_once(" passed, ")?;
        Some(Self { passed: passed.parse().ok()?, failed: failed.strip_suffix(" failed")?.parse().ok()? })
    }

    /// Reads `3/1`.
    fn of_list(text: &str) -> Option<Self> {
        let (passed, failed) = text.split_once('/')?;
        Some(Self { passed: passed.parse().ok()?, failed: failed.parse().ok()? })
    }

    /// A scenario without a check shows nothing.
    fn have_passed(self) -> bool {
        self.passed > 0 && self.failed == 0
    }
}

impl std::fmt::Display for Checks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.passed, self.failed)
    }
}

/// The scenarios of a list. A scenario covers many checks, so its numbers stand beside it: otherwise a check that no
/// longer passes would be hidden behind one that never did.
fn listed_failures(text: &str) -> BTreeMap<&str, Checks> {
    let entries = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
    entries
        .map(|entry| {
            let words: Vec<&str> = entry.split_whitespace().take(3).collect();
            let [name, checks, "#"] = words[..] else { panic!("`NAME PASSED/FAILED # WHY`: {entry}") };
            (name, Checks::of_list(checks).unwrap_or_else(|| panic!("`PASSED/FAILED`: {entry}")))
        })
        .collect()
}

/// What a list says of the outcomes that is not so.
fn differences(listed: &BTreeMap<&str, Checks>, outcomes: &BTreeMap<String, Checks>) -> Vec<String> {
    let unknown = listed.keys().filter(|name| !outcomes.contains_key(**name));
    let unknown = unknown.map(|name| format!("{name} is listed, but unknown"));
    let outcomes = outcomes.iter().filter_map(|(name, now)| match listed.get(name.as_str()) {
        None if now.have_passed() => None,
        None => Some(format!("{name} failed ({now}) and is not listed")),
        Some(_) if now.have_passed() => Some(format!("{name} is listed, but passed")),
        // How often a passed check is repeated depends on the time.
        Some(then) if then.failed == now.failed && then.passed <= now.passed => None,
        Some(then) => Some(format!("{name} is listed with {then}, but it was {now}")),
    });
    outcomes.chain(unknown).collect()
}

/// The scenarios of the summary that the suite prints.
fn outcomes(output: &str) -> BTreeMap<String, Checks> {
    let (_, summary) = output.rsplit_once("SUMMARY ===").unwrap_or_else(|| panic!("{output}"));
    let outcome = |line: &str| {
        let (mark, rest) = line.trim().split_once(' ')?;
        let (name, checks) = rest.split_once(": ").filter(|_| matches!(mark, "✓" | "✗"))?;
        let checks = Checks::of_summary(checks).unwrap_or_else(|| panic!("{line}"));
        // The suite may fail a scenario for another reason than a check.
        let failed = if mark == "✗" { checks.failed.max(1) } else { checks.failed };
        Some((name.to_owned(), Checks { failed, ..checks }))
    };
    summary.lines().filter_map(outcome).collect()
}

/// Runs the scenarios against a sidecar with the conformance flow.
fn check_server(suite: Suite) {
    let flow = std::fs::read_to_string(folder().join("conformance/flow.json")).unwrap();
    let home = Home::new(json!({}), &serde_json::from_str(&flow).unwrap());
    let sidecar = home.serve();
    let mut proxy = Command::new(node());
    proxy.arg(folder().join("conformance/with-token.mjs")).arg(format!("http://{}", sidecar.addr));
    proxy.env("REDFLOW_TOKEN", &sidecar.token);
    let mut proxy = LoggedProcess::start(proxy).unwrap();
    let port = proxy.wait_for_address(crate::kit::PATIENCE).unwrap().port();
    let mut command = suite.command(suite.choice);
    command.args(["--url", &format!("http://localhost:{port}/mcp")]);
    let (outcomes, exit) = suite.outcomes(command);
    suite.check(&outcomes, &exit);
}

/// Runs the scenarios with our client.
fn check_client(suite: Suite) {
    let client = folder().join("conformance/client.mjs");
    let with_client = |mut command: Command| {
        command.args(["--timeout", SCENARIO_LIMIT_MS, "--command"]);
        command.arg(format!("{} {}", node().display(), client.display()));
        command.env("REDFLOW_BIN", redflow_binary().unwrap());
        command
    };
    let (mut outcomes, exit) = suite.outcomes(with_client(suite.command(suite.choice)));
    for name in MEASURES_TIME {
        let alone = || {
            let command = with_client(suite.command(&["--scenario", name]));
            LoggedProcess::start(command).unwrap().wait(SUITE_LIMIT).unwrap().code
        };
        if let Some(checks) = outcomes.get_mut(*name)
            && !checks.have_passed()
            && (0..TRIES_ALONE).any(|_| alone() == Some(0))
        {
            *checks = Checks { passed: checks.passed + checks.failed, failed: 0 };
        }
    }
    suite.check(&outcomes, &exit);
}

#[test]
fn our_server_passes_the_conformance_suite_of_2025_11_25() {
    check_server(Suite { side: "server", era: "2025-11-25", choice: OLDER, scenarios: 32 });
}

#[test]
fn our_server_passes_the_conformance_suite_of_2026_07_28() {
    check_server(Suite { side: "server", era: "2026-07-28", choice: NEWER, scenarios: 50 });
}

#[test]
fn our_client_passes_the_conformance_suite_of_2025_11_25() {
    check_client(Suite { side: "client", era: "2025-11-25", choice: OLDER, scenarios: 18 });
}

#[test]
fn our_client_passes_the_conformance_suite_of_2026_07_28() {
    check_client(Suite { side: "client", era: "2026-07-28", choice: NEWER, scenarios: 39 });
}

#[test]
fn a_list_holds_the_number_of_checks_of_each_failure() {
    let list = "# Why\nserver:\n  - ping 1/2 # nobody asked\n  - auth/a 0/2 # why not\n";
    let listed = listed_failures(list);
    let summary = |lines: &str| outcomes(&format!("✓ not: 1\n=== SUMMARY ===\n{lines}\n\nTotal: 1 passed\n"));
    for (lines, expected) in [
        ("✗ ping: 1 passed, 2 failed\n✗ auth/a: 0 passed, 2 failed\n✓ b: 3 passed, 0 failed", [].as_slice()),
        (
            "✗ ping: 0 passed, 3 failed\n✗ auth/a: 0 passed, 2 failed",
            &["ping is listed with 1/2, but it was 0/3"],
        ),
        (
            "✗ ping: 2 passed, 1 failed\n✗ auth/a: 0 passed, 2 failed",
            &["ping is listed with 1/2, but it was 2/1"],
        ),
        ("✓ ping: 3 passed, 0 failed", &["ping is listed, but passed", "auth/a is listed, but unknown"]),
        (
            "✗ ping: 1 passed, 2 failed\n✗ auth/a: 0 passed, 2 failed\n✓ b: 0 passed, 0 failed\n✗ c: 1 passed, 0 failed",
            &["b failed (0/0) and is not listed", "c failed (1/1) and is not listed"],
        ),
    ] {
        assert_eq!(differences(&listed, &summary(lines)), expected, "{lines}");
    }
}
