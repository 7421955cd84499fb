//! The sums of what runs have used equal their journals: random runs of both strategies, stored on disk, some of
//! them interrupted and resumed.

use crate::simulation::Rng;
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::console::{Stats, StatsBy};
use redflow_contract::day::Day;
use redflow_contract::effect::{Effect, Ending};
use redflow_contract::fact::{Fact, FailedModel, ModelAnswer, ToolResult, Usage};
use redflow_contract::id::{EffectId, InstanceId, NodeRef, NodeSummary, RunId};
use redflow_contract::journal::{JournalLine, JournalRecord};
use redflow_contract::limits::RunLimits;
use redflow_contract::node::{BudgetKind, EffectClass, OnUnknown};
use redflow_contract::plan::{AgentPlan, AgentSpec, ConverseSpec, EncodedPlan, PlanNode, ToolSpec};
use redflow_contract::run::RunState;
use redflow_contract::run_error::Failure;
use redflow_contract::tally::RunTally;
use redflow_contract::transcript::RequestedCall;
use redflow_contract::{Message, Millis};
use redflow_machine::{ParentRun, Recorder, Status, Step};
use redflow_ports::{Batch, Durability, Journal, NewRun, RunReader, RunStore, StatsQuery};
use redflow_store::{MemoryStore, Store, recount};
use redflow_strategies::{run_usage, strategies};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

const RUNS: u64 = 1000;
const START: Millis = 1_766_000_000_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn spec(strategy: &str, agent: &str) -> Arc<AgentSpec> {
    let is_converse = strategy == "converse";
    let tool = |name: &str, on_unknown| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        input_schema: None,
        node: name.into(),
        effect: Some(EffectClass::AtMostOnce),
        timeout_ms: 1000,
        on_unknown,
        id: (name == "mail").then(|| "office.mail".to_owned()),
        operation: None,
        digest: None,
        output_schema: None,
        retry: None,
        strict: None,
    };
    Arc::new(AgentSpec {
        agent: NodeRef { instance: InstanceId::local(), node_id: agent.into() },
        type_name: if is_converse { "ai-agent" } else { "agent-core" }.to_owned(),
        name: String::new(),
        strategy: is_converse.then(|| "converse".to_owned()),
        converse: is_converse.then(|| ConverseSpec { parallel_tools: 2, ..ConverseSpec::default() }),
        budget: None,
        max_iterations: 5,
        tools: vec![tool("mail", OnUnknown::Wait), tool("light", OnUnknown::Fail)],
        stop_conditions: Vec::new(),
        debug: false,
        timeout_ms: 300_000,
        memory: false,
        model_response_wired: false,
        limits: RunLimits::default(),
    })
}

fn plan(spec: &AgentSpec) -> EncodedPlan {
    let node = |id: &str, kind: &str, config: Value| PlanNode {
        node: NodeSummary { id: id.into(), type_name: kind.to_owned(), name: String::new() },
        config: config.as_object().cloned().unwrap(),
    };
    let config = match &spec.converse {
        Some(settings) => json!({
            "systemPrompt": settings.system_prompt, "userMessage": settings.user_message,
            "maxIterations": spec.max_iterations,
            "options": {"toolChoice": settings.tool_choice, "outputFormat": settings.output_format,
                        "timeout": spec.timeout_ms},
            "parallelTools": settings.parallel_tools, "debug": spec.debug,
        }),
        None => json!({
            "maxIterations": spec.max_iterations, "strategy": "react",
            "allowedTools": spec.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
            "stopConditions": [], "debug": spec.debug, "timeout": spec.timeout_ms,
        }),
    };
    let plan = AgentPlan {
        agent: node(spec.agent.node_id.as_str(), &spec.type_name, config),
        model: node("model", "scripted-model", json!({})),
        fallback_models: Vec::new(),
        services: Vec::new(),
        memory: None,
        tools: spec
            .tools
            .iter()
            .map(|tool| node(tool.node.as_str(), "tool", json!({"toolName": tool.name})))
            .collect(),
    };
    EncodedPlan::new(&plan).unwrap()
}

