//! What a page of the UI missed while its socket was closed.
//!
//! A chat of the UI waits for an event of its agent and then reads the chat's history. After a restart of the sidecar
//! the run may end before the page has connected again, and the chat would wait forever. A page that has seen the
//! answer ignores the repeated event, because it knows the id of the item.

use crate::active_flow::ActiveFlow;
use crate::app::App;
use axum::extract::ws::Utf8Bytes;
use redflow_contract::Millis;
use redflow_contract::chat::{ChatItem, ChatSpeaker};
use redflow_contract::id::{InstanceId, NodeId, NodeSummary};
use redflow_contract::run::RunStatus;
use redflow_ports::RunFilter;

/// Chats whose last answer is repeated, those that were used last.
const MAX_CHATS: usize = 50;

/// The newest runs that are looked at.
const MAX_RUNS: usize = 200;

/// How old a repeated answer may be, in milliseconds. A page waits half a minute at most before it connects again, and
/// longer in the background.
const MAX_AGE: Millis = 2 * 60_000;

/// The events of the last answer of each chat, if no question came after it.
pub(crate) async fn missed_answers(app: &App, active: &ActiveFlow) -> Vec<Utf8Bytes> {
    // Without the store, the page still gets everything that happens from now on.
    let latest = app.chats.latest(MAX_CHATS).await.unwrap_or_default();
    let now = app.clock.now();
    let is_recent = |item: &ChatItem| now.saturating_sub(item.timestamp) <= MAX_AGE;
    let answers: Vec<(NodeId, ChatItem)> = latest
        .into_iter()
        .filter(|(chat, item)| {
            item.speaker == ChatSpeaker::Agent && is_recent(item) && active.chats.contains_key(chat)
        })
        .collect();
    if answers.is_empty() {
        return Vec::new();
    }
    let runs = app.run_reader.list(newest_runs()).await.map(|page| page.runs).unwrap_or_default();
    let missed = answers.iter().filter_map(|(chat, item)| {
        match runs.iter().find(|run| item.trace_id.as_ref() == Some(&run.run_id)) {
            Some(run) => {
                let agent = active.agents().find(|agent| agent.node.id == run.agent.node_id)?;
                run.status.is_over().then_some((&agent.node, item, run.status))
            }
            // The agent has refused the message, so there is no run.
            None => {
                let agent = active.chats.get(chat)?.as_ref()?;
                (item.iteration.unwrap_or(0) == 0).then_some((agent, item, RunStatus::Failed))
            }
        }
    });
    app.frames.answer_events(missed)
}

/// Lets the frames know which nodes were at work when the last process ended.
pub(crate) async fn remember_interrupted(app: &App) {
    let statuses = Some(vec![RunStatus::Running, RunStatus::Interrupted]);
    // Recovery reports a problem of the store.
    let page = app.run_reader.list(RunFilter { statuses, ..newest_runs() }).await;
    let runs = page.map(|page| page.runs).unwrap_or_default();
    let active = app.active_flow();
    let agents = runs.iter().filter_map(|run| active.tools.agents.get(&run.agent.node_id));
    let nodes: Vec<NodeSummary> = agents.flat_map(|agent| agent.nodes()).collect();
    app.frames.remember_interrupted(&nodes);
}

fn newest_runs() -> RunFilter {
    RunFilter { instance: Some(InstanceId::local()), limit: MAX_RUNS, ..RunFilter::default() }
}
