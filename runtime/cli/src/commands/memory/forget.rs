//! `redflow memory forget` on a data directory. A sidecar does it itself.

use super::print::format_forgotten;
use crate::args::ForgetOptions;
use crate::context::{AppContext, process_env};
use crate::diagnostics::print_diagnostics;
use crate::errors::{from_store, print_store_error, print_with_help};
use crate::exit::{CommandResult, Exit};
use crate::loaded_flow::LoadedFlow;
use crate::terminal::{print_error, print_json, print_text};
use crate::text::printable_line;
use redflow_contract::code::StoreCode;
use redflow_contract::id::NodeSummary;
use redflow_contract::memory::{DataOwner, Forgotten};
use redflow_contract::memory_api::{ForgetAnswer, ForgetRequest};
use redflow_engine::build_flow;
use redflow_flow::Verdict;
use redflow_ports::{Memories as _, Memory, RunStore as _, StoreError};
use redflow_store::{Reader, Store};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long one memory may take.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(60);

/// Removes everything that the data directory and the memories of a flow keep. A step that fails keeps no other one from
/// being made, but a directory that is in use is left as it is.
pub(super) async fn forget_locally(
    context: &AppContext,
    options: &ForgetOptions,
    owner: DataOwner,
) -> Result<ForgetAnswer, Exit> {
    let store = if options.runs { open_store(context)? } else { None };
    let long_memories = context.memories()?;
    let mut answer = ForgetAnswer { forgotten: Forgotten::default(), problems: Vec::new() };
    let memories = match &options.flow {
        Some(flow) => memories_of(context, flow, &mut answer.problems)?,
        None => Vec::new(),
    };
    // Runs first: what is appended while one goes on is not reported as gone, because the run is not over.
    if let Some(store) = store {
        match store.forget_runs(&owner).await {
            Ok(done) => {
                answer.forgotten.runs += done.removed;
                answer.problems.extend(unfinished(done.unfinished));
            }
            Err(error) => answer.problems.push(format!("Runs: {}", error.message)),
        }
    }
    for (node, memory) in memories {
        match timeout(MEMORY_TIMEOUT, memory.forget(&owner)).await {
            Ok(Ok(forgotten)) => answer.forgotten += forgotten,
            Ok(Err(failure)) => answer.problems.push(about(&node, &failure.message)),
            Err(_) => answer.problems.push(about(&node, "it does not answer")),
        }
    }
    match long_memories.forget(ForgetRequest { owner, runs: false }).await {
        Ok(done) => answer.forgotten += done.forgotten,
        Err(error) => answer.problems.push(format!("Long memories: {}", error.message)),
    }
    Ok(answer)
}

pub(super) fn print_answer(answer: &ForgetAnswer, json: bool) -> CommandResult {
    let printed = if json { print_json(answer) } else { print_text(&format_forgotten(answer)) };
    for problem in answer.problems.iter().filter(|_| !json) {
        print_error(&printable_line(problem, 800));
    }
    Ok(if answer.problems.is_empty() { printed } else { printed.max(Exit::Failure) })
}

/// The stored runs, which no other process may drive meanwhile; none if there are none.
fn open_store(context: &AppContext) -> Result<Option<Store>, Exit> {
    let dir = context.settings.data_dir().map_err(print_store_error)?;
    if Reader::find(&dir).map_err(print_store_error)?.is_none() {
        return Ok(None);
    }
    Store::open(&dir).map(Some).map_err(refused)
}

fn refused(error: StoreError) -> Exit {
    let remedy = "nothing was forgotten; let the sidecar do it: redflow memory forget … --url URL".to_owned();
    let help: &[String] = if error.code == StoreCode::DataLocked { &[remedy] } else { &[] };
    print_with_help(from_store(error), help)
}

/// A memory with its node.
type NodeMemory = (NodeSummary, Arc<dyn Memory>);

/// The memories of the agents of a flow. Those that cannot be built are problems.
fn memories_of(
    context: &AppContext,
    path: &Path,
    problems: &mut Vec<String>,
) -> Result<Vec<NodeMemory>, Exit> {
    let flow = LoadedFlow::read(context, path).map_err(|diagnostics| {
        print_diagnostics(Some(path), diagnostics);
        Exit::Unusable
    })?;
    let mut named: Vec<NodeSummary> = Vec::new();
    for agent in &flow.checked.agents {
        match &agent.verdict {
            Verdict::Ready(ready) => named.extend(ready.plan.memory.iter().map(|memory| memory.node.clone())),
            Verdict::Refused { .. } => {
                let text = "the agent is refused, so its memory was not asked; `redflow check` says why";
                problems.push(about(&agent.node, text));
            }
        }
    }
    let built = build_flow(flow.checked, &context.adapters, redflow_strategies::strategies(), &process_env);
    let memories = built.memories().to_vec();
    named.retain(|node| !memories.iter().any(|(known, _)| known.id == node.id));
    named.dedup_by(|one, other| one.id == other.id);
    let unbuilt = "its agents cannot be built, so it was not asked; set the keys of their models";
    problems.extend(named.iter().map(|node| about(node, unbuilt)));
    Ok(memories)
}

/// A problem of a node, by its name.
fn about(node: &NodeSummary, problem: &str) -> String {
    let name = if node.name.is_empty() { node.id.as_str() } else { &node.name };
    format!("`{name}`: {problem}")
}

/// What people have to do about runs that are not over.
fn unfinished(runs: u64) -> Option<String> {
    let text = match runs {
        0 => return None,
        1 => "1 run is not over; cancel it, then forget again".to_owned(),
        runs => format!("{runs} runs are not over; cancel them, then forget again"),
    };
    Some(text)
}
