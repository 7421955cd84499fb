//! `cargo xtask faults`: causes faults in the real binary and counts the outcomes.
//!
//! Owns the fault tests. It uses the `redflow` beside its own program, which has the feature `faults`. Every promise of RELIABILITY.md has a row here. That file contains the table that this command prints.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "processes run for a while before they are killed, and peers are slow"
)]

mod environment;
mod flows;
mod kills;
mod local_model;
mod matrix;
mod mcp;
mod parallel;
mod rig;
mod sidecar;
mod witness;

use redflow_xtask::{Failure, process, switches};
use rig::Rig;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// The outcome of one kind of fault.
struct Row {
    name: &'static str,
    cases: usize,
    figures: String,
    failures: Vec<String>,
}

impl Row {
    fn new(name: &'static str) -> Self {
        Self { name, cases: 0, figures: String::new(), failures: Vec::new() }
    }

    /// Counts one more case, which must hold.
    fn check(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        self.cases += 1;
        if !holds {
            self.failures.push(otherwise());
        }
    }
}

/// How many faults of each kind are caused.
#[derive(Clone, Copy)]
struct Effort {
    kills: usize,
    /// Kills of a sidecar under load.
    sidecar_kills: usize,
    seeds: usize,
    concurrent: usize,
}

/// Causes all faults, or with `--quick` those of every test run, or only those of named suites.
///
/// # Errors
/// If a promise does not hold, or a fault cannot be caused.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let (options, names): (Vec<String>, Vec<String>) =
        args.iter().cloned().partition(|arg| arg.starts_with('-'));
    let [quick, long] = switches(&options, ["--quick", "--long"])?;
    let is_known = |name: &&String| SUITES.contains(&name.as_str()) || *name == LOCAL_MODEL;
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known = SUITES.join(", ");
        return Err(Failure::Usage(format!("unknown suite `{unknown}`; there are {known}, {LOCAL_MODEL}")));
    }
    let effort = match (quick, long) {
        (true, true) => return Err(Failure::Usage("use --quick or --long, not both".to_owned())),
        (true, false) => QUICK,
        (false, false) => Effort { kills: 50, sidecar_kills: 40, seeds: 1_000, concurrent: 10_000 },
        (false, true) => Effort { kills: 500, sidecar_kills: 400, seeds: 20_000, concurrent: 10_000 },
    };
    cause_faults(root, effort, &names)?;
    Ok(ExitCode::SUCCESS)
}

/// The faults of every test run. The tests of the libraries cover the rest at a small scale.
const QUICK: Effort = Effort { kills: 8, sidecar_kills: 12, seeds: 0, concurrent: 0 };

fn cause_faults(root: &Path, effort: Effort, names: &[String]) -> Result<(), String> {
    let rows = run_suites(root, effort, names)?;
    println!("\n{}", table(&rows));
    let failed: Vec<&String> = rows.iter().flat_map(|row| &row.failures).collect();
    for failure in &failed {
        println!("FAILED: {failure}");
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("{} promises did not hold", failed.len())) }
}

/// The suites that can be run alone.
const SUITES: [&str; 12] = [
    "matrix",
    "preset",
    "parallel",
    "mcp",
    "kills",
    "sidecar",
    "hostile",
    "peers",
    "disk",
    "file-system",
    "clock",
    "processes",
];

/// The suite that runs only if it is named.
const LOCAL_MODEL: &str = "local-model";

