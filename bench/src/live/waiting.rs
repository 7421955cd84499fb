//! The memory of a run that waits for a slow model: thousands of them at once, each agent in its own process.

use super::agent::{Agent, AgentKind};
use super::provider::{AfterCalls, Provider, ProviderCounts, base};
use crate::clock::{figure, resident};
use crate::probe::{Probe, print_and_wait};
use crate::table::{Column, Table, target_word};
use crate::world::{BATCH, runtime};
use crate::{Extent, Failure, open_files};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The first argument of a process that holds waiting runs.
pub(crate) const PROBE: &str = "--probe-waiting";

/// The most memory of a run that waits in its first call, and in a later one, relative to the raw loop.
const TARGETS: [f64; 2] = [1.1, 1.3];

/// Runs before memory is measured.
const WARM_UP: usize = 64;

/// Open files of a process besides its connections.
const OTHER_FILES: u64 = 200;

pub(crate) fn table(extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("calls", "waits in call", 0),
        ("runs", "runs", 0),
        ("rawBytes", "raw bytes/run", 0),
        ("productBytes", "product bytes/run", 0),
        ("ratio", "× raw", 2),
        ("hyperBytes", "by hyper bytes/run", 0),
        ("hyperRatio", "hyper × reqwest", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table =
        Table::new("live-waiting", "runs that wait for a slow model, all at once", columns.into());
    if resident("RssAnon").is_err() {
        table.note("not measured: this system has no /proc/self/status");
        return Ok(table);
    }
    let planned = if extent == Extent::Quick { 1_000 } else { 10_000 };
    let runs = planned.min(open_files::raise_limit().saturating_sub(OTHER_FILES));
    if runs < planned {
        table.note(format!("fewer than {planned}: a process may not have more files open here"));
    }
    let mut met = true;
    for (tool_calls, target) in [0, 2].into_iter().zip(TARGETS) {
        let mut bytes = [f64::NAN; AgentKind::ALL.len()];
        for kind in [AgentKind::Raw, AgentKind::Product, AgentKind::Hyper] {
            bytes[kind as usize] = bytes_per_run(kind, tool_calls, runs)?;
        }
        let [raw, product, _, hyper, ..] = bytes;
        met &= product / raw <= target;
        table.row(vec![
            figure(tool_calls as u64 + 1).into(),
            figure(runs).into(),
            raw.into(),
            product.into(),
            (product / raw).into(),
            hyper.into(),
            (hyper / product).into(),
        ]);
    }
    table.note("growth of what the asking process holds (RssAnon), over what it held after the first runs");
    table.note("the provider has counted every call before memory is looked at");
    let [first, later] = TARGETS;
    table.note(format!(
        "target: at most {first} × raw in the first call and {later} × in the third: {}",
        target_word(met)
    ));
    Ok(table)
}

/// Bytes that a run holds, in a new process against a new provider.
fn bytes_per_run(kind: AgentKind, tool_calls: usize, runs: u64) -> Result<f64, Failure> {
    let provider = Provider::start()?;
    let args = [kind as u64, tool_calls as u64, runs, u64::from(provider.port)].map(|arg| arg.to_string());
    let mut probe = Probe::start(PROBE, &args.each_ref().map(String::as_str))?;
    Ok(probe.figures()?.get("grownBytes") / figure(runs))
}

/// The work of such a process. Its arguments: agent, tool calls before the held call, runs, the provider's port.
pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    let numbers: Vec<u64> = args.iter().map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let [kind, tool_calls, runs, port] = numbers.as_slice() else {
        return Err("a probe takes an agent, tool calls, runs and a port".into());
    };
    let kind =
        AgentKind::ALL.into_iter().find(|known| *known as u64 == *kind).ok_or("there is no such agent")?;
    let (tool_calls, port) = (usize::try_from(*tool_calls)?, u16::try_from(*port)?);
    open_files::raise_limit();
    runtime()?.block_on(async {
        Agent::new(kind, &base(port, tool_calls, AfterCalls::Answer), WARM_UP)
            .await?
            .drive(WARM_UP, WARM_UP)
            .await?;
        let agent =
            Agent::new(kind, &base(port, tool_calls, AfterCalls::Hold), usize::try_from(*runs)?).await?;
        let before = resident("RssAnon")?;
        let (mut held, mut started) = (ProviderCounts::new(port)?, 0);
        while started < *runs {
            let some = BATCH.min(*runs - started);
            start_runs(&agent, some)?;
            started += some;
            wait_until_held(&mut held, started).await?;
        }
        let grown = resident("RssAnon")? - before;
        let counted = held.held()?;
        if counted != *runs {
            return Err(format!("the provider holds {counted} of {runs} calls").into());
        }
        print_and_wait(&json!({"grownBytes": grown}))
    })
}

/// Starts runs and does not wait for them.
pub(super) fn start_runs(agent: &Agent, runs: u64) -> Result<(), Failure> {
    match agent {
        Agent::Product(world, _) => world.start_runs(runs),
        Agent::Raw(raw) => {
            for _ in 0..runs {
                let raw = Arc::clone(raw);
                tokio::spawn(async move { raw.run().await });
            }
            Ok(())
        }
    }
}

/// Waits until the provider holds `calls` calls.
pub(super) async fn wait_until_held(held: &mut ProviderCounts, calls: u64) -> Result<(), Failure> {
    while held.held()? < calls {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
