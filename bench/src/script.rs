//! Scripted runs: the same facts every time.

use crate::Failure;
use crate::flows::{self, Errors};
use redflow_contract::Message;
use redflow_contract::digest::Digest;
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult, Usage};
use redflow_contract::id::{EffectId, RunId};
use redflow_contract::node::EffectClass;
use redflow_contract::plan::EncodedPlan;
use redflow_flow::{Verdict, check_bytes};
use redflow_machine::Agent as _;
use redflow_machine::{Classify, Machine, ParentRun, Recorder, Status};
use redflow_react::CompiledAgent;
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;

const ANSWER: &str = r#"{"action":"tool","tool":"calculator","input":{"expression":"(1203.50 + 17) * 0.19"},"confidence":0.8,"message":"First the tax on both items."}"#;
const FINAL: &str = r#"{"action":"final","message":"The tax is 231.90.","confidence":0.93}"#;
const START: u64 = 1_766_000_000_000;

/// All calls are calls of the calculator.
const CLASSIFY: Classify<'static> = &|_| EffectClass::Read;

/// What receives the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The machine alone.
    Machine,
    /// The machine with its journal.
    Recorder,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Machine, Self::Recorder];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Recorder => "recorder",
        }
    }
}

/// The compiled first agent of a generated flow.
pub(crate) struct Script {
    agent: Arc<CompiledAgent>,
    plan: EncodedPlan,
}

impl Script {
    /// An agent that may make `tool_calls` tool calls and then answer.
    pub(crate) fn new(tool_calls: u32) -> Result<Self, Failure> {
        let flow = flows::generate(100, Errors::None)?;
        let checked = check_bytes(&flow.bytes, &flows::options())
            .map_err(|report| format!("the generated flow is refused: {report:?}"))?;
        let Some(Verdict::Ready(ready)) = checked.agents.into_iter().next().map(|agent| agent.verdict) else {
            return Err("the generated flow has no agent that may run".into());
        };
        let mut spec = (*ready.spec).clone();
        // One more than the editor allows, so that the 20th call is like any other.
        spec.max_iterations = tool_calls + 1;
        let mut plan = (*ready.plan).clone();
        plan.agent.config.insert("maxIterations".to_owned(), spec.max_iterations.into());
        Ok(Self { agent: CompiledAgent::compile(Arc::new(spec))?, plan: EncodedPlan::new(&plan)? })
    }

    pub(crate) fn agent(&self) -> &Arc<CompiledAgent> {
        &self.agent
    }

    pub(crate) fn started(&self) -> Fact {
        let message =
            json!({"_msgid": "9f1c", "topic": "orders", "payload": "What is the tax on the order?"});
        let message = match message {
            Value::Object(message) => message,
            _ => Message::new(),
        };
        Fact::RunStarted {
            at: START,
            run_id: RunId::from("0197a7c2-5c1e-7d3a-9b61-3f0f5a1c2d4e".to_owned()),
            session: None,
            message,
            spec: Arc::clone(self.agent.spec()),
            by: None,
            input: None,
        }
    }

    /// The facts after the first: answers and results in turns, then the final answer.
    pub(crate) fn facts(&self, tool_calls: u32) -> Vec<Fact> {
        let mut facts = Vec::new();
        for effect in 1..=2 * tool_calls {
            facts.push(if effect % 2 == 1 { answer(effect, ANSWER) } else { result(effect) });
        }
        facts.push(answer(2 * tool_calls + 1, FINAL));
        facts
    }

    /// A run up to its first model call, and the first lines of its journal if it has one.
    pub(crate) fn start(&self, kind: Kind, fact: Fact) -> Result<(Driver, Vec<String>), Failure> {
        let agent = Arc::clone(&self.agent);
        match kind {
            Kind::Machine => {
                let mut driver = Driver::Machine(Arc::clone(&agent).start());
                driver.step(fact)?;
                Ok((driver, Vec::new()))
            }
            Kind::Recorder => {
                let mut recorder = Recorder::new(agent);
                let step = recorder.start(&self.plan, ParentRun::default(), fact, CLASSIFY)?;
                Ok((Driver::Recorder(recorder), step.lines))
            }
        }
    }

