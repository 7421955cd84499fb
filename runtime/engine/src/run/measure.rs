//! Spans and measurements of runs and their effects, by OpenTelemetry's conventions for generative AI.
//!
//! They never carry content: no prompt, no answer, no input, no result. Spans of effects have the level `debug`: the log
//! of a sidecar would only repeat them, while a collector gets spans of every level.

use crate::flow::agent::BuiltAgent;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{NodeId, NodeSummary, RunId};
use redflow_contract::plan::AgentSpec;
use redflow_contract::transcript::ChatMessage;
use redflow_ports::{Measurement, MemoryAction, Meter};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::{Span, debug_span, field, info_span};

/// The name of an agent in metrics.
fn agent_label(spec: &AgentSpec) -> &str {
    label(&spec.name, &spec.agent.node_id)
}

fn label<'a>(name: &'a str, id: &'a NodeId) -> &'a str {
    if name.is_empty() { id.as_str() } else { name }
}

/// The span of a run that works.
pub(super) fn run_span(run: &RunId, spec: &AgentSpec) -> Span {
    info_span!(
        "run",
        otel.name = %format_args!("invoke_agent {}", agent_label(spec)),
        otel.kind = "internal",
        otel.status_code = field::Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.id = spec.agent.node_id.as_str(),
        gen_ai.agent.name = agent_label(spec),
        redflow.run_id = run.as_str(),
        error.r#type = field::Empty,
    )
}

/// Records a failed ending on the span of the run.
pub(super) fn end_span(span: &Span, ending: Ending) {
    if let Ending::Failed { code } = ending {
        span.record("error.type", code.as_str());
        span.record("otel.status_code", "ERROR");
    }
}

/// Counts a run as active until it is dropped.
pub(super) struct ActiveRun(Arc<dyn Meter>);

impl ActiveRun {
    pub(super) fn new(meter: &Arc<dyn Meter>) -> Self {
        meter.record(Measurement::RunStarted);
        Self(Arc::clone(meter))
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        self.0.record(Measurement::RunReleased);
    }
}

/// Measures one effect until its fact. Dropping it before means that the run gave the effect up.
pub(super) struct EffectMeter<'a> {
    since: Instant,
    kind: EffectKind,
    span: Span,
    agent: &'a BuiltAgent,
    meter: &'a dyn Meter,
}

enum EffectKind {
    /// With the first model that is called: 0 for the agent's own.
    Model(usize),
    Tool(String),
    /// With the count and the bytes of the messages that are written.
    Memory(MemoryAction, Option<(usize, usize)>),
    Unmeasured,
}

