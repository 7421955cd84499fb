//! Begins a run when a message reaches an agent, or answers with the reason why it cannot.

use super::clear_memory::{only_clears_memory, only_consolidates};
use crate::cascade::Cascade;
use crate::flow::BuiltFlow;
use crate::flow::agent::BuiltAgent;
use crate::origin::{Cause, Origin};
use crate::ports::EngineLimits;
use crate::report::{RunEnd, error_outside_run};
use crate::run::begin::{LARGE, RunInput};
use crate::run::input_details::input_details;
use crate::run::measure::record_refusal;
use crate::run::session_key::session_key;
use crate::run::size::{most_json_bytes, to_usize};
use crate::state::EngineState;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::json::{nests_within, size_of};
use redflow_contract::limits::RunLimits;
use redflow_contract::run_error::RunError;
use redflow_flow::NodeIx;
use redflow_machine::refused_output;
use redflow_ports::StoreError;
use std::sync::Arc;

/// A message with its origin, and the cause of the run that it begins.
pub(super) type CountedMessage = (Arc<FlowMessage>, Origin, Option<Cause>);

impl EngineState {
    pub(super) fn begin_run(
        &mut self,
        flow: &BuiltFlow,
        ix: NodeIx,
        agent: &Arc<BuiltAgent>,
        message: Arc<FlowMessage>,
        origin: Origin,
    ) {
        let cause = origin.count_arrival(&agent.compiled.spec().agent.node_id);
        match self.must_wait(agent, &origin) {
            Some(wait) => self.wait_for_tools(flow, (ix, agent), wait, (message, origin, cause)),
            None => self.begin_counted_run(flow, ix, agent, (message, origin, cause)),
        }
    }

