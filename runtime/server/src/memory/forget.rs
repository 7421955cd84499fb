//! `POST /api/memory/forget`: removes the data of a user, a session or a source from everything that this sidecar keeps.
//!
//! No event, log line or error names the owner.

use super::{MAX_BODY_BYTES, masked};
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::principal::principal;
use crate::request::{invalid, no_parameters};
use crate::response::{ApiResult, Problem, json};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeSummary;
use redflow_contract::memory::{DataOwner, Forgotten};
use redflow_contract::memory_api::{ForgetAnswer, ForgetRequest};
use redflow_ports::Memory;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long one memory may take. A server that is offline must not hold up the others.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    no_parameters(query.as_deref())?;
    let (request, _): (ForgetRequest, _) = body::read_limited(&headers, body, &app, MAX_BODY_BYTES).await?;
    let owner = request.owner.normalised();
    let owner = owner.ok_or_else(|| invalid("`owner` has no name: name a user, a session or a source."))?;
    let slot = app.work_slots.knowledge_change(&caller.name).await?;
    tracing::info!(by = principal(&caller).as_str(), runs = request.runs, "data is forgotten");
    // It goes on when the client disconnects.
    let work = tokio::spawn(async move {
        let _slot = slot;
        forget_all(&app, ForgetRequest { owner, runs: request.runs }).await
    });
    let answer = work.await.map_err(|_| Problem::internal())?;
    Ok(json(200, &answer))
}

/// Removes everything that it can. A step that fails keeps no other one from being made.
async fn forget_all(app: &App, request: ForgetRequest) -> ForgetAnswer {
    let mut answer = ForgetAnswer { forgotten: Forgotten::default(), problems: Vec::new() };
    // Runs first: what is appended while one goes on is not reported as gone, because the run is not over.
    if request.runs {
        match app.store.forget_runs(&request.owner).await {
            Ok(done) => {
                answer.forgotten.runs += done.removed;
                answer.problems.extend(unfinished(done.unfinished));
            }
            Err(error) => answer.problems.push(format!("Runs: {}", error.message)),
        }
    }
    for (node, memory) in short_memories(app) {
        forget_conversations(&node, &*memory, &request.owner, MEMORY_TIMEOUT, &mut answer).await;
    }
    answer.problems.extend(unbuilt_memories(app));
    let entries = ForgetRequest { runs: false, ..request };
    match app.memories.forget(entries).await {
        Ok(done) => {
            answer.forgotten += done.forgotten;
            answer.problems.extend(done.problems);
        }
        Err(error) => answer.problems.push(format!("Long memories: {}", masked(error).message)),
    }
    let forgotten = answer.forgotten;
    app.hub.log.append(app.clock.now(), FlowEvent::MemoryForgotten { forgotten });
    answer
}

/// The memories of the active flow and of the flows of all Node-REDs, each once.
fn short_memories(app: &App) -> Vec<(NodeSummary, Arc<dyn Memory>)> {
    let mut all: Vec<(NodeSummary, Arc<dyn Memory>)> = Vec::new();
    let of_instances = app.bridge.all().into_iter().map(|instance| instance.tools());
    for flow in std::iter::once(app.active_flow().tools).chain(of_instances) {
        for (node, memory) in &flow.memories {
            if !all.iter().any(|(_, known)| Arc::ptr_eq(known, memory)) {
                all.push((node.clone(), Arc::clone(memory)));
            }
        }
    }
    all
}

/// The memories that cannot be asked, because their agents may not run.
fn unbuilt_memories(app: &App) -> Vec<String> {
    let of_instances = app.bridge.all().into_iter().map(|instance| instance.tools());
    let flows = std::iter::once(app.active_flow().tools).chain(of_instances);
    let problem = |(agent, memory): &(NodeSummary, NodeSummary)| {
        format!(
            "The memory `{}`: its agent `{}` cannot run, so it was not asked; fix the agent, then forget again",
            label(memory),
            label(agent)
        )
    };
    flows.flat_map(|flow| flow.unbuilt_memories.iter().map(problem).collect::<Vec<_>>()).collect()
}

async fn forget_conversations(
    node: &NodeSummary,
    memory: &dyn Memory,
    owner: &DataOwner,
    limit: Duration,
    answer: &mut ForgetAnswer,
) {
    let problem = match timeout(limit, memory.forget(owner)).await {
        Ok(Ok(forgotten)) => {
            answer.forgotten += forgotten;
            return;
        }
        Ok(Err(failure)) => failure.message,
        Err(_) => "it does not answer".to_owned(),
    };
    answer.problems.push(format!("The memory `{}`: {problem}", label(node)));
}

/// How people know a node.
fn label(node: &NodeSummary) -> &str {
    if node.name.is_empty() { node.id.as_str() } else { &node.name }
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

#[cfg(test)]
mod tests {
    use super::{MEMORY_TIMEOUT, forget_conversations};
    use pretty_assertions::assert_eq;
    use redflow_contract::id::NodeSummary;
    use redflow_contract::memory::{DataOwner, Forgotten};
    use redflow_contract::memory_api::ForgetAnswer;
    use redflow_ports::{Memory, MemoryAnswer, Recall, Recalled, Turn};
    use std::future::{pending, ready};
    use std::time::Duration;

    /// A memory whose server may be offline.
    struct Server {
        answers: bool,
    }

    impl Memory for Server {
        fn recall<'a>(&'a self, _: Recall<'a>) -> MemoryAnswer<'a, Recalled> {
            Box::pin(pending())
        }
        fn append<'a>(&'a self, _: Turn<'a>) -> MemoryAnswer<'a, ()> {
            Box::pin(pending())
        }
        fn clear<'a>(&'a self, _: &'a str) -> MemoryAnswer<'a, ()> {
            Box::pin(pending())
        }
        fn forget<'a>(&'a self, _: &'a DataOwner) -> MemoryAnswer<'a, Forgotten> {
            match self.answers {
                true => Box::pin(ready(Ok(Forgotten { conversations: 1, ..Forgotten::default() }))),
                false => Box::pin(pending()),
            }
        }
    }

    #[tokio::test]
    async fn a_memory_that_does_not_answer_holds_up_no_other_one() {
        assert_eq!(MEMORY_TIMEOUT, Duration::from_secs(60));
        let mut answer = ForgetAnswer { forgotten: Forgotten::default(), problems: Vec::new() };
        for (id, answers) in [("offline", false), ("there", true)] {
            let node =
                NodeSummary { id: id.into(), type_name: "redis-memory".to_owned(), name: String::new() };
            let (memory, owner) = (Server { answers }, DataOwner::User("ada".to_owned()));
            forget_conversations(&node, &memory, &owner, Duration::ZERO, &mut answer).await;
        }
        assert_eq!(answer.problems, ["The memory `offline`: it does not answer"]);
        assert_eq!(answer.forgotten.conversations, 1);
    }
}
