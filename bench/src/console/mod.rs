//! The console in a real browser, with a store of many runs: how soon it can be used, and that it never stalls.
//!
//! A script of the browser tests measures. This side fills the store, starts the sidecar and compares with the targets.

mod seed;

use crate::clock::median;
use crate::folder::Folder;
use crate::serve::server::{Kind, Server, TOKEN, configure};
use crate::table::{Cell, Column, Table, target_word};
use crate::{Extent, Failure};
use seed::{FAILED, seed};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs that the opened run has started.
const CHILDREN: u64 = 10_000;

/// The agents that the inject node starts, each with one run.
const AGENTS: usize = 20;

/// Events of a run that a list receives: its start and its end.
const EVENTS_OF_RUN: usize = 2;

/// Events for the page in a second.
const EVENTS_PER_SECOND: usize = 1_000;

/// The inject node.
const INJECT: &str = "inject";

/// A figure of the script and its target.
struct Target {
    /// The name of the figure.
    key: &'static str,
    what: &'static str,
    unit: &'static str,
    /// The figure is at most this.
    most: f64,
}

const TARGETS: [Target; 13] = [
    Target { key: "gzipKilobytes", what: "all files of the console after gzip", unit: "kB", most: 130.0 },
    Target { key: "firstPaint", what: "first paint", unit: "ms", most: 200.0 },
    Target { key: "list", what: "list of runs usable", unit: "ms", most: 500.0 },
    Target { key: "listByCode", what: "list by a code usable", unit: "ms", most: 500.0 },
    Target { key: "listByPrefix", what: "list by the begin of an id usable", unit: "ms", most: 500.0 },
    Target { key: "tree", what: "tree of a run: first rows", unit: "ms", most: 500.0 },
    Target { key: "treeReadTask", what: "longest task while the tree is read", unit: "ms", most: 50.0 },
    Target { key: "treeScrollTask", what: "longest task while it scrolls", unit: "ms", most: 50.0 },
    Target { key: "treeFrame", what: "19 of 20 frames while it scrolls", unit: "ms", most: 33.0 },
    Target { key: "treeElements", what: "elements of its page", unit: "", most: 2_000.0 },
    Target { key: "streamTask", what: "longest task while events come", unit: "ms", most: 100.0 },
    Target { key: "streamHeap", what: "growth of the heap by events", unit: "MB", most: 10.0 },
    Target { key: "idle", what: "requests and messages of idle pages", unit: "", most: 0.0 },
];

/// How much is measured.
struct Amount {
    /// Runs in the store.
    runs: u64,
    /// How often each page is opened.
    rounds: usize,
    stream_seconds: usize,
    idle_seconds: usize,
}

impl Amount {
    fn of(extent: Extent) -> Self {
        match extent {
            Extent::Quick => Self { runs: 20_000, rounds: 2, stream_seconds: 5, idle_seconds: 5 },
            Extent::Usual | Extent::Long => {
                Self { runs: 1_000_000, rounds: 7, stream_seconds: 60, idle_seconds: 20 }
            }
        }
    }
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (amount, load) = (Amount::of(extent), load_average());
    let folder = Folder::on_disk()?;
    configure(folder.path())?;
    std::fs::write(folder.path().join("flows.json"), flow().to_string())?;
    let began = Instant::now();
    let seeded = seed(folder.path(), amount.runs, CHILDREN)?;
    let seconds = began.elapsed().as_secs_f64();
    let server = Server::start_in(Kind::Durable, folder)?;
    let task = json!({
        "url": format!("http://{}", server.addr),
        "token": TOKEN,
        "rounds": amount.rounds,
        "code": FAILED.as_str(),
        "prefix": seeded.prefix,
        "parent": seeded.parent,
        "children": CHILDREN,
        "inject": INJECT,
        "startsPerSecond": EVENTS_PER_SECOND / (AGENTS * EVENTS_OF_RUN),
        "streamSeconds": amount.stream_seconds,
        "idleSeconds": amount.idle_seconds,
    });
    let mut table = table(&run_script(&task)?, amount.runs);
    table.figure("load", "processes that wanted a processor before (load average)", load, "");
    table.figure("seedSeconds", "filling the store", seconds, " s");
    show(table)
}