impl<'a> EffectMeter<'a> {
    pub(super) fn new(effect: &Effect, agent: &'a BuiltAgent, meter: &'a dyn Meter) -> Self {
        let (kind, span) = match effect {
            Effect::CallModel { iteration, first_model, .. } => {
                let first_model = usize::try_from(*first_model).unwrap_or(usize::MAX);
                let info = agent.model_info(first_model);
                let span = debug_span!(
                    "chat",
                    otel.name = %format_args!("chat {}", info.model),
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
                (EffectKind::Model(first_model), span)
            }
            Effect::CallTool { call, .. } => {
                let span = debug_span!(
                    "execute_tool",
                    otel.name = %format_args!("execute_tool {}", call.tool),
                    otel.kind = "internal",
                    otel.status_code = field::Empty,
                    gen_ai.operation.name = "execute_tool",
                    gen_ai.tool.name = call.tool.as_str(),
                    gen_ai.tool.call.id = call.call_id.as_str(),
                    redflow.iteration = call.iteration,
                    error.r#type = field::Empty,
                );
                (EffectKind::Tool(call.tool.clone()), span)
            }
            Effect::RecallMemory { .. } => memory_span(MemoryAction::Recall, None),
            Effect::ClearMemory { .. } => memory_span(MemoryAction::Clear, None),
            Effect::AppendMemory { turn, .. } => memory_span(MemoryAction::Append, Some(size(turn))),
            Effect::FetchImages { .. } | Effect::EmitModelResponse { .. } | Effect::Finish { .. } => {
                (EffectKind::Unmeasured, Span::none())
            }
        };
        Self { since: Instant::now(), kind, span, agent, meter }
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    pub(super) fn end(mut self, fact: &Fact) {
        let (took, agent, meter) = (self.since.elapsed(), self.agent, self.meter);
        let kind = std::mem::replace(&mut self.kind, EffectKind::Unmeasured);
        let failed = |code: &str| {
            self.span.record("error.type", code);
            self.span.record("otel.status_code", "ERROR");
        };
        match (&kind, fact) {
            (EffectKind::Model(first), Fact::ModelAnswered { answer, .. }) => {
                let called = answer.fell_over.iter().enumerate().filter(|(_, failed)| !failed.skipped);
                for (index, failed) in called {
                    let info = agent.model_info(first + index);
                    let (provider, model, failed) = (info.provider, info.model.as_str(), Some(failed.code));
                    // The time of all is that of the model which answered.
                    let took = Duration::ZERO;
                    meter.record(Measurement::ModelCall { provider, model, usage: None, failed, took });
                }
                if let Some(model) = &answer.model {
                    self.span.record("gen_ai.response.model", model.as_str());
                }
                if let Some(usage) = &answer.usage {
                    self.span.record("gen_ai.usage.input_tokens", count(usage.input_tokens));
                    self.span.record("gen_ai.usage.output_tokens", count(usage.output_tokens));
                }
                let info = agent.model_info(first + answer.fell_over.len());
                let (provider, model) = (info.provider, info.model.as_str());
                if !answer.fell_over.is_empty() {
                    self.span.record("gen_ai.provider.name", provider);
                    self.span.record("gen_ai.request.model", model);
                }
                tracing::debug!(provider, model, took_ms = millis(took), "the model answered");
                meter.record(Measurement::ModelCall {
                    provider,
                    model,
                    usage: answer.usage,
                    failed: None,
                    took,
                });
            }
            (EffectKind::Model(first), Fact::ModelFailed { error, .. }) => {
                failed(error.code.as_str());
                let info = agent.model_info(*first);
                let (provider, model, failed) = (info.provider, info.model.as_str(), Some(error.code));
                meter.record(Measurement::ModelCall { provider, model, usage: None, failed, took });
            }
            (EffectKind::Tool(tool), fact) => {
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
                if let Fact::ToolReturned { result: ToolResult { code: Some(code), .. }, .. } = fact {
                    meter.record(Measurement::ToolRefused { tool, code: *code });
                }
            }
            (EffectKind::Memory(action, written), fact) => {
                let size = match fact {
                    Fact::MemoryRecalled { turns, .. } => Some(size(turns)),
                    // A failed write has no size.
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

/// Measures a call that the run gave up: it was cancelled, or its time was over.
impl Drop for EffectMeter<'_> {
    fn drop(&mut self) {
        let took = self.since.elapsed();
        match &self.kind {
            EffectKind::Model(first) => {
                let info = self.agent.model_info(*first);
                let (provider, model, failed) =
                    (info.provider, info.model.as_str(), Some(RunErrorCode::Cancelled));
                self.meter.record(Measurement::ModelCall { provider, model, usage: None, failed, took });
            }
            EffectKind::Tool(tool) => self.meter.record(Measurement::ToolCall { tool, success: false, took }),
            EffectKind::Memory(action, _) => {
                let (action, size) = (*action, None);
                self.meter.record(Measurement::MemoryCall { action, size, success: false, took });
            }
            EffectKind::Unmeasured => {}
        }
    }
}

fn memory_span(action: MemoryAction, written: Option<(usize, usize)>) -> (EffectKind, Span) {
    let span = debug_span!(
        "memory",
        otel.kind = "client",
        otel.status_code = field::Empty,
        redflow.memory.action = action.as_str(),
        error.r#type = field::Empty,
    );
    (EffectKind::Memory(action, written), span)
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// OpenTelemetry counts in `i64`.
fn count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

/// The count and the bytes of messages.
fn size(turns: &[ChatMessage]) -> (usize, usize) {
    (turns.len(), turns.iter().map(ChatMessage::bytes).sum())
}

/// Records a message whose run did not begin, because the agent is refused or the store failed.
pub(crate) fn record_refusal(meter: &dyn Meter, agent: &NodeSummary, code: RunErrorCode) {
    let (agent, ending) = (label(&agent.name, &agent.id), Ending::Failed { code });
    meter.record(Measurement::RunEnded { agent, ending, iterations: 0, took: Duration::ZERO });
}

pub(super) fn record_run_end(
    meter: &dyn Meter,
    spec: &AgentSpec,
    ending: Ending,
    iterations: u32,
    took: Duration,
) {
    meter.record(Measurement::RunEnded { agent: agent_label(spec), ending, iterations, took });
}

/// Logs the end of a run: of a failed one for everybody, of others only on request, because a line costs more than two
/// iterations. Outside the span of the run: a line would repeat all its fields, and each of them is redacted.
pub(super) fn log_run_end(run: &RunId, spec: &AgentSpec, ending: Ending, iterations: u32, took: Duration) {
    let (run, agent, took_ms) = (run.as_str(), agent_label(spec), millis(took));
    match ending {
        Ending::Failed { code } => {
            tracing::info!(run, agent, iterations, took_ms, code = code.as_str(), "a run failed");
        }
        Ending::Completed | Ending::Stopped => {
            tracing::debug!(run, agent, iterations, took_ms, "a run ended");
        }
    }
}
