//! The cost of storing runs on a disk: whole runs with the real store, compared with runs in memory.

use crate::clock::{Spent, Stopwatch, figure, median, timed};
use crate::folder::Folder;
use crate::table::{Column, Table};
use crate::world::{Scenario, ToolKind, World, limits_for, runtime};
use crate::{Extent, Failure};
use redflow_ports::RunStore;
use redflow_store::{MemoryStore, Reader, Store, StoreStats};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;

const TOOL_CALLS: usize = 5;

/// Runs at a time, and runs in a round.
const CROWDS: [(usize, usize); 3] = [(1, 300), (32, 1_000), (256, 1_000)];

/// The highest additional cost of a stored run in milliseconds, and the runs at a time for this target.
const TARGET_MS: f64 = 0.25;
const TARGET_AT: usize = 32;

/// Iterations of a run, which has one tool call less. The editor allows at most the last number.
pub(crate) const ITERATIONS: [usize; 3] = [5, 10, 20];

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let rounds = if extent == Extent::Quick { 1 } else { 7 };
    let flush = Flush::measure()?;
    for (name, heading, tool) in [
        ("store", "runs of five tool calls that only read, and a final answer", ToolKind::Read),
        ("store-once", "the same, but no call may be made twice: kept before and after it", ToolKind::Once),
    ] {
        show(crowds(name, heading, tool, rounds, &flush)?)?;
    }
    show(growth(rounds)?)
}

