//! Spans and measures of runs and of their effects, by OpenTelemetry's conventions for generative AI.
//!
//! Never carries what is said: no prompt, no answer, no input, no result.

use crate::build::BuiltAgent;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::fact::Fact;
use redflow_contract::id::{NodeId, NodeSummary, RunId};
use redflow_contract::plan::AgentSpec;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{Measurement, MemoryAction, Meter};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::{Span, field, info_span};

/// The agent as metrics name it.
fn agent_label(spec: &AgentSpec) -> &str {
    label(&spec.name, &spec.agent.node_id)
}

fn label<'a>(name: &'a str, id: &'a NodeId) -> &'a str {
    if name.is_empty() { id.as_str() } else { name }
}

/// A run at work.
pub(crate) fn run_span(run: &RunId, spec: &AgentSpec) -> Span {
    let span = info_span!(
        "run",
        otel.name = field::Empty,
        otel.kind = "internal",
        otel.status_code = field::Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.id = spec.agent.node_id.as_str(),
        gen_ai.agent.name = agent_label(spec),
        redflow.run_id = run.as_str(),
        error.r#type = field::Empty,
    );
    if !span.is_disabled() {
        span.record("otel.name", format!("invoke_agent {}", agent_label(spec)));
    }
    span
}

/// How a run ended, on its span.
pub(crate) fn end_span(span: &Span, ending: Ending) {
    if let Ending::Failed { code } = ending {
        span.record("error.type", code.as_str());
        span.record("otel.status_code", "ERROR");
    }
}

/// Counts a run as active until it is dropped.
pub(crate) struct AtWork(Arc<dyn Meter>);

impl AtWork {
    pub(crate) fn new(meter: &Arc<dyn Meter>) -> Self {
        meter.record(Measurement::RunBegan);
        Self(Arc::clone(meter))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.record(Measurement::RunLeft);
    }
}

/// One effect from its beginning to its fact. One that is dropped before was given up.
pub(crate) struct Watch<'a> {
    since: Instant,
    what: What,
    span: Span,
    agent: &'a BuiltAgent,
    meter: &'a dyn Meter,
}

