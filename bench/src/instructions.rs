//! Counts instructions with valgrind. The counts are the same on a busy and on an idle machine.
//!
//! The benchmark starts itself under callgrind, which counts only inside functions whose names begin with `counted_` and
//! writes the count at each call of [`mark`]. Parent and child use the same list of [`CountedPart`]s, so the n-th count belongs
//! to the n-th part.

use crate::agents::{WORKS, Work};
use crate::clock::figure;
use crate::flows::Errors;
use crate::folder::Folder;
use crate::script::{Driver, Kind, Script, raw_answer, raw_result, sample_result};
use crate::store::ITERATIONS;
use crate::table::{Column, Table};
use crate::world::{Scenario, ToolKind, World, limits_for, runtime};
use crate::{Extent, Failure, flows};
use redflow_contract::fact::{Fact, ToolResult};
use redflow_flow::check_bytes;
use redflow_store::MemoryStore;
use std::hint::black_box;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The first argument of a process under callgrind.
pub(crate) const PROBE: &str = "--probe";

const STEPS: u32 = 20;
const FIRST: RangeInclusive<u32> = 1..=5;
const LAST: RangeInclusive<u32> = 16..=20;
const INPUTS: [Input; 2] = [Input::Answer, Input::Result];

/// The input of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Answer,
    Result,
}

/// A part with its own count.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CountedPart {
    Raw(Input),
    Steps(Kind, Input, RangeInclusive<u32>),
}

/// All parts, in the order of their counts.
fn parts() -> Vec<CountedPart> {
    let mut parts: Vec<CountedPart> = INPUTS.map(CountedPart::Raw).into();
    for kind in Kind::ALL {
        for input in INPUTS {
            parts.extend([FIRST, LAST].map(|range| CountedPart::Steps(kind, input, range)));
        }
    }
    parts
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let there = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        let mut table = Table::new("instructions", "instructions per step and per node", Vec::new());
        table.note("not counted: valgrind is not on the PATH");
        return show(table);
    }
    let (folder, quick) = (Folder::temporary()?, extent == Extent::Quick);
    show(steps(folder.path(), if quick { 5 } else { 100 })?)?;
    show(runs(folder.path(), if quick { 5 } else { 50 })?)?;
    show(agents(folder.path(), if quick { 5 } else { 50 })?)?;
    let sizes: &[usize] = if quick { &[1_000, 2_000] } else { &[1_000, 10_000, 100_000] };
    show(checks(folder.path(), sizes)?)
}