    /// Begins a run for a message whose arrival was counted.
    pub(super) fn begin_counted_run(
        &mut self,
        flow: &BuiltFlow,
        ix: NodeIx,
        agent: &Arc<BuiltAgent>,
        (message, origin, cause): CountedMessage,
    ) {
        let spec = agent.compiled.spec();
        let id = &spec.agent.node_id;
        if origin.cascade.cancel.is_cancelled() {
            // A cancelled start begins no more runs. But a resent message belongs to an earlier start and
            // stays undelivered.
            return if origin.is_resent() { drop(origin) } else { origin.acknowledge(&*self.ports.store) };
        }
        if !self.has_run_budget(flow, ix, &origin.cascade) {
            return origin.acknowledge(&*self.ports.store);
        }
        let session = agent.memory.as_ref().map(|_| {
            let (own, memory) = (agent.session_id.as_deref(), agent.memory_session_id.as_deref());
            session_key(&agent.tab, own, &message, memory)
        });
        if let Some(session) = session.as_ref() {
            if only_clears_memory(agent, &message) {
                return self.clear_memory(agent, session.clone(), message, origin);
            }
            if only_consolidates(agent, &message) {
                self.request_maintenance(agent, session.clone());
                return origin.acknowledge(&*self.ports.store);
            }
        }
        let details = input_details(&agent.input, agent.memory_user_id.as_deref(), &message, origin.user());
        let accepted = message_bytes(&message, &spec.limits).and_then(|bytes| {
            let agent = agent.resolve_for(&message, &self.ports.registry, &self.ports.strategies)?;
            let ticket = if origin.is_resent() {
                // It was accepted before.
                self.slots.unlimited_ticket(id)
            } else {
                self.slots.ticket(id).ok_or_else(|| queue_full(&self.limits))?
            };
            Ok((bytes, ticket, agent))
        });
        let (bytes, ticket, agent) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // The refusal has the words of the message.
                let user = details.and_then(|details| details.user);
                let of_user = origin.clone().of_user(user.map(Arc::from));
                self.refuse(flow, ix, error, agent.tool_names(), &message, &of_user);
                drop(of_user);
                return origin.acknowledge(&*self.ports.store);
            }
        };
        let run = self.ports.clock.run_id();
        let report = origin.cascade.add_run(run.clone());
        let input = RunInput { agent, session, details, message, bytes, cause, origin, ticket };
        self.spawn_run(run, report, input);
    }

    /// Answers a message whose run the store did not take.
    pub(crate) fn refuse_unstored_run(
        &mut self,
        run: RunId,
        report: usize,
        agent: NodeSummary,
        failure: (&StoreError, &Message),
        origin: &Origin,
    ) {
        let Some(flow) = self.flow.clone() else { return };
        let (why, incoming) = failure;
        let text = format!("The run did not begin: {}", why.message);
        let error = error_outside_run(RunErrorCode::JournalFailed, text);
        record_refusal(&*self.ports.meter, &agent, error.code);
        let tools = flow.agent(&agent.id).map(|agent| agent.tool_names()).unwrap_or_default();
        let message = refused_output(&agent, run, self.ports.clock.now(), incoming, tools, &error);
        let message = Arc::new(message.into());
        if let Some(ix) = flow.flow.find(agent.id.as_str()) {
            self.send_failed_result(&flow, ix, &message, origin);
        }
        origin.cascade.set_run_end(report, agent, RunEnd::Refused { error, message });
    }

    /// Answers a message to an agent that may not run.
    pub(super) fn refuse(
        &mut self,
        flow: &BuiltFlow,
        ix: NodeIx,
        error: RunError,
        tools: Vec<String>,
        message: &Message,
        origin: &Origin,
    ) {
        if !self.has_run_budget(flow, ix, &origin.cascade) {
            return;
        }
        let run_id = self.ports.clock.run_id();
        let agent = flow.flow.summary(ix);
        let now = self.ports.clock.now();
        let message = refused_output(&agent, run_id.clone(), now, message, tools, &error);
        let message = Arc::new(message.into());
        record_refusal(&*self.ports.meter, &agent, error.code);
        let report = origin.cascade.add_run(run_id);
        self.send_failed_result(flow, ix, &message, origin);
        origin.cascade.set_run_end(report, agent, RunEnd::Refused { error, message });
    }

    /// Whether the cascade may begin another run. If not, reports that once for each agent.
    fn has_run_budget(&self, flow: &BuiltFlow, agent: NodeIx, cascade: &Cascade) -> bool {
        let may_begin = cascade.may_begin_run();
        if !may_begin && cascade.is_first_report_of(&flow.flow.nodes[agent].id) {
            self.report_cut(flow, agent, self.limits.max_runs);
        }
        may_begin
    }
}

pub(super) fn queue_full(limits: &EngineLimits) -> RunError {
    let (own, all) = (limits.max_queued_per_agent, limits.max_queued);
    let text = format!("Too many runs are waiting already: at most {own} of one agent and {all} in all.");
    error_outside_run(RunErrorCode::QueueFull, text)
}

/// The bytes of a message at most, or why no run may begin with it: its journal could not be read back.
fn message_bytes(message: &Message, limits: &RunLimits) -> Result<usize, RunError> {
    let (most, levels) = (to_usize(limits.max_message_bytes), to_usize(limits.max_value_depth));
    let (rule, text) = if !message.values().all(|value| nests_within(value, levels)) {
        ("maxValueDepth", format!("the message nests deeper than {levels} levels"))
    } else {
        let size: usize = message.iter().map(|(key, value)| key.len() + size_of(value)).sum();
        let at_most = most_json_bytes(size);
        if at_most <= LARGE.min(most) {
            return Ok(at_most);
        }
        let bytes = serde_json::to_string(message).map_or(usize::MAX, |text| text.len());
        if bytes <= most {
            return Ok(bytes);
        }
        ("maxMessageBytes", format!("the message has {bytes} bytes; the limit is {most}"))
    };
    let error = error_outside_run(RunErrorCode::ContextLength, text);
    Err(RunError { rule: Some(rule.to_owned()), ..error })
}
