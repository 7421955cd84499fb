//! The time of recovery after a crash, and the memory of a waiting run.
//!
//! The benchmark starts itself and kills that process while its runs wait for a model that never answers. Another
//! process recovers them. So the memory is that of a process without other work, and the store is as after a crash.

use crate::clock::{Stopwatch, figure, resident};
use crate::folder::Folder;
use crate::probe::{Figures, Probe, print_and_wait};
use crate::store::append;
use crate::table::{Column, Table};
use crate::world::{Scenario, ToolKind, World, hang_at, limits_for, runtime, until};
use crate::{Extent, Failure};
use redflow_contract::digest::Digest;
use redflow_engine::EngineLimits;
use redflow_ports::RunStore;
use redflow_store::{MemoryStore, Reader, Store};
use serde_json::{Value, json};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

/// The first argument of a process that is measured or killed.
pub(crate) const PROBE: &str = "--probe-runs";

const TOOL_CALLS: usize = 5;
/// The iteration in which models hang: after two of five tool calls.
const HANG_AT: u32 = 3;
/// Batches of a run until then: its start, and two answers with their results.
const BATCHES: u64 = 5;
/// Runs before memory is measured: more than a store in memory keeps after their end.
const WARM_UP: usize = 2_000;
const AT_ONCE: usize = 64;

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if resident("RssAnon").is_err() {
        let mut table = Table::new("recovery", "runs of a killed process, and runs that wait", Vec::new());
        table.note("not measured: this system has no /proc/self/status");
        return show(table);
    }
    let sizes: &[u64] = match extent {
        Extent::Quick => &[1_000],
        Extent::Usual => &[1_000, 10_000],
        Extent::Long => &[1_000, 10_000, 100_000],
    };
    let mut waiting = None;
    let mut table = recovery_table();
    let mut first = [None; 2];
    for runs in sizes.iter().copied() {
        let crashed = Folder::on_disk()?;
        let figures = hang_and_kill(crashed.path(), "durable", runs)?;
        if runs <= 10_000 {
            waiting = Some((runs, figures));
        }
        // A copy, because a reader changes the files of a store.
        let raw = RawCost::measure(crashed.copy()?.path())?;
        for (what, first) in ["at work", "finished"].into_iter().zip(&mut first) {
            let folder = crashed.copy()?;
            recovered(&mut table, folder.path(), what, runs, &raw, first)?;
        }
    }
    show(table)?;
    let (runs, durable) = waiting.ok_or("nothing was measured")?;
    show(memory(runs, &durable)?)
}

