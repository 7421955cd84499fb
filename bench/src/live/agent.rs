//! The agents that are compared: the raw loop, the product in memory and on the disk, and the product with another HTTP
//! client.

use super::hyper::HyperTransport;
use super::provider::MAX_ITERATIONS;
use super::raw::{RawAgent, RecordingTransport};
use crate::Failure;
use crate::folder::Folder;
use crate::world::{World, limits_for, runtime, shipped_adapters};
use redflow_models::ModelSettings;
use redflow_models::transport::{Endpoint, HttpSettings, ReqwestTransport, Transport};
use redflow_ports::RunStore;
use redflow_store::{MemoryStore, Store};
use serde_json::{Value, json};
use std::sync::Arc;

/// Which agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// A plain loop, with the client that ships.
    Raw,
    /// An Agent Core of the product, with its runs in memory.
    Product,
    /// The product, with its runs on the disk.
    Durable,
    /// The product with hyper's own client.
    Hyper,
    /// A plain loop with native tool calls.
    RawNative,
    /// An AI Agent of the product, with its runs in memory.
    AiAgent,
    /// The same, with its runs on the disk.
    AiAgentDurable,
}

impl AgentKind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Raw,
        Self::Product,
        Self::Durable,
        Self::Hyper,
        Self::RawNative,
        Self::AiAgent,
        Self::AiAgentDurable,
    ];

    /// The agents whose model answers with the actions of Agent Core.
    pub(crate) const CORE: [Self; 4] = [Self::Raw, Self::Product, Self::Durable, Self::Hyper];

    /// The agents whose model makes native tool calls.
    pub(crate) const NATIVE: [Self; 3] = [Self::RawNative, Self::AiAgent, Self::AiAgentDurable];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Product => "product",
            Self::Durable => "live-durable",
            Self::Hyper => "hyper",
            Self::RawNative => "raw-native",
            Self::AiAgent => "ai-agent",
            Self::AiAgentDurable => "ai-agent-durable",
        }
    }

    fn transport(self) -> Result<Arc<dyn Transport>, Failure> {
        Ok(match self {
            Self::Hyper => Arc::new(HyperTransport::new()),
            _ => Arc::new(ReqwestTransport::new(&HttpSettings::default())?),
        })
    }

    /// The flow of the agent, or of the one that a plain loop imitates.
    fn flow(self, base: &str) -> Value {
        if Self::NATIVE.contains(&self) { ai_agent_flow(base) } else { live_flow(base) }
    }
}

/// An agent that can run.
pub(crate) enum Agent {
    Raw(Arc<RawAgent>),
    /// With the folder of its store, if it has one.
    Product(Arc<World>, #[allow(dead_code, reason = "its drop removes the folder")] Option<Folder>),
}

impl Agent {
    /// Uses a base address, and allows `at_once` runs at a time. It needs a runtime.
    pub(crate) async fn new(kind: AgentKind, base: &str, at_once: usize) -> Result<Self, Failure> {
        Ok(match kind {
            AgentKind::Raw | AgentKind::RawNative => {
                Self::Raw(Arc::new(raw(kind, base, kind.transport()?).await?))
            }
            AgentKind::Product | AgentKind::Hyper | AgentKind::AiAgent => {
                Self::Product(product(&kind.flow(base), kind.transport()?, memory(), at_once)?, None)
            }
            AgentKind::Durable | AgentKind::AiAgentDurable => {
                let folder = Folder::on_disk()?;
                let store = Arc::new(Store::open(folder.path())?);
                Self::Product(product(&kind.flow(base), kind.transport()?, store, at_once)?, Some(folder))
            }
        })
    }