    /// The journal of a whole run.
    pub(crate) fn journal(&self, tool_calls: u32) -> Result<Vec<u8>, Failure> {
        let (driver, mut lines) = self.start(Kind::Recorder, self.started())?;
        let Driver::Recorder(mut recorder) = driver else { return Err("a recorder was asked for".into()) };
        for fact in self.facts(tool_calls) {
            lines.extend(recorder.step(fact, CLASSIFY)?.lines);
        }
        Ok((lines.join("\n") + "\n").into_bytes())
    }
}

/// One run.
#[derive(Debug)]
pub(crate) enum Driver {
    Machine(Box<dyn Machine>),
    Recorder(Recorder),
}

impl Driver {
    /// Feeds one fact and drops the effects.
    pub(crate) fn step(&mut self, fact: Fact) -> Result<(), Failure> {
        match self {
            Self::Machine(machine) => {
                machine.feed(fact)?;
                while let Some(effect) = machine.poll() {
                    drop(black_box(effect));
                }
            }
            Self::Recorder(recorder) => drop(black_box(recorder.step(fact, CLASSIFY)?)),
        }
        Ok(())
    }

    /// An error if the run has not ended.
    pub(crate) fn check_finished(&self) -> Result<(), Failure> {
        let machine = match self {
            Self::Machine(machine) => &**machine,
            Self::Recorder(recorder) => recorder.machine(),
        };
        match machine.status() {
            Status::Finished(_) => Ok(()),
            status => Err(format!("the run should be over, and is {status:?}").into()),
        }
    }
}

fn answer(effect: u32, text: &str) -> Fact {
    let usage = Usage { input_tokens: 412, output_tokens: 38, ..Usage::default() };
    let answer = ModelAnswer { text: text.to_owned(), usage: Some(usage), ..ModelAnswer::default() };
    Fact::ModelAnswered { at: START + u64::from(effect) * 17, effect: EffectId(effect), answer }
}

fn tool_result() -> ToolResult {
    ToolResult::ok(json!({"expression": "(1203.50 + 17) * 0.19", "result": 231.895}))
}

fn result(effect: u32) -> Fact {
    Fact::ToolReturned {
        at: START + u64::from(effect) * 17,
        effect: EffectId(effect),
        result: tool_result(),
        tries: 1,
    }
}

/// The lowest cost of an answer: parse it once, hash it once.
pub(crate) fn raw_answer() -> (Option<Value>, Digest) {
    let text = black_box(ANSWER);
    (serde_json::from_str(text).ok(), Digest::of(text.as_bytes()))
}

/// The lowest cost of a result: write it once, hash it once.
pub(crate) fn raw_result(result: &ToolResult) -> (String, Digest) {
    let text = serde_json::to_string(black_box(result)).unwrap_or_default();
    let digest = Digest::of(text.as_bytes());
    (text, digest)
}

/// The input of [`raw_result`].
pub(crate) fn sample_result() -> ToolResult {
    tool_result()
}

#[cfg(test)]
mod tests {
    use super::{Kind, Script};
    use redflow_strategies::replay;

    #[test]
    fn a_script_completes_its_run() {
        for tool_calls in [0, 2, 20] {
            let script = Script::new(tool_calls).unwrap();
            for kind in Kind::ALL {
                let (mut driver, _) = script.start(kind, script.started()).unwrap();
                assert!(driver.check_finished().is_err());
                for fact in script.facts(tool_calls) {
                    driver.step(fact).unwrap();
                }
                driver.check_finished().unwrap();
            }
            let report = replay(&script.journal(tool_calls).unwrap());
            assert!(report.equal && report.complete, "{report:?}");
        }
    }
}
