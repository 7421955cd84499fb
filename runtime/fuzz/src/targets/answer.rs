//! Answers of models to an agent with tools.

use super::{Outcome, Target};
use redflow_contract::effect::Effect;
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult};
use redflow_contract::flow::Profile;
use redflow_contract::id::{EffectId, InstanceId, RunId};
use redflow_contract::node::EffectClass;
use redflow_contract::plan::EncodedPlan;
use redflow_flow::{CheckOptions, ReadyAgent, Verdict, check_bytes};
use redflow_machine::{Agent, ParentRun, Recorder};
use redflow_strategies::{replay, strategies};
use redflow_testkit::hostile::agent_flow;
use serde_json::{Map, json};
use std::sync::Arc;

/// An agent whose tool has a schema.
pub(super) struct ModelAnswers {
    /// None if the flow of this target is refused. Then every input is a finding.
    agent: Option<(Arc<dyn Agent>, EncodedPlan)>,
}

impl ModelAnswers {
    pub(super) fn new() -> Self {
        Self { agent: compile() }
    }

    /// The journal of a run in which the model gives this answer, and the codes of its end.
    fn record(&self, text: &str) -> Result<(Vec<u8>, String), String> {
        let (agent, plan) = self.agent.as_ref().ok_or("the flow of this target is refused")?;
        let mut recorder = Recorder::new(Arc::clone(agent));
        let started = Fact::RunStarted {
            at: 1,
            run_id: RunId::from("0197a7c2-5c1e-7d3a-9b61-3f0f5a1c2d4e".to_owned()),
            session: None,
            message: Map::new(),
            spec: Arc::clone(agent.spec()),
            by: None,
            input: None,
        };
        let answer = |text: &str| ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() };
        let classify = &|_: &_| EffectClass::Read;
        let failed = |error: &dyn std::error::Error| error.to_string();
        let mut step =
            recorder.start(plan, ParentRun::default(), started, classify).map_err(|e| failed(&e))?;
        let mut lines = std::mem::take(&mut step.lines);
        let mut outcome = String::new();
        for turn in 0..4 {
            let fact = step
                .effects
                .iter()
                .find_map(|effect| next_fact(effect, if turn < 2 { text } else { FINAL }, &answer));
            outcome.extend(step.effects.iter().map(|effect| match effect {
                Effect::Finish { ending, .. } => format!("{ending:?} ").chars().take(80).collect(),
                effect => format!("{} ", effect.name()),
            }));
            let Some(fact) = fact else { break };
            step = recorder.step(fact, classify).map_err(|error| failed(&error))?;
            lines.append(&mut step.lines);
        }
        Ok(((lines.join("\n") + "\n").into_bytes(), outcome))
    }
}

const FINAL: &str = r#"{"action":"final","message":"done"}"#;

fn next_fact(effect: &Effect, text: &str, answer: &dyn Fn(&str) -> ModelAnswer) -> Option<Fact> {
    let (at, effect_id): (_, EffectId) = (2, effect.id());
    match effect {
        Effect::CallModel { .. } => Some(Fact::ModelAnswered { at, effect: effect_id, answer: answer(text) }),
        Effect::CallTool { .. } => Some(Fact::ToolReturned {
            at,
            effect: effect_id,
            result: ToolResult::ok(json!({"sum": 4})),
            tries: 1,
        }),
        _ => None,
    }
}

fn compile() -> Option<(Arc<dyn Agent>, EncodedPlan)> {
    let schema = json!({"type": "object", "required": ["a"], "additionalProperties": false, "properties": {
        "a": {"type": ["integer", "string"], "pattern": "^[a-z]{1,9}$"},
        "b": {"type": "array", "uniqueItems": true, "items": {"$ref": "#"}},
        "c": {"enum": [1, "x", [2]]}}});
    let options = CheckOptions {
        profile: Profile::Redflow,
        limits: Default::default(),
        run_limits: Default::default(),
        run_budget: Default::default(),
        instance: InstanceId::local(),
        provides_tools: &|_| false,
        can_run: &|_| true,
        env: &|_| None,
    };
    let checked =
        check_bytes(agent_flow(&schema, &json!([{"action": "final"}])).to_string().as_bytes(), &options)
            .ok()?;
    let Verdict::Ready(ready) = checked.agents.into_iter().next()?.verdict else { return None };
    let ReadyAgent { spec, plan, .. } = *ready;
    Some((strategies().compile(&spec).ok()?, EncodedPlan::new(&plan).ok()?))
}

/// Answers that lead to different ends.
fn answers() -> Vec<String> {
    let call =
        |input| json!({"action": "tool", "tool": "hostile", "input": input, "confidence": 0.5}).to_string();
    vec![
        FINAL.to_owned(),
        call(json!({"a": 5})),
        call(json!({"a": "abc", "b": [{"a": 1}, {"a": "b"}], "c": [2]})),
        call(json!({"a": 1.5})),
        r#"{"action":"final","confidence":2}"#.to_owned(),
        r#"{"action":"tool","tool":"other","input":{},"confidence":1}"#.to_owned(),
        r#"{"action":"final","action":"tool"}"#.to_owned(),
        r#"{"action":"tool","tool":"hostile","input":{"a":18446744073709551616},"confidence":1}"#.to_owned(),
        "[[[[".to_owned(),
    ]
}

/// The journals of runs with these answers.
pub(super) fn recorded_journals() -> Vec<Vec<u8>> {
    let target = ModelAnswers::new();
    answers().iter().filter_map(|text| target.record(text).ok()).map(|(journal, _)| journal).collect()
}

impl Target for ModelAnswers {
    fn name(&self) -> &'static str {
        "answer"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        answers().into_iter().map(String::into_bytes).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let (journal, outcome) = self.record(&String::from_utf8_lossy(input))?;
        let report = replay(&journal);
        if report.equal {
            Ok(outcome)
        } else {
            Err(format!("the run does not replay: {:?}", report.difference))
        }
    }
}
