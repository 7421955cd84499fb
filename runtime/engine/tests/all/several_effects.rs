//! A machine with several open effects: they are performed at the same time, and each is recovered by its own
//! rule after a crash.

use crate::doubles::new_call_counts;
use crate::kit::{
    EngineTest, Setup, agent, ends, final_answer, inject, model, node, only_message, tool_double, with,
};
use crate::test_store::{Fault, TestStore};
use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::answer_kind::{AnswerKind, Reply};
use redflow_contract::code::RunErrorCode;
use redflow_contract::digest::Digest;
use redflow_contract::effect::{Effect, Ending, ToolCall};
use redflow_contract::event::RunEvent;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::id::{EffectId, RunId};
use redflow_contract::plan::{AgentPlan, AgentSpec};
use redflow_contract::run::{RunStatus, RunSummary, WaitingCall};
use redflow_contract::tally::RunTally;
use redflow_contract::transcript::Transcript;
use redflow_engine::{RunEnd, RunReport};
use redflow_machine::{Agent, CompileError, FeedError, Machine, Question, Status, Strategy};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Calls its model and all its tools at once, and ends when it has all results.
#[derive(Debug)]
struct FanOut(Arc<AgentSpec>, Quirk);

/// What a machine does besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quirk {
    None,
    /// Refuses the fact of this effect.
    Refuses(EffectId),
    /// Sends a model response when this effect is answered.
    RespondsTo(EffectId),
}

#[derive(Debug)]
pub(crate) struct FanOutStrategy;

/// The same strategy with a quirk.
#[derive(Debug)]
struct QuirkyStrategy(Quirk);

impl Strategy for QuirkyStrategy {
    fn name(&self) -> &'static str {
        FanOutStrategy.name()
    }

    fn versions(&self) -> std::ops::RangeInclusive<u32> {
        FanOutStrategy.versions()
    }

    fn compile(&self, spec: &Arc<AgentSpec>, _: u32) -> Result<Arc<dyn Agent>, CompileError> {
        Ok(Arc::new(FanOut(Arc::clone(spec), self.0)))
    }

    fn contradiction(&self, _: &AgentPlan, _: &AgentSpec) -> Option<&'static str> {
        None
    }
}

impl Strategy for FanOutStrategy {
    fn name(&self) -> &'static str {
        "fan-out"
    }

    fn versions(&self) -> std::ops::RangeInclusive<u32> {
        7..=7
    }

    fn compile(&self, spec: &Arc<AgentSpec>, _: u32) -> Result<Arc<dyn Agent>, CompileError> {
        Ok(Arc::new(FanOut(Arc::clone(spec), Quirk::None)))
    }

    fn contradiction(&self, _: &AgentPlan, _: &AgentSpec) -> Option<&'static str> {
        None
    }
}

impl Agent for FanOut {
    fn spec(&self) -> &Arc<AgentSpec> {
        &self.0
    }

    fn version(&self) -> u32 {
        7
    }

    fn start(self: Arc<Self>) -> Box<dyn Machine> {
        Box::new(FanOutMachine {
            spec: Arc::clone(&self.0),
            quirk: self.1,
            effects: VecDeque::new(),
            open: BTreeMap::new(),
            questions: Vec::new(),
            results: BTreeMap::new(),
            refused_calls: 0,
            ending: None,
        })
    }
}

#[derive(Debug)]
struct FanOutMachine {
    spec: Arc<AgentSpec>,
    quirk: Quirk,
    effects: VecDeque<Effect>,
    open: BTreeMap<EffectId, Option<ToolCall>>,
    questions: Vec<Question>,
    results: BTreeMap<EffectId, Value>,
    refused_calls: u32,
    ending: Option<Ending>,
}

