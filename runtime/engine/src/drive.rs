//! One run: feeds its machine, keeps its journal, does its effects.

use crate::build::BuiltAgent;
use crate::engine::{Ports, RunEnd, to_usize};
use redflow_contract::Message;
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{EffectId, RunId};
use redflow_contract::json::nests_within;
use redflow_contract::limits::RunLimits;
use redflow_contract::node_config::EffectClass;
use redflow_flow::NodeIx;
use redflow_ports::{Journal, ModelRequest, ToolOutcome};
use redflow_react::{Origin, Recorder, Status, Step};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What a run is started with.
pub(crate) struct NewRun<'a> {
    pub(crate) ix: NodeIx,
    pub(crate) agent: &'a BuiltAgent,
    pub(crate) run_id: RunId,
    pub(crate) session: Option<String>,
    pub(crate) message: Message,
}

/// Runs to the end, or until it must wait for a person; an error says why it could do neither. Messages for port 4 go out through `model_responses`.
pub(crate) async fn drive(
    run: NewRun<'_>,
    ports: &Ports,
    cancel: &CancellationToken,
    model_responses: mpsc::Sender<(NodeIx, Message)>,
) -> Result<RunEnd, String> {
    let NewRun { ix, agent, run_id, session, message } = run;
    let spec = agent.compiled.spec();
    let mut journal = ports.journals.open(&run_id).map_err(|error| error.to_string())?;
    let deadline = tokio::time::sleep(Duration::from_millis(spec.timeout_ms));
    tokio::pin!(deadline);
    let started =
        Fact::RunStarted { at: ports.clock.now(), run_id, session, message, spec: Arc::clone(spec) };
    let observed = ports.events.watches_runs();
    let started =
        Recorder::start(Arc::clone(&agent.compiled), observed, &agent.plan, Origin::default(), started);
    let (mut recorder, mut step) = started.map_err(|error| error.to_string())?;
    loop {
        let open = match act(step, ix, ports, &mut *journal, &model_responses).await? {
            Next::Finished(end) => return Ok(end),
            Next::Open(effect) => effect,
        };
        let Some(effect) = open else {
            // Nothing to do and not over: the run waits for a person.
            let Status::WaitingOutcome { call_id, tool, iteration, .. } = recorder.machine().status() else {
                return Err("the machine has nothing to do and is not over".to_owned());
            };
            return Ok(RunEnd::Waiting { call_id, tool, iteration });
        };
        let fact = tokio::select! {
            biased;
            () = cancel.cancelled() => Fact::CancelRequested { at: ports.clock.now(), reason: "interrupted".to_owned() },
            () = &mut deadline => Fact::DeadlineReached { at: ports.clock.now() },
            fact = perform(effect, agent, ports) => fact,
        };
        step = recorder.step(fact).map_err(|error| error.to_string())?;
    }
}

enum Next {
    Finished(RunEnd),
    /// The one effect that will be answered, if there is one.
    Open(Option<Effect>),
}

/// Keeps what a step says, shows it, and does what needs no answer.
async fn act(
    step: Step,
    ix: NodeIx,
    ports: &Ports,
    journal: &mut dyn Journal,
    model_responses: &mpsc::Sender<(NodeIx, Message)>,
) -> Result<Next, String> {
    journal.append(&step.lines).await.map_err(|error| error.to_string())?;
    for event in &step.events {
        ports.events.run_event(event);
    }
    let mut open = None;
    for effect in step.effects {
        match effect {
            Effect::EmitModelResponse { message, .. } => {
                // Nobody takes messages any more only when the engine itself is gone.
                let _ = model_responses.send((ix, message)).await;
            }
            Effect::Finish { ending, message, .. } => {
                return Ok(Next::Finished(RunEnd::Finished { ending, message }));
            }
            Effect::RecallMemory { .. }
            | Effect::CallModel { .. }
            | Effect::CallTool { .. }
            | Effect::AppendMemory { .. } => open = Some(effect),
        }
    }
    Ok(Next::Open(open))
}

