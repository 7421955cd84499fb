//! What a run holds while it waits for a slow model: thousands of them, all in flight at once, each way in a
//! process that does nothing else.

use crate::clock::{figure, resident};
use crate::live::{Asker, Way, word};
use crate::live_provider::{Counts, Provider, allow_files, base};
use crate::probe::{Probe, say};
use crate::table::{Column, Table};
use crate::world::{AT_A_TIME, runtime};
use crate::{Extent, Failure};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The first argument of a benchmark that was started to wait.
pub(crate) const PROBE: &str = "--probe-waiting";

/// The most that a waiting run may hold, to the raw loop.
const TARGET: f64 = 1.3;

/// Runs before memory is looked at.
const WARM_UP: usize = 64;

/// Files that a process has open beside its connections.
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
    let wanted = if extent == Extent::Quick { 1_000 } else { 10_000 };
    let runs = wanted.min(allow_files().saturating_sub(OTHER_FILES));
    if runs < wanted {
        table.note(format!("fewer than {wanted}: a process may not have more files open here"));
    }
    let mut met = None;
    for tool_calls in [0, 2] {
        let mut bytes = [f64::NAN; Way::ALL.len()];
        for way in Way::ALL {
            bytes[way as usize] = held(way, tool_calls, runs)?;
        }
        let [raw, product, hyper] = bytes;
        met = met.or(Some(product / raw <= TARGET));
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
    if let Some(met) = met {
        table.note(format!("target: at most {TARGET} × raw in the first call: {}", word(met)));
    }
    Ok(table)
}

/// Bytes that a run holds, in a new process against a new provider.
fn held(way: Way, tool_calls: usize, runs: u64) -> Result<f64, Failure> {
    let provider = Provider::start()?;
    let args = [way as u64, tool_calls as u64, runs, u64::from(provider.port)].map(|arg| arg.to_string());
    let mut probe = Probe::start(PROBE, &args.each_ref().map(String::as_str))?;
    Ok(probe.figures()?.get("grownBytes") / figure(runs))
}

/// What such a process does: the way, tool calls before the held call, runs, and the provider's port.
pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    let numbers: Vec<u64> = args.iter().map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let [way, tool_calls, runs, port] = numbers.as_slice() else {
        return Err("a probe takes a way, tool calls, runs and a port".into());
    };
    let way = Way::ALL.into_iter().find(|known| *known as u64 == *way).ok_or("there is no such way")?;
    let (tool_calls, port) = (usize::try_from(*tool_calls)?, u16::try_from(*port)?);
    allow_files();
    runtime()?.block_on(async {
        Asker::new(way, &base(port, tool_calls, false), WARM_UP).await?.drive(WARM_UP, WARM_UP).await?;
        let asker = Asker::new(way, &base(port, tool_calls, true), usize::try_from(*runs)?).await?;
        let before = resident("RssAnon")?;
        let (mut held, mut begun) = (Counts::new(port)?, 0);
        while begun < *runs {
            let some = AT_A_TIME.min(*runs - begun);
            begin(&asker, some)?;
            begun += some;
            until_held(&mut held, begun).await?;
        }
        let grown = resident("RssAnon")? - before;
        let counted = held.held()?;
        if counted != *runs {
            return Err(format!("the provider holds {counted} of {runs} calls").into());
        }
        say(&json!({"grownBytes": grown}))
    })
}

/// Begins so many runs and leaves them to themselves.
pub(crate) fn begin(asker: &Asker, runs: u64) -> Result<(), Failure> {
    match asker {
        Asker::Product(world) => world.begin(runs),
        Asker::Raw(agent) => {
            for _ in 0..runs {
                let agent = Arc::clone(agent);
                tokio::spawn(async move { agent.run().await });
            }
            Ok(())
        }
    }
}

/// Waits until the provider holds so many calls.
pub(crate) async fn until_held(held: &mut Counts, calls: u64) -> Result<(), Failure> {
    while held.held()? < calls {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