impl FanOutMachine {
    fn open_all(&mut self, run_id: &RunId) {
        let (transcript, answer_kind) = (Transcript::default(), AnswerKind::Reply(Reply::default()));
        let (id, spec) = (EffectId(1), Arc::clone(&self.spec));
        self.effects.push_back(Effect::CallModel {
            id,
            iteration: 1,
            transcript,
            spec,
            answer_kind,
            first_model: 0,
        });
        self.open.insert(id, None);
        for (id, tool) in (2..).map(EffectId).zip(&self.spec.tools) {
            let call = ToolCall {
                run_id: run_id.clone(),
                iteration: 1,
                call_id: format!("{run_id}:{id}").as_str().into(),
                tool: tool.name.clone(),
                node: tool.node.clone(),
                input: Message::new(),
                idempotency_key: Digest::of(format!("{run_id}:{id}").as_bytes()),
                timeout_ms: tool.timeout_ms,
                agent: self.spec.agent.node_id.clone(),
                declared: tool.effect,
                operation: None,
                conversation: Default::default(),
            };
            self.open.insert(id, Some(call.clone()));
            self.effects.push_back(Effect::CallTool { id, call });
        }
    }

    fn end(&mut self, ending: Ending) {
        let results: Vec<Value> = std::mem::take(&mut self.results).into_values().collect();
        let message: Message = [("payload".to_owned(), Value::Array(results))].into_iter().collect();
        self.ending = Some(ending);
        self.effects.push_back(Effect::Finish { id: EffectId(100), ending, message: message.into() });
    }
}

