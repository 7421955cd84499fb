//! A data directory with many runs: those of the list, and one run that has started many others.
//!
//! The store writes all of them by its own interface. A run of the list has a journal of one line, because lists read no
//! journals. The run that a browser opens is a real one.

use crate::Failure;
use crate::world::{Scenario, ToolKind, World, limits_for, runtime};
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Ending;
use redflow_contract::id::{InstanceId, NodeId, NodeRef, NodeSummary, RunId};
use redflow_contract::plan::{AgentPlan, EncodedPlan, PlanNode};
use redflow_contract::run::RunState;
use redflow_contract::tally::RunTally;
use redflow_contract::usage::{ModelUsage, RunUsage};
use redflow_ports::{Batch, Durability, NewRun, RunStore};
use redflow_store::{Reader, Store};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The period in which the runs of the list were started.
const PERIOD_MS: Millis = 90 * 24 * 3_600_000;

/// How long each of them took.
const RUN_MS: Millis = 1_500;

/// One run of so many failed.
const FAILED_EVERY: u64 = 17;

/// The error code of the failed runs.
pub(super) const FAILED: RunErrorCode = RunErrorCode::Timeout;

/// Tool calls of the run that has started others.
const TOOL_CALLS: usize = 5;

/// Ids with the same first characters are at most about a minute apart.
const PREFIX_CHARS: usize = 8;

/// The agents that the runs of the list are spread over.
const AGENTS: u64 = 40;

/// What the browser looks for in the store.
pub(super) struct Seeded {
    /// The run that has started many others.
    pub(super) parent: RunId,
    /// The first characters of the ids of a few runs in the middle of the list.
    pub(super) prefix: String,
}

/// Fills the data directory with one run that has started `children` others, and then with `runs` runs of a list.
pub(super) fn seed(data: &Path, runs: u64, children: u64) -> Result<Seeded, Failure> {
    let now = Millis::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let plan = plan()?;
    let start_of = |number: u64| now - PERIOD_MS + PERIOD_MS * number / runs;
    runtime()?.block_on(async {
        let store = Arc::new(Store::open(data)?);
        let parent = drive_parent(&store, data).await?;
        for number in 0..children {
            let cause = format!("{parent}:{number}");
            add_run(store.as_ref(), run(runs + number, now + number, Some(cause), &plan)).await?;
        }
        for number in 0..runs {
            add_run(store.as_ref(), run(number, start_of(number), None, &plan)).await?;
        }
        let middle = run_id(runs / 2, start_of(runs / 2)).as_str().to_owned();
        Ok(Seeded { parent, prefix: middle.chars().take(PREFIX_CHARS).collect() })
    })
}

/// A real run, in an empty store.
async fn drive_parent(store: &Arc<Store>, data: &Path) -> Result<RunId, Failure> {
    let driven: Arc<dyn RunStore> = Arc::clone(store) as _;
    World::new(Scenario::new(TOOL_CALLS, ToolKind::Read), driven, limits_for(1))?.drive(1, 1).await?;
    Reader::open(data)?.run_ids()?.pop().ok_or_else(|| "a run is missing in the store".into())
}

/// Stores a run that has ended. The store tells by its queue how fast this may go.
async fn add_run(store: &dyn RunStore, run: NewRun) -> Result<(), Failure> {
    let id = run.run_id.clone();
    let failed = run.cause.is_none() && run.started_at.is_multiple_of(FAILED_EVERY);
    let batch = Batch {
        lines: vec![format!(r#"{{"run":"{id}"}}"#)],
        state: RunState::Finished {
            at: run.started_at + RUN_MS,
            ending: if failed { Ending::Failed { code: FAILED } } else { Ending::Completed },
            usage: Box::new(usage()),
        },
        active_ms: RUN_MS,
        tally: RunTally {
            iterations: 2,
            model_calls: 2,
            tool_calls: 1,
            input_tokens: 700,
            output_tokens: 90,
            cost: Some(0.0042),
            ..RunTally::default()
        },
        durability: Durability::Buffered,
        events: [].into(),
    };
    store.create(run).append(batch).await?;
    store.mark_delivered(&id);
    Ok(())
}

fn run(number: u64, started_at: Millis, cause: Option<String>, plan: &EncodedPlan) -> NewRun {
    let agent = number % AGENTS;
    NewRun {
        run_id: run_id(number, started_at),
        agent: NodeRef { instance: InstanceId::local(), node_id: NodeId::from(format!("agent-{agent}")) },
        name: format!("Agent {agent}"),
        started_at,
        cause,
        source: None,
        by: None,
        user: None,
        session: None,
        plan: plan.clone(),
    }
}

/// An id like those of the engine: the time first, so that later runs have larger ids.
fn run_id(number: u64, started_at: Millis) -> RunId {
    let (high, low) = (started_at >> 16, started_at & 0xffff);
    RunId::from(format!("{high:08x}-{low:04x}-7000-8000-{number:012x}"))
}

fn usage() -> RunUsage {
    let model = "scripted".to_owned();
    let used = ModelUsage { model: model.clone(), calls: 2, input_tokens: 700, ..ModelUsage::default() };
    RunUsage { last_model: model, models: vec![used], tools: Vec::new() }
}

fn plan() -> Result<EncodedPlan, serde_json::Error> {
    let node = |id: &str| PlanNode {
        node: NodeSummary { id: id.into(), type_name: id.into(), name: id.into() },
        config: serde_json::Map::new(),
    };
    EncodedPlan::new(&AgentPlan {
        agent: node("agent"),
        model: node("model"),
        fallback_models: Vec::new(),
        services: Vec::new(),
        memory: None,
        tools: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::{FAILED, seed};
    use crate::folder::Folder;
    use redflow_store::{Reader, RunFilter};

    #[test]
    fn a_seeded_store_lists_its_runs_and_children() {
        let folder = Folder::temporary().unwrap();
        let seeded = seed(folder.path(), 100, 20).unwrap();
        let reader = Reader::open(folder.path()).unwrap();
        let list = |filter: RunFilter| reader.list(&filter).unwrap().runs;
        let all = list(RunFilter { limit: 1_000, ..RunFilter::default() });
        assert_eq!(all.len(), 121);
        let children = all.iter().filter(|run| run.parent.as_ref() == Some(&seeded.parent)).count();
        assert_eq!(children, 20);
        let found = list(RunFilter { prefix: Some(seeded.prefix), limit: 1_000, ..RunFilter::default() });
        assert!(!found.is_empty() && found.len() < 100, "{}", found.len());
        let failed = list(RunFilter { code: Some(FAILED), limit: 1_000, ..RunFilter::default() });
        assert!(!failed.is_empty() && failed.len() < 100, "{}", failed.len());
        assert!(reader.load(&seeded.parent).unwrap().is_some());
    }
}