fn class(_: &redflow_contract::effect::ToolCall) -> EffectClass {
    EffectClass::AtMostOnce
}

/// A random answer: tool calls, an end, or nothing that the agent understands.
fn answer(rng: &mut Rng, is_converse: bool) -> ModelAnswer {
    let tool = ["mail", "light", "unknown"][rng.below(3) as usize];
    let (text, calls) = match (rng.below(8), is_converse) {
        (0..5, true) => {
            let call = |index| RequestedCall {
                id: format!("c{index}"),
                name: if index == 0 { tool } else { "mail" }.to_owned(),
                arguments: json!({"n": rng.below(1000)}).to_string(),
            };
            let count = 1 + tool.len() as u64 % 3;
            (String::new(), (0..count).map(call).collect())
        }
        (0..5, false) => {
            let action = json!({"action": "tool", "tool": tool, "input": {}, "confidence": 0.5});
            (action.to_string(), Vec::new())
        }
        (5, _) => ("not what was asked for".to_owned(), Vec::new()),
        _ => (json!({"action": "final", "message": "done", "confidence": 1}).to_string(), Vec::new()),
    };
    let usage = Usage {
        input_tokens: rng.below(5000),
        output_tokens: rng.below(500),
        cached_tokens: (rng.below(2) == 0).then(|| rng.below(100)),
        // Billionths, as the sums have them.
        cost: (rng.below(3) > 0).then(|| rng.below(1_000_000_000) as f64 / 1e9),
        ..Usage::default()
    };
    let failed = |model: &str, skipped| FailedModel {
        model: model.to_owned(),
        code: RunErrorCode::ProviderUnavailable,
        skipped,
    };
    let fell_over = match rng.below(6) {
        0 => vec![failed("large", false)],
        1 => vec![failed("tiny", true), failed("large", false)],
        _ => Vec::new(),
    };
    let model = [None, Some("large"), Some("small")][rng.below(3) as usize].map(str::to_owned);
    ModelAnswer { text, usage: Some(usage), tool_calls: calls, model, fell_over, ..ModelAnswer::default() }
}

/// The next fact: mostly the answer of an open effect.
fn fact(rng: &mut Rng, at: Millis, effect: &Effect, run: &RandomRun) -> Fact {
    match rng.below(30) {
        0 => return Fact::CancelRequested { at, reason: String::new() },
        1 => return Fact::DeadlineReached { at },
        _ => {}
    }
    let id = effect.id();
    let budget = |budget| Fact::BudgetReached { at, effect: id, budget, limit: 1.0, spent: 1.0 };
    match effect {
        Effect::CallModel { .. } => match rng.below(12) {
            0 => budget(BudgetKind::ModelCalls),
            1 => {
                let error =
                    Failure { code: RunErrorCode::ProviderUnavailable, message: "It is offline.".to_owned() };
                Fact::ModelFailed { at, effect: id, error }
            }
            _ => {
                let is_converse = run.recorder.agent().spec().converse.is_some();
                Fact::ModelAnswered { at, effect: id, answer: answer(rng, is_converse) }
            }
        },
        Effect::CallTool { .. } => {
            let result = match rng.below(3) {
                0 => ToolResult::failed("no"),
                _ => ToolResult::ok(Value::Null),
            };
            match rng.below(10) {
                _ if run.unknown.contains(&id) => Fact::OutcomeResolved { at, effect: id, result },
                0 => budget(BudgetKind::ToolCalls),
                1 => Fact::ToolOutcomeUnknown { at, effect: id, reason: "lost".to_owned() },
                _ => Fact::ToolReturned { at, effect: id, result, tries: 1 },
            }
        }
        other => panic!("no run of this test has {other:?}"),
    }
}

