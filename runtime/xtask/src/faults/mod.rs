//! `cargo xtask faults`: everything that can go wrong with a run, made to happen to the real thing, and counted.
//!
//! Every promise of RELIABILITY.md has its row here. The table that is printed is the one in that file.

#![allow(
    clippy::disallowed_methods,
    reason = "processes are given time to live before they are killed, and peers take their time"
)]

mod flows;
mod kills;
mod matrix;
mod peers;
mod rig;
mod sidecar;
mod witness;

use crate::{Failure, process, switches};
use rig::Rig;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// What one kind of fault came to.
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

    /// One more case, which must hold.
    fn check(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        self.cases += 1;
        if !holds {
            self.failures.push(otherwise());
        }
    }
}

/// How much is tried.
#[derive(Clone, Copy)]
struct Effort {
    kills: usize,
    /// Of a sidecar, each with everybody who talks to it.
    sidecar_kills: usize,
    seeds: usize,
    concurrent: usize,
}

/// Runs all of it, or with `--quick` what the tests run every time.
///
/// # Errors
/// If something cannot even be tried.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [quick, long] = switches(args, ["--quick", "--long"])?;
    let effort = match (quick, long) {
        (true, true) => return Err(Failure::Usage("--quick and --long are two things".to_owned())),
        (true, false) => QUICK,
        (false, false) => Effort { kills: 50, sidecar_kills: 40, seeds: 1_000, concurrent: 10_000 },
        (false, true) => Effort { kills: 500, sidecar_kills: 400, seeds: 20_000, concurrent: 10_000 },
    };
    try_all(root, effort)?;
    Ok(ExitCode::SUCCESS)
}

/// What the tests run every time; the libraries' own tests have the rest in small.
const QUICK: Effort = Effort { kills: 8, sidecar_kills: 12, seeds: 0, concurrent: 0 };

/// The part of it that belongs to every test.
///
/// # Errors
/// If a promise does not hold, or cannot even be tried.
pub(crate) fn quick(root: &Path) -> Result<(), String> {
    try_all(root, QUICK)
}

fn try_all(root: &Path, effort: Effort) -> Result<(), String> {
    let rows = all(root, effort)?;
    println!("\n{}", table(&rows));
    let failed: Vec<&String> = rows.iter().flat_map(|row| &row.failures).collect();
    for failure in &failed {
        println!("FAILED: {failure}");
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("{} promises did not hold", failed.len())) }
}

fn all(root: &Path, effort: Effort) -> Result<Vec<Row>, String> {
    let rig = Rig::build(root)?;
    let mut rows = Vec::new();
    let mut tell = |row: Row, began: Instant| {
        let verdict = if row.failures.is_empty() { "ok" } else { "FAILED" };
        eprintln!("{verdict}: {} ({} cases, {:.1} s)", row.name, row.cases, began.elapsed().as_secs_f64());
        rows.push(row);
    };
    type Suite<'a> = &'a dyn Fn(&Rig) -> Result<Option<Row>, String>;
    let suites: [Suite<'_>; 8] = [
        &|rig| matrix::run(rig).map(Some),
        &|rig| kills::run(rig, effort.kills).map(Some),
        &|rig| sidecar::run(rig, effort.sidecar_kills).map(Some),
        &|rig| peers::dead_peers(rig).map(Some),
        &|rig| peers::full_disk(rig).map(Some),
        &|rig| peers::small_file_system(rig),
        &|rig| peers::jumping_clock(rig).map(Some),
        &|rig| peers::two_processes(rig).map(Some),
    ];
    for suite in suites {
        let began = Instant::now();
        match suite(&rig)? {
            Some(row) => tell(row, began),
            None => {
                eprintln!("not tried: a small file system of one's own needs root and a system with tmpfs")
            }
        }
    }
    // The witness and the shifted clock are in no other build, so their own tests run here.
    process::check(process::cargo(
        root,
        ["test", "--quiet", "--package", "redflow-cli", "--features", "faults", "faults"],
    ))?;
    if effort.seeds > 0 {
        for suite in [
            Library {
                name: "simulated lives: crashes, stops, cancels, answers",
                package: "redflow-engine",
                test: "simulation::whatever_happens_nothing_is_lost_and_nothing_dangerous_done_twice",
                env: Some(("REDFLOW_SEEDS", effort.seeds)),
            },
            Library {
                name: "concurrent runs on one SQLite store, with cancels",
                package: "redflow-engine",
                test: "crowd::a_crowd_on_the_real_store",
                env: Some(("REDFLOW_CROWD", effort.concurrent)),
            },
            Library {
                name: "stored rows: every truncation, every flipped bit",
                package: "redflow-store",
                test: "damage::every_flipped_bit_and_every_cut_of_a_row_is_found",
                env: None,
            },
            Library {
                name: "the end of SQLite's log cut off or garbled (a limit, not a promise)",
                package: "redflow-store",
                test: "processes::a_damaged_end_of_the_log_loses_whole_commits",
                env: None,
            },
        ] {
            let began = Instant::now();
            tell(suite.run(root)?, began);
        }
    }
    Ok(rows)
}

