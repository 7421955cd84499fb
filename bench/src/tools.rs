//! The cost of a tool call through the registry with a policy, and of finding an agent's tools after a change.

use crate::clock::{Stopwatch, figure, median};
use crate::table::{Column, Table, target_word};
use crate::world::{World, limits_for, runtime, shipped_adapters};
use crate::{Extent, Failure};
use redflow_contract::id::{InstanceId, NodeSummary};
use redflow_contract::manifest::{Manifest, NodeTools};
use redflow_contract::policy::Policy;
use redflow_engine::{Definitions, Registry};
use redflow_models::ModelSettings;
use redflow_ports::{Adapters, NodeConfig};
use redflow_store::MemoryStore;
use serde_json::{Map, Value, json};
use std::sync::Arc;

const AT_ONCE: usize = 32;
const RUNS: usize = 1_000;
const CALLS: usize = 5;

/// The tools of the registry, and the rules of its policy.
const TOOLS: usize = 2_000;
const RULES: usize = 50;

/// The highest cost that the registry adds to a call, in microseconds.
const TARGET_CALL: f64 = 5.0;

/// The longest time to find the tools of an agent, in microseconds.
const TARGET_RESOLVE: f64 = 200.0;

/// Where an agent has its calculator from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CalculatorSource {
    Wire,
    Registry,
    /// The registry, which changes before each run.
    Changed,
}

const SOURCES: [CalculatorSource; 3] =
    [CalculatorSource::Wire, CalculatorSource::Registry, CalculatorSource::Changed];

impl CalculatorSource {
    fn name(self) -> &'static str {
        match self {
            Self::Wire => "the calculator on a wire",
            Self::Registry => "the calculator of the registry, with a policy",
            Self::Changed => "the same, and the registry changes before each run",
        }
    }

    fn flow(self) -> Value {
        let node = |id: &str, kind: &str, wires: Value| json!({"id": id, "type": kind, "z": "t", "name": id, "x": 340, "y": 120, "wires": wires});
        let mut agent = node("agent", "agent-core", json!([["model"], ["tool"], [], [], []]));
        let (name, allowed, tool) = match self {
            Self::Wire => ("calculator", "calculator", node("tool", "calculator-tool", json!([]))),
            Self::Registry | Self::Changed => {
                let mut tool = node("tool", "registry-tool", json!([]));
                tool["ids"] = json!(["math.calculate"]);
                ("math__calculate", "math.calculate", tool)
            }
        };
        agent["strategy"] = json!("react");
        agent["maxIterations"] = json!(CALLS + 1);
        agent["allowedTools"] = json!([allowed]);
        let mut model = node("model", "scripted-model", json!([]));
        let call = |n: usize| {
            let input = json!({"expression": format!("(1203.50 + {n}) * 0.19")});
            json!({"action": "tool", "tool": name, "input": input, "confidence": 0.8})
        };
        let last = json!({"action": "final", "message": "The tax is 231.90.", "confidence": 0.93});
        model["replies"] = (0..CALLS).map(call).chain([last]).collect();
        json!([{"id": "t", "type": "tab", "label": "Orders"}, agent, model, tool])
    }

    /// Microseconds of processor time per run.
    fn measure(self, runs: usize) -> Result<f64, Failure> {
        runtime()?.block_on(async {
            let mut adapters = shipped_adapters(ModelSettings::default());
            adapters.manifest_tool = Some(calculator(&adapters)?);
            let (adapters, registry) = (Arc::new(adapters), Arc::<Registry>::default());
            define(&registry, &adapters)?;
            let store = Arc::new(MemoryStore::with_max_finished(0));
            let parts = (store as _, Arc::clone(&registry));
            let world = World::with_registry(&self.flow(), adapters, |_| None, parts, limits_for(AT_ONCE))?;
            world.drive(AT_ONCE, AT_ONCE).await?;
            let watch = Stopwatch::start();
            if self == Self::Changed {
                for run in 0..runs {
                    change(&registry, run)?;
                    world.drive(1, 1).await?;
                }
            } else {
                world.drive(runs, AT_ONCE).await?;
            }
            Ok(watch.spent().cpu / figure(runs as u64))
        })
    }
}