/// What the test counts by itself. A call is counted when its effect is in the journal.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    runs: u64,
    failed_runs: u64,
    model_calls: u64,
    tokens: [u64; 3],
    cost_billionths: u64,
    tool_calls: u64,
    failed_calls: u64,
    tool_ms: u64,
    model_ms: u64,
}

/// Reads the facts and effects of a journal.
fn count_journal(journal: &[u8], models: &mut BTreeMap<String, Counts>) -> Counts {
    let mut counts = Counts { runs: 1, ..Counts::default() };
    let (mut at, mut opened) = (0, BTreeMap::<EffectId, (String, Millis)>::new());
    for line in journal.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: JournalLine = serde_json::from_slice(line).unwrap();
        match line.record {
            JournalRecord::Effect { id, effect, .. } => {
                counts.model_calls += u64::from(effect == "call_model");
                counts.tool_calls += u64::from(effect == "call_tool");
                opened.insert(id, (effect.into_owned(), at));
            }
            JournalRecord::Fact { fact } => {
                at = fact.at();
                let since = fact.effect().map_or(at, |effect| opened[&effect].1);
                match *fact {
                    Fact::ModelAnswered { answer, .. } => {
                        let called = answer.fell_over.iter().filter(|model| !model.skipped);
                        for model in called.clone() {
                            models.entry(model.model.clone()).or_default().model_calls += 1;
                        }
                        counts.model_calls += called.count() as u64;
                        let usage = answer.usage.unwrap();
                        let model = models.entry(answer.model.unwrap_or_default()).or_default();
                        model.model_calls += 1;
                        for counts in [&mut counts, model] {
                            let tokens =
                                [usage.input_tokens, usage.output_tokens, usage.cached_tokens.unwrap_or(0)];
                            counts.tokens.iter_mut().zip(tokens).for_each(|(sum, more)| *sum += more);
                            counts.cost_billionths += (usage.cost.unwrap_or(0.0) * 1e9).round() as u64;
                            counts.model_ms += at - since;
                        }
                    }
                    Fact::ToolReturned { result, .. } | Fact::OutcomeResolved { result, .. } => {
                        counts.failed_calls += u64::from(!result.success);
                        counts.tool_ms += at - since;
                    }
                    Fact::BudgetReached { effect, .. } => match opened[&effect].0.as_str() {
                        "call_model" => counts.model_calls -= 1,
                        _ => counts.tool_calls -= 1,
                    },
                    _ => {}
                }
            }
            _ => {}
        }
    }
    counts
}

/// One run, and the journals it is written to.
struct RandomRun {
    recorder: Recorder,
    journals: Vec<Box<dyn Journal>>,
    open: Vec<Effect>,
    unknown: Vec<EffectId>,
    at: Millis,
}

impl RandomRun {
    async fn store(&mut self, step: Step) {
        let machine = self.recorder.machine();
        let state = match machine.status() {
            Status::Waiting(questions) => {
                RunState::Waiting(questions.into_iter().map(|question| question.call).collect())
            }
            Status::Finished(ending) => {
                RunState::Finished { at: self.at, ending, usage: Box::new(machine.usage()) }
            }
            _ => RunState::Running,
        };
        let (tally, durability) = (machine.tally(), Durability::Buffered);
        self.open.extend(step.effects.into_iter().filter(Effect::needs_answer));
        for journal in &mut self.journals {
            let (lines, state) = (step.lines.clone(), state.clone());
            journal
                .append(Batch { lines, state, active_ms: 0, tally, durability, events: [].into() })
                .await
                .unwrap();
        }
    }

    fn ending(&self) -> Option<Ending> {
        match self.recorder.machine().status() {
            Status::Finished(ending) => Some(ending),
            _ => None,
        }
    }
}

