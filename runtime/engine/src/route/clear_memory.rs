//! A message that only clears the memory, or only asks it to consolidate: `msg.memory` is `"clear"` or
//! `"consolidate"`, and it has no payload.
//!
//! No run begins and nothing leaves the agent. If the memory fails, the Catch nodes get the error.

use crate::flow::agent::BuiltAgent;
use crate::origin::Origin;
use crate::report::error_outside_run;
use crate::state::EngineState;
use crate::state::completion::{Completion, MemoryClear};
use futures::FutureExt as _;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::run_error::Failure;
use redflow_machine::{requests_consolidation, requests_memory_clear};
use redflow_ports::{Measurement, MemoryAction};
use serde_json::Value;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a memory may take; no longer than a process takes to stop.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the message wants nothing of the agent but to clear its memory.
pub(super) fn only_clears_memory(agent: &BuiltAgent, message: &Message) -> bool {
    agent.memory.is_some() && has_no_payload(message) && requests_memory_clear(message)
}

/// Whether the message wants nothing of the agent but that its memory consolidates.
pub(super) fn only_consolidates(agent: &BuiltAgent, message: &Message) -> bool {
    agent.memory.is_some() && has_no_payload(message) && requests_consolidation(message)
}

fn has_no_payload(message: &Message) -> bool {
    match message.get("payload") {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

impl EngineState {
    pub(super) fn clear_memory(
        &mut self,
        agent: &Arc<BuiltAgent>,
        session: String,
        message: Arc<FlowMessage>,
        origin: Origin,
    ) {
        let (agent, meter) = (Arc::clone(agent), Arc::clone(&self.ports.meter));
        self.pending += 1;
        self.work.push(Box::pin(async move {
            let since = Instant::now();
            let clear = async {
                match &agent.memory {
                    Some(memory) => memory.clear(&session).await,
                    None => Ok(()),
                }
            };
            let failed = |code, message: String| Err(Failure { code, message });
            let mut result = tokio::select! {
                biased;
                () = origin.cascade.cancel.cancelled() => {
                    failed(RunErrorCode::Cancelled, "cancelled before the memory was cleared".to_owned())
                }
                () = tokio::time::sleep(TIMEOUT) => {
                    let message = format!("the memory did not answer within {} ms", TIMEOUT.as_millis());
                    failed(RunErrorCode::MemoryError, message)
                }
                result = AssertUnwindSafe(clear).catch_unwind() => result.unwrap_or_else(|_| {
                    failed(RunErrorCode::MemoryError, "the memory crashed while it was asked".to_owned())
                }),
            };
            if let Err(failure) = &mut result {
                agent.scrubber.failure(failure);
            }
            let (action, success, took) = (MemoryAction::Clear, result.is_ok(), since.elapsed());
            meter.record(Measurement::MemoryCall { action, size: None, success, took });
            let agent = agent.compiled.spec().agent.node_id.clone();
            Completion::MemoryCleared(Box::new(MemoryClear { agent, message, origin, result }))
        }));
    }

    pub(crate) fn handle_memory_clear(&mut self, clear: MemoryClear) {
        let MemoryClear { agent, message, origin, result } = clear;
        let flow = self.flow.clone();
        match (result, flow.as_ref().and_then(|flow| Some((flow, flow.flow.find(agent.as_str())?)))) {
            (Ok(()), _) => {
                let node = self.agent_summary(&agent);
                self.ports.events.flow_event(&FlowEvent::MemoryCleared { node });
            }
            (Err(Failure { code, message: text }), Some((flow, ix))) => {
                let error = error_outside_run(code, text);
                if self.ports.host.is_some() {
                    // The Catch nodes are in the host's flow, which gets a refusal like that of a run.
                    self.refuse(flow, ix, error, Vec::new(), &message, &origin);
                } else {
                    self.fail_node(flow, ix, &error, &message, &origin);
                }
            }
            (Err(_), None) => {}
        }
        origin.acknowledge(&*self.ports.store);
    }
}