fn run_suites(root: &Path, effort: Effort, names: &[String]) -> Result<Vec<Row>, String> {
    let rig = Rig::beside_this_program()?;
    let mut rows = Vec::new();
    let mut report = |row: Row, began: Instant| {
        let verdict = if row.failures.is_empty() { "ok" } else { "FAILED" };
        eprintln!("{verdict}: {} ({} cases, {:.1} s)", row.name, row.cases, began.elapsed().as_secs_f64());
        rows.push(row);
    };
    type Suite<'a> = &'a dyn Fn(&Rig) -> Result<Option<Row>, String>;
    let suites: [Suite<'_>; 12] = [
        &|rig| matrix::run(rig).map(Some),
        &|rig| matrix::run_preset(rig).map(Some),
        &|rig| parallel::run(rig).map(Some),
        &|rig| mcp::run(root, rig),
        &|rig| kills::run(rig, effort.kills).map(Some),
        &|rig| sidecar::run(rig, effort.sidecar_kills).map(Some),
        &|rig| sidecar::hostile::run(rig).map(Some),
        &|rig| environment::dead_peers(rig).map(Some),
        &|rig| environment::full_disk(rig).map(Some),
        &|rig| environment::small_file_system(rig),
        &|rig| environment::jumping_clock(rig).map(Some),
        &|rig| environment::two_processes(rig).map(Some),
    ];
    for (name, suite) in SUITES.into_iter().zip(suites) {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        // Tests of redflow-tests kill MCP servers and the sidecar in every run.
        if name == "mcp" && names.is_empty() && effort.seeds == 0 {
            continue;
        }
        let began = Instant::now();
        match suite(&rig)? {
            Some(row) => report(row, began),
            None if name == "mcp" => eprintln!("skipped: the packages of tests/mcp are not installed"),
            None => {
                eprintln!("skipped: to mount a small file system needs root and tmpfs")
            }
        }
    }
    if names.iter().any(|name| name == LOCAL_MODEL) {
        let began = Instant::now();
        report(local_model::run(&rig)?, began);
    }
    if !names.is_empty() {
        return Ok(rows);
    }
    if effort.seeds > 0 {
        for suite in [
            LibraryTest {
                name: "simulated lives: crashes, stops, cancels, answers",
                package: "redflow-engine",
                test: "simulation::whatever_happens_nothing_is_lost_and_nothing_dangerous_done_twice",
                env: Some(("REDFLOW_SEEDS", effort.seeds)),
            },
            LibraryTest {
                name: "concurrent runs on one SQLite store, with cancels",
                package: "redflow-engine",
                test: "crowd::a_crowd_on_the_real_store",
                env: Some(("REDFLOW_CROWD", effort.concurrent)),
            },
            LibraryTest {
                name: "stored rows: every truncation, every flipped bit",
                package: "redflow-store",
                test: "damage::every_flipped_bit_and_every_cut_of_a_row_is_found",
                env: None,
            },
            LibraryTest {
                name: "the end of SQLite's log cut off or garbled (a limit, not a promise)",
                package: "redflow-store",
                test: "processes::a_damaged_end_of_the_log_loses_whole_commits",
                env: None,
            },
        ] {
            let began = Instant::now();
            report(suite.run(root)?, began);
        }
    }
    Ok(rows)
}

/// A test of a library that prints its figures as `FAULTS words key=value …`.
struct LibraryTest {
    name: &'static str,
    package: &'static str,
    test: &'static str,
    /// The variable that sets its number of cases.
    env: Option<(&'static str, usize)>,
}

impl LibraryTest {
    fn run(&self, root: &Path) -> Result<Row, String> {
        let mut command = process::cargo(
            root,
            ["test", "--quiet", "--package", self.package, self.test, "--", "--nocapture"],
        );
        command.envs(self.env.map(|(name, number)| (name, number.to_string())));
        let mut row = Row::new(self.name);
        match process::read(command) {
            Ok(output) => {
                let figures =
                    output.lines().find_map(|line| line.split_once("FAULTS ")).map(|(_, rest)| rest);
                let figures = figures.ok_or_else(|| format!("`{}` prints no figures", self.test))?;
                row.figures = figures.to_owned();
                let number = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
                let first = figures.split_once('=').and_then(|(_, rest)| number(rest));
                row.cases = first.unwrap_or(1);
            }
            Err(error) => row.failures.push(error),
        }
        Ok(row)
    }
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from("| fault | cases | result | |\n|---|---:|---|---|\n");
    for row in rows {
        let verdict = if row.failures.is_empty() { "ok" } else { "FAILED" };
        out += &format!("| {} | {} | {} | {verdict} |\n", row.name, row.cases, row.figures);
    }
    out
}

/// Resumes all runs and answers their questions until every run has ended, its result is delivered, and its journal
/// replays. Gives the number of questions.
fn resume_until_finished(rig: &Rig, folder: &Path, flow: &str) -> Result<usize, String> {
    let mut asked = 0;
    for _ in 0..1000 {
        let runs = rig.list_runs(folder)?;
        if !runs.iter().any(is_open) {
            rig.replay_all(folder)?;
            return Ok(asked);
        }
        for run in runs.iter().filter(|run| run["status"] == "waiting") {
            let id = run["runId"].as_str().unwrap_or_default();
            let call = run["waiting"]["callId"].as_str().unwrap_or_default();
            asked += 1;
            // Alternates between the two answers.
            let args: &[&str] = if asked % 2 == 0 {
                &["runs", "resolve", id, "--call", call, "--not-done"]
            } else {
                &["runs", "resolve", id, "--call", call, "--done", "--result", "42"]
            };
            let exit = rig.run(folder, args)?;
            if exit.code != Some(0) {
                return Err(format!("resolve: {exit:?}"));
            }
        }
        let exit = rig.run(folder, &["run", "--resume", "all", flow, "-q"])?;
        if !matches!(exit.code, Some(0 | 3)) {
            return Err(format!("resume: {exit:?}"));
        }
    }
    Err("the runs do not end".to_owned())
}

/// Whether a run has not ended, or its result is not delivered.
fn is_open(run: &serde_json::Value) -> bool {
    let has_ended = matches!(run["status"].as_str(), Some("completed" | "stopped" | "failed"));
    !has_ended || run["delivered"] != true
}

/// A small generator of random numbers. The same seed always gives the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