/// Runs one agent with random facts. Returns how it ended.
async fn run(rng: &mut Rng, number: u64, spec: &Arc<AgentSpec>, stores: &[&dyn RunStore]) -> Ending {
    let (run_id, started_at) = (RunId::from(format!("run-{number:04}")), START + rng.below(5 * DAY_MS));
    let plan = plan(spec);
    let new = NewRun {
        run_id: run_id.clone(),
        agent: spec.agent.clone(),
        name: String::new(),
        started_at,
        cause: None,
        source: None,
        by: None,
        user: None,
        session: None,
        plan: plan.clone(),
    };
    let message = Message::from_iter([("payload".to_owned(), json!("?"))]);
    let first = Fact::RunStarted {
        at: started_at,
        run_id: run_id.clone(),
        session: None,
        message,
        spec: Arc::clone(spec),
        by: None,
        input: None,
    };
    let mut recorder = Recorder::new(strategies().compile(spec).unwrap());
    let step = recorder.start(&plan, ParentRun::default(), first, &class).unwrap();
    let journals = stores.iter().map(|store| store.create(new.clone())).collect();
    let mut run = RandomRun { recorder, journals, open: Vec::new(), unknown: Vec::new(), at: started_at };
    run.store(step).await;
    while run.ending().is_none() {
        if rng.below(6) == 0 {
            // The process ends, and another one goes on.
            let mut stored = Vec::new();
            for store in stores {
                stored.push(store.load(&run_id).await.unwrap().unwrap());
            }
            let mut compile = |spec: &Arc<AgentSpec>, version| strategies().compile_version(spec, version);
            let resumed = redflow_machine::resume(&stored[0].journal, strategies(), &mut compile).unwrap();
            run.recorder = resumed.recorder;
            run.journals = stores.iter().zip(&stored).map(|(store, stored)| store.reopen(stored)).collect();
        }
        let at = run.at + rng.below(5000);
        let effect = run.open[usize::try_from(rng.below(run.open.len() as u64)).unwrap()].clone();
        let is_light = matches!(&effect, Effect::CallTool { call, .. } if call.tool == "light");
        let fact = fact(rng, at, &effect, &run);
        let answered = fact.effect();
        let is_unknown = matches!(fact, Fact::ToolOutcomeUnknown { .. });
        run.at = at;
        let step = run.recorder.step(fact, &class).unwrap();
        if is_unknown {
            run.unknown.extend(answered);
        } else {
            run.open.retain(|effect| Some(effect.id()) != answered);
        }
        run.store(step).await;
        if is_unknown && is_light {
            // Its outcome stays unknown, and the run ends once the other calls have returned.
            run.open.retain(|effect| Some(effect.id()) != answered);
        }
    }
    run.ending().unwrap()
}

/// The sums of all days and keys.
fn total(stats: &Stats) -> Counts {
    let mut total = Counts::default();
    for row in &stats.rows {
        total.runs += row.runs;
        total.failed_runs += row.failed;
        total.model_calls += row.calls;
        let tokens = [row.input_tokens, row.output_tokens, row.cached_tokens];
        total.tokens.iter_mut().zip(tokens).for_each(|(sum, more)| *sum += more);
        total.cost_billionths += (row.cost.unwrap_or(0.0) * 1e9).round() as u64;
        total.model_ms += row.ms;
    }
    total
}