/// Does one effect and says what came of it.
async fn perform(effect: Effect, agent: &BuiltAgent, ports: &Ports) -> Fact {
    let now = || ports.clock.now();
    match effect {
        Effect::CallModel { id, iteration, transcript, spec } => {
            let request = ModelRequest { iteration, transcript: &transcript, spec: &spec };
            match agent.model.call(request).await {
                Ok(answer) => Fact::ModelAnswered { at: now(), effect: id, answer },
                Err(error) => Fact::ModelFailed { at: now(), effect: id, error },
            }
        }
        Effect::CallTool { id, call } => call_tool(id, &call, agent, ports).await,
        Effect::RecallMemory { id, session } => match &agent.memory {
            Some(memory) => match memory.recall(&session).await {
                Ok(turns) => Fact::MemoryRecalled { at: now(), effect: id, turns },
                Err(error) => Fact::MemoryFailed { at: now(), effect: id, error },
            },
            None => Fact::MemoryRecalled { at: now(), effect: id, turns: Vec::new() },
        },
        Effect::AppendMemory { id, session, run_id, turn } => match &agent.memory {
            Some(memory) => match memory.append(&session, &run_id, &turn).await {
                Ok(()) => Fact::MemoryAppended { at: now(), effect: id },
                Err(error) => Fact::MemoryFailed { at: now(), effect: id, error },
            },
            None => Fact::MemoryAppended { at: now(), effect: id },
        },
        // These need no answer; `act` has done them.
        Effect::EmitModelResponse { id, .. } | Effect::Finish { id, .. } => {
            Fact::MemoryAppended { at: now(), effect: id }
        }
    }
}

async fn call_tool(id: EffectId, call: &ToolCall, agent: &BuiltAgent, ports: &Ports) -> Fact {
    let spec = agent.compiled.spec();
    let place = spec.tools.iter().position(|tool| tool.name == call.tool);
    let found = place.and_then(|place| Some((spec.tools.get(place)?, agent.tools.get(place)?)));
    let outcome = match found {
        None => ToolOutcome::Returned(ToolResult::failed("the tool is gone")),
        Some((tool_spec, tool)) => {
            let limit = Duration::from_millis(call.timeout_ms);
            let outcome =
                tokio::time::timeout(limit, tool.call(call)).await.unwrap_or_else(|_| ToolOutcome::Unknown {
                    reason: format!("the tool did not answer within {} ms", call.timeout_ms),
                });
            match (outcome, tool_spec.effect.unwrap_or_else(|| tool.effect(&call.input))) {
                // Such a call may be made again: not to know is a failure like any other.
                (ToolOutcome::Unknown { reason }, EffectClass::Read | EffectClass::Idempotent) => {
                    ToolOutcome::Returned(ToolResult::failed(reason))
                }
                (outcome, _) => outcome,
            }
        }
    };
    let at = ports.clock.now();
    match outcome {
        ToolOutcome::Returned(result) => {
            let result = bounded(result, &spec.limits);
            Fact::ToolReturned { at, effect: id, result }
        }
        ToolOutcome::Unknown { reason } => Fact::ToolOutcomeUnknown { at, effect: id, reason },
    }
}

/// A result that is too large or too deep becomes a failed observation; the model can ask for less.
fn bounded(result: ToolResult, limits: &RunLimits) -> ToolResult {
    let levels = to_usize(limits.max_value_depth);
    if !result.output.as_ref().is_none_or(|output| nests_within(output, levels)) {
        return ToolResult::failed(format!("the tool's result nests deeper than {levels} levels"));
    }
    let bytes = serde_json::to_string(&result).map_or(usize::MAX, |text| text.len());
    let most = to_usize(limits.max_result_bytes);
    if bytes <= most {
        return result;
    }
    ToolResult::failed(format!("the tool's result has {bytes} bytes; the limit is {most}"))
}
