//! What it costs to ask a model over HTTP: whole runs of the product beside a raw loop with the same client and
//! the same bytes, against a provider in a process of its own.

use crate::clock::{Stopwatch, figure, median};
use crate::live_hyper::HyperTransport;
use crate::live_provider::{Provider, base};
use crate::live_raw::{Overheard, RawAgent};
use crate::table::{Column, Table};
use crate::world::{World, room_for, runtime, shipped};
use crate::{Extent, Failure, live_waiting};
use redflow_models::ModelSettings;
use redflow_models::transport::{Endpoint, HttpSettings, ReqwestTransport, Transport};
use redflow_store::MemoryStore;
use serde_json::{Value, json};
use std::sync::Arc;

const TOOL_CALLS: usize = 5;

/// Runs at any time, and of how many a round is.
const CROWDS: [(usize, usize); 3] = [(1, 300), (32, 1_000), (256, 1_000)];

/// The most that a run may cost, to the raw loop.
const TARGET: f64 = 1.5;

/// Model calls of a run, the last of which is the final answer; the editor allows no more than the last.
const CALLS: [usize; 3] = [1, 6, 20];
const GROWTH_AT: usize = 32;

/// The most that the last of these may cost per call, to the first.
const GROWTH_TARGET: f64 = 1.6;

/// Who does the asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A loop and nothing else, with the client that ships.
    Raw,
    /// The product.
    Product,
    /// The product, but with hyper's own client.
    Hyper,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Raw, Self::Product, Self::Hyper];

    fn transport(self) -> Result<Arc<dyn Transport>, Failure> {
        Ok(match self {
            Self::Raw | Self::Product => Arc::new(ReqwestTransport::new(&HttpSettings::default())?),
            Self::Hyper => Arc::new(HyperTransport::new()),
        })
    }
}

/// Something that runs agents.
pub(crate) enum Asker {
    Raw(Arc<RawAgent>),
    Product(Arc<World>),
}

impl Asker {
    /// Asks below a base address, with room for so many at any time. Within a runtime.
    pub(crate) async fn new(way: Way, base: &str, at_once: usize) -> Result<Self, Failure> {
        Ok(match way {
            Way::Raw => Self::Raw(Arc::new(raw(base, way.transport()?).await?)),
            Way::Product | Way::Hyper => Self::Product(product(base, way.transport()?, at_once)?),
        })
    }

    pub(crate) async fn drive(&self, runs: usize, at_once: usize) -> Result<(), Failure> {
        match self {
            Self::Raw(agent) => agent.drive(runs, at_once).await,
            Self::Product(world) => world.drive(runs, at_once).await,
        }
    }
}

pub(crate) const KEY: &str = "sk-bench-not-a-key-of-anyone-0123456789";

/// The key is in the environment, and nothing else.
fn env(name: &str) -> Option<String> {
    (name == "OPENAI_API_KEY").then(|| KEY.to_owned())
}

fn product(base: &str, transport: Arc<dyn Transport>, at_once: usize) -> Result<Arc<World>, Failure> {
    let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
    let store = Arc::new(MemoryStore::default());
    World::of(&flow(base), shipped(settings), env, store, room_for(at_once))
}

/// The raw loop begins as the product does: it is overheard doing so.
async fn raw(base: &str, transport: Arc<dyn Transport>) -> Result<RawAgent, Failure> {
    let opening = serde_json::from_slice(&overhear(base).await?)?;
    let endpoint = Endpoint::new(format!("{base}/chat/completions").parse()?);
    let endpoint = endpoint.secret_header("authorization", &format!("Bearer {KEY}"));
    Ok(RawAgent { transport, endpoint: endpoint.map_err(|_| "the key is none")?, opening })
}

/// The body of the product's first question.
async fn overhear(base: &str) -> Result<Vec<u8>, Failure> {
    let overheard = Arc::new(Overheard::new(0));
    product(base, Arc::clone(&overheard) as _, 1)?.drive(1, 1).await?;
    Ok(overheard.bodies().into_iter().next().ok_or("the product asked nothing")?)
}

/// The same as JSON, for those who ask in other ways.
pub(crate) fn first_question(base: &str) -> Result<Value, Failure> {
    Ok(serde_json::from_slice(&runtime()?.block_on(overhear(base))?)?)
}