fn steps(folder: &Path, runs: u32) -> Result<Table, Failure> {
    let columns = [
        ("what", "what", 0),
        ("first", "steps 1 to 5", 0),
        ("last", "steps 16 to 20", 0),
        ("growth", "last to first", 3),
        ("ratio", "× raw", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("instructions-step", "instructions per step", columns.into());
    let counts = read_counts(folder, &["steps".to_owned(), runs.to_string()])?;
    let parts = parts();
    // Each part is counted over some runs and over twice as many. The difference excludes what happens only once.
    let per_call = |wanted: &CountedPart| -> Result<f64, Failure> {
        let place = parts.iter().position(|part| part == wanted).ok_or("no such part")?;
        let (few, many) = counts.get(2 * place).zip(counts.get(2 * place + 1)).ok_or("a count is missing")?;
        let calls = if matches!(wanted, CountedPart::Raw(_)) { 1.0 } else { 5.0 };
        Ok((many - few) / (f64::from(runs) * calls))
    };
    for kind in Kind::ALL {
        for input in INPUTS {
            let first = per_call(&CountedPart::Steps(kind, input, FIRST))?;
            let last = per_call(&CountedPart::Steps(kind, input, LAST))?;
            let raw = per_call(&CountedPart::Raw(input))?;
            let what = format!("{}, {}", kind.name(), input.name());
            let growth = last / first;
            table.row(vec![
                what.as_str().into(),
                first.into(),
                last.into(),
                growth.into(),
                (last / raw).into(),
            ]);
        }
    }
    table.figure(
        "rawAnswer",
        "raw answer, as in the section step",
        per_call(&CountedPart::Raw(Input::Answer))?,
        "",
    );
    table.figure(
        "rawResult",
        "raw result, as in the section step",
        per_call(&CountedPart::Raw(Input::Result))?,
        "",
    );
    table.note("valgrind knows no SHA instructions: hashing is counted as software does it");
    Ok(table)
}

fn runs(folder: &Path, runs: usize) -> Result<Table, Failure> {
    let columns = [
        ("iterations", "iterations", 0),
        ("perRun", "per run", 0),
        ("perIteration", "per iteration", 0),
        ("further", "per further iteration", 0),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "instructions of a run in memory, by the engine";
    let mut table = Table::new("instructions-run", heading, columns.into());
    let counts = read_counts(folder, &["runs".to_owned(), runs.to_string()])?;
    let (mut before, mut furthers) = ((0.0, 0.0), Vec::new());
    for (iterations, pair) in ITERATIONS.into_iter().zip(counts.chunks_exact(2)) {
        let iterations = figure(iterations as u64);
        let per_run = (pair[1] - pair[0]) / figure(runs as u64);
        let further = (per_run - before.1) / (iterations - before.0);
        let of_first = before.0 == 0.0;
        before = (iterations, per_run);
        table.row(vec![
            iterations.into(),
            per_run.into(),
            (per_run / iterations).into(),
            if of_first { "".into() } else { further.into() },
        ]);
        furthers.push(further);
    }
    if let [_, middle, last] = furthers.as_slice() {
        table.figure("growth", "one more iteration, 10 to 20 against 5 to 10", last / middle, "");
    }
    Ok(table)
}

fn agents(folder: &Path, runs: usize) -> Result<Table, Failure> {
    let columns = [("what", "what", 0), ("perRun", "per run", 0), ("ratio", "× agent-core", 3)];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table =
        Table::new("instructions-agents", "instructions of a run in memory, by agent", columns.into());
    let counts = read_counts(folder, &["agents".to_owned(), runs.to_string()])?;
    let per_run: Vec<f64> =
        counts.chunks_exact(2).map(|pair| (pair[1] - pair[0]) / figure(runs as u64)).collect();
    let of = |work: Work| {
        let place = WORKS.iter().position(|one| *one == work);
        place.and_then(|place| per_run.get(place).copied()).unwrap_or(f64::NAN)
    };
    for work in WORKS {
        let ratio = of(work) / of(Work::Core(5));
        table.row(vec![work.name().as_str().into(), of(work).into(), ratio.into()]);
    }
    let further = (of(Work::Together(33)) - of(Work::Together(1))) / 32.0;
    table.figure("furtherCall", "one more read call at the same time", further, "");
    Ok(table)
}

fn checks(folder: &Path, sizes: &[usize]) -> Result<Table, Failure> {
    let columns = [
        ("nodes", "nodes", 0),
        ("perNode", "per node", 0),
        ("growth", "to the first", 3),
        ("ratio", "× raw parse", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table =
        Table::new("instructions-check", "instructions of a check without errors", columns.into());
    let mut args = vec!["checks".to_owned()];
    let mut nodes = Vec::new();
    for size in sizes {
        let flow = flows::generate(*size, Errors::None)?;
        let file = folder.join(format!("{size}.json"));
        std::fs::write(&file, &flow.bytes)?;
        args.push(file.to_string_lossy().into_owned());
        nodes.push(figure(flow.nodes as u64));
    }
    let counts = read_counts(folder, &args)?;
    let mut first = None;
    for (nodes, pair) in nodes.into_iter().zip(counts.chunks_exact(2)) {
        let per_node = pair[1] / nodes;
        let growth = per_node / *first.get_or_insert(per_node);
        table.row(vec![nodes.into(), per_node.into(), growth.into(), (pair[1] / pair[0]).into()]);
    }
    Ok(table)
}

/// Starts the probe under valgrind and reads its counts, one for each mark.
fn read_counts(folder: &Path, args: &[String]) -> Result<Vec<f64>, Failure> {
    let counts = folder.join("counts");
    let mut out = std::ffi::OsString::from("--callgrind-out-file=");
    out.push(&counts);
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--toggle-collect=*counted_*",
            "--dump-after=*instructions::mark",
            "--combine-dumps=yes",
        ])
        .arg(out)
        .arg(std::env::current_exe()?)
        .arg(PROBE)
        .args(args)
        .output()?;
    if !output.status.success() {
        return Err(format!("valgrind could not count: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = std::fs::read_to_string(counts)?;
    let totals = text.lines().filter_map(|line| line.strip_prefix("totals: "));
    Ok(totals.map(|total| total.trim().parse::<f64>()).collect::<Result<_, _>>()?)
}

/// The part that runs under valgrind: `steps RUNS`, `runs RUNS`, `agents RUNS` or `checks FILE…`.
pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    match args {
        [what, runs] if what == "steps" => probe_steps(runs.parse()?),
        [what, runs] if what == "runs" => probe_whole_runs(runs.parse()?),
        [what, runs] if what == "agents" => probe_agents(runs.parse()?),
        [what, files @ ..] if what == "checks" => files.iter().try_for_each(|file| probe_check(file)),
        _ => Err("a probe takes `steps RUNS`, `runs RUNS`, `agents RUNS` or `checks FILE…`".into()),
    }
}

fn probe_steps(runs: u32) -> Result<(), Failure> {
    let script = Script::new(STEPS)?;
    let result = sample_result();
    for part in parts() {
        for count in [runs, 2 * runs] {
            for _ in 0..count {
                match &part {
                    CountedPart::Raw(input) => counted_raw(*input, &result),
                    CountedPart::Steps(kind, input, range) => probe_run(&script, *kind, *input, range)?,
                }
            }
            mark();
        }
    }
    Ok(())
}

fn probe_run(script: &Script, kind: Kind, input: Input, range: &RangeInclusive<u32>) -> Result<(), Failure> {
    let (mut driver, _) = script.start(kind, script.started())?;
    for (fact, place) in script.facts(STEPS).into_iter().zip(0..) {
        let is_answer = place % 2 == 0;
        if range.contains(&(place / 2 + 1)) && is_answer == (input == Input::Answer) {
            counted_step(&mut driver, fact)?;
        } else {
            driver.step(fact)?;
        }
    }
    driver.check_finished()
}

fn probe_whole_runs(runs: usize) -> Result<(), Failure> {
    for iterations in ITERATIONS {
        let runtime = runtime()?;
        let world = runtime.block_on(async {
            let store = Arc::new(MemoryStore::with_max_finished(0));
            let world = World::new(Scenario::new(iterations - 1, ToolKind::Read), store, limits_for(1))?;
            world.drive(runs, 1).await?;
            Ok::<_, Failure>(world)
        })?;
        for count in [runs, 2 * runs] {
            counted_runs(&runtime, &world, count)?;
            mark();
        }
    }
    Ok(())
}

fn probe_agents(runs: usize) -> Result<(), Failure> {
    for work in WORKS {
        let runtime = runtime()?;
        let world = runtime.block_on(async {
            let world = work.world(1)?;
            world.drive(runs, 1).await?;
            Ok::<_, Failure>(world)
        })?;
        for count in [runs, 2 * runs] {
            counted_runs(&runtime, &world, count)?;
            mark();
        }
    }
    Ok(())
}

fn probe_check(file: &str) -> Result<(), Failure> {
    let bytes = std::fs::read(file)?;
    counted_parse(&bytes);
    mark();
    counted_check(&bytes);
    mark();
    Ok(())
}

/// Valgrind writes the count since the last call here.
#[inline(never)]
fn mark() {
    black_box(());
}

#[inline(never)]
fn counted_step(driver: &mut Driver, fact: Fact) -> Result<(), Failure> {
    driver.step(black_box(fact))
}

#[inline(never)]
fn counted_raw(input: Input, result: &ToolResult) {
    match input {
        Input::Answer => drop(black_box(raw_answer())),
        Input::Result => drop(black_box(raw_result(result))),
    }
}

#[inline(never)]
fn counted_runs(runtime: &Runtime, world: &Arc<World>, runs: usize) -> Result<(), Failure> {
    runtime.block_on(world.drive(runs, 1))
}

#[inline(never)]
fn counted_parse(bytes: &[u8]) {
    std::mem::forget(black_box(serde_json::from_slice::<serde_json::Value>(bytes)));
}

#[inline(never)]
fn counted_check(bytes: &[u8]) {
    std::mem::forget(black_box(check_bytes(bytes, &flows::options())));
}

impl Input {
    fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Result => "result",
        }
    }
}
