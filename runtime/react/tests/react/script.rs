//! A scripted engine: each step of a script is the next fact of a run.

use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::event::RunEvent;
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult, Usage};
use redflow_contract::id::{EffectId, InstanceId, NodeRef, NodeSummary, RunId};
use redflow_contract::journal::{JournalLine, JournalRecord};
use redflow_contract::limits::RunLimits;
use redflow_contract::node::{EffectClass, OnUnknown};
use redflow_contract::plan::{AgentPlan, AgentSpec, EncodedPlan, PlanNode, ToolSpec};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_contract::{Message, Millis};
use redflow_machine::{
    Agent, Compile, CompileError, Difference, Journal, JournalWriter, ParentRun, Recorder, ReplayReport,
    ResumedRun, Status, Step, StepError, Strategies,
};
use redflow_react::{CompiledAgent, MACHINE_VERSION, React};
use serde_json::{Value, json};
use std::sync::Arc;

/// The start time of every scripted run.
pub(crate) const START: Millis = 1_766_000_000_000;

/// The id of every scripted run.
pub(crate) const RUN: &str = "0197-run";

/// The next fact, which answers the open effect.
#[derive(Debug, Clone)]
pub(crate) enum ScriptStep {
    /// The model answers with this text.
    ModelText(String),
    /// The model answers with every field that a real one sets.
    ModelAnswer(Box<ModelAnswer>),
    /// The model call fails.
    ModelFailure(RunErrorCode),
    /// The tool returns this output.
    ToolOutput(Value),
    /// The tool fails.
    ToolFailure(&'static str),
    /// The outcome of the tool call is unknown.
    OutcomeUnknown,
    /// A person says that the call happened, with this output.
    Happened(Value),
    /// A person says that the call did not happen.
    NeverHappened,
    /// The memory returns these turns.
    Recalled(Vec<ChatMessage>),
    /// The memory stored the turn.
    Appended,
    /// The memory fails.
    MemoryFailure,
    /// The run is cancelled.
    Cancel,
    /// The deadline of the run passes.
    Deadline,
}

impl ScriptStep {
    pub(crate) fn fact(self, at: Millis, effect: EffectId) -> Fact {
        match self {
            Self::ModelText(text) => {
                let usage =
                    Usage { input_tokens: 100, output_tokens: 9, cost: Some(0.25), ..Usage::default() };
                let answer = ModelAnswer { text, usage: Some(usage), ..ModelAnswer::default() };
                Fact::ModelAnswered { at, effect, answer }
            }
            Self::ModelAnswer(answer) => Fact::ModelAnswered { at, effect, answer: *answer },
            Self::ModelFailure(code) => {
                let message = format!("The provider said {code}.");
                Fact::ModelFailed { at, effect, error: Failure { code, message } }
            }
            Self::ToolOutput(output) => {
                Fact::ToolReturned { at, effect, result: ToolResult::ok(output), tries: 1 }
            }
            Self::ToolFailure(error) => {
                Fact::ToolReturned { at, effect, result: ToolResult::failed(error), tries: 1 }
            }
            Self::OutcomeUnknown => {
                Fact::ToolOutcomeUnknown { at, effect, reason: "The connection was lost.".to_owned() }
            }
            Self::Happened(output) => Fact::OutcomeResolved { at, effect, result: ToolResult::ok(output) },
            Self::NeverHappened => {
                Fact::OutcomeResolved { at, effect, result: ToolResult::failed("It never happened.") }
            }
            Self::Recalled(turns) => Fact::MemoryRecalled { at, effect, turns, sources: Vec::new() },
            Self::Appended => Fact::MemoryAppended { at, effect },
            Self::MemoryFailure => {
                let message = "The memory cannot be reached.".to_owned();
                let error = Failure { code: RunErrorCode::MemoryError, message };
                Fact::MemoryFailed { at, effect, error }
            }
            Self::Cancel => Fact::CancelRequested { at, reason: "by the user".to_owned() },
            Self::Deadline => Fact::DeadlineReached { at },
        }
    }
}

/// The model calls the calculator.
pub(crate) fn calculate(expression: &str, confidence: f64) -> ScriptStep {
    let action = json!({"action": "tool", "tool": "calculator", "input": {"expression": expression}, "confidence": confidence});
    ScriptStep::ModelText(action.to_string())
}

/// The model calls the tool whose calls must not be made twice.
pub(crate) fn send_mail() -> ScriptStep {
    let action = json!({"action": "tool", "tool": "mail", "input": {"to": "ada"}, "confidence": 0.5, "message": "Sending."});
    ScriptStep::ModelText(action.to_string())
}

/// The model gives its final answer.
pub(crate) fn final_answer(message: &str) -> ScriptStep {
    ScriptStep::ModelText(json!({"action": "final", "message": message, "confidence": 0.75}).to_string())
}

pub(crate) fn turn(role: ChatRole, content: &str) -> ChatMessage {
    ChatMessage::new(role, content)
}

/// An agent with a calculator and a mail tool.
pub(crate) fn spec() -> AgentSpec {
    let tool = |name: &str, description: &str, schema, effect, on_unknown| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: schema,
        node: format!("node-{name}").as_str().into(),
        effect,
        timeout_ms: 30_000,
        on_unknown,
        id: None,
        operation: None,
        digest: None,
        output_schema: None,
        retry: None,
        strict: None,
    };
    let schema = json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
    AgentSpec {
        agent: NodeRef { instance: InstanceId::local(), node_id: "agent".into() },
        type_name: "agent-core".to_owned(),
        name: "Counting".to_owned(),
        strategy: None,
        converse: None,
        budget: None,
        max_iterations: 3,
        tools: vec![
            tool("calculator", "Calculates.", Some(schema), Some(EffectClass::Read), OnUnknown::Wait),
            tool("mail", "Sends a mail.", None, Some(EffectClass::AtMostOnce), OnUnknown::Wait),
        ],
        stop_conditions: Vec::new(),
        debug: false,
        timeout_ms: 300_000,
        memory: false,
        model_response_wired: false,
        limits: RunLimits::default(),
    }
}

