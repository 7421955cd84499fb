//! A message that only wants a conversation forgotten: `msg.memory` is `"clear"`, and there is no payload. No
//! run begins and nothing leaves the agent; a memory that fails tells the Catch nodes.

use crate::build::{BuiltAgent, BuiltFlow};
use crate::engine::Loop;
use crate::trail::Trail;
use futures::FutureExt as _;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::NodeId;
use redflow_contract::run_error::{Failure, RunError};
use redflow_ports::{Measurement, MemoryAction};
use redflow_react::requests_memory_clear;
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a memory may take to forget; not longer than a process takes to stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of it.
pub(crate) struct Forgotten {
    agent: NodeId,
    message: Arc<Message>,
    trail: Trail,
    result: Result<(), Failure>,
}

/// Whether nothing else is wanted of the agent.
pub(crate) fn only_forgets(agent: &BuiltAgent, message: &Message) -> bool {
    let says_nothing = match message.get("payload") {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    agent.memory.is_some() && says_nothing && requests_memory_clear(message)
}

impl Loop {
    pub(crate) fn forget(
        &mut self,
        agent: &Arc<BuiltAgent>,
        session: String,
        message: Arc<Message>,
        trail: Trail,
    ) {
        let (agent, meter) = (Arc::clone(agent), Arc::clone(&self.ports.meter));
        self.work_on(Box::pin(async move {
            let since = Instant::now();
            let done = async {
                match &agent.memory {
                    Some(memory) => memory.clear(&session).await,
                    None => Ok(()),
                }
            };
            let failed = |code, message: String| Err(Failure { code, message });
            let mut result = tokio::select! {
                biased;
                () = trail.chain.cancel.cancelled() => {
                    failed(RunErrorCode::Cancelled, "cancelled before the memory had forgotten".to_owned())
                }
                () = tokio::time::sleep(PATIENCE) => {
                    let message = format!("the memory did not answer within {} ms", PATIENCE.as_millis());
                    failed(RunErrorCode::MemoryError, message)
                }
                done = AssertUnwindSafe(done).catch_unwind() => done.unwrap_or_else(|_| {
                    failed(RunErrorCode::MemoryError, "the memory crashed while it was asked".to_owned())
                }),
            };
            if let Err(failure) = &mut result {
                agent.scrubber.failure(failure);
            }
            let (action, success, took) = (MemoryAction::Clear, result.is_ok(), since.elapsed());
            meter.record(Measurement::MemoryCall { action, size: None, success, took });
            let agent = agent.compiled.spec().agent.node_id.clone();
            Forgotten { agent, message, trail, result }
        }));
    }

    pub(crate) fn forgotten(&mut self, forgotten: Forgotten) {
        let Forgotten { agent, message, trail, result } = forgotten;
        let flow: Option<Arc<BuiltFlow>> = self.flow.clone();
        match (result, flow.as_ref().and_then(|flow| Some((flow, flow.flow.find(agent.as_str())?)))) {
            (Ok(()), _) => {
                let node = self.summary(&agent);
                self.ports.events.flow_event(&FlowEvent::MemoryCleared { node });
            }
            (Err(Failure { code, message: text }), Some((flow, ix))) => {
                let error = RunError { code, message: text, pointer: None, rule: None, iteration: 0 };
                if self.ports.host.is_some() {
                    // Its Catch nodes are elsewhere: they hear of it as they hear of a run that did not begin.
                    self.refuse(flow, ix, error, Vec::new(), &message, &trail);
                } else {
                    self.fail(flow, ix, &error, &message, &trail);
                }
            }
            (Err(_), None) => {}
        }
        trail.settle(&*self.ports.store);
    }
}
