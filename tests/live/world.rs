//! An agent with a calculator, and the real engine that runs it in this process.

use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_engine::{Engine, EngineLimits, Ports, RunEnd, RunReport, Start, SystemClock, build_flow};
use redflow_flow::{CheckOptions, NodeIx, check_bytes};
use redflow_memory::MemorySettings;
use redflow_models::ModelSettings;
use redflow_ports::RunStore as _;
use redflow_ports::{Adapters, NoMeter};
use redflow_store::MemoryStore;
use redflow_strategies::replay;
use redflow_testkit::NoEvents;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::provider_api::KEY;

/// The environment of the nodes: the same key for every provider.
pub(crate) fn process_env(name: &str) -> Option<String> {
    name.ends_with("_API_KEY").then(|| KEY.to_owned())
}

pub(crate) fn adapters() -> Adapters {
    adapters_with(ModelSettings::default())
}

/// The same with other settings of the models.
pub(crate) fn adapters_with(models: ModelSettings) -> Adapters {
    let mut adapters = Adapters::default();
    redflow_models::register(&mut adapters, models);
    redflow_memory::register(&mut adapters, MemorySettings::default());
    redflow_tools::register(&mut adapters, redflow_tools::ToolSettings::default());
    redflow_nodes::register(&mut adapters);
    adapters
}

/// Adds or replaces properties of a value.
pub(crate) fn with(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

/// Inject `i` → agent `a` with a model, a calculator and an optional memory → debug `d`.
pub(crate) fn flow(question: &str, model: &Value, memory: Option<&Value>) -> Value {
    let node = |id: &str, props: &Value| with(json!({"id": id, "z": "t", "x": 1, "y": 1}), props.clone());
    let inject = json!({"type": "inject", "props": [{"p": "payload"}], "payload": question,
                        "payloadType": "str", "wires": [["a"]]});
    let remembers = if memory.is_some() { json!(["s"]) } else { json!([]) };
    let agent = json!({"type": "agent-core", "strategy": "react", "maxIterations": 5,
                       "allowedTools": ["calculator"], "wires": [["m"], ["c"], remembers, ["d"]]});
    let mut nodes = vec![
        node("i", &inject),
        node("a", &agent),
        node("m", &with(model.clone(), json!({"wires": []}))),
        node("c", &json!({"type": "calculator-tool", "wires": []})),
        node("d", &json!({"type": "debug", "wires": []})),
    ];
    nodes.extend(
        memory.map(|memory| node("s", &with(json!({"sessionId": "talk", "wires": []}), memory.clone()))),
    );
    Value::Array(nodes)
}

/// A deployed flow and its engine.
pub(crate) struct World {
    engine: Engine,
    agent: NodeIx,
    store: Arc<MemoryStore>,
}

impl World {
    pub(crate) fn new(model: &Value, memory: Option<&Value>) -> Self {
        Self::with_flow(&flow("", model, memory))
    }

    /// A flow with the agent `a`.
    pub(crate) fn with_flow(flow: &Value) -> Self {
        Self::try_new(flow, Arc::new(adapters()), Arc::default())
            .unwrap_or_else(|why| panic!("refused: {why}"))
    }

    /// The same with other adapters and a store. The error says why a check refuses the flow.
    pub(crate) fn try_new(
        flow: &Value,
        adapters: Arc<Adapters>,
        store: Arc<MemoryStore>,
    ) -> Result<Self, String> {
        let options = CheckOptions {
            profile: Profile::Strict,
            limits: FlowLimits::default(),
            run_limits: RunLimits::default(),
            run_budget: Default::default(),
            instance: InstanceId::local(),
            provides_tools: &|_| false,
            can_run: &|type_name| adapters.can_run(type_name),
            env: &process_env,
        };
        let checked = check_bytes(flow.to_string().as_bytes(), &options);
        let checked = checked.map_err(|report| format!("{report:#?}"))?;
        if !checked.report.ok {
            return Err(format!("{:#?}", checked.report.diagnostics));
        }
        let agent = checked.flow.find("a").unwrap();
        let ports = Ports {
            strategies: redflow_strategies::strategies().clone(),
            clock: Arc::new(SystemClock),
            events: Arc::new(NoEvents),
            store: Arc::clone(&store) as _,
            adapters: Arc::clone(&adapters),
            instance: InstanceId::local(),
            source: None,
            host: None,
            takes_requests: true,
            registry: Arc::default(),
            principal: None,
            meter: Arc::new(NoMeter),
            env: process_env,
        };
        let built = build_flow(checked, &adapters, redflow_strategies::strategies(), &process_env);
        if let [(_, error), ..] = built.build_errors() {
            return Err(error.to_string());
        }
        Ok(Self { engine: Engine::new(Some(built), ports, EngineLimits::default()), agent, store })
    }

    /// Sends the agent a message and gives its result. The journal of the run must replay.
    pub(crate) async fn ask(&self, text: &str) -> Value {
        let start = Start::Agent { node: self.agent, payload: json!(text) };
        let reports = self.engine.run(start, &CancellationToken::new()).await;
        let [RunReport { run_id, end: RunEnd::Finished { message, .. }, .. }] = reports.as_slice() else {
            panic!("not one run with an end: {reports:#?}");
        };
        let journal = self.store.load(run_id).await.unwrap().unwrap().journal;
        assert_eq!(replay(&journal).difference, None);
        assert!(!String::from_utf8_lossy(&journal).contains(KEY), "the key is in the journal");
        Value::Object((***message).clone())
    }
}

/// The names of the events in a message's envelope.
pub(crate) fn actions(message: &Value) -> Vec<&str> {
    let events = message["envelope"]["observability"]["events"].as_array().unwrap();
    events.iter().map(|event| event["action"].as_str().unwrap()).collect()
}