pub(crate) fn with(change: impl FnOnce(&mut AgentSpec)) -> AgentSpec {
    let mut spec = spec();
    change(&mut spec);
    spec
}

/// The plan that fits this spec.
pub(crate) fn plan(spec: &AgentSpec) -> AgentPlan {
    let node = |id: &str, kind: &str, name: &str, config: Value| PlanNode {
        node: NodeSummary { id: id.into(), type_name: kind.to_owned(), name: name.to_owned() },
        config: config.as_object().cloned().unwrap_or_default(),
    };
    let tools = spec.tools.iter();
    let config = json!({
        "maxIterations": spec.max_iterations,
        "strategy": "react",
        "allowedTools": tools.clone().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
        "stopConditions": spec.stop_conditions,
        "debug": spec.debug,
        "timeout": spec.timeout_ms,
    });
    AgentPlan {
        agent: node("agent", "agent-core", &spec.name, config),
        model: node("model", "openai-model", "", json!({"model": "gpt", "baseUrl": "${URL}"})),
        fallback_models: Vec::new(),
        services: Vec::new(),
        memory: spec.memory.then(|| node("memory", "buffer-memory", "", json!({}))),
        tools: tools
            .map(|tool| node(tool.node.as_str(), "tool", "", json!({"toolName": tool.name})))
            .collect(),
    }
}

/// A run that a script drives.
#[derive(Debug)]
pub(crate) struct ScriptedRun {
    pub(crate) recorder: Recorder,
    pub(crate) lines: Vec<String>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) events: Vec<RunEvent>,
    /// The counts after each step.
    pub(crate) steps: Vec<StepCounts>,
    pub(crate) at: Millis,
}

/// The number of lines, effects and events so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepCounts {
    pub(crate) lines: usize,
    pub(crate) effects: usize,
    pub(crate) events: usize,
}

/// The effect class of a call: what the node declares, else a class that depends on the call alone.
pub(crate) fn classify_call(spec: &AgentSpec, call: &ToolCall) -> EffectClass {
    let declared = spec.tools.iter().find(|tool| tool.name == call.tool).and_then(|tool| tool.effect);
    declared.unwrap_or(match call.iteration % 3 {
        0 => EffectClass::Read,
        1 => EffectClass::Idempotent,
        _ => EffectClass::AtMostOnce,
    })
}

/// Feeds a fact to a recorder, with the classes of the scripted engine.
pub(crate) fn step(recorder: &mut Recorder, fact: Fact) -> Result<Step, StepError> {
    let spec = Arc::clone(recorder.agent().spec());
    recorder.step(fact, &|call| classify_call(&spec, call))
}

/// Compiles the agent again, as a new process does.
pub(crate) fn compiled(spec: &Arc<AgentSpec>, version: u32) -> Result<Arc<dyn Agent>, CompileError> {
    strategies().compile_version(spec, version)
}

