//! The processor time of runs: many at once, and longer ones.

use super::agent::{Agent, AgentKind};
use super::provider::{AfterCalls, MAX_ITERATIONS, Provider, base};
use crate::Failure;
use crate::clock::{Stopwatch, figure, median};
use crate::table::{Column, Table, target_word};
use crate::world::runtime;

const TOOL_CALLS: usize = 5;

/// Runs at a time, and runs in a round.
const CROWDS: [(usize, usize); 3] = [(1, 300), (32, 1_000), (256, 1_000)];

/// The highest cost of a run in memory and of one on the disk, relative to the raw loop, and the runs at a time for
/// these targets.
const TARGETS: [f64; 2] = [1.4, 1.9];
const TARGETS_AT: usize = 32;

/// Model calls of a run. The last call gives the final answer.
const CALLS: [usize; 3] = [1, 6, MAX_ITERATIONS];
const GROWTH_AT: usize = 32;

/// The highest cost per call of the last of these, relative to the first.
const GROWTH_TARGET: f64 = 1.6;

pub(super) fn crowds(provider: &Provider, rounds: usize) -> Result<Table, Failure> {
    let columns = [
        ("atOnce", "at once", 0),
        ("rawMs", "raw ms", 3),
        ("productMs", "in memory ms", 3),
        ("ratio", "× raw", 2),
        ("durableMs", "durable ms", 3),
        ("durableRatio", "× raw", 2),
        ("hyperMs", "by hyper ms", 3),
        ("hyperRatio", "hyper × reqwest", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "runs of five tool calls and a final answer, over HTTP to a provider that answers at once";
    let mut table = Table::new("live", heading, columns.into());
    let crowds = CROWDS.map(|(at_once, runs)| Crowd { tool_calls: TOOL_CALLS, runs, at_once });
    let mut met = true;
    for (crowd, costs) in crowds.iter().zip(costs(provider, &crowds, rounds, &AgentKind::CORE)?) {
        let ratio = costs.ratio(AgentKind::Product, AgentKind::Raw);
        let durable = costs.ratio(AgentKind::Durable, AgentKind::Raw);
        if crowd.at_once == TARGETS_AT {
            met = ratio <= TARGETS[0] && durable <= TARGETS[1];
        }
        table.row(vec![
            figure(crowd.at_once as u64).into(),
            (costs.micros(AgentKind::Raw) / 1e3).into(),
            (costs.micros(AgentKind::Product) / 1e3).into(),
            ratio.into(),
            (costs.micros(AgentKind::Durable) / 1e3).into(),
            durable.into(),
            (costs.micros(AgentKind::Hyper) / 1e3).into(),
            costs.ratio(AgentKind::Hyper, AgentKind::Product).into(),
        ]);
    }
    table.note("ms: processor time of the asking process per run, with the kernel's; medians of rounds");
    table.note("ratios: medians of the ratios of each round");
    table.note(
        "raw: a loop that writes, posts and reads the same bytes with the same client, and keeps nothing",
    );
    let [memory, durable] = TARGETS;
    table.note(format!(
        "target: at most {memory} × raw in memory and {durable} × on the disk at {TARGETS_AT} at once: {}",
        target_word(met)
    ));
    Ok(table)
}

/// The same for an AI Agent, whose model makes native tool calls.
pub(super) fn ai_agents(provider: &Provider, rounds: usize) -> Result<Table, Failure> {
    let columns = [
        ("atOnce", "at once", 0),
        ("rawMs", "raw ms", 3),
        ("productMs", "in memory ms", 3),
        ("ratio", "× raw", 2),
        ("durableMs", "durable ms", 3),
        ("durableRatio", "× raw", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "the same runs of an AI Agent, with native tool calls";
    let mut table = Table::new("live-ai-agent", heading, columns.into());
    let crowds = CROWDS.map(|(at_once, runs)| Crowd { tool_calls: TOOL_CALLS, runs, at_once });
    for (crowd, costs) in crowds.iter().zip(costs(provider, &crowds, rounds, &AgentKind::NATIVE)?) {
        table.row(vec![
            figure(crowd.at_once as u64).into(),
            (costs.micros(AgentKind::RawNative) / 1e3).into(),
            (costs.micros(AgentKind::AiAgent) / 1e3).into(),
            costs.ratio(AgentKind::AiAgent, AgentKind::RawNative).into(),
            (costs.micros(AgentKind::AiAgentDurable) / 1e3).into(),
            costs.ratio(AgentKind::AiAgentDurable, AgentKind::RawNative).into(),
        ]);
    }
    table.note("raw: a loop that writes, posts and reads the same bytes and makes the native calls");
    Ok(table)
}

pub(super) fn growth(provider: &Provider, rounds: usize) -> Result<Table, Failure> {
    let columns = [
        ("calls", "calls", 0),
        ("rawMicros", "raw µs/call", 1),
        ("productMicros", "product µs/call", 1),
        ("ratio", "× raw", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("live-growth", "longer runs, 32 at once", columns.into());
    let crowds = CALLS.map(|calls| Crowd { tool_calls: calls - 1, runs: 6_000 / calls, at_once: GROWTH_AT });
    let costs = costs(provider, &crowds, rounds, &AgentKind::CORE)?;
    for (calls, costs) in CALLS.into_iter().zip(&costs) {
        let calls = figure(calls as u64);
        table.row(vec![
            calls.into(),
            (costs.micros(AgentKind::Raw) / calls).into(),
            (costs.micros(AgentKind::Product) / calls).into(),
            costs.ratio(AgentKind::Product, AgentKind::Raw).into(),
        ]);
    }
    if let ([few, .., many], [first, .., last]) = (CALLS.as_slice(), costs.as_slice()) {
        let shares = figure(*many as u64) / figure(*few as u64);
        let grown = |kind: AgentKind| {
            let pairs = first.of(kind).iter().zip(last.of(kind));
            median(pairs.map(|(first, last)| last / first / shares).collect())
        };
        table.figure("rawGrowth", "raw µs/call, 20 calls to 1", grown(AgentKind::Raw), "");
        let grown = grown(AgentKind::Product);
        table.figure("productGrowth", "product µs/call, 20 calls to 1", grown, "");
        table.note(format!("target: at most {GROWTH_TARGET}: {}", target_word(grown <= GROWTH_TARGET)));
    }
    Ok(table)
}

/// Runs of one kind.
pub(crate) struct Crowd {
    pub(crate) tool_calls: usize,
    /// In a round.
    pub(crate) runs: usize,
    /// At a time.
    pub(crate) at_once: usize,
}

/// The cost of a run of each agent in each round, in microseconds.
#[derive(Default)]
struct Costs([Vec<f64>; AgentKind::ALL.len()]);

impl Costs {
    fn of(&self, kind: AgentKind) -> &[f64] {
        &self.0[kind as usize]
    }

    fn micros(&self, kind: AgentKind) -> f64 {
        median(self.of(kind).to_vec())
    }

    fn ratio(&self, kind: AgentKind, to: AgentKind) -> f64 {
        median(self.of(kind).iter().zip(self.of(to)).map(|(kind, to)| kind / to).collect())
    }
}

/// Measures all crowds with every agent in turns, so that a slow moment of the machine affects all of them.
fn costs(
    provider: &Provider,
    crowds: &[Crowd],
    rounds: usize,
    kinds: &[AgentKind],
) -> Result<Vec<Costs>, Failure> {
    let mut all: Vec<Costs> = crowds.iter().map(|_| Costs::default()).collect();
    // The first round warms up and is dropped, unless it is the only one.
    let warm_up = usize::from(rounds > 1);
    for round in 0..rounds + warm_up {
        for (crowd, costs) in crowds.iter().zip(&mut all) {
            for &kind in kinds {
                let micros = measure_round(crowd, kind, provider.port)?;
                if round >= warm_up {
                    costs.0[kind as usize].push(micros);
                }
            }
        }
    }
    Ok(all)
}

/// The cost of a run, once all connections are open.
pub(crate) fn measure_round(crowd: &Crowd, kind: AgentKind, port: u16) -> Result<f64, Failure> {
    let Crowd { tool_calls, runs, at_once } = *crowd;
    runtime()?.block_on(async {
        let agent = Agent::new(kind, &base(port, tool_calls, AfterCalls::Answer), at_once).await?;
        agent.drive(at_once, at_once).await?;
        let watch = Stopwatch::start();
        agent.drive(runs, at_once).await?;
        Ok(watch.spent().cpu / figure(runs as u64))
    })
}