    pub(crate) async fn drive(&self, runs: usize, at_once: usize) -> Result<(), Failure> {
        match self {
            Self::Raw(agent) => agent.drive(runs, at_once).await,
            Self::Product(world, _) => world.drive(runs, at_once).await,
        }
    }
}

pub(crate) const KEY: &str = "sk-bench-not-a-key-of-anyone-0123456789";

/// The environment has only the key.
fn env(name: &str) -> Option<String> {
    (name == "OPENAI_API_KEY").then(|| KEY.to_owned())
}

fn memory() -> Arc<dyn RunStore> {
    Arc::new(MemoryStore::default())
}

fn product(
    flow: &Value,
    transport: Arc<dyn Transport>,
    store: Arc<dyn RunStore>,
    at_once: usize,
) -> Result<Arc<World>, Failure> {
    let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
    World::with_flow(flow, shipped_adapters(settings), env, store, limits_for(at_once))
}

/// The raw loop begins with the first request of the product, which is recorded.
async fn raw(kind: AgentKind, base: &str, transport: Arc<dyn Transport>) -> Result<RawAgent, Failure> {
    let opening = serde_json::from_slice(&record_first_body(&kind.flow(base)).await?)?;
    let endpoint = Endpoint::new(format!("{base}/chat/completions").parse()?);
    let endpoint = endpoint.secret_header("authorization", &format!("Bearer {KEY}"));
    Ok(RawAgent { transport, endpoint: endpoint.map_err(|_| "the key is no header value")?, opening })
}

/// The body of the product's first request.
async fn record_first_body(flow: &Value) -> Result<Vec<u8>, Failure> {
    let recorder = Arc::new(RecordingTransport::new(0));
    product(flow, Arc::clone(&recorder) as _, memory(), 1)?.drive(1, 1).await?;
    Ok(recorder.bodies().into_iter().next().ok_or("the product sent no request")?)
}

/// The same as JSON.
pub(crate) fn first_request(base: &str) -> Result<Value, Failure> {
    Ok(serde_json::from_slice(&runtime()?.block_on(record_first_body(&live_flow(base)))?)?)
}

fn node(id: &str, kind: &str, wires: &Value) -> Value {
    json!({"id": id, "type": kind, "z": "t", "name": id, "x": 340, "y": 120, "wires": wires})
}

/// An Agent Core with a calculator, whose model is at this address.
pub(crate) fn live_flow(base: &str) -> Value {
    let mut agent = node("agent", "agent-core", &json!([["model"], ["tool"], [], ["show"], []]));
    agent["strategy"] = json!("react");
    agent["maxIterations"] = json!(MAX_ITERATIONS);
    agent["allowedTools"] = json!(["calculator"]);
    agent["timeout"] = json!(3_600_000);
    with_services(&agent, base)
}

/// An AI Agent with the same services.
fn ai_agent_flow(base: &str) -> Value {
    let mut agent = node("agent", "ai-agent", &json!([["show"], []]));
    agent["model"] = json!("model");
    agent["tools"] = json!(["tool"]);
    with_services(&agent, base)
}

/// An AI Agent that takes an image of its payload.
pub(super) fn image_flow(base: &str) -> Value {
    let mut agent = node("agent", "ai-agent", &json!([["show"], []]));
    agent["model"] = json!("model");
    agent["userMessage"] = json!("{{json.question}}");
    agent["images"] = json!("{{json.photo}}");
    let mut flow = with_services(&agent, base);
    // The node does not know the server, and takes it for one without images.
    for node in flow.as_array_mut().into_iter().flatten().filter(|node| node["id"] == "model") {
        node["capabilities"] = json!({"vision": true});
    }
    flow
}

/// The product with a flow and its runs on the disk, in a folder that exists as long as its value.
pub(super) fn world_on_disk(flow: &Value, at_once: usize) -> Result<(Arc<World>, Folder), Failure> {
    let folder = Folder::on_disk()?;
    let store = Arc::new(Store::open(folder.path())?);
    let transport = Arc::new(ReqwestTransport::new(&HttpSettings::default())?);
    Ok((product(flow, transport, store, at_once)?, folder))
}

fn with_services(agent: &Value, base: &str) -> Value {
    let mut model = node("model", "openai-model", &json!([]));
    model["model"] = json!("gpt-4.1-mini");
    model["baseURL"] = json!(base);
    model["structuredOutput"] = json!("json_schema");
    let tool = node("tool", "calculator-tool", &json!([]));
    let mut show = node("show", "debug", &json!([]));
    show["complete"] = json!("payload");
    json!([{"id": "t", "type": "tab", "label": "Orders"}, agent, model, tool, show])
}

#[cfg(test)]
mod tests {
    use super::{Agent, AgentKind, memory, product, raw};
    use crate::live::provider::{AfterCalls, ProviderCounts, base, serve};
    use crate::live::raw::RecordingTransport;
    use crate::live::waiting::{start_runs, wait_until_held};
    use crate::world::runtime;
    use std::sync::Arc;
    use tokio::net::TcpListener;

    #[test]
    fn the_raw_loop_sends_what_the_product_sends() {
        runtime().unwrap().block_on(async {
            for kind in [AgentKind::Raw, AgentKind::RawNative] {
                let base = "http://localhost/v1";
                let recorder = Arc::new(RecordingTransport::new(5));
                let product = product(&kind.flow(base), Arc::clone(&recorder) as _, memory(), 1).unwrap();
                product.drive(1, 1).await.unwrap();
                let product = recorder.bodies();
                let agent = raw(kind, base, Arc::clone(&recorder) as _).await.unwrap();
                assert_eq!(agent.run().await.unwrap(), "The tax is 231.90.");
                let text = |bodies: Vec<Vec<u8>>| -> Vec<String> {
                    bodies.into_iter().map(|body| String::from_utf8(body).unwrap()).collect()
                };
                assert_eq!(text(recorder.bodies()), text(product.clone()));
                assert_eq!(product.len(), 6);
            }
        });
    }

    #[test]
    fn every_agent_completes_its_runs() {
        runtime().unwrap().block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            tokio::spawn(serve(listener));
            for kind in AgentKind::ALL {
                let agent = Agent::new(kind, &base(port, 5, AfterCalls::Answer), 2).await.unwrap();
                agent.drive(4, 2).await.unwrap();
            }
        });
    }

    #[test]
    fn the_provider_counts_held_calls() {
        runtime().unwrap().block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            // The client blocks, so the provider needs its own thread.
            let listener = listener.into_std().unwrap();
            std::thread::spawn(|| {
                runtime().unwrap().block_on(async { serve(TcpListener::from_std(listener).unwrap()).await })
            });
            let mut held = ProviderCounts::new(port).unwrap();
            let mut expected = 0;
            for kind in AgentKind::ALL {
                let agent = Agent::new(kind, &base(port, 2, AfterCalls::Hold), 5).await.unwrap();
                expected += 5;
                start_runs(&agent, 5).unwrap();
                wait_until_held(&mut held, expected).await.unwrap();
            }
            assert_eq!(held.held().unwrap(), 35);
        });
    }
}