pub(crate) fn strategies() -> Strategies {
    Strategies::new([Arc::new(React) as _])
}

pub(crate) fn replay(bytes: &[u8]) -> ReplayReport {
    redflow_machine::replay(bytes, &strategies())
}

pub(crate) fn replay_events(bytes: &[u8]) -> (Vec<RunEvent>, ReplayReport) {
    redflow_machine::replay_events(bytes, &strategies())
}

pub(crate) fn read_journal(bytes: &[u8]) -> Result<Journal, Difference> {
    redflow_machine::read_journal(bytes, &strategies())
}

pub(crate) fn resume(bytes: &[u8], compile: Compile<'_>) -> Result<ResumedRun, Difference> {
    redflow_machine::resume(bytes, &strategies(), compile)
}

/// The effects that a resumed run must do, in the order of their numbers.
pub(crate) fn effects_to_do(resumed: &ResumedRun) -> Vec<Effect> {
    let open = resumed.open.iter().map(|open| &open.effect);
    let mut effects: Vec<Effect> = resumed.unanswerable.iter().chain(open).cloned().collect();
    effects.sort_by_key(Effect::id);
    effects
}

/// Resumes a run, as a new process does.
pub(crate) fn resume_journal(bytes: &[u8]) -> Result<ResumedRun, Difference> {
    resume(bytes, &mut compiled)
}

/// Joins lines to a file.
pub(crate) fn join_lines<S: AsRef<str>>(lines: &[S]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_ref(), "\n"]).collect::<String>().into_bytes()
}

/// The records of lines.
pub(crate) fn records<S: AsRef<str>>(lines: &[S]) -> Vec<JournalRecord> {
    lines.iter().map(|line| serde_json::from_str::<JournalLine>(line.as_ref()).unwrap().record).collect()
}

/// Writes a valid journal of these records.
pub(crate) fn write_journal(records: &[JournalRecord]) -> Vec<u8> {
    let mut writer = JournalWriter::default();
    join_lines(&records.iter().map(|record| writer.line(record).unwrap()).collect::<Vec<_>>())
}

pub(crate) fn first_fact(spec: &Arc<AgentSpec>, message: Value, session: Option<&str>) -> Fact {
    let Value::Object(message) = message else { panic!("not an object") };
    Fact::RunStarted {
        at: START,
        run_id: RunId::from(RUN.to_owned()),
        session: session.map(str::to_owned),
        message,
        spec: Arc::clone(spec),
        by: None,
        input: None,
    }
}

impl ScriptedRun {
    pub(crate) fn start(spec: AgentSpec, message: Value, session: Option<&str>) -> Self {
        Self::start_version(MACHINE_VERSION, spec, message, session)
    }

    pub(crate) fn start_version(
        version: u32,
        spec: AgentSpec,
        message: Value,
        session: Option<&str>,
    ) -> Self {
        let plan = EncodedPlan::new(&plan(&spec)).unwrap();
        let agent = CompiledAgent::compile_version(Arc::new(spec), version).unwrap();
        let fact = first_fact(agent.spec(), message, session);
        let spec = Arc::clone(agent.spec());
        let classify = |call: &ToolCall| classify_call(&spec, call);
        let mut recorder = Recorder::new(agent).observed(true);
        let step = recorder.start(&plan, ParentRun::default(), fact, &classify).unwrap();
        let (lines, effects, events, steps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut scripted = Self { recorder, lines, effects, events, steps, at: START };
        scripted.add(step);
        scripted
    }

    fn add(&mut self, step: Step) {
        self.lines.extend(step.lines);
        self.effects.extend(step.effects);
        self.events.extend(step.events);
        let (lines, effects, events) = (self.lines.len(), self.effects.len(), self.events.len());
        self.steps.push(StepCounts { lines, effects, events });
    }

    /// The last effect, which is the open one until the run ends.
    pub(crate) fn open(&self) -> EffectId {
        self.effects.last().unwrap().id()
    }

    pub(crate) fn next(&mut self, next: ScriptStep) -> Result<(), StepError> {
        let fact = next.fact(self.at + 10, self.open());
        self.feed(fact)
    }

    pub(crate) fn feed(&mut self, fact: Fact) -> Result<(), StepError> {
        let at = fact.at();
        let step = step(&mut self.recorder, fact)?;
        self.at = at;
        self.add(step);
        Ok(())
    }

    pub(crate) fn status(&self) -> Status {
        self.recorder.machine().status()
    }

    pub(crate) fn journal(&self) -> Vec<u8> {
        join_lines(&self.lines)
    }

    /// The message that left port 3.
    pub(crate) fn output(&self) -> &Message {
        let Some(Effect::Finish { message, .. }) = self.effects.last() else { panic!("the run goes on") };
        message
    }

    /// The output as one value.
    pub(crate) fn out(&self) -> Value {
        Value::Object(self.output().clone())
    }

    pub(crate) fn effect_names(&self) -> Vec<&'static str> {
        self.effects.iter().map(Effect::name).collect()
    }