/// A test of a library that counts: it prints `FAULTS words key=value …`.
struct Library {
    name: &'static str,
    package: &'static str,
    test: &'static str,
    /// How much it tries, where that can be said.
    env: Option<(&'static str, usize)>,
}

impl Library {
    fn run(&self, root: &Path) -> Result<Row, String> {
        let mut command = process::cargo(
            root,
            ["test", "--quiet", "--package", self.package, self.test, "--", "--nocapture"],
        );
        command.envs(self.env.map(|(name, number)| (name, number.to_string())));
        let mut row = Row::new(self.name);
        match process::read(command) {
            Ok(said) => {
                let told = said.lines().find_map(|line| line.split_once("FAULTS ")).map(|(_, told)| told);
                let told = told.ok_or_else(|| format!("`{}` tells nothing", self.test))?;
                row.figures = told.to_owned();
                let number = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
                let first = told.split_once('=').and_then(|(_, rest)| number(rest));
                row.cases = first.unwrap_or(1);
            }
            Err(error) => row.failures.push(error),
        }
        Ok(row)
    }
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from("| fault | cases | what came of it | |\n|---|---:|---|---|\n");
    for row in rows {
        let verdict = if row.failures.is_empty() { "ok" } else { "FAILED" };
        out += &format!("| {} | {} | {} | {verdict} |\n", row.name, row.cases, row.figures);
    }
    out
}

/// Starts again until nothing is open, answering for every person who is asked. Gives how many were asked.
/// Afterwards every run is over, its result has arrived, and all of them replay.
fn resume_all_answering(rig: &Rig, place: &Path, flow: &str) -> Result<usize, String> {
    let mut asked = 0;
    for _ in 0..1000 {
        let runs = rig.runs(place)?;
        let open = runs.iter().any(|run| !is_over(run) || run["delivered"] != true);
        if !open {
            rig.replay_all(place)?;
            return Ok(asked);
        }
        for run in runs.iter().filter(|run| run["status"] == "waiting") {
            let id = run["runId"].as_str().unwrap_or_default();
            asked += 1;
            // By turns: it happened, it did not.
            let args: &[&str] = if asked % 2 == 0 {
                &["runs", "resolve", id, "--not-done"]
            } else {
                &["runs", "resolve", id, "--done", "--result", "42"]
            };
            let done = rig.end(place, args)?;
            if done.code != Some(0) {
                return Err(format!("resolve: {done:?}"));
            }
        }
        let done = rig.end(place, &["run", "--resume", "all", flow, "-q"])?;
        if !matches!(done.code, Some(0 | 3)) {
            return Err(format!("resume: {done:?}"));
        }
    }
    Err("runs do not come to an end".to_owned())
}

fn is_over(run: &serde_json::Value) -> bool {
    matches!(run["status"].as_str(), Some("completed" | "stopped" | "failed"))
}

/// A small generator: what a seed gives is the same for ever.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