enum What {
    Model,
    Tool(String),
    Memory(MemoryAction, Option<(usize, usize)>),
    Nothing,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(effect: &Effect, agent: &'a BuiltAgent, meter: &'a dyn Meter) -> Self {
        let (what, span) = match effect {
            Effect::CallModel { iteration, .. } => {
                let info = agent.model.info();
                let span = info_span!(
                    "chat",
                    otel.name = field::Empty,
                    otel.kind = "client",
                    otel.status_code = field::Empty,
                    gen_ai.operation.name = "chat",
                    gen_ai.provider.name = info.provider,
                    gen_ai.request.model = info.model.as_str(),
                    gen_ai.response.model = field::Empty,
                    gen_ai.usage.input_tokens = field::Empty,
                    gen_ai.usage.output_tokens = field::Empty,
                    redflow.iteration = iteration,
                    error.r#type = field::Empty,
                );
                if !span.is_disabled() {
                    span.record("otel.name", format!("chat {}", info.model));
                }
                (What::Model, span)
            }
            Effect::CallTool { call, .. } => {
                let span = info_span!(
                    "execute_tool",
                    otel.name = field::Empty,
                    otel.kind = "internal",
                    otel.status_code = field::Empty,
                    gen_ai.operation.name = "execute_tool",
                    gen_ai.tool.name = call.tool.as_str(),
                    gen_ai.tool.call.id = call.call_id.as_str(),
                    redflow.iteration = call.iteration,
                    error.r#type = field::Empty,
                );
                if !span.is_disabled() {
                    span.record("otel.name", format!("execute_tool {}", call.tool));
                }
                (What::Tool(call.tool.clone()), span)
            }
            Effect::RecallMemory { .. } => memory(MemoryAction::Recall, None),
            Effect::ClearMemory { .. } => memory(MemoryAction::Clear, None),
            Effect::AppendMemory { turn, .. } => memory(MemoryAction::Append, Some(size(turn))),
            Effect::EmitModelResponse { .. } | Effect::Finish { .. } => (What::Nothing, Span::none()),
        };
        Self { since: Instant::now(), what, span, agent, meter }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// What came of it.
    pub(crate) fn end(mut self, fact: &Fact) {
        let (took, agent, meter) = (self.since.elapsed(), self.agent, self.meter);
        let what = std::mem::replace(&mut self.what, What::Nothing);
        let failed = |code: &str| {
            self.span.record("error.type", code);
            self.span.record("otel.status_code", "ERROR");
        };
        match (&what, fact) {
            (What::Model, Fact::ModelAnswered { answer, .. }) => {
                if let Some(model) = &answer.model {
                    self.span.record("gen_ai.response.model", model.as_str());
                }
                if let Some(usage) = &answer.usage {
                    self.span.record("gen_ai.usage.input_tokens", count(usage.input_tokens));
                    self.span.record("gen_ai.usage.output_tokens", count(usage.output_tokens));
                }
                let info = agent.model.info();
                let (provider, model) = (info.provider, info.model.as_str());
                tracing::debug!(provider, model, took_ms = millis(took), "the model answered");
                meter.record(Measurement::ModelCall {
                    provider,
                    model,
                    usage: answer.usage,
                    failed: None,
                    took,
                });
            }
            (What::Model, Fact::ModelFailed { error, .. }) => {
                failed(error.code.as_str());
                let info = agent.model.info();
                let (provider, model, failed) = (info.provider, info.model.as_str(), Some(error.code));
                meter.record(Measurement::ModelCall { provider, model, usage: None, failed, took });
            }
            (What::Tool(tool), fact) => {
                let success = matches!(fact, Fact::ToolReturned { result, .. } if result.success);
                if !success {
                    failed(if matches!(fact, Fact::ToolReturned { .. }) {
                        "tool_failed"
                    } else {
                        "unknown_outcome"
                    });
                }
                tracing::debug!(tool, success, took_ms = millis(took), "the tool returned");
                meter.record(Measurement::ToolCall { tool, success, took });
            }
            (What::Memory(action, written), fact) => {
                let size = match fact {
                    Fact::MemoryRecalled { turns, .. } => Some(size(turns)),
                    // What could not be written has no size.
                    Fact::MemoryFailed { .. } => None,
                    _ => *written,
                };
                let success = !matches!(fact, Fact::MemoryFailed { .. });
                if let Fact::MemoryFailed { error, .. } = fact {
                    failed(error.code.as_str());
                    tracing::warn!(
                        action = action.as_str(),
                        reason = error.message.as_str(),
                        "the memory failed; the run goes on without it"
                    );
                }
                meter.record(Measurement::MemoryCall { action: *action, size, success, took });
            }
            _ => {}
        }
    }
}

/// A call that the run did not wait for to its end: cancelled, or out of time.
impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let took = self.since.elapsed();
        match &self.what {
            What::Model => {
                let info = self.agent.model.info();
                let (provider, model, failed) =
                    (info.provider, info.model.as_str(), Some(RunErrorCode::Cancelled));
                self.meter.record(Measurement::ModelCall { provider, model, usage: None, failed, took });
            }
            What::Tool(tool) => self.meter.record(Measurement::ToolCall { tool, success: false, took }),
            What::Memory(action, _) => {
                let (action, size) = (*action, None);
                self.meter.record(Measurement::MemoryCall { action, size, success: false, took });
            }
            What::Nothing => {}
        }
    }
}

fn memory(action: MemoryAction, written: Option<(usize, usize)>) -> (What, Span) {
    let span = info_span!(
        "memory",
        otel.kind = "client",
        otel.status_code = field::Empty,
        redflow.memory.action = action.as_str(),
        error.r#type = field::Empty,
    );
    (What::Memory(action, written), span)
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// As OpenTelemetry counts.
fn count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

fn size(turns: &[ChatMessage]) -> (usize, usize) {
    (turns.len(), turns.iter().map(ChatMessage::bytes).sum())
}

/// A message came to an agent that may not run, or whose run could not begin.
pub(crate) fn refused(meter: &dyn Meter, agent: &NodeSummary, code: RunErrorCode) {
    let (agent, ending) = (label(&agent.name, &agent.id), Ending::Failed { code });
    meter.record(Measurement::RunEnded { agent, ending, iterations: 0, took: Duration::ZERO });
}

/// A run ended.
pub(crate) fn run_ended(
    meter: &dyn Meter,
    spec: &AgentSpec,
    ending: Ending,
    iterations: u32,
    took: Duration,
) {
    let code = if let Ending::Failed { code } = ending { code.as_str() } else { "" };
    tracing::info!(agent = agent_label(spec), iterations, took_ms = millis(took), code, "a run ended");
    meter.record(Measurement::RunEnded { agent: agent_label(spec), ending, iterations, took });
}
