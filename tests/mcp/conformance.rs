//! The official conformance suite against our server and our client, for both eras of the protocol.
//!
//! `conformance/*.yml` list the scenarios that fail, each with the reason. A scenario that fails and is not listed fails
//! the test, and so does a listed one that passes: the lists can only shrink. `cargo nextest run -p redflow-tests --test
//! mcp conformance --no-capture` prints the figures.

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
    fn outcomes(&self, command: Command) -> (BTreeMap<String, bool>, Exit) {
        let exit = LoggedProcess::start(command).unwrap().wait(SUITE_LIMIT).unwrap();
        (outcomes(&exit.stdout), exit)
    }

    /// Compares the outcome of each scenario with the list of those that fail.
    #[track_caller]
    #[expect(clippy::print_stdout, reason = "prints the figures of docs/mcp.md")]
    fn check(&self, outcomes: &BTreeMap<String, bool>, exit: &Exit) {
        let Self { side, era, .. } = self;
        let path = folder().join(format!("conformance/{side}-{era}.yml"));
        let list = std::fs::read_to_string(&path).unwrap();
        let listed = listed_failures(&list);
        let passed = outcomes.values().filter(|passed| **passed).count();
        println!("conformance {side} {era}: {passed} of {} scenarios passed", outcomes.len());
        assert_eq!(outcomes.len(), self.scenarios, "{}{}", exit.stdout, exit.stderr);
        let failed_now: Vec<&str> = names(outcomes, |name, passed| !passed && !listed.contains(&name));
        let pass_now: Vec<&str> = names(outcomes, |name, passed| passed && listed.contains(&name));
        let unknown: Vec<&&str> = listed.iter().filter(|name| !outcomes.contains_key(**name)).collect();
        assert!(
            failed_now.is_empty() && pass_now.is_empty() && unknown.is_empty(),
            "not in {}, and failed: {failed_now:?}; listed, but passed: {pass_now:?}; listed, but unknown: {unknown:?}\n{}{}",
            path.display(),
            exit.stdout,
            exit.stderr
        );
    }
}

/// The scenarios of a baseline file.
fn listed_failures(text: &str) -> Vec<&str> {
    let entries = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
    entries.map(|entry| entry.split(" #").next().unwrap_or_default().trim()).collect()
}

/// The scenarios of the summary that the suite prints, and whether each one passed.
fn outcomes(output: &str) -> BTreeMap<String, bool> {
    let (_, summary) = output.rsplit_once("SUMMARY ===").unwrap_or_else(|| panic!("{output}"));
    let outcome = |line: &str| {
        let (mark, rest) = line.trim().split_once(' ')?;
        let (name, checks) = rest.split_once(": ")?;
        match mark {
            // A scenario without a check shows nothing.
            "✓" => Some((name.to_owned(), !checks.starts_with("0 passed"))),
            "✗" => Some((name.to_owned(), false)),
            _ => None,
        }
    };
    summary.lines().filter_map(outcome).collect()
}

fn names(outcomes: &BTreeMap<String, bool>, wanted: impl Fn(&str, bool) -> bool) -> Vec<&str> {
    outcomes.iter().filter(|(name, passed)| wanted(name, **passed)).map(|(name, _)| name.as_str()).collect()
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
        if let Some(passed @ false) = outcomes.get_mut(*name) {
            *passed = (0..TRIES_ALONE).any(|_| alone() == Some(0));
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
fn reads_the_lists_and_the_summary_of_the_suite() {
    let list = "# Why\nserver:\n  - ping # nobody asked\n  - auth/a\n";
    assert_eq!(listed_failures(list), ["ping", "auth/a"]);
    let output = "✓ not: 1\n=== SUMMARY ===\n✓ ping: 1 passed, 0 failed\n✗ auth/a: 0 passed, 2 failed\n✓ b: 0 passed, 0 failed\n\nTotal: 1 passed\n";
    let outcomes = outcomes(output);
    assert_eq!(names(&outcomes, |_, passed| passed), ["ping"]);
    assert_eq!(names(&outcomes, |_, passed| !passed), ["auth/a", "b"]);
}