/// Builds every tool of the manifest as the calculator.
fn calculator(adapters: &Adapters) -> Result<redflow_ports::ManifestToolBuilder, Failure> {
    let build = adapters.tools.get("calculator-tool").ok_or("there is no calculator")?;
    let node = NodeSummary { id: "c".into(), type_name: "calculator-tool".to_owned(), name: String::new() };
    let props = Map::new();
    let tool = build(NodeConfig::new(&node, &props, &|_| None, &|_| ()))?;
    Ok(Arc::new(move |_| Ok(Arc::clone(&tool))))
}

fn define(registry: &Registry, adapters: &Adapters) -> Result<(), Failure> {
    let tool = |id: String| {
        json!({
            "id": id, "kind": "http", "description": "Evaluates an arithmetic expression.", "effect": "read",
            "url": "https://example.org/",
            "inputSchema": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
            "outputSchema": {"type": ["number", "string", "object"]},
        })
    };
    let mut tools: Vec<Value> = (1..TOOLS).map(|n| tool(format!("shop{}.operation{n}", n % 40))).collect();
    tools.push(tool("math.calculate".to_owned()));
    let mut policy: Vec<Value> =
        (1..RULES).map(|n| json!({"deny": [format!("shop{n}.*")], "agents": ["guest"]})).collect();
    policy.push(json!({"limit": ["math.*"], "per": "agent", "rate": "1000000/s"}));
    let manifest: Manifest = serde_json::from_value(json!({"tools": tools, "policy": policy}))?;
    let policy =
        Policy::new(&manifest.policy, &manifest.roles).map_err(|problems| format!("{problems:?}"))?;
    let build = adapters.manifest_tool.as_ref();
    registry.define(Definitions {
        manifest: &manifest,
        registered: &[],
        added_servers: &redflow_contract::mcp::McpServers::default(),
        policy,
        build,
        env: &|_| None,
    });
    Ok(())
}

/// A change that leaves the agent's tools as they are.
fn change(registry: &Registry, run: usize) -> Result<(), Failure> {
    let operation = json!({"description": format!("Change {run}."), "inputSchema": {"type": "object"}});
    let tools: NodeTools = serde_json::from_value(json!({"ledger": {"list": operation}}))?;
    registry.set_node_tools(&InstanceId::from("factory"), tools);
    Ok(())
}

/// Microseconds of processor time per change.
fn measure_change(changes: usize) -> Result<f64, Failure> {
    let mut adapters = shipped_adapters(ModelSettings::default());
    adapters.manifest_tool = Some(calculator(&adapters)?);
    let registry = Registry::default();
    define(&registry, &adapters)?;
    let watch = Stopwatch::start();
    for run in 0..changes {
        change(&registry, run)?;
    }
    Ok(watch.spent().cpu / figure(changes as u64))
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (rounds, runs) = if extent == Extent::Quick { (1, 100) } else { (9, RUNS) };
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); SOURCES.len()];
    let mut changes = Vec::new();
    for _ in 0..rounds {
        for (source, samples) in SOURCES.iter().zip(&mut samples) {
            samples.push(source.measure(runs)?);
        }
        changes.push(measure_change(runs)?);
    }
    let micros: Vec<f64> = samples.into_iter().map(median).collect();
    let columns = [("what", "what", 0), ("micros", "µs/run", 1), ("ratio", "× wire", 3)];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("tools", "runs of 5 tool calls in memory, a scripted model", columns.into());
    for (source, micros_of) in SOURCES.iter().zip(&micros) {
        table.row(vec![source.name().into(), (*micros_of).into(), (micros_of / micros[0]).into()]);
    }
    let per_call = (micros[1] - micros[0]) / figure(CALLS as u64);
    let resolve = micros[2] - micros[1] - median(changes);
    table.figure("perCall", "what the registry adds to a call", per_call, "µs");
    table.figure("resolve", "finding the tools of an agent among 2 000 after a change", resolve, "µs");
    table.note("µs: processor time of the whole process per run; medians of rounds");
    table.note(format!(
        "target: at most {TARGET_CALL} µs more per call: {}; at most {TARGET_RESOLVE} µs to resolve: {}",
        target_word(per_call <= TARGET_CALL),
        target_word(resolve <= TARGET_RESOLVE)
    ));
    show(table)
}