fn crowds(
    name: &'static str,
    heading: &str,
    tool: ToolKind,
    rounds: usize,
    flush: &Flush,
) -> Result<Table, Failure> {
    let columns = [
        ("atOnce", "at once", 0),
        ("memoryMs", "in memory ms", 3),
        ("durableMs", "durable ms", 3),
        ("moreMs", "more ms", 3),
        ("rawMs", "raw ms", 3),
        ("ratio", "more × raw", 2),
        ("flushes", "flushes/run", 3),
        ("batches", "batches/flush", 1),
        ("perSecond", "runs/s", 0),
        ("linesPerSecond", "lines/s", 0),
        ("diskKilobytes", "kB/run on disk", 2),
        ("lineKilobytes", "kB/run of lines", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new(name, heading, columns.into());
    let mut met = None;
    let crowds =
        CROWDS.map(|(at_once, runs)| Crowd { scenario: Scenario::new(TOOL_CALLS, tool), runs, at_once });
    for (crowd, cost) in crowds.iter().zip(costs(&crowds, rounds)?) {
        if crowd.at_once == TARGET_AT {
            met = Some(cost.more);
        }
        table.row(vec![
            figure(crowd.at_once as u64).into(),
            (cost.memory / 1e3).into(),
            (cost.durable / 1e3).into(),
            (cost.more / 1e3).into(),
            (cost.raw / 1e3).into(),
            (cost.more / cost.raw).into(),
            cost.flushes.into(),
            cost.batches.into(),
            cost.per_second.into(),
            (cost.per_second * cost.lines).into(),
            (cost.disk_bytes / 1e3).into(),
            (cost.line_bytes / 1e3).into(),
        ]);
    }
    table.note(
        "ms: processor time of the whole process per run, all threads and the kernel; medians of rounds",
    );
    table.note("raw: the same bytes of lines appended to a plain file, with as many flushes (fdatasync)");
    flush.add_to(&mut table);
    if let (Some(more), ToolKind::Read) = (met, tool) {
        let met = if more / 1e3 <= TARGET_MS { "met" } else { "missed" };
        table.note(format!(
            "target: at most {TARGET_MS} ms more at {TARGET_AT} at once, and one flush for each group: {met}"
        ));
    }
    Ok(table)
}

fn growth(rounds: usize) -> Result<Table, Failure> {
    let columns = [
        ("iterations", "iterations", 0),
        ("memoryMs", "in memory ms", 3),
        ("durableMs", "durable ms", 3),
        ("moreMs", "more ms", 3),
        ("memoryMicros", "µs/iteration in memory", 1),
        ("durableMicros", "durable", 1),
        ("diskKilobytes", "kB/run on disk", 2),
        ("diskBytes", "bytes/iteration on disk", 0),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table =
        Table::new("store-growth", "longer runs, 32 at once, calls that only read", columns.into());
    let crowds = ITERATIONS.map(|iterations| Crowd {
        scenario: Scenario::new(iterations - 1, ToolKind::Read),
        runs: 6_000 / iterations,
        at_once: TARGET_AT,
    });
    let mut rows: Vec<(f64, Cost)> = Vec::new();
    for (iterations, cost) in ITERATIONS.into_iter().zip(costs(&crowds, rounds)?) {
        let iterations = figure(iterations as u64);
        table.row(vec![
            iterations.into(),
            (cost.memory / 1e3).into(),
            (cost.durable / 1e3).into(),
            (cost.more / 1e3).into(),
            (cost.memory / iterations).into(),
            (cost.durable / iterations).into(),
            (cost.disk_bytes / 1e3).into(),
            (cost.disk_bytes / iterations).into(),
        ]);
        rows.push((iterations, cost));
    }
    if let [(few, first), .., (many, last)] = rows.as_slice() {
        // A figure below 1 is possible: more iterations share the start and the end of a run.
        for (key, text, of) in [
            ("memoryGrowth", "µs/iteration in memory", (|cost| cost.memory) as fn(&Cost) -> f64),
            ("durableGrowth", "µs/iteration durable", |cost| cost.durable),
            ("diskGrowth", "bytes/iteration on disk", |cost| cost.disk_bytes),
        ] {
            let growth = (of(last) / many) / (of(first) / few);
            table.figure(key, format!("{text}, 20 iterations to 5"), growth, "");
        }
    }
    Ok(table)
}

/// The cost of one run, in microseconds of processor time and in bytes.
struct Cost {
    memory: f64,
    durable: f64,
    /// The median of the differences of each pair of rounds.
    more: f64,
    raw: f64,
    flushes: f64,
    /// Batches in each flush.
    batches: f64,
    per_second: f64,
    lines: f64,
    line_bytes: f64,
    disk_bytes: f64,
}

/// Runs of one kind.
struct Crowd {
    scenario: Scenario,
    /// In a round.
    runs: usize,
    /// At a time.
    at_once: usize,
}

/// The cost of each round, by the fields of [`Cost`].
#[derive(Default)]
struct Samples {
    memory: Vec<f64>,
    durable: Vec<f64>,
    more: Vec<f64>,
    raw: Vec<f64>,
    flushes: Vec<f64>,
    batches: Vec<f64>,
    per_second: Vec<f64>,
    lines: Vec<f64>,
    line_bytes: Vec<f64>,
    disk_bytes: Vec<f64>,
}

/// Measures all crowds in memory, on the disk and raw in turns, so that a slow moment of the machine affects all of them.
fn costs(crowds: &[Crowd], rounds: usize) -> Result<Vec<Cost>, Failure> {
    let mut samples: Vec<Samples> = crowds.iter().map(|_| Samples::default()).collect();
    let empty = empty_bytes()?;
    // The first round warms up and is dropped, unless it is the only one.
    let warm_up = usize::from(rounds > 1);
    for round in 0..rounds + warm_up {
        for (crowd, samples) in crowds.iter().zip(&mut samples) {
            let per_run = |total: f64| total / figure(crowd.runs as u64);
            let in_memory = run_in_memory(crowd)?;
            let durable = run_durably(crowd)?;
            let appended = append(durable.stats.bytes, durable.stats.flushes)?;
            if round < warm_up {
                continue;
            }
            samples.memory.push(per_run(in_memory.cpu));
            samples.durable.push(per_run(durable.spent.cpu));
            samples.more.push(per_run(durable.spent.cpu - in_memory.cpu));
            samples.raw.push(per_run(appended.cpu));
            samples.flushes.push(per_run(figure(durable.stats.flushes)));
            samples.batches.push(figure(durable.stats.batches) / figure(durable.stats.flushes));
            samples.per_second.push(1e6 / per_run(durable.spent.wall));
            samples.lines.push(durable.lines);
            samples.line_bytes.push(per_run(figure(durable.stats.bytes)));
            samples.disk_bytes.push(per_run(figure(durable.disk_bytes.saturating_sub(empty))));
        }
    }
    Ok(samples.into_iter().map(Samples::medians).collect())
}

impl Samples {
    fn medians(self) -> Cost {
        Cost {
            memory: median(self.memory),
            durable: median(self.durable),
            more: median(self.more),
            raw: median(self.raw),
            flushes: median(self.flushes),
            batches: median(self.batches),
            per_second: median(self.per_second),
            lines: median(self.lines),
            line_bytes: median(self.line_bytes),
            disk_bytes: median(self.disk_bytes),
        }
    }
}

fn run_in_memory(crowd: &Crowd) -> Result<Spent, Failure> {
    let (spent, ()) = round(crowd, Arc::new(MemoryStore::default()), |_| ())?;
    Ok(spent)
}

/// The cost of a round with a new store.
struct DurableRound {
    spent: Spent,
    stats: StoreStats,
    /// Of the whole store, after the checkpoint of the log.
    disk_bytes: u64,
    /// Lines in the journal of one run.
    lines: f64,
}

fn run_durably(crowd: &Crowd) -> Result<DurableRound, Failure> {
    let folder = Folder::on_disk()?;
    let store = Arc::new(Store::open(folder.path())?);
    let (spent, stats) = round(crowd, store, Store::stats)?;
    let disk_bytes = folder.bytes()?;
    let reader = Reader::open(folder.path())?;
    let ids = reader.run_ids()?;
    let last = ids.last().filter(|_| ids.len() == crowd.runs).ok_or("runs are missing in the store")?;
    let journal = reader.load(last)?.ok_or("a run is missing in the store")?.journal;
    let lines = journal.iter().filter(|byte| **byte == b'\n').count();
    Ok(DurableRound { spent, stats, disk_bytes, lines: figure(lines as u64) })
}

/// Drives runs with a store. Wall time ends with the last run. Processor time ends when the store is closed and its log
/// is in the database.
fn round<S: RunStore + 'static, T>(
    crowd: &Crowd,
    store: Arc<S>,
    ask: impl FnOnce(&S) -> T,
) -> Result<(Spent, T), Failure> {
    let Crowd { scenario, runs, at_once } = *crowd;
    let runtime = runtime()?;
    let (world, watch) = runtime.block_on(async {
        let world = World::new(scenario, Arc::clone(&store) as _, limits_for(at_once))?;
        Ok::<_, Failure>((world, Stopwatch::start()))
    })?;
    runtime.block_on(world.drive(runs, at_once))?;
    let wall = watch.spent().wall;
    drop(world);
    drop(runtime);
    let answer = ask(&store);
    drop(Arc::into_inner(store).ok_or("the store is still in use")?);
    Ok((Spent { wall, ..watch.spent() }, answer))
}

/// The bytes of a store without runs.
fn empty_bytes() -> Result<u64, Failure> {
    let folder = Folder::on_disk()?;
    drop(Store::open(folder.path())?);
    Ok(folder.bytes()?)
}

/// Appends bytes to a plain file with a number of flushes.
pub(crate) fn append(bytes: u64, flushes: u64) -> Result<Spent, Failure> {
    let watch = Stopwatch::start();
    append_and_report(bytes, flushes, |_| ())?;
    Ok(watch.spent())
}

fn append_and_report(bytes: u64, flushes: u64, mut report: impl FnMut(f64)) -> Result<(), Failure> {
    let folder = Folder::on_disk()?;
    let mut file = OpenOptions::new().append(true).create_new(true).open(folder.path().join("lines"))?;
    let flushes = flushes.max(1);
    let group = vec![b'x'; usize::try_from(bytes.div_ceil(flushes))?];
    for _ in 0..flushes {
        let (appended, time) = timed(|| file.write_all(&group).and_then(|()| file.sync_data()));
        appended?;
        report(time);
    }
    Ok(())
}

/// The time of one small flush, in microseconds.
struct Flush {
    wall: f64,
    cpu: f64,
}

impl Flush {
    const BYTES: u64 = 100;
    const COUNT: u64 = 300;

    fn measure() -> Result<Self, Failure> {
        let (watch, mut walls) = (Stopwatch::start(), Vec::new());
        append_and_report(Self::BYTES * Self::COUNT, Self::COUNT, |wall| walls.push(wall))?;
        Ok(Self { wall: median(walls), cpu: watch.spent().cpu / figure(Self::COUNT) })
    }

    fn add_to(&self, table: &mut Table) {
        let text = "one append of 100 bytes with fdatasync, on the disk of the target folder";
        table.figure("flushMicros", text, self.wall, " µs");
        table.figure("flushCpuMicros", "of that in the processor", self.cpu, " µs");
    }
}
