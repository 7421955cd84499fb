//! A run that a test drives: the test answers the open effects in any order.

use pretty_assertions::assert_eq;
use redflow_contract::answer_kind::{AnswerKind, Reply};
use redflow_contract::effect::{Effect, ToolCall};
use redflow_contract::event::{RunEvent, RunEventKind};
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult, Usage};
use redflow_contract::id::{EffectId, InstanceId, NodeRef, NodeSummary};
use redflow_contract::limits::RunLimits;
use redflow_contract::node::{EffectClass, OnUnknown, OutputFormat};
use redflow_contract::plan::{
    AgentPlan, AgentSpec, ConverseSpec, EncodedPlan, PlanNode, TaskKind, TaskSpec, ToolSpec,
};
use redflow_contract::transcript::{ChatRole, RequestedCall, Transcript};
use redflow_contract::{Message, Millis};
use redflow_converse::{Converse, MACHINE_VERSION};
use redflow_machine::{ParentRun, Recorder, Status, Step, StepError, Strategies};
use serde_json::{Value, json};
use std::sync::Arc;

/// The start time of every run.
pub(crate) const START: Millis = 1_766_000_000_000;

pub(crate) fn strategies() -> Strategies {
    Strategies::new([Arc::new(Converse) as _])
}

/// An agent with a tool of each effect class.
pub(crate) fn spec() -> AgentSpec {
    let tool = |name: &str, effect, schema| ToolSpec {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        input_schema: schema,
        node: name.into(),
        effect: Some(effect),
        timeout_ms: 1_000,
        on_unknown: OnUnknown::Wait,
        id: None,
        operation: None,
        digest: None,
        output_schema: None,
        retry: None,
        strict: None,
    };
    let place = json!({"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]});
    AgentSpec {
        agent: NodeRef { instance: InstanceId::local(), node_id: "agent".into() },
        type_name: "ai-agent".to_owned(),
        name: "Helper".to_owned(),
        strategy: Some("converse".to_owned()),
        converse: Some(ConverseSpec {
            system_prompt: "Be brief.".to_owned(),
            parallel_tools: 8,
            ..ConverseSpec::default()
        }),
        budget: None,
        max_iterations: 10,
        tools: vec![
            tool("weather", EffectClass::Read, Some(place)),
            tool("light", EffectClass::Idempotent, None),
            tool("mail", EffectClass::AtMostOnce, None),
        ],
        stop_conditions: Vec::new(),
        debug: false,
        timeout_ms: 300_000,
        memory: false,
        model_response_wired: false,
        limits: RunLimits::default(),
    }
}

/// The agent with other settings.
pub(crate) fn with(change: impl FnOnce(&mut AgentSpec, &mut ConverseSpec)) -> AgentSpec {
    let mut spec = spec();
    let mut converse = spec.converse.take().unwrap();
    change(&mut spec, &mut converse);
    spec.converse = Some(converse);
    spec
}

/// The agent as one for one thing, with room for a thousand tokens. Only one with an objective has tools.
pub(crate) fn task(kind: TaskKind, change: impl FnOnce(&mut AgentSpec, &mut ConverseSpec)) -> AgentSpec {
    with(|spec, own| {
        let category = json!({"type": "string", "enum": ["bug", "praise"]});
        let place =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        (spec.type_name, own.output_schema) = match kind {
            TaskKind::Objective => ("ai-simple-agent".to_owned(), None),
            TaskKind::Extract => ("ai-extractor".to_owned(), Some(place)),
            TaskKind::Classify => ("ai-classifier".to_owned(), Some(category)),
            TaskKind::Summarize => {
                ("ai-summarizer".to_owned(), Some(json!({"type": "string", "minLength": 1})))
            }
        };
        let is_text = matches!(kind, TaskKind::Objective | TaskKind::Summarize);
        own.output_format = if is_text { OutputFormat::Text } else { OutputFormat::Json };
        own.task = Some(TaskSpec { kind, max_token_limit: 1_000 });
        spec.max_iterations = 5;
        if kind != TaskKind::Objective {
            spec.tools.clear();
        }
        change(spec, own);
    })
}

/// An answer that gives a result as JSON.
pub(crate) fn json_result(result: &Value) -> ModelAnswer {
    text(&json!({ "result": result }).to_string())
}

/// An answer that gives a result by the finishing tool.
pub(crate) fn finish_step(result: &Value) -> ModelAnswer {
    calls(&[("finish_step", &json!({ "result": result }).to_string())])
}

pub(crate) fn plan(spec: &AgentSpec) -> AgentPlan {
    let node = |id: &str, kind: &str, name: &str, config: Value| PlanNode {
        node: NodeSummary { id: id.into(), type_name: kind.to_owned(), name: name.to_owned() },
        config: config.as_object().cloned().unwrap_or_default(),
    };
    let settings = spec.converse.clone().unwrap();
    let mut config = if let Some(task) = &settings.task {
        let input = if task.kind == TaskKind::Objective { "objective" } else { "text" };
        json!({
            "systemPrompt": settings.system_prompt, input: settings.user_message,
            "maxIterations": spec.max_iterations, "options": {"maxTokenLimit": task.max_token_limit},
            "debug": spec.debug, "timeout": spec.timeout_ms, "parallelTools": settings.parallel_tools,
            "multiple": settings.output_schema.as_ref().is_some_and(|schema| schema.get("items").is_some()),
        })
    } else {
        json!({
        "systemPrompt": settings.system_prompt, "userMessage": settings.user_message,
        "maxIterations": spec.max_iterations,
        "options": {"toolChoice": settings.tool_choice, "outputFormat": settings.output_format,
                    "timeout": spec.timeout_ms},
        "parallelTools": settings.parallel_tools, "debug": spec.debug,
        })
    };
    if let Some(images) = settings.images {
        config["images"] = json!(images);
    }
    AgentPlan {
        agent: node("agent", &spec.type_name, &spec.name, config),
        model: node("model", "scripted-model", "", json!({})),
        fallback_models: Vec::new(),
        services: Vec::new(),
        memory: spec.memory.then(|| node("memory", "buffer-memory", "", json!({}))),
        tools: spec.tools.iter().map(|tool| node(tool.node.as_str(), "tool", "", json!({}))).collect(),
    }
}

/// An answer with text only.
pub(crate) fn text(text: &str) -> ModelAnswer {
    let usage = Usage { input_tokens: 100, output_tokens: 9, cost: Some(0.25), ..Usage::default() };
    ModelAnswer { text: text.to_owned(), usage: Some(usage), ..ModelAnswer::default() }
}

pub(crate) fn requested(id: &str, name: &str, arguments: &str) -> RequestedCall {
    RequestedCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// An answer that calls tools. The n-th call has the id `c<n>`.
pub(crate) fn calls(list: &[(&str, &str)]) -> ModelAnswer {
    let list = list.iter().enumerate();
    let tool_calls = list.map(|(n, (name, arguments))| requested(&format!("c{}", n + 1), name, arguments));
    ModelAnswer { tool_calls: tool_calls.collect(), ..text("") }
}

pub(crate) struct TestRun {
    pub(crate) recorder: Recorder,
    pub(crate) lines: Vec<String>,
    /// The effects of the last step.
    pub(crate) effects: Vec<Effect>,
    /// The effects without an answer.
    pub(crate) open: Vec<Effect>,
    pub(crate) events: Vec<RunEvent>,
    /// The numbers of lines after each step.
    steps: Vec<usize>,
    pub(crate) at: Millis,
}

impl TestRun {
    pub(crate) fn start(spec: AgentSpec, message: Value) -> Self {
        Self::start_in(spec, message, None)
    }

    pub(crate) fn start_in(spec: AgentSpec, message: Value, session: Option<&str>) -> Self {
        Self::start_version(MACHINE_VERSION, spec, message, session)
    }

    pub(crate) fn start_version(
        version: u32,
        spec: AgentSpec,
        message: Value,
        session: Option<&str>,
    ) -> Self {
        let plan = EncodedPlan::new(&plan(&spec)).unwrap();
        let spec = Arc::new(spec);
        let agent = strategies().compile_version(&spec, version).unwrap();
        let Value::Object(message) = message else { panic!("not an object") };
        let (run_id, session) = ("0197-run".into(), session.map(str::to_owned));
        let fact = Fact::RunStarted {
            at: START,
            run_id,
            session,
            message,
            spec: Arc::clone(&spec),
            by: None,
            input: None,
        };
        let mut recorder = Recorder::new(agent).observed(true);
        let step = recorder.start(&plan, ParentRun::default(), fact, &|call| class(&spec, call)).unwrap();
        let (lines, effects, open) = (Vec::new(), Vec::new(), Vec::new());
        let (events, steps) = (Vec::new(), Vec::new());
        let mut run = Self { recorder, lines, effects, open, events, steps, at: START };
        run.add(step);
        run
    }

    fn add(&mut self, step: Step) {
        self.lines.extend(step.lines);
        self.events.extend(step.events);
        self.open.extend(step.effects.iter().filter(|effect| effect.needs_answer()).cloned());
        self.effects = step.effects;
        self.steps.push(self.lines.len());
    }

    /// Feeds a fact ten milliseconds after the last one.
    pub(crate) fn feed(&mut self, fact: impl FnOnce(Millis) -> Fact) -> Result<(), StepError> {
        let at = self.at + 10;
        let fact = fact(at);
        let answered = fact.effect();
        let keeps_open = matches!(fact, Fact::ToolOutcomeUnknown { .. });
        let spec = Arc::clone(self.recorder.agent().spec());
        let step = self.recorder.step(fact, &|call| class(&spec, call))?;
        self.at = at;
        if !keeps_open {
            self.open.retain(|effect| Some(effect.id()) != answered);
        }
        self.add(step);
        Ok(())
    }

    /// The model answers.
    pub(crate) fn answer(&mut self, answer: ModelAnswer) -> &mut Self {
        let effect = self.model_call().0;
        self.feed(|at| Fact::ModelAnswered { at, effect, answer }).unwrap();
        self
    }

    /// A tool returns a result.
    pub(crate) fn returned(&mut self, tool: &str, result: ToolResult) -> &mut Self {
        let effect = self.tool_call(tool);
        self.feed(|at| Fact::ToolReturned { at, effect, result, tries: 1 }).unwrap();
        self
    }

    pub(crate) fn ok(&mut self, tool: &str, output: Value) -> &mut Self {
        self.returned(tool, ToolResult::ok(output))
    }

    pub(crate) fn unknown(&mut self, tool: &str) -> &mut Self {
        let effect = self.tool_call(tool);
        let reason = "The connection was lost.".to_owned();
        self.feed(|at| Fact::ToolOutcomeUnknown { at, effect, reason }).unwrap();
        self
    }

    /// The open model call, and what it asks for.
    pub(crate) fn model_call(&self) -> (EffectId, Transcript, Reply) {
        let call = self.open.iter().find_map(|effect| match effect {
            Effect::CallModel { id, transcript, answer_kind: AnswerKind::Reply(reply), .. } => {
                Some((*id, transcript.clone(), reply.clone()))
            }
            _ => None,
        });
        call.unwrap_or_else(|| panic!("no model call is open: {:?}", self.names()))
    }

    /// The first open call of a tool.
    pub(crate) fn tool_call(&self, tool: &str) -> EffectId {
        let call = self.open.iter().find_map(|effect| match effect {
            Effect::CallTool { id, call } if call.tool == tool => Some(*id),
            _ => None,
        });
        call.unwrap_or_else(|| panic!("no call of {tool} is open: {:?}", self.names()))
    }

    /// The names of the open effects; of tool calls, the tools.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |effect: &Effect| match effect {
            Effect::CallTool { call, .. } => call.tool.clone(),
            effect => effect.name().to_owned(),
        };
        self.open.iter().map(name).collect()
    }

    /// The newest messages of the open model call: role and text.
    pub(crate) fn sent(&self, newest: usize) -> Vec<(ChatRole, String)> {
        let (_, transcript, _) = self.model_call();
        let segments = transcript.segments();
        let newest = &segments[segments.len().saturating_sub(newest)..];
        newest.iter().map(|message| (message.role, message.content.clone())).collect()
    }

    /// The results of the last group of calls, as the model reads them.
    pub(crate) fn results(&self) -> Vec<(String, Value)> {
        let (_, transcript, _) = self.model_call();
        let tools = transcript.segments().iter().rev().take_while(|message| message.role == ChatRole::Tool);
        let mut results: Vec<(String, Value)> = tools
            .map(|message| {
                (message.tool_call_id.clone().unwrap(), serde_json::from_str(&message.content).unwrap())
            })
            .collect();
        results.reverse();
        results
    }

    /// The message of the result. Checks that the journal replays and that the run resumes at each step.
    pub(crate) fn finish(&self) -> Message {
        self.check_journal();
        match self.effects.last() {
            Some(Effect::Finish { message, .. }) => (**message).clone(),
            other => panic!("the run is not over: {other:?}"),
        }
    }

    pub(crate) fn error(&self) -> (String, Value) {
        let message = self.finish();
        (message["error"]["code"].as_str().unwrap().to_owned(), message["error"].clone())
    }

    pub(crate) fn status(&self) -> Status {
        self.recorder.machine().status()
    }

    pub(crate) fn event_names(&self) -> Vec<String> {
        let name = |event: &RunEvent| serde_json::to_value(&event.event).unwrap()["type"].clone();
        self.events.iter().map(|event| name(event).as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn find_events(&self, found: impl Fn(&RunEventKind) -> bool) -> usize {
        self.events.iter().filter(|event| found(&event.event)).count()
    }

    pub(crate) fn journal(&self) -> Vec<u8> {
        join(&self.lines)
    }

    pub(crate) fn check_journal(&self) {
        let (events, report) = redflow_machine::replay_events(&self.journal(), &strategies());
        assert!(report.equal, "{report:?}");
        assert_eq!(events, self.events);
        for lines in &self.steps {
            let journal = join(&self.lines[..*lines]);
            let strategies = strategies();
            let mut compile = |spec: &_, version| strategies.compile_version(spec, version);
            redflow_machine::resume(&journal, &strategies, &mut compile).unwrap();
        }
    }
}

fn join(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>().into_bytes()
}

fn class(spec: &AgentSpec, call: &ToolCall) -> EffectClass {
    spec.tools.iter().find(|tool| tool.name == call.tool).and_then(|tool| tool.effect).unwrap()
}