fn recovery_table() -> Table {
    let columns = [
        ("runs", "runs", 0),
        ("until", "until all are", 0),
        ("openMs", "open ms", 1),
        ("wallMs", "wall ms", 0),
        ("cpuMs", "CPU ms", 0),
        ("cpuMicros", "CPU µs/run", 1),
        ("rawMicros", "raw µs/run", 1),
        ("ratio", "× raw", 2),
        ("growth", "µs/run to the first", 2),
        ("flushes", "flushes", 0),
        ("peakMegabytes", "peak MB", 0),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "runs of a killed process, each after two of its five tool calls";
    let mut table = Table::new("recovery", heading, columns.into());
    table.note(
        "wall and CPU: opening the store, and bringing the runs back until they wait for their model again",
    );
    table.note("(all at once), or until the last has ended (as many at once as by default)");
    table.note("raw: each line of their journals parsed and hashed, and what the recovery writes appended to a plain file");
    table
}

fn recovered(
    table: &mut Table,
    folder: &Path,
    what: &str,
    runs: u64,
    raw: &RawCost,
    first: &mut Option<f64>,
) -> Result<(), Failure> {
    let hangs = what == "at work";
    let mut probe = start(&[if hangs { "rehang" } else { "recover" }, &runs.to_string()], folder)?;
    let figures = probe.figures()?;
    let cpu = figures.get("cpuMicros") / figure(runs);
    let raw =
        raw.reading_micros + append(figures.count("bytes"), figures.count("flushes"))?.cpu / figure(runs);
    table.row(vec![
        figure(runs).into(),
        what.into(),
        (figures.get("openMicros") / 1e3).into(),
        (figures.get("wallMicros") / 1e3).into(),
        (figures.get("cpuMicros") / 1e3).into(),
        cpu.into(),
        raw.into(),
        (cpu / raw).into(),
        (cpu / *first.get_or_insert(cpu)).into(),
        figures.get("flushes").into(),
        (figures.get("peakBytes") / 1e6).into(),
    ]);
    Ok(())
}

fn memory(runs: u64, durable: &Figures) -> Result<Table, Failure> {
    let columns = [("what", "what", 0), ("runs", "runs", 0), ("bytes", "bytes/run", 0)];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("waiting", "memory that a run holds while nothing happens", columns.into());
    let in_memory = hang_and_kill(Path::new("."), "memory", runs)?;
    let folder = Folder::on_disk()?;
    let parked = start(&["park", &runs.to_string()], folder.path())?.figures()?;
    for (what, figures) in [
        ("waits for its model, durable", durable),
        ("waits for its model, in memory with its journal", &in_memory),
        ("parked until a person says what a call did, durable", &parked),
    ] {
        table.row(vec![what.into(), figure(runs).into(), (figures.get("grownBytes") / figure(runs)).into()]);
    }
    table.note("growth of what the process holds (RssAnon), over what it held after the first runs");
    Ok(table)
}

fn start(args: &[&str], folder: &Path) -> Result<Probe, Failure> {
    let folder = folder.to_str().ok_or("the folder's name is no text")?;
    Probe::start(PROBE, &[args, &[folder]].concat())
}

/// Starts a process whose runs all hang, reads its figures and kills it.
fn hang_and_kill(folder: &Path, store: &str, runs: u64) -> Result<Figures, Failure> {
    let mut probe = start(&["hang", store, &runs.to_string()], folder)?;
    probe.figures()
}

/// The lowest cost of reading the journals.
struct RawCost {
    /// Microseconds to parse and hash each line of one journal.
    reading_micros: f64,
}

impl RawCost {
    fn measure(folder: &Path) -> Result<Self, Failure> {
        const TIMES: u64 = 2_000;
        let reader = Reader::open(folder)?;
        let runs = reader.run_ids()?;
        let last = runs.last().ok_or("no run is in the store")?;
        let journal = reader.load(last)?.ok_or("a run is missing in the store")?.journal;
        let watch = Stopwatch::start();
        for _ in 0..TIMES {
            for line in black_box(&journal).split(|byte| *byte == b'\n') {
                black_box((serde_json::from_slice::<Value>(line).ok(), Digest::of(line)));
            }
        }
        Ok(Self { reading_micros: watch.spent().cpu / figure(TIMES) })
    }
}

/// The work of such a process: `hang durable|memory RUNS`, `park RUNS`, `recover RUNS` or `rehang RUNS`, and the folder
/// of the store.
pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = runtime()?;
    runtime.block_on(async {
        match words.as_slice() {
            ["hang", "durable", runs, dir] => {
                let store = Arc::new(Store::open(Path::new(dir))?);
                hang(Arc::clone(&store) as _, Some(&store), runs.parse()?).await
            }
            ["hang", "memory", runs, _] => hang(Arc::new(MemoryStore::default()), None, runs.parse()?).await,
            ["park", runs, dir] => park(Path::new(dir), runs.parse()?).await,
            ["recover", runs, dir] => recover(Path::new(dir), runs.parse()?, AfterRecovery::Complete).await,
            ["rehang", runs, dir] => recover(Path::new(dir), runs.parse()?, AfterRecovery::Hang).await,
            _ => Err("a probe takes what it is to do, a number of runs and a folder".into()),
        }
    })
}

fn scenario(tool: ToolKind) -> Scenario {
    Scenario { may_hang: true, ..Scenario::new(TOOL_CALLS, tool) }
}

async fn hang(runs_store: Arc<dyn RunStore>, store: Option<&Store>, runs: u64) -> Result<(), Failure> {
    let world = World::new(scenario(ToolKind::Read), runs_store, limits_for(usize::try_from(runs)?))?;
    world.drive(WARM_UP, AT_ONCE).await?;
    let batches = || store.map(|store| store.stats().batches);
    let (before, held) = (batches(), resident("RssAnon")?);
    hang_at(HANG_AT);
    world.leave_hanging(runs).await?;
    // Buffered writes are on the disk too.
    until(|| batches() >= before.map(|before| before + runs * BATCHES)).await;
    print_and_wait(&json!({"grownBytes": resident("RssAnon")? - held}))
}

async fn park(dir: &Path, runs: usize) -> Result<(), Failure> {
    let store = Arc::new(Store::open(dir)?);
    let world = World::new(scenario(ToolKind::Lost), store, limits_for(AT_ONCE))?;
    world.drive(WARM_UP, AT_ONCE).await?;
    let held = resident("RssAnon")?;
    world.drive(runs, AT_ONCE).await?;
    print_and_wait(&json!({"grownBytes": resident("RssAnon")? - held}))
}

/// What recovered runs do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterRecovery {
    Complete,
    Hang,
}

async fn recover(dir: &Path, runs: u64, after: AfterRecovery) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let store = Arc::new(Store::open(dir)?);
    let open = watch.spent().wall;
    let hangs = after == AfterRecovery::Hang;
    let limits = if hangs { limits_for(usize::try_from(runs)?) } else { EngineLimits::default() };
    let world = World::new(scenario(ToolKind::Read), Arc::clone(&store) as _, limits)?;
    if hangs {
        hang_at(HANG_AT);
        world.recover_hanging(runs).await?;
    } else {
        let found = world.recover().await?;
        if found as u64 != runs {
            return Err(format!("{found} of {runs} runs came back").into());
        }
    }
    let (spent, stats) = (watch.spent(), store.stats());
    print_and_wait(&json!({
        "openMicros": open,
        "wallMicros": spent.wall,
        "cpuMicros": spent.cpu,
        "flushes": stats.flushes,
        "bytes": stats.bytes,
        "peakBytes": resident("VmHWM")?,
    }))
}
