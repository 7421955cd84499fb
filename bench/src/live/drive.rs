//! Runs of one kind and nothing else, for a profiler: `redflow-bench --drive product 20000`.

use super::agent::{Agent, AgentKind};
use super::provider::{AfterCalls, Provider, base};
use crate::Failure;
use crate::clock::{Stopwatch, figure};
use crate::folder::Folder;
use crate::probe::print_figures;
use crate::world::{Scenario, ToolKind, World, limits_for, runtime};
use redflow_ports::RunStore;
use redflow_store::{MemoryStore, Store};
use serde_json::json;
use std::sync::Arc;

/// The first argument of such a process. The kind and the number of runs follow.
pub(crate) const PROBE: &str = "--drive";

const TOOL_CALLS: usize = 5;
const AT_ONCE: usize = 32;

pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    let [kind, runs] = args else { return Err("the kind and the number of runs are missing".into()) };
    let runs = runs.parse()?;
    let folder = Folder::temporary()?;
    let micros = match kind.as_str() {
        "memory" => scripted(Arc::new(MemoryStore::default()), runs)?,
        "durable" => scripted(Arc::new(Store::open(folder.path())?), runs)?,
        name => {
            let kind = AgentKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or("no such kind")?;
            let provider = Provider::start()?;
            runtime()?.block_on(async {
                let address = base(provider.port, TOOL_CALLS, AfterCalls::Answer);
                let agent = Agent::new(kind, &address, AT_ONCE).await?;
                agent.drive(AT_ONCE, AT_ONCE).await?;
                let watch = Stopwatch::start();
                agent.drive(runs, AT_ONCE).await?;
                Ok::<_, Failure>(watch.spent().cpu / figure(runs as u64))
            })?
        }
    };
    Ok(print_figures(&json!({"kind": kind, "microsPerRun": micros}))?)
}

/// Runs with the scripted model, without a network.
fn scripted(store: Arc<dyn RunStore>, runs: usize) -> Result<f64, Failure> {
    runtime()?.block_on(async {
        let world = World::new(Scenario::new(TOOL_CALLS, ToolKind::Read), store, limits_for(AT_ONCE))?;
        world.drive(AT_ONCE, AT_ONCE).await?;
        let watch = Stopwatch::start();
        world.drive(runs, AT_ONCE).await?;
        Ok(watch.spent().cpu / figure(runs as u64))
    })
}