#[tokio::test]
async fn sums_equal_the_journals() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Store::open(dir.path()).unwrap();
    let memory = MemoryStore::with_max_finished(usize::try_from(RUNS).unwrap());
    let specs = [spec("react", "one"), spec("react", "two"), spec("converse", "three")];
    let mut rng = Rng::new(14);
    let mut expected = Counts::default();
    let mut models = BTreeMap::new();
    for number in 0..RUNS {
        let spec = &specs[rng.below(3) as usize];
        let ending = run(&mut rng, number, spec, &[&disk, &memory]).await;
        let stored = disk.load(&format!("run-{number:04}").into()).await.unwrap().unwrap();
        let counts = count_journal(&stored.journal, &mut models);
        let tally = stored.summary.tally.unwrap();
        assert_eq!(
            (u64::from(tally.model_calls), u64::from(tally.tool_calls)),
            (counts.model_calls, counts.tool_calls)
        );
        assert_eq!(run_usage(&stored.journal).unwrap().0, tally, "a replay counts the same");
        expected.runs += 1;
        expected.failed_runs += u64::from(matches!(ending, Ending::Failed { .. }));
        expected.model_calls += counts.model_calls;
        expected.tokens.iter_mut().zip(counts.tokens).for_each(|(sum, more)| *sum += more);
        expected.cost_billionths += counts.cost_billionths;
        expected.tool_calls += counts.tool_calls;
        expected.failed_calls += counts.failed_calls;
        expected.tool_ms += counts.tool_ms;
        expected.model_ms += counts.model_ms;
    }
    // The test is worth something: all kinds of ends and calls happened.
    assert!(expected.failed_runs > 100 && expected.failed_runs < RUNS - 100, "{expected:?}");
    assert!(expected.tool_calls > 500 && expected.failed_calls > 100, "{expected:?}");

    let query = |by| StatsQuery { from: Day::of(START), to: Day(Day::of(START).0 + 6), by };
    let readers: [&dyn RunReader; 2] = [&disk, &memory];
    let tools = Counts { runs: 0, model_calls: expected.tool_calls, ..Counts::default() };
    let tools = Counts { failed_runs: expected.failed_calls, model_ms: expected.tool_ms, ..tools };
    for reader in readers {
        let by_agent = reader.stats(query(StatsBy::Agent)).await.unwrap();
        assert_eq!(by_agent.keys.len(), 3);
        let sums = Counts { tool_calls: 0, failed_calls: 0, tool_ms: 0, ..total(&by_agent) };
        let plain = |counts: &Counts| {
            (
                counts.runs,
                counts.failed_runs,
                counts.model_calls,
                counts.tokens,
                counts.cost_billionths,
                counts.model_ms,
            )
        };
        assert_eq!(plain(&sums), plain(&expected));
        let by_model = reader.stats(query(StatsBy::Model)).await.unwrap();
        assert_eq!(plain(&total(&by_model)), plain(&expected));
        for (index, key) in by_model.keys.iter().enumerate().filter(|(_, key)| !key.key.is_empty()) {
            let rows = by_model.rows.iter().filter(|row| row.key as usize == index).cloned().collect();
            let sums = total(&Stats { rows, ..by_model.clone() });
            let counts = &models[&key.key];
            let plain = |counts: &Counts| {
                (counts.model_calls, counts.tokens, counts.cost_billionths, counts.model_ms)
            };
            assert_eq!(plain(&sums), plain(counts), "{}", key.key);
        }
        let by_tool = reader.stats(query(StatsBy::Tool)).await.unwrap();
        assert_eq!(total(&by_tool), tools);
        let mut names: Vec<&str> = by_tool.keys.iter().map(|key| key.key.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["light", "office.mail"]);
        let by_code = reader.stats(query(StatsBy::Code)).await.unwrap();
        assert_eq!(total(&by_code).failed_runs, expected.failed_runs);
    }
    let (by_agent, by_tool) = (StatsBy::Agent, StatsBy::Tool);
    let before = (disk_stats(&disk, query(by_agent)).await, disk_stats(&disk, query(by_tool)).await);
    drop(disk);
    let report = recount(dir.path(), &mut run_usage, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap();
    assert_eq!((report.runs, report.unreadable, report.kept_days), (RUNS, 0, 0));
    let disk = Store::open(dir.path()).unwrap();
    let after = (disk_stats(&disk, query(by_agent)).await, disk_stats(&disk, query(by_tool)).await);
    assert_eq!(after, before, "a recount changes nothing");
    assert_eq!(run_usage(b"no journal").map(|(tally, _): (RunTally, _)| tally), None);
}

async fn disk_stats(store: &Store, query: StatsQuery) -> Stats {
    RunReader::stats(store, query).await.unwrap()
}