    /// `iteration action` of the envelope's events.
    pub(crate) fn envelope_events(&self) -> Vec<String> {
        let out = self.out();
        let events = out["envelope"]["observability"]["events"].as_array().unwrap();
        let line = |event: &Value| format!("{} {}", event["iteration"], event["action"].as_str().unwrap());
        events.iter().map(line).collect()
    }

    /// The `type`s of the run events.
    pub(crate) fn event_names(&self) -> Vec<String> {
        let name = |event: &RunEvent| {
            serde_json::to_value(&event.event).unwrap()["type"].as_str().unwrap().to_owned()
        };
        self.events.iter().map(name).collect()
    }

    /// All effects and events of the run, in a readable form.
    pub(crate) fn details(&self) -> Value {
        let mut sent = 0;
        let effects: Vec<Value> = self
            .effects
            .iter()
            .map(|effect| match effect {
                Effect::CallModel { id, iteration, transcript, .. } => {
                    let segments = &transcript.segments()[sent..];
                    sent = transcript.segments().len();
                    let line = |segment: &Arc<ChatMessage>| match segment.role {
                        ChatRole::System => "system: …".to_owned(),
                        role => format!("{}: {}", role.as_str(), segment.content),
                    };
                    let added: Vec<String> = segments.iter().map(line).collect();
                    json!({"type": "call_model", "id": id, "iteration": iteration, "added": added})
                }
                // The effect's own JSON does not contain the message.
                Effect::Finish { message, .. } => {
                    let mut value = serde_json::to_value(effect).unwrap();
                    value["message"] = Value::Object((**message).clone());
                    value
                }
                effect => serde_json::to_value(effect).unwrap(),
            })
            .collect();
        let events: Vec<Value> = self
            .events
            .iter()
            .map(|event| {
                let mut value = json!({"seq": event.seq, "at": event.at - START});
                let kind = serde_json::to_value(&event.event).unwrap();
                value.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
                value
            })
            .collect();
        json!({"effects": effects, "events": events})
    }
}

/// Runs a script with the payload "2+2" to its end, and checks what must hold for every run.
pub(crate) fn run_script(spec: AgentSpec, script: &[ScriptStep]) -> ScriptedRun {
    run_script_version(MACHINE_VERSION, spec, script)
}

/// Runs a script on a machine of a version.
pub(crate) fn run_script_version(version: u32, spec: AgentSpec, script: &[ScriptStep]) -> ScriptedRun {
    let message = json!({"_msgid": "m1", "payload": "2+2", "topic": "sums"});
    finish(ScriptedRun::start_version(version, spec, message, Some("ada")), script)
}

pub(crate) fn run_script_on(
    spec: AgentSpec,
    message: Value,
    session: Option<&str>,
    script: &[ScriptStep],
) -> ScriptedRun {
    finish(ScriptedRun::start(spec, message, session), script)
}

fn finish(mut scripted: ScriptedRun, script: &[ScriptStep]) -> ScriptedRun {
    for next in script {
        scripted.next(next.clone()).unwrap();
    }
    check_end(&scripted);
    scripted
}

fn check_end(scripted: &ScriptedRun) {
    assert!(matches!(scripted.status(), Status::Finished(_)), "{:?}", scripted.status());
    let report = replay(&scripted.journal());
    assert!(report.equal && report.complete, "{:?}", report.difference);
    assert_eq!(report.effects, scripted.effects.len());
    let seqs: Vec<u32> = scripted.events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=u32::try_from(scripted.events.len()).unwrap()).collect::<Vec<_>>());
    // The output has exactly the form of its type.
    let output: redflow_contract::envelope::AgentOutput = serde_json::from_value(scripted.out()).unwrap();
    assert_eq!(serde_json::to_value(&output).unwrap(), scripted.out());
}