/// Runs the script, which prints its figures as JSON.
fn run_script(task: &Value) -> Result<Value, Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/browser");
    let mut command = Command::new("node");
    command.arg("console/bench.mjs").current_dir(folder).env("REDFLOW_BENCH", task.to_string());
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(
            "the browser could not measure: `cargo xtask bench console` installs what it needs".into()
        );
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn table(figures: &Value, runs: u64) -> Table {
    let columns = [
        ("what", "what", 0),
        ("best", "best", 1),
        ("median", "median", 1),
        ("most", "at most", 0),
        ("unit", "unit", 0),
        ("target", "target", 0),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = format!("the console in Chromium, {runs} runs in the store");
    let mut table = Table::new("console", heading, columns.into());
    for Target { key, what, unit, most } in TARGETS {
        let samples = samples(figures, key);
        let best = best(&samples);
        table.row(vec![
            what.into(),
            best.into(),
            median(samples).into(),
            most.into(),
            unit.into(),
            Cell::from(target_word(best <= most)),
        ]);
    }
    let events = figures["eventsPerSecond"].as_f64().unwrap_or(f64::NAN);
    table.figure("eventsPerSecond", "events that came to the open page in a second", events, "");
    for (key, what) in [
        ("treeReadProcessor", "the longest task while the tree is read, in the processor"),
        ("treeScrollProcessor", "the longest task while it scrolls, in the processor"),
        ("streamProcessor", "the longest task while events come, in the processor"),
    ] {
        table.figure(key, what, best(&samples(figures, key)), " ms");
    }
    table.note(
        "each page is opened in a new browser session without a cache; times begin with the navigation",
    );
    table.note("a target is met if the best round meets it, because other programs delay a browser");
    table.note(format!(
        "the tree is a run that has started {CHILDREN} others; it is read whole and scrolled through"
    ));
    table
}

/// The smallest of the rounds; no number if there is none.
fn best(samples: &[f64]) -> f64 {
    samples.iter().copied().fold(f64::NAN, f64::min)
}

/// The processes that wanted a processor in the last minute; no number if the system does not tell.
fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

/// The rounds of a figure; one that is not a number if the script has not measured it.
fn samples(figures: &Value, key: &str) -> Vec<f64> {
    let rounds = figures[key].as_array().into_iter().flatten().filter_map(Value::as_f64).collect::<Vec<_>>();
    if rounds.is_empty() { vec![f64::NAN] } else { rounds }
}

/// An inject node that starts many agents. Each answers at once.
fn flow() -> Value {
    let agents: Vec<String> = (0..AGENTS).map(|number| format!("agent-{number}")).collect();
    let node = |id: &str, kind: &str, wires: Value| json!({"id": id, "type": kind, "z": "tab", "name": id, "x": 120, "y": 120, "wires": wires});
    let mut inject = node(INJECT, "inject", json!([agents]));
    inject["props"] = json!([{"p": "payload"}]);
    inject["payload"] = json!("How are you?");
    inject["payloadType"] = json!("str");
    let calculator = node("calculator", "calculator-tool", json!([agents]));
    let mut nodes = vec![json!({"id": "tab", "type": "tab", "label": "Greetings"}), inject, calculator];
    for id in &agents {
        let mut agent = node(id, "agent-core", json!([[format!("{id}-model")], ["calculator"], [], [], []]));
        agent["strategy"] = json!("react");
        agent["maxIterations"] = json!(2);
        agent["allowedTools"] = json!(["calculator"]);
        let mut model = node(&format!("{id}-model"), "scripted-model", json!([[id]]));
        model["replies"] =
            json!([{"action": "final", "message": "Very well, thank you.", "confidence": 0.9}]);
        nodes.extend([agent, model]);
    }
    Value::Array(nodes)
}

#[cfg(test)]
mod tests {
    use super::{TARGETS, flow, samples, table};
    use serde_json::{Value, json};

    #[test]
    fn compares_the_best_round_with_the_target() {
        let figures = json!({"firstPaint": [250.0, 150.0, 201.0], "list": [501.0], "idle": [0]});
        let text = table(&figures, 1_000).to_string();
        let line = |what: &str| text.lines().find(|line| line.contains(what)).unwrap().to_owned();
        assert!(line("first paint").ends_with("150.0   201.0      200    ms     met"), "{text}");
        assert!(line("list of runs").ends_with("missed") && line("idle").ends_with("met"), "{text}");
        // What was not measured is not met.
        assert!(line("first rows").ends_with("missed"), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.ends_with("met") || line.ends_with("missed")).count(),
            TARGETS.len()
        );
    }

    #[test]
    fn a_figure_without_rounds_is_no_number() {
        assert!(samples(&json!({}), "list").iter().all(|value| value.is_nan()));
        assert_eq!(samples(&json!({"list": [1, 2.5]}), "list"), [1.0, 2.5]);
    }

    #[test]
    fn the_inject_node_starts_every_agent() {
        let flow = flow();
        let started = flow[1]["wires"][0].as_array().unwrap();
        let is_agent = |id: &Value| {
            let mut nodes = flow.as_array().unwrap().iter();
            nodes.any(|node| node["id"] == *id && node["type"] == "agent-core")
        };
        assert!(started.len() == super::AGENTS && started.iter().all(is_agent));
    }
}
