//! What a long memory adds to the recall of a run, against the short memory alone.

use crate::clock::{Stopwatch, figure, median};
use crate::folder::Folder;
use crate::table::{Column, Table, target_word};
use crate::world::runtime;
use crate::{Extent, Failure};
use redflow_archive::SqliteArchive;
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_engine::SystemClock;
use redflow_long_memory::LongMemorySettings;
use redflow_memory::MemorySettings;
use redflow_models::ModelSettings;
use redflow_models::embed::{EmbedderFactory, embedder_sources};
use redflow_ports::{
    Adapters, BuildError, ChatModel, Memory, NamedServices, NoMeter, NodeConfig, Recall, Turn,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

const SESSION: &str = "tab:bench";
const USER: &str = "ada";
/// Turns of the conversation that the short memory keeps.
const SHORT_TURNS: usize = 5;

/// The longest time that a long memory may add to a recall, in milliseconds.
const TARGET_ADDED: f64 = 3.0;

/// The short memory, which the long memory names.
struct Short(Arc<dyn Memory>);

impl NamedServices for Short {
    fn model(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn ChatModel>, BuildError> {
        Err(BuildError::new(owner, format!("there is no model `{id}`")))
    }

    fn memory(&self, _: &NodeSummary, _: &str) -> Result<Arc<dyn Memory>, BuildError> {
        Ok(Arc::clone(&self.0))
    }
}

fn build(
    adapters: &Adapters,
    type_name: &'static str,
    props: &Value,
    services: &dyn NamedServices,
) -> Result<Arc<dyn Memory>, Failure> {
    let node = NodeSummary { id: type_name.into(), type_name: type_name.to_owned(), name: String::new() };
    let props = props.as_object().ok_or("no object")?;
    let config = NodeConfig { services, flow: "tab", ..NodeConfig::new(&node, props, &|_| None, &|_| ()) };
    let builder = adapters.memories.get(type_name).ok_or("no such memory")?;
    Ok(builder(config)?)
}

/// A turn about something. Most turns share some words with others.
fn turn(number: usize) -> [ChatMessage; 2] {
    let topics = ["pump", "valve", "boiler", "lamp", "sensor", "gate", "printer", "router", "heater", "fan"];
    let topic = topics[number % topics.len()];
    let (place, part) = (number / 10 % 100, number % 997);
    let question = format!("The {topic} in hall {place} shows fault {part}. What should I check first?");
    let answer = format!("Check the {topic} of hall {place}: part {part} fails when the supply is too low.");
    [ChatMessage::new(ChatRole::User, question), ChatMessage::new(ChatRole::Assistant, answer)]
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (entries, recalls) = if extent == Extent::Quick { (300, 20) } else { (10_000, 300) };
    let folder = Folder::on_disk()?;
    let mut adapters = Adapters::default();
    redflow_memory::register(&mut adapters, MemorySettings::default());
    let models = Arc::new(ModelSettings::default());
    let embedders = Arc::new(EmbedderFactory::new(models, folder.path().join("models")));
    let settings = LongMemorySettings {
        archive: Arc::new(SqliteArchive::new(folder.path(), Arc::new(SystemClock))),
        embedder: embedder_sources(embedders),
        meter: Arc::new(NoMeter),
        clock: Arc::new(SystemClock),
        context: None,
    };
    redflow_long_memory::register(&mut adapters, settings);
    let limits = json!({"maxMessages": SHORT_TURNS * 2});
    let short = build(&adapters, "window-memory", &limits, &redflow_ports::NoServices)?;
    let props = json!({"shortMemory": "short", "embeddings": "hash", "scope": "user"});
    let long = build(&adapters, "long-memory", &props, &Short(Arc::clone(&short)))?;
    runtime()?.block_on(async {
        let filled = Instant::now();
        for number in 0..entries {
            let (messages, run) = (turn(number), RunId::from(format!("run-{number:06}").as_str()));
            let at = 1_790_000_000_000 + number as u64 * 60_000;
            let turn = Turn { user: Some(USER), at, ..Turn::new(SESSION, &run, &messages) };
            long.append(turn).await.map_err(|error| error.message)?;
        }
        let per_append = filled.elapsed().as_secs_f64() * 1e3 / figure(entries as u64);
        let mut samples = [Vec::new(), Vec::new()];
        let mut found = 0;
        for number in 0..recalls {
            let input = turn(number * 37)[0].content.clone();
            let recall = Recall {
                user: Some(USER),
                input: &input,
                at: 1_790_000_000_000 + entries as u64 * 60_000,
                ..Recall::new(SESSION)
            };
            for (memory, samples) in [&short, &long].into_iter().zip(&mut samples) {
                let watch = Stopwatch::start();
                let recalled = memory.recall(recall).await.map_err(|error| error.message)?;
                let spent = watch.spent();
                // The first recall reads the vectors into memory.
                if number > 0 {
                    samples.push((spent.wall / 1e3, spent.cpu / 1e3));
                }
                found += usize::from(!recalled.sources.is_empty());
            }
        }
        let cpu = samples.each_ref().map(|samples| median(samples.iter().map(|(_, cpu)| *cpu).collect()));
        let [short, long] =
            samples.map(|samples| median(samples.into_iter().map(|(wall, _)| wall).collect()));
        let columns = [("what", "memory", 0), ("p50", "recall, p50 ms", 3), ("cpu", "processor, p50 ms", 3)];
        let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
        let heading = format!("{entries} entries of one user, {recalls} recalls");
        let mut table = Table::new("memory", heading, columns.into());
        table.row(vec!["window-memory".into(), short.into(), cpu[0].into()]);
        table.row(vec!["long-memory on top of it".into(), long.into(), cpu[1].into()]);
        table.figure("added", "what the long memory adds", long - short, "ms");
        table.figure("append", "one turn appended, with its vector", per_append, "ms");
        table.figure(
            "found",
            "recalls that found an entry",
            figure(found as u64) / figure(recalls as u64),
            "",
        );
        table.note("the vectors come from the embedder `hash`, so no request is part of the figure");
        table.note(format!(
            "target: {TARGET_ADDED} ms more than the short memory: {}",
            target_word(long - short <= TARGET_ADDED)
        ));
        show(table)
    })
}
