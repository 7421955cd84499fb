//! The cost of a run of an AI Agent, compared with Agent Core, and of one more tool call at the same time.

use crate::clock::{Stopwatch, figure, median};
use crate::table::{Column, Table, target_word};
use crate::world::{World, limits_for, runtime, shipped_adapters};
use crate::{Extent, Failure};
use redflow_models::ModelSettings;
use redflow_store::MemoryStore;
use serde_json::{Value, json};
use std::sync::Arc;

const AT_ONCE: usize = 32;
const RUNS: usize = 1_000;

/// The highest cost of an AI Agent with five calls in a row, as a multiple of Agent Core's.
const TARGET_RATIO: f64 = 1.05;

/// The highest cost of one more call at the same time, in microseconds.
const TARGET_MICROS: f64 = 12.0;

/// The work of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Agent Core with calls in a row, then an answer.
    Core(usize),
    /// An AI Agent with calls in a row, then an answer.
    Row(usize),
    /// An AI Agent with calls at the same time, then an answer.
    Together(usize),
}

/// Everything that is measured.
pub(crate) const WORKS: [Work; 6] = [
    Work::Core(5),
    Work::Row(5),
    Work::Together(1),
    Work::Together(5),
    Work::Together(17),
    Work::Together(33),
];

impl Work {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Core(calls) => format!("agent-core, {calls} calls in a row"),
            Self::Row(calls) => format!("ai-agent, {calls} calls in a row"),
            Self::Together(1) => "ai-agent, 1 call".to_owned(),
            Self::Together(calls) => format!("ai-agent, {calls} calls at once"),
        }
    }

    fn flow(self) -> Value {
        let node = |id: &str, kind: &str, wires: Value| json!({"id": id, "type": kind, "z": "t", "name": id, "x": 340, "y": 120, "wires": wires});
        // Each input is another one, because an AI Agent does not make the same call three times in a row.
        let input = |n: usize| json!({"expression": format!("(1203.50 + {n}) * 0.19")});
        let call = |n: usize| json!({"name": "calculator", "arguments": input(n)});
        let answer = "The tax is 231.90.";
        let (agent, replies) = match self {
            Self::Core(calls) => {
                let mut agent = node("agent", "agent-core", json!([["model"], ["tool"], [], ["show"], []]));
                agent["strategy"] = json!("react");
                agent["maxIterations"] = json!(calls + 1);
                agent["allowedTools"] = json!(["calculator"]);
                let action =
                    |n| json!({"action": "tool", "tool": "calculator", "input": input(n), "confidence": 0.8});
                let last = json!({"action": "final", "message": answer, "confidence": 0.93});
                (agent, (0..calls).map(action).chain([last]).collect::<Vec<_>>())
            }
            Self::Row(_) | Self::Together(_) => {
                let mut agent = node("agent", "ai-agent", json!([["show"], []]));
                agent["model"] = json!("model");
                agent["tools"] = json!(["tool"]);
                agent["parallelTools"] = json!(64);
                let replies: Vec<Value> = match self {
                    Self::Row(calls) => (0..calls).map(|n| json!({"toolCalls": [call(n)]})).collect(),
                    Self::Core(calls) | Self::Together(calls) => {
                        vec![json!({"toolCalls": (0..calls).map(call).collect::<Vec<_>>()})]
                    }
                };
                (agent, replies.into_iter().chain([json!(answer)]).collect())
            }
        };
        let mut model = node("model", "scripted-model", json!([]));
        model["replies"] = Value::Array(replies);
        let mut show = node("show", "debug", json!([]));
        show["complete"] = json!("payload");
        let tool = node("tool", "calculator-tool", json!([]));
        json!([{"id": "t", "type": "tab", "label": "Orders"}, agent, model, tool, show])
    }

    /// An engine with the agent, in the current runtime.
    pub(crate) fn world(self, at_once: usize) -> Result<Arc<World>, Failure> {
        let adapters = shipped_adapters(ModelSettings::default());
        let store = Arc::new(MemoryStore::with_max_finished(0));
        World::with_flow(&self.flow(), adapters, |_| None, store, limits_for(at_once))
    }

    /// Microseconds of processor time per run.
    fn measure(self, runs: usize) -> Result<f64, Failure> {
        runtime()?.block_on(async {
            let world = self.world(AT_ONCE)?;
            world.drive(AT_ONCE, AT_ONCE).await?;
            let watch = Stopwatch::start();
            world.drive(runs, AT_ONCE).await?;
            Ok(watch.spent().cpu / figure(runs as u64))
        })
    }
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (rounds, runs) = if extent == Extent::Quick { (1, 100) } else { (9, RUNS) };
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); WORKS.len()];
    for _ in 0..rounds {
        for (work, samples) in WORKS.iter().zip(&mut samples) {
            samples.push(work.measure(runs)?);
        }
    }
    let micros: Vec<f64> = samples.into_iter().map(median).collect();
    let of = |work: Work| WORKS.iter().position(|one| *one == work).map_or(f64::NAN, |place| micros[place]);
    let columns = [("what", "what", 0), ("micros", "µs/run", 1), ("ratio", "× agent-core", 3)];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("agents", "runs in memory, 32 at once, a scripted model", columns.into());
    for (work, micros) in WORKS.iter().zip(&micros) {
        table.row(vec![work.name().as_str().into(), (*micros).into(), (micros / of(Work::Core(5))).into()]);
    }
    let further = (of(Work::Together(33)) - of(Work::Together(1))) / 32.0;
    table.figure("furtherCall", "one more read call at the same time", further, "µs");
    table.note("µs: processor time of the whole process per run; medians of rounds");
    let ratio = of(Work::Row(5)) / of(Work::Core(5));
    table.note(format!(
        "target: 5 calls in a row at most {TARGET_RATIO} × agent-core: {}; one more call at most {TARGET_MICROS} µs: {}",
        target_word(ratio <= TARGET_RATIO),
        target_word(further <= TARGET_MICROS)
    ));
    show(table)
}