fn flow(base: &str) -> Value {
    let node = |id: &str, kind: &str, wires: Value| json!({"id": id, "type": kind, "z": "t", "name": id, "x": 340, "y": 120, "wires": wires});
    let mut agent = node("agent", "agent-core", json!([["model"], ["tool"], [], ["show"], []]));
    agent["strategy"] = json!("react");
    agent["maxIterations"] = json!(CALLS[CALLS.len() - 1]);
    agent["allowedTools"] = json!(["calculator"]);
    agent["timeout"] = json!(3_600_000);
    let mut model = node("model", "openai-model", json!([]));
    model["model"] = json!("gpt-4.1-mini");
    model["baseURL"] = json!(base);
    model["structuredOutput"] = json!("json_schema");
    let tool = node("tool", "calculator-tool", json!([]));
    let mut show = node("show", "debug", json!([]));
    show["complete"] = json!("payload");
    json!([{"id": "t", "type": "tab", "label": "Orders"}, agent, model, tool, show])
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let rounds = if extent == Extent::Quick { 1 } else { 7 };
    let provider = Provider::start()?;
    show(crowds(&provider, rounds)?)?;
    show(growth(&provider, rounds)?)?;
    drop(provider);
    show(live_waiting::table(extent)?)
}

fn crowds(provider: &Provider, rounds: usize) -> Result<Table, Failure> {
    let columns = [
        ("atOnce", "at once", 0),
        ("rawMs", "raw ms", 3),
        ("productMs", "product ms", 3),
        ("ratio", "× raw", 2),
        ("hyperMs", "by hyper ms", 3),
        ("hyperRatio", "hyper × reqwest", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "runs of five tool calls and a final answer, over HTTP to a provider that answers at once";
    let mut table = Table::new("live", heading, columns.into());
    let crowds = CROWDS.map(|(at_once, runs)| Crowd { tool_calls: TOOL_CALLS, runs, at_once });
    let mut met = true;
    for (crowd, costs) in crowds.iter().zip(costs(provider, &crowds, rounds)?) {
        let ratio = costs.ratio(Way::Product, Way::Raw);
        met &= ratio <= TARGET;
        table.row(vec![
            figure(crowd.at_once as u64).into(),
            (costs.micros(Way::Raw) / 1e3).into(),
            (costs.micros(Way::Product) / 1e3).into(),
            ratio.into(),
            (costs.micros(Way::Hyper) / 1e3).into(),
            costs.ratio(Way::Hyper, Way::Product).into(),
        ]);
    }
    table.note("ms: processor time of the asking process per run, with the kernel's; medians of rounds");
    table.note("ratios: medians of the ratios of each round");
    table.note(
        "raw: a loop that writes, posts and reads the same bytes with the same client, and keeps nothing",
    );
    table.note(format!("target: at most {TARGET} × raw at each: {}", word(met)));
    Ok(table)
}

fn growth(provider: &Provider, rounds: usize) -> Result<Table, Failure> {
    let columns = [
        ("calls", "calls", 0),
        ("rawMicros", "raw µs/call", 1),
        ("productMicros", "product µs/call", 1),
        ("ratio", "× raw", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("live-growth", "longer runs, 32 at once", columns.into());
    let crowds = CALLS.map(|calls| Crowd { tool_calls: calls - 1, runs: 6_000 / calls, at_once: GROWTH_AT });
    let costs = costs(provider, &crowds, rounds)?;
    for (calls, costs) in CALLS.into_iter().zip(&costs) {
        let calls = figure(calls as u64);
        table.row(vec![
            calls.into(),
            (costs.micros(Way::Raw) / calls).into(),
            (costs.micros(Way::Product) / calls).into(),
            costs.ratio(Way::Product, Way::Raw).into(),
        ]);
    }
    if let ([few, .., many], [first, .., last]) = (CALLS.as_slice(), costs.as_slice()) {
        let shares = figure(*many as u64) / figure(*few as u64);
        let grown = |way: Way| {
            let pairs = first.of(way).iter().zip(last.of(way));
            median(pairs.map(|(first, last)| last / first / shares).collect())
        };
        table.figure("rawGrowth", "raw µs/call, 20 calls to 1", grown(Way::Raw), "");
        let grown = grown(Way::Product);
        table.figure("productGrowth", "product µs/call, 20 calls to 1", grown, "");
        table.note(format!("target: at most {GROWTH_TARGET}: {}", word(grown <= GROWTH_TARGET)));
    }
    Ok(table)
}

pub(crate) fn word(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// Runs of one kind.
struct Crowd {
    tool_calls: usize,
    /// So many in a round.
    runs: usize,
    /// So many at any time.
    at_once: usize,
}

/// What a run of each way cost, round by round, in microseconds.
#[derive(Default)]
struct Costs([Vec<f64>; Way::ALL.len()]);

impl Costs {
    fn of(&self, way: Way) -> &[f64] {
        &self.0[way as usize]
    }

    fn micros(&self, way: Way) -> f64 {
        median(self.of(way).to_vec())
    }

    fn ratio(&self, way: Way, to: Way) -> f64 {
        median(self.of(way).iter().zip(self.of(to)).map(|(way, to)| way / to).collect())
    }
}

/// Rounds of all crowds in every way by turns, so that a slow moment of the machine falls on all of them.
fn costs(provider: &Provider, crowds: &[Crowd], rounds: usize) -> Result<Vec<Costs>, Failure> {
    let mut all: Vec<Costs> = crowds.iter().map(|_| Costs::default()).collect();
    // A first round to warm up is not kept, unless there is only one.
    let warm_up = usize::from(rounds > 1);
    for round in 0..rounds + warm_up {
        for (crowd, costs) in crowds.iter().zip(&mut all) {
            for way in Way::ALL {
                let micros = round_of(crowd, way, provider.port)?;
                if round >= warm_up {
                    costs.0[way as usize].push(micros);
                }
            }
        }
    }
    Ok(all)
}

/// What a run costs, once all connections are there.
fn round_of(crowd: &Crowd, way: Way, port: u16) -> Result<f64, Failure> {
    let Crowd { tool_calls, runs, at_once } = *crowd;
    runtime()?.block_on(async {
        let asker = Asker::new(way, &base(port, tool_calls, false), at_once).await?;
        asker.drive(at_once, at_once).await?;
        let watch = Stopwatch::start();
        asker.drive(runs, at_once).await?;
        Ok(watch.spent().cpu / figure(runs as u64))
    })
}

#[cfg(test)]
mod tests {
    use super::{Asker, Way, product, raw};
    use crate::live_provider::{Counts, base, serve};
    use crate::live_raw::Overheard;
    use crate::live_waiting::{begin, until_held};
    use crate::world::runtime;
    use std::sync::Arc;
    use tokio::net::TcpListener;

    #[test]
    fn the_raw_loop_sends_what_the_product_sends() {
        runtime().unwrap().block_on(async {
            let overheard = Arc::new(Overheard::new(5));
            product("http://localhost/v1", Arc::clone(&overheard) as _, 1)
                .unwrap()
                .drive(1, 1)
                .await
                .unwrap();
            let product = overheard.bodies();
            let agent = raw("http://localhost/v1", Arc::clone(&overheard) as _).await.unwrap();
            assert_eq!(agent.run().await.unwrap(), "The tax is 231.90.");
            let text = |bodies: Vec<Vec<u8>>| -> Vec<String> {
                bodies.into_iter().map(|body| String::from_utf8(body).unwrap()).collect()
            };
            assert_eq!(text(overheard.bodies()), text(product.clone()));
            assert_eq!(product.len(), 6);
        });
    }

    #[test]
    fn every_way_leads_to_the_end() {
        runtime().unwrap().block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            tokio::spawn(serve(listener));
            for way in Way::ALL {
                let asker = Asker::new(way, &base(port, 5, false), 2).await.unwrap();
                asker.drive(4, 2).await.unwrap();
            }
        });
    }

    #[test]
    fn calls_that_are_held_are_counted() {
        runtime().unwrap().block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            // Asking blocks, so that the provider needs a thread of its own.
            let listener = listener.into_std().unwrap();
            std::thread::spawn(|| {
                runtime().unwrap().block_on(async { serve(TcpListener::from_std(listener).unwrap()).await })
            });
            let mut held = Counts::new(port).unwrap();
            let mut expected = 0;
            for way in Way::ALL {
                let asker = Asker::new(way, &base(port, 2, true), 5).await.unwrap();
                expected += 5;
                begin(&asker, 5).unwrap();
                until_held(&mut held, expected).await.unwrap();
            }
            assert_eq!(held.held().unwrap(), 15);
        });
    }
}
