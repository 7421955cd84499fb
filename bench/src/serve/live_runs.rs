//! The cost of a live run in a sidecar, from `POST /api/runs` with `wait` to its answer, compared with the raw loop and with
//! the same run in a process without a sidecar.

use super::client::{HttpConnection, with_time_limit};
use super::server::{AGENT, Kind, Server, live_data};
use crate::clock::{figure, median};
use crate::live::agent::AgentKind;
use crate::live::cost::{Crowd, measure_round};
use crate::live::provider::{AfterCalls, Provider, base};
use crate::table::{Column, Table, target_word};
use crate::{Extent, Failure};
use tokio::task::JoinSet;

const TOOL_CALLS: usize = 5;

/// Runs at a time, and runs in a round.
const CROWDS: [(usize, usize); 2] = [(1, 300), (32, 1_000)];

/// The highest cost of a run in memory and of one on the disk, relative to the raw loop, the most microseconds that a
/// sidecar may add to a run in memory, and the runs at a time for these targets.
const TARGETS: [f64; 2] = [1.7, 2.1];
const ADDED_TARGET: f64 = 60.0;
const TARGETS_AT: usize = 32;

pub(super) fn table(rounds: usize, extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("atOnce", "at once", 0),
        ("rawMs", "raw ms", 3),
        ("processMs", "in process ms", 3),
        ("memoryMs", "ephemeral ms", 3),
        ("memoryRatio", "× raw", 2),
        ("addedMicros", "sidecar adds µs", 1),
        ("durableMs", "durable ms", 3),
        ("durableRatio", "× raw", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "live runs of five tool calls and a final answer, by POST /api/runs with wait";
    let mut table = Table::new("serve-run", heading, columns.into());
    let provider = Provider::start()?;
    let address = base(provider.port, TOOL_CALLS, AfterCalls::Answer);
    let servers = [Kind::Ephemeral, Kind::Durable]
        .map(|kind| live_data(&address).and_then(|folder| Server::start_in(kind, folder)));
    let [memory, durable] = servers;
    let (memory, durable) = (memory?, durable?);
    let mut met = true;
    for (at_once, runs) in CROWDS {
        let runs = if extent == Extent::Quick { runs / 5 } else { runs };
        let crowd = Crowd { tool_calls: TOOL_CALLS, runs, at_once };
        let mut micros: [Vec<f64>; 4] = Default::default();
        // The first round warms up and is dropped.
        for round in 0..=rounds {
            let spent = [
                measure_round(&crowd, AgentKind::Raw, provider.port)?,
                measure_round(&crowd, AgentKind::Product, provider.port)?,
                with_time_limit(start_and_wait(&memory, at_once, runs))?,
                with_time_limit(start_and_wait(&durable, at_once, runs))?,
            ];
            if round > 0 {
                micros.iter_mut().zip(spent).for_each(|(all, spent)| all.push(spent));
            }
        }
        let ratio =
            |own: usize| median(micros[own].iter().zip(&micros[0]).map(|(own, raw)| own / raw).collect());
        let added = median(micros[2].iter().zip(&micros[1]).map(|(own, process)| own - process).collect());
        let ratios = [ratio(2), ratio(3)];
        if at_once == TARGETS_AT {
            met = ratios.iter().zip(TARGETS).all(|(ratio, target)| *ratio <= target) && added <= ADDED_TARGET;
        }
        let [raw, process, memory, durable] = micros.map(|all| median(all) / 1e3);
        table.row(vec![
            figure(at_once as u64).into(),
            raw.into(),
            process.into(),
            memory.into(),
            ratios[0].into(),
            added.into(),
            durable.into(),
            ratios[1].into(),
        ]);
    }
    table.note(
        "ms: processor time of the server per run, with the kernel's; medians of rounds, as the ratios",
    );
    table.note("raw, in process: as in the section live, in the process of the benchmark");
    table.note(format!(
        "target: at most {} × raw in memory, {} × on the disk, {ADDED_TARGET} µs added at {TARGETS_AT} at once: {}",
        TARGETS[0],
        TARGETS[1],
        target_word(met)
    ));
    Ok(table)
}

/// The cost of a run for the server.
async fn start_and_wait(server: &Server, at_once: usize, runs: usize) -> Result<f64, Failure> {
    let mut connections = Vec::new();
    for _ in 0..at_once {
        let mut connection = HttpConnection::open(server.addr).await?;
        connection.start_and_wait(AGENT).await?;
        connections.push(connection);
    }
    let each = runs / at_once;
    let before = server.cpu()?;
    let mut starters = JoinSet::new();
    for mut connection in connections {
        starters.spawn(async move {
            for _ in 0..each {
                let answer = connection.start_and_wait(AGENT).await?;
                if !answer.contains(r#""status":"completed""#) {
                    return Err(format!("a run did not complete: {answer}").into());
                }
            }
            Ok::<_, Failure>(connection)
        });
    }
    let mut finished = Vec::new();
    while let Some(connection) = starters.join_next().await {
        finished.push(connection??);
    }
    let spent = server.cpu()? - before;
    Ok(spent / figure((each * at_once) as u64))
}
