//! Every model × every agent, streamed and not: it completes, or a check says before why not.

use super::known;
use super::mock::Mock;
use super::state::Exchange;
use super::table_rows::{AgentRow, ModelRow, QUESTION, agents, flow, models};
use super::transport::MockTransport;
use crate::world::{World, adapters_with, with};
use futures::FutureExt as _;
use redflow_models::ModelSettings;
use redflow_ports::Adapters;
use redflow_store::MemoryStore;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The most requests that one call of a model may need.
const MAX_REQUESTS: usize = 4;

/// What became of a cell.
enum Outcome {
    /// With the requests that the provider refused on the way.
    Completed(Vec<String>),
    /// A check says why not.
    Refused(String),
    Failed(String),
}

/// Runs an agent with a model.
async fn run(
    mock: &Mock,
    (adapters, store): (&Arc<Adapters>, &Arc<MemoryStore>),
    model: &ModelRow,
    agent: &AgentRow,
    stream: bool,
) -> Outcome {
    let node = with(model.node.clone(), json!({"stream": stream, "maxRetries": 0}));
    let world = match World::try_new(&flow(&agent.node, &node), Arc::clone(adapters), Arc::clone(store)) {
        Ok(world) => world,
        Err(why) => return Outcome::Refused(why),
    };
    let result = AssertUnwindSafe(world.ask(QUESTION)).catch_unwind().await;
    let (exchanges, changed) = mock.take();
    let Ok(message) = result else { return Outcome::Failed("the run did not end".to_owned()) };
    let refusals: Vec<String> =
        exchanges.iter().filter(|one| one.response.status >= 400).map(refusal).collect();
    match problem(model, agent, stream, &message, &exchanges, &changed) {
        None => Outcome::Completed(refusals),
        Some(problem) => Outcome::Failed(format!("{problem} | refused: {}", refusals.join(" | "))),
    }
}

fn problem(
    model: &ModelRow,
    agent: &AgentRow,
    stream: bool,
    message: &Value,
    exchanges: &[Exchange],
    changed: &[String],
) -> Option<String> {
    if message["agentResult"]["completed"] != true {
        let error = &message["agentResult"]["error"];
        return Some(format!("{}: {}", error["code"], error["message"]));
    }
    if !(agent.fits)(&message["payload"]) {
        return Some(format!("the payload {}", message["payload"]));
    }
    let calls = exchanges.chunk_by(|one, _| one.response.status >= 400);
    if let Some(longest) = calls.map(<[Exchange]>::len).max().filter(|length| *length > MAX_REQUESTS) {
        return Some(format!("{longest} requests for one call"));
    }
    let streamed = exchanges
        .iter()
        .any(|one| ["text/event-stream", "application/x-ndjson"].contains(&one.response.media_type));
    // A long answer is streamed although nobody reads along.
    if stream && !streamed {
        return Some("no stream".to_owned());
    }
    let answered = exchanges.iter().filter(|one| one.response.status == 200).count();
    if agent.works && answered < 4 {
        return Some(format!("only {answered} answers"));
    }
    match changed.first() {
        Some(first) if model.verbatim && agent.works => {
            Some(format!("{} changed parts came back, the first: {first}", changed.len()))
        }
        _ => None,
    }
}

fn refusal(one: &Exchange) -> String {
    format!("{} {} {}", one.path, one.response.status, one.response.body)
}

/// All agents with one model. Gives the name of each cell with its outcome.
async fn run_row(model: ModelRow) -> Vec<(String, Outcome)> {
    let mock = Arc::<Mock>::default();
    let transport = Arc::new(MockTransport(Arc::clone(&mock)));
    let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
    let adapters = Arc::new(adapters_with(settings));
    let store = Arc::default();
    let mut cells = Vec::new();
    for agent in agents() {
        for (stream, how) in [(false, "whole"), (true, "streamed")] {
            if agent.is_variant && !stream {
                continue;
            }
            let outcome = run(&mock, (&adapters, &store), &model, &agent, stream).await;
            cells.push((format!("{} | {} | {how}", model.name, agent.name), outcome));
        }
    }
    cells
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_agent_completes_with_every_model() {
    let mut failed: BTreeMap<String, String> = BTreeMap::new();
    let (mut completed, mut refused) = (0, Vec::new());
    let mut learnt = Vec::new();
    let rows: Vec<_> =
        models().into_iter().map(|model| (model.is_refused, tokio::spawn(run_row(model)))).collect();
    for (is_refused, row) in rows {
        for (name, outcome) in row.await.unwrap() {
            match outcome {
                Outcome::Completed(_) if is_refused => {
                    drop(failed.insert(name, "no check refuses it".to_owned()))
                }
                Outcome::Completed(refusals) => {
                    completed += 1;
                    learnt.extend(
                        refusals.first().map(|first| format!("{name}: {} × {}", refusals.len(), first)),
                    );
                }
                Outcome::Refused(why) if is_refused => refused.push(format!("{name}: {why}")),
                Outcome::Refused(why) => drop(failed.insert(name, format!("a check refuses it: {why}"))),
                Outcome::Failed(why) => drop(failed.insert(name, why)),
            }
        }
    }
    // For a look at what is learnt and what a check refuses: `--nocapture`.
    eprintln!("{completed} completed. Refused by a check: {refused:#?}\nAfter refusals: {learnt:#?}");
    known::check("table", failed);
}