impl Machine for FanOutMachine {
    fn feed(&mut self, fact: Fact) -> Result<(), FeedError> {
        if self.ending.is_some() {
            return Err(FeedError::Finished);
        }
        match (self.quirk, fact.effect()) {
            (Quirk::Refuses(refused), Some(id)) if id == refused => return Err(FeedError::NotOpen(id)),
            (Quirk::RespondsTo(answered), Some(id)) if id == answered => {
                let message = [("payload".to_owned(), json!("on the way"))].into_iter().collect();
                self.effects.push_back(Effect::EmitModelResponse { id: EffectId(50), message });
            }
            _ => {}
        }
        let question =
            fact.effect().and_then(|id| self.questions.iter().position(|asked| asked.effect == id));
        match fact {
            Fact::RunStarted { run_id, .. } => self.open_all(&run_id),
            Fact::CancelRequested { .. } => self.end(Ending::Failed { code: RunErrorCode::Cancelled }),
            Fact::DeadlineReached { .. } => self.end(Ending::Failed { code: RunErrorCode::Timeout }),
            Fact::OutcomeResolved { effect, result, .. } => {
                self.questions.remove(question.ok_or(FeedError::NotOpen(effect))?);
                self.results.insert(effect, json!(result));
            }
            fact => {
                let effect = fact.effect().unwrap_or(EffectId(0));
                let call = self.open.remove(&effect).ok_or(FeedError::NotOpen(effect))?;
                match (fact, call) {
                    (Fact::ModelAnswered { answer, .. }, None) => {
                        self.results.insert(effect, json!(answer.text));
                    }
                    (Fact::ToolReturned { result, .. }, Some(_)) => {
                        self.results.insert(effect, json!(result));
                    }
                    (Fact::BudgetReached { .. }, Some(_)) => {
                        self.refused_calls += 1;
                        self.results.insert(effect, json!("refused"));
                    }
                    (Fact::ToolOutcomeUnknown { at, .. }, Some(call)) => {
                        let ToolCall { call_id, tool, iteration, input, .. } = call;
                        let call = WaitingCall { call_id, tool, iteration, asked_at: at, input };
                        self.questions.push(Question { effect, call });
                    }
                    _ => self.end(Ending::Failed { code: RunErrorCode::Internal }),
                }
            }
        }
        if self.results.len() == self.spec.tools.len() + 1 {
            self.end(Ending::Completed);
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    fn status(&self) -> Status {
        match self.ending {
            Some(ending) => Status::Finished(ending),
            None if self.open.is_empty() && !self.questions.is_empty() => {
                Status::Waiting(self.questions.clone())
            }
            None => Status::Running,
        }
    }

    fn tally(&self) -> RunTally {
        let tool_calls = u32::try_from(self.spec.tools.len()).unwrap() - self.refused_calls;
        RunTally { iterations: 1, tool_calls, ..RunTally::default() }
    }

    fn set_observed(&mut self, _: bool) {}

    fn take_events(&mut self) -> Vec<RunEvent> {
        Vec::new()
    }
}

/// Four tools, two of which must not be called twice, and a model.
pub(crate) fn flow(loses_every: u64) -> Value {
    let classes = ["read", "idempotent", "at_most_once", "at_most_once"];
    let ids: Vec<String> = (0..classes.len()).map(|number| format!("t{number}")).collect();
    let wires = json!([["m"], ids, [], [], []]);
    let mut nodes = vec![
        inject(&["a"]),
        with(agent("a", "m", &[]), json!({"wires": wires, "allowedTools": ids})),
        with(model("m", json!([final_answer("done")])), json!({"delayMs": 35})),
    ];
    for ((id, class), delay) in ids.iter().zip(classes).zip([20, 30, 40, 50]) {
        let config = json!({"inputSchema": {"type": "object"}, "effect": class, "timeout": 600,
                            "delay": delay, "losesEvery": loses_every});
        nodes.push(with(node(id, "tool.counting", json!([])), config));
    }
    Value::Array(nodes)
}

pub(crate) fn setup(fault: Fault) -> Setup {
    Setup { fault, strategy: Some(Arc::new(FanOutStrategy)), ..Setup::default() }
}

#[tokio::test(start_paused = true)]
async fn performs_all_open_effects_at_the_same_time() {
    let counts = new_call_counts();
    let test = setup(Fault::None).start_engine(&flow(1_000));
    let before = Instant::now();
    let reports = test.fire().await;
    assert_eq!(ends(&reports), ["run-1 a completed"]);
    assert_eq!(before.elapsed().as_millis(), 50, "the slowest call, not the sum of all");
    assert_eq!(counts.lock().unwrap().len(), 4);
    // The results are in the order of the effects, not in the order in which they came.
    let payload = only_message(&reports)["payload"].clone();
    let is_text: Vec<bool> = payload.as_array().unwrap().iter().map(Value::is_string).collect();
    assert_eq!(is_text, [true, false, false, false, false]);
    let journal = test.store.journal(&reports[0].run_id);
    assert!(journal.lines().next().unwrap().contains(r#""machine":7,"strategy":"fan-out""#), "{journal}");
}

/// The facts that are ready together are one batch. So a group of calls costs one sync, and so do their
/// results.
#[tokio::test(start_paused = true)]
async fn stores_facts_that_arrive_together_in_one_batch() {
    new_call_counts();
    let test = setup(Fault::None).start_engine(&simultaneous());
    test.fire().await;
    let appends = test.recorder.calls_and_appends().iter().filter(|line| *line == "journal").count();
    assert_eq!(appends, 3, "the start, the four tools, the model with the end");
}

/// The flow whose four tools return at the same time.
fn simultaneous() -> Value {
    let mut flow = flow(1_000);
    for node in flow.as_array_mut().unwrap() {
        if node["type"] == "tool.counting" {
            node["delay"] = json!(20);
        }
    }
    flow
}

/// A call makes its way while the result of another one is stored.
#[tokio::test(start_paused = true)]
async fn open_effects_go_on_while_a_step_is_stored() {
    let counts = new_call_counts();
    let mut flow = flow(1_000);
    for id in [5, 6] {
        flow[id] = with(flow[id].clone(), json!({"delay": 8_000, "timeout": 60_000}));
    }
    let test = setup(Fault::Slow).start_engine(&flow);
    let before = Instant::now();
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    // To store the start takes 5 s, and so do the result of the second tool and the last results. The slow
    // calls are half-way while that result is stored.
    assert_eq!(before.elapsed().as_millis(), 5_000 + 8_000 + 5_000);
    assert_eq!(counts.lock().unwrap().len(), 4);
}

/// What was fed before the refused fact is stored. The run stays as it is and can be resumed.
#[tokio::test(start_paused = true)]
async fn a_refused_fact_in_a_batch_loses_nothing_before_it() {
    let counts = new_call_counts();
    let strategy: Arc<dyn Strategy> = Arc::new(QuirkyStrategy(Quirk::Refuses(EffectId(3))));
    let (flow, store) = (simultaneous(), TestStore::new(Fault::None));
    let refusing = Setup { strategy: Some(strategy), ..Setup::default() };
    let test = refusing.restart(&flow, &store);
    let reports = test.fire_unchecked().await;
    assert!(ends(&reports)[0].starts_with("run-1 a suspended RUN_BLOCKED"), "{:?}", ends(&reports));
    let journal = store.journal(&"run-1".into());
    assert_eq!(journal.matches(r#""type":"tool_returned""#).count(), 1, "{journal}");
    test.kill().await;
    let questions = finish(&setup(Fault::None), &flow, &store).await;
    assert_eq!(questions, 2, "of the two calls that must not be made again");
    check_finished("refused", &store, &counts.lock().unwrap(), questions);
}

/// A response leaves the run before the facts that follow are fed, because a journal tells of such effects
/// only for its last fact.
#[tokio::test(start_paused = true)]
async fn a_model_response_ends_its_batch() {
    new_call_counts();
    let strategy: Arc<dyn Strategy> = Arc::new(QuirkyStrategy(Quirk::RespondsTo(EffectId(3))));
    let mut flow = simultaneous();
    flow[1]["wires"][4] = json!(["d"]);
    flow.as_array_mut().unwrap().push(crate::kit::debug("d", "payload"));
    let test = Setup { strategy: Some(strategy), ..Setup::default() }.start_engine(&flow);
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    assert_eq!(test.recorder.flow_lines(), [r#"d: "on the way""#]);
    let appends = test.recorder.calls_and_appends().iter().filter(|line| *line == "journal").count();
    assert_eq!(appends, 4, "the start, two tools with the response, two tools, the model with the end");
}

/// Two people answer two questions of a run at once: neither is told that the run waits for nothing.
#[tokio::test(start_paused = true)]
async fn takes_an_answer_while_another_one_is_stored() {
    new_call_counts();
    let setup = setup(Fault::None);
    let (flow, store) = (flow(1_000), TestStore::new(Fault::None));
    let test = setup.restart(&flow, &store);
    let _ = timeout(Duration::from_millis(15), test.fire_unchecked()).await;
    test.kill().await;
    store.crash(|| 1.0);
    let test = setup.restart(&flow, &store);
    let reports = test.recover().await;
    let [RunReport { end: RunEnd::Waiting(calls), .. }] = &reports[..] else { panic!("{reports:?}") };
    let resolve = |index: usize| {
        let answer = ToolResult::ok(json!("asked"));
        test.engine.resolve("run-1".into(), calls[index].call_id.clone(), answer)
    };
    let (first, second, again) = tokio::join!(resolve(1), resolve(0), resolve(1));
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert!(again.is_err(), "the question is answered already");
    let (run, ..) = &store.runs()[0];
    assert_eq!(run.status, RunStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_and_the_deadline_end_all_open_effects() {
    new_call_counts();
    let test = setup(Fault::None).start_engine(&flow(1));
    let cancel = async {
        sleep(Duration::from_millis(5)).await;
        test.engine.cancel("run-1".into(), "enough".to_owned()).await.unwrap();
    };
    let (reports, ()) = tokio::join!(test.fire(), cancel);
    assert_eq!(ends(&reports), ["run-1 a failed CANCELLED"]);
    let mut slow = flow(1_000);
    slow[1]["timeout"] = json!(10);
    let test = setup(Fault::None).start_engine(&slow);
    assert_eq!(ends(&test.fire().await), ["run-1 a failed TIMEOUT"]);
}

/// A cancel drops the calls of an AI Agent that are under way, and so does the end of the process. Their intents
/// are one append.
#[tokio::test(start_paused = true)]
async fn parallel_calls_are_dropped_with_their_run() {
    let calls: Vec<Value> = ["t", "u", "v"].iter().map(|name| json!({"name": name})).collect();
    let tool = |id: &str| with(tool_double(json!({"hangs": "tool"})), json!({"id": id, "name": id}));
    let flow = json!([
        inject(&["a"]),
        with(node("a", "ai-agent", json!([[], []])), json!({"model": "m", "tools": ["t", "u", "v"]})),
        model("m", json!([{"toolCalls": calls}, "done"])),
        tool("t"),
        tool("u"),
        tool("v"),
    ]);
    for is_killed in [false, true] {
        let test = EngineTest::new(&flow);
        let recorder = Arc::clone(&test.recorder);
        let stop = async {
            sleep(Duration::from_millis(5)).await;
            if !is_killed {
                test.engine.cancel("run-1".into(), "enough".to_owned()).await.unwrap();
            }
        };
        tokio::select! {
            biased;
            ((), reports) = async { tokio::join!(stop, test.fire_unchecked()) } => {
                assert_eq!(ends(&reports), ["run-1 a failed CANCELLED"]);
            }
            () = sleep(Duration::from_secs(10)) => assert!(is_killed, "hangs"),
        }
        test.kill().await;
        let lines = recorder.calls_and_appends();
        let count = |wanted: &str| lines.iter().filter(|line| line.starts_with(wanted)).count();
        assert_eq!((count("tool "), count("dropped tool ")), (3, 3), "{lines:?}");
        let first = lines.iter().position(|line| line.starts_with("tool ")).unwrap();
        let before = lines[..first].iter().filter(|line| *line == "journal").count();
        assert_eq!(before, 2, "the start, and the intents of all calls: {lines:?}");
    }
}

/// What a call returned while another result was stored is recorded before a cancel ends the run.
#[tokio::test(start_paused = true)]
async fn a_known_outcome_is_recorded_before_the_run_stops() {
    let calls: Vec<Value> = ["t", "u"].iter().map(|name| json!({"name": name})).collect();
    let tool = |id: &str, delay: u32| {
        let config = json!({"inputSchema": {"type": "object"}, "effect": "at_most_once", "timeout": 60_000,
                            "delay": delay, "losesEvery": 1_000});
        with(node(id, "tool.counting", json!([])), config)
    };
    let flow = json!([
        inject(&["a"]),
        with(node("a", "ai-agent", json!([["d"], []])), json!({"model": "m", "tools": ["t", "u"]})),
        model("m", json!([{"toolCalls": calls}, "done"])),
        tool("t", 1_000),
        tool("u", 3_000),
        with(node("d", "debug", json!([])), json!({"complete": "true"})),
    ]);
    // To store the start and the intents takes 5 s each. The result of `t` is stored from 11 s to 16 s.
    let test = Setup { fault: Fault::Slow, ..Setup::default() }.start_engine(&flow);
    let cancel = async {
        sleep(Duration::from_secs(14)).await;
        test.engine.cancel("run-1".into(), "enough".to_owned()).await.unwrap();
    };
    let (reports, ()) = tokio::join!(test.fire(), cancel);
    assert_eq!(ends(&reports), ["run-1 a failed CANCELLED"]);
    let history = only_message(&reports)["envelope"]["tools"]["history"].clone();
    assert_eq!((&history[0]["success"], &history[1]["success"]), (&json!(true), &json!(true)), "{history}");
}

/// A run that an unknown outcome ends repeats nothing when it is resumed.
#[tokio::test(start_paused = true)]
async fn a_resumed_run_that_ends_repeats_no_call() {
    let calls: Vec<Value> = ["t", "u"].iter().map(|name| json!({"name": name})).collect();
    let tool = |id: &str, effect: &str| {
        let props = json!({"id": id, "name": id, "ownEffect": effect, "onUnknown": "fail"});
        with(tool_double(json!({"hangs": "tool"})), props)
    };
    let flow = json!([
        inject(&["a"]),
        with(node("a", "ai-agent", json!([[], []])), json!({"model": "m", "tools": ["t", "u"]})),
        model("m", json!([{"toolCalls": calls}, "done"])),
        tool("t", "at_most_once"),
        tool("u", "read"),
    ]);
    let (setup, store) = (Setup::default(), TestStore::new(Fault::None));
    let test = setup.restart(&flow, &store);
    tokio::select! {
        biased;
        _ = test.fire_unchecked() => panic!("a call should hang"),
        () = sleep(Duration::from_secs(10)) => {}
    }
    test.kill().await;
    let test = setup.restart(&flow, &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a failed TOOL_OUTCOME_UNKNOWN"]);
    let lines = test.recorder.calls_and_appends();
    assert!(lines.iter().all(|line| !line.starts_with("tool ")), "{lines:?}");
}

/// An orderly stop lets calls that must not be repeated finish, and leaves the others for later.
#[tokio::test(start_paused = true)]
async fn a_shutdown_asks_no_question() {
    for grace in [0, 10, 100] {
        let counts = new_call_counts();
        let setup = setup(Fault::None);
        let (flow, store) = (flow(1_000), TestStore::new(Fault::None));
        let test = setup.restart(&flow, &store);
        let stop = async {
            sleep(Duration::from_millis(5)).await;
            test.engine.shutdown(Duration::from_millis(grace)).await;
        };
        let (reports, ()) = tokio::join!(test.fire_unchecked(), stop);
        let end = ends(&reports).remove(0);
        assert!(end == "run-1 a suspended" || end == "run-1 a completed", "grace {grace}: {end}");
        test.kill().await;
        finish(&setup, &flow, &store).await;
        let made = counts.lock().unwrap();
        let twice = made.iter().find(|(key, count)| key.starts_with("at_most_once") && **count > 1);
        assert_eq!(twice, None, "grace {grace}");
    }
}

/// Recovers, answers all questions, and waits until the run is over. Gives the number of questions.
pub(crate) async fn finish(setup: &Setup, flow: &Value, store: &Arc<TestStore>) -> usize {
    let test = setup.restart(flow, store);
    test.recover().await;
    let mut questions = 0;
    let answers = async {
        loop {
            let Some(run) = store.summaries().into_iter().next() else { return };
            if run.status.is_over() {
                return;
            }
            if let Some(WaitingCall { call_id, .. }) = run.open_questions().first() {
                questions += 1;
                let answer = ToolResult::ok(json!("asked"));
                test.engine.resolve(run.run_id.clone(), call_id.clone(), answer).await.unwrap();
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(3_600), answers).await.unwrap_or_else(|_| panic!("hangs"));
    test.kill().await;
    questions
}

/// Checks a run that was killed and finished: no dangerous call twice, one question for each call whose
/// outcome is unknown, and a journal that replays.
pub(crate) fn check_finished(
    test: &str,
    store: &TestStore,
    counts: &std::collections::HashMap<String, u32>,
    questions: usize,
) {
    for (key, count) in counts.iter().filter(|(key, _)| key.starts_with("at_most_once")) {
        assert_eq!(*count, 1, "{test}: {key}");
    }
    for (RunSummary { run_id, status, .. }, journal, _) in store.runs() {
        assert_eq!(status, RunStatus::Completed, "{test}: {run_id}");
        let strategies = redflow_machine::Strategies::new([Arc::new(FanOutStrategy) as _]);
        let report = redflow_machine::replay(journal.as_bytes(), &strategies);
        assert!(report.equal, "{test}: {:?}\n{journal}", report.difference);
        let unknown = journal.matches(r#""type":"tool_outcome_unknown""#).count();
        let resolved = journal.matches(r#""type":"outcome_resolved""#).count();
        assert_eq!((unknown, resolved), (questions, questions), "{test}\n{journal}");
    }
}

#[tokio::test(start_paused = true)]
async fn survives_a_kill_at_every_moment() {
    let mut most = 0;
    for moment in 0..60 {
        for luck in [0.0, 1.0] {
            let counts = new_call_counts();
            let setup = setup(Fault::None);
            let (flow, store) = (flow(1_000), TestStore::new(Fault::None));
            let test = setup.restart(&flow, &store);
            let _ = timeout(Duration::from_millis(moment), test.fire_unchecked()).await;
            test.kill().await;
            store.crash(|| luck);
            let questions = finish(&setup, &flow, &store).await;
            let name = format!("killed after {moment} ms, luck {luck}");
            check_finished(&name, &store, &counts.lock().unwrap(), questions);
            most = most.max(questions);
        }
    }
    assert_eq!(most, 2, "a kill while both calls are open leaves two questions");
}

#[tokio::test(start_paused = true)]
async fn survives_a_kill_before_and_after_every_batch() {
    let places = (1..=6).flat_map(|batch| [Fault::HangBefore(batch), Fault::HangAfter(batch)]);
    let mut kills = 0;
    for fault in places {
        for luck in [0.0, 1.0] {
            let counts = new_call_counts();
            let setup = setup(fault);
            let (flow, store) = (flow(1_000), TestStore::new(fault));
            let test = setup.restart(&flow, &store);
            let is_killed = timeout(Duration::from_secs(10), test.fire_unchecked()).await.is_err();
            kills += usize::from(is_killed);
            test.kill().await;
            store.crash(|| luck);
            let questions = finish(&setup, &flow, &store).await;
            check_finished(&format!("{fault:?}, luck {luck}"), &store, &counts.lock().unwrap(), questions);
        }
    }
    assert!(kills >= 20, "{kills}");
}
