//! Test doubles: services and nodes that misbehave as their properties say. Each one records its calls.

use crate::kit::nested;
use crate::recorder::EventRecorder;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::{ModelAnswer, ToolResult, Usage};
use redflow_contract::memory::Consolidated;
use redflow_contract::node::EffectClass;
use redflow_contract::run_error::Failure;
use redflow_models::ScriptedModel;
use redflow_ports::{
    Adapters, BoxFuture, BuildError, ChatModel, FlowNode, MaintenanceOutcome, MaintenanceReason,
    MaintenanceTimes, ManifestToolConfig, Memory, MemoryAnswer, ModelInfo, ModelRequest, NodeConfig,
    NodeContext, NodeOutput, ProvidedTool, Recall, Recalled, Tool, ToolOutcome, ToolProvider, Turn,
};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

thread_local! {
    /// Builders are plain functions, so they find the recorder of their test here.
    static RECORDER: RefCell<Option<Arc<EventRecorder>>> = const { RefCell::new(None) };
}

/// Sets the recorder of every double that this thread builds from now on.
pub(crate) fn set_recorder(recorder: EventRecorder) -> Arc<EventRecorder> {
    let recorder = Arc::new(recorder);
    RECORDER.set(Some(Arc::clone(&recorder)));
    recorder
}

/// How often each call was made, by class and key, in all processes of a test.
type CallCounts = Arc<Mutex<HashMap<String, u32>>>;

thread_local! {
    static CALL_COUNTS: RefCell<CallCounts> = RefCell::default();
}

/// New counts for every `tool.counting` that this thread builds from now on.
pub(crate) fn new_call_counts() -> CallCounts {
    let counts = CallCounts::default();
    CALL_COUNTS.set(Arc::clone(&counts));
    counts
}

/// `tool.counting`: counts a call half-way through its `delay`; every `losesEvery`-th call never returns.
struct CountingTool {
    counts: CallCounts,
    props: Message,
}

impl CountingTool {
    fn build(config: NodeConfig<'_>) -> Self {
        Self { counts: CALL_COUNTS.with_borrow(Arc::clone), props: config.props.clone() }
    }
}

impl Tool for CountingTool {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let number = |name: &str| self.props[name].as_u64().unwrap();
            let half = Duration::from_millis(number("delay") / 2);
            sleep(half).await;
            let class = self.props["effect"].as_str().unwrap();
            let total = {
                let mut counts = self.counts.lock().unwrap();
                *counts.entry(format!("{class} {}", call.idempotency_key)).or_default() += 1;
                counts.values().map(|count| u64::from(*count)).sum::<u64>()
            };
            if total % number("losesEvery") == 0 {
                std::future::pending::<()>().await;
            }
            sleep(half).await;
            ToolOutcome::Returned(ToolResult::ok(json!(total)))
        })
    }
}

pub(crate) fn register(adapters: &mut Adapters) {
    for name in ["model.double", "openai-model"] {
        adapters.models.insert(name, Arc::new(|config| Ok(Arc::new(ModelDouble::build(config)?))));
    }
    adapters
        .models
        .insert("model.streaming", Arc::new(|config| Ok(Arc::new(StreamingModel::build(config)?))));
    adapters.tools.insert("tool.double", Arc::new(|config| Ok(Arc::new(Double::build(config)))));
    adapters.tools.insert("tool.counting", Arc::new(|config| Ok(Arc::new(CountingTool::build(config)))));
    adapters.manifest_tool =
        Some(Arc::new(|config| Ok(Arc::new(Double::of_manifest(config)?) as Arc<dyn Tool>)));
    adapters.tool_providers.insert("tool.provider", Arc::new(|_| Ok(provider() as Arc<dyn ToolProvider>)));
    adapters.nodes.insert("node.double", Arc::new(|config| Ok(Box::new(NodeDouble::build(config)))));
    adapters.memories.insert("buffer-memory", Arc::new(|config| Ok(Arc::new(Double::build(config)))));
    adapters.memories.insert("long-memory", Arc::new(|config| Ok(Arc::new(Double::naming_others(config)?))));
}

/// `tool.provider`: has as many tools as a test says, `many.one` first.
pub(crate) struct ManyTools {
    tools: Mutex<Vec<ProvidedTool>>,
    generation: AtomicU64,
    /// Whether it knows its tools.
    ready: tokio::sync::watch::Sender<bool>,
}

thread_local! {
    static PROVIDER: RefCell<Option<Arc<ManyTools>>> = const { RefCell::new(None) };
}

/// The provider of this test.
pub(crate) fn provider() -> Arc<ManyTools> {
    let new = || {
        let (tools, generation) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(ManyTools { tools, generation, ready: tokio::sync::watch::Sender::new(true) })
    };
    PROVIDER.with_borrow_mut(|provider| Arc::clone(provider.get_or_insert_with(new)))
}

impl ManyTools {
    pub(crate) fn set(&self, tools: Vec<ProvidedTool>) {
        *self.tools.lock().unwrap() = tools;
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.send_replace(ready);
    }
}

impl ToolProvider for ManyTools {
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    fn tools(&self) -> Vec<ProvidedTool> {
        self.tools.lock().unwrap().clone()
    }

    fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        let mut ready = self.ready.subscribe();
        Box::pin(async move { drop(ready.wait_for(|ready| *ready).await) })
    }
}

/// `node.double`: an ordinary node that sends its input some `times`, with another `payload` and without what
/// it `drops`; or `fails`.
struct NodeDouble {
    recorder: Arc<EventRecorder>,
    props: Message,
}

impl NodeDouble {
    fn build(config: NodeConfig<'_>) -> Self {
        let recorder = RECORDER.with_borrow(|recorder| Arc::clone(recorder.as_ref().unwrap()));
        Self { recorder, props: config.props.clone() }
    }
}

impl FlowNode for NodeDouble {
    fn receive(
        &self,
        message: Arc<redflow_contract::flow_message::FlowMessage>,
        _: &NodeContext<'_>,
    ) -> NodeOutput {
        self.recorder.record(format!("node {}", Value::Object((**message).clone())));
        if let Some(text) = self.props.get("fails").and_then(Value::as_str) {
            let (code, message) = (RunErrorCode::ToolError, text.to_owned());
            return NodeOutput::failed(Failure { code, message });
        }
        let mut message = (**message).clone();
        if let Some(payload) = self.props.get("payload") {
            message.insert("payload".to_owned(), payload.clone());
        }
        for name in self.props.get("drops").and_then(Value::as_array).into_iter().flatten() {
            message.remove(name.as_str().unwrap());
        }
        let times = self.props.get("times").and_then(Value::as_u64).unwrap_or(1);
        let message = Arc::new(message.into());
        let sends = (0..times).map(|_| (0, Arc::clone(&message))).collect();
        NodeOutput { messages: sends, ..NodeOutput::default() }
    }
}

/// Records that a call was dropped before it ended.
struct DropRecorder {
    recorder: Arc<EventRecorder>,
    call: String,
    is_armed: bool,
}

impl Drop for DropRecorder {
    fn drop(&mut self) {
        if self.is_armed {
            self.recorder.record(format!("dropped {}", self.call));
        }
    }
}

/// A service that behaves as its properties say.
struct Double {
    recorder: Arc<EventRecorder>,
    id: String,
    props: Message,
    calls: AtomicU64,
}

impl Double {
    fn build(config: NodeConfig<'_>) -> Self {
        let recorder = RECORDER.with_borrow(|recorder| Arc::clone(recorder.as_ref().unwrap()));
        let id = config.node.id.to_string();
        let secret = config.secret("apiKey", &[]).map(|key| format!(" with {key:?}")).unwrap_or_default();
        recorder.record(format!("built {id}{secret}"));
        Self { recorder, id, props: config.props.clone(), calls: AtomicU64::new(0) }
    }

    /// A tool of the manifest. Its `body` has the properties.
    fn of_manifest(config: ManifestToolConfig<'_>) -> Result<Self, String> {
        let props = config.tool.body.clone().unwrap_or(json!({"result": null}));
        if let Some(reason) = props.get("cannotBuild").and_then(Value::as_str) {
            return Err(reason.to_owned());
        }
        if let Some(secret) = props.get("secret").and_then(Value::as_str) {
            (config.on_secret)(secret);
        }
        let recorder = RECORDER.with_borrow(|recorder| Arc::clone(recorder.as_ref().unwrap()));
        let props = props.as_object().unwrap().clone();
        Ok(Self { recorder, id: config.tool.id.clone(), props, calls: AtomicU64::new(0) })
    }

    /// Records a call; never returns if the property `hangs` names it.
    async fn record_call(&self, name: &str, details: String) {
        let call = format!("{name} {}", self.id);
        self.recorder.record(format!("{call}{details}"));
        assert_ne!(self.props.get("panics").and_then(Value::as_str), Some(name), "as the property says");
        if self.props.get("hangs").and_then(Value::as_str) == Some(name) && !self.recorder.is_restart {
            let mut drop_recorder =
                DropRecorder { recorder: Arc::clone(&self.recorder), call, is_armed: true };
            std::future::pending::<()>().await;
            drop_recorder.is_armed = false;
        }
    }

    /// A memory that builds the memory and the model that it names.
    fn naming_others(config: NodeConfig<'_>) -> Result<Self, BuildError> {
        let text = |name: &str| config.props.get(name).and_then(Value::as_str);
        config.memory(text("shortMemory"))?;
        config.model(text("model"))?;
        let double = Self::build(config);
        double.recorder.record(format!("in flow {}", config.flow));
        Ok(double)
    }

    /// The property `result`, or nested arrays, as deep as `nests` says.
    fn result(&self) -> Value {
        let levels = self.props.get("nests").and_then(Value::as_u64);
        levels.map_or_else(|| self.props["result"].clone(), |levels| nested(usize::try_from(levels).unwrap()))
    }

    /// The failure in a property.
    fn failure(&self, property: &str) -> Result<(), Failure> {
        let failure = self.props.get(property).map(|value| serde_json::from_value(value.clone()).unwrap());
        failure.map_or(Ok(()), Err)
    }
}

/// `model.double`: the scripted model, which may hang or fail. With a `usage` its calls have a cost.
struct ModelDouble {
    double: Double,
    scripted: Arc<dyn ChatModel>,
    info: ModelInfo,
    usage: Option<Usage>,
}

impl ModelDouble {
    fn build(config: NodeConfig<'_>) -> Result<Self, BuildError> {
        let scripted = ScriptedModel::build(config)?;
        let usage = config.props.get("usage").map(|usage| serde_json::from_value(usage.clone()).unwrap());
        let priced = usage.is_some_and(|usage: Usage| usage.cost.is_some());
        let model = config.node.id.to_string();
        let window = config.props.get("window").and_then(Value::as_u64);
        let info = ModelInfo {
            provider: if config.props.contains_key("live") { "openai" } else { "scripted" },
            priced,
            model,
            context_window: window.map(|window| u32::try_from(window).unwrap()),
            tools: config.props.get("takesTools") != Some(&json!(false)),
            vision: config.props.get("vision") == Some(&json!(true)),
            refused_images: config
                .props
                .get("refusedImages")
                .map(|formats| serde_json::from_value(formats.clone()).unwrap())
                .unwrap_or_default(),
            ..scripted.info().clone()
        };
        Ok(Self { double: Double::build(config), scripted, info, usage })
    }
}

impl ChatModel for ModelDouble {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        Box::pin(async move {
            let mut details = format!(" {}", request.iteration);
            if self.double.props.contains_key("showsRequest") {
                let key = request.cache_key.unwrap();
                details += &format!(" for {} in {:?}", key.agent.node_id, key.session);
                details += if request.keeps_raw { ", keeps raw" } else { "" };
            }
            self.double.record_call("model", details).await;
            self.double.failure("fails")?;
            let answer = self.scripted.call(request).await?;
            Ok(ModelAnswer { usage: self.usage.or(answer.usage), ..answer })
        })
    }
}

/// `model.streaming`: the scripted model, which streams its answer in `pieces`: a list of them for each
/// attempt. Each piece takes `pieceMs`.
struct StreamingModel {
    attempts: Vec<Vec<String>>,
    piece_ms: u64,
    scripted: Arc<dyn ChatModel>,
}

impl StreamingModel {
    fn build(config: NodeConfig<'_>) -> Result<Self, BuildError> {
        let attempts = serde_json::from_value(config.props["pieces"].clone()).unwrap();
        let piece_ms = config.props.get("pieceMs").and_then(Value::as_u64).unwrap_or(0);
        Ok(Self { attempts, piece_ms, scripted: ScriptedModel::build(config)? })
    }
}

impl ChatModel for StreamingModel {
    fn info(&self) -> &ModelInfo {
        self.scripted.info()
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        Box::pin(async move {
            for (attempt, pieces) in (1..).zip(&self.attempts) {
                for piece in pieces {
                    request.delta_observer.unwrap().text(attempt, piece);
                    if self.piece_ms > 0 {
                        sleep(Duration::from_millis(self.piece_ms)).await;
                    }
                }
            }
            self.scripted.call(ModelRequest { delta_observer: None, ..request }).await
        })
    }
}

/// `tool.double`: its own `ownEffect`, and a `result` (or `nests`) with its `sources`, an `error` or an `unknown`
/// outcome.
impl Tool for Double {
    fn effect(&self, _: &Message) -> EffectClass {
        serde_json::from_value(self.props["ownEffect"].clone()).unwrap()
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let key = if self.props.contains_key("showsKey") {
                format!(" {}", &call.idempotency_key.to_hex()[..8])
            } else {
                String::new()
            };
            self.record_call("tool", format!(" {}{key}", Value::Object(call.input.clone()))).await;
            let text = |property: &str| self.props.get(property).and_then(Value::as_str).map(str::to_owned);
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            if self.props.get("failsTimes").and_then(Value::as_u64).is_some_and(|times| number < times) {
                return ToolOutcome::Returned(ToolResult::failed("not yet"));
            }
            match (text("unknown"), text("error")) {
                (Some(reason), _) => ToolOutcome::Unknown { reason },
                (None, Some(error)) => ToolOutcome::Returned(ToolResult::failed(error)),
                (None, None) => {
                    let sources = self.props.get("sources").cloned().unwrap_or(json!([]));
                    let sources = serde_json::from_value(sources).unwrap();
                    let images = self.props.get("images").cloned().unwrap_or(json!([]));
                    let images = serde_json::from_value(images).unwrap();
                    ToolOutcome::Returned(ToolResult { sources, images, ..ToolResult::ok(self.result()) })
                }
            }
        })
    }
}

/// `buffer-memory`, `long-memory`: recalls its `turns` with its `sources`, unless it has `recallFails`; records what is
/// appended, unless it has `appendFails`. With `maintains` it works after runs: for `maintenanceSeconds`, unless it has
/// `maintenanceFails`.
impl Memory for Double {
    fn recall<'a>(&'a self, recall: Recall<'a>) -> MemoryAnswer<'a, Recalled> {
        Box::pin(async move {
            let details = match recall.user {
                Some(user) => format!(" of {user} {:?} at {}: {}", recall.tags, recall.at, recall.input),
                None => String::new(),
            };
            self.record_call("recall", format!(" {}{details}", recall.session)).await;
            self.failure("recallFails")?;
            let turns = self.props.get("turns").cloned();
            let turns = turns.map(|turns| serde_json::from_value(turns).unwrap()).unwrap_or_default();
            let sources = self.props.get("sources").cloned().unwrap_or(json!([]));
            Ok(Recalled { turns, sources: serde_json::from_value(sources).unwrap() })
        })
    }

    fn append<'a>(&'a self, turn: Turn<'a>) -> MemoryAnswer<'a, ()> {
        Box::pin(async move {
            let Turn { session, run, messages, user, tags, at, sources } = turn;
            let details = match user {
                Some(user) => format!(" of {user} {tags:?} at {at} after {}", sources.len()),
                None => String::new(),
            };
            let turn: Vec<String> = messages
                .iter()
                .map(|message| format!("{}: {}", message.role.as_str(), message.content))
                .collect();
            self.record_call("append", format!(" {session}{details} {run} {}", turn.join(" | "))).await;
            self.failure("appendFails")
        })
    }

    fn clear<'a>(&'a self, session: &'a str) -> MemoryAnswer<'a, ()> {
        Box::pin(async move {
            self.record_call("clear", format!(" {session}")).await;
            self.failure("clearFails")
        })
    }

    fn maintenance_times(&self) -> Option<MaintenanceTimes> {
        self.props.get("maintains")?;
        let idle = self.props.get("idleSeconds").and_then(Value::as_u64).map(Duration::from_secs);
        let schedule = self.props.get("schedule").and_then(Value::as_str).map(str::to_owned);
        Some(MaintenanceTimes { idle, schedule })
    }

    fn maintain<'a>(
        &'a self,
        session: Option<&'a str>,
        reason: MaintenanceReason,
    ) -> BoxFuture<'a, MaintenanceOutcome> {
        Box::pin(async move {
            let session = session.unwrap_or("all");
            self.record_call("maintain", format!(" {session} {reason:?}")).await;
            if let Some(seconds) = self.props.get("maintenanceSeconds").and_then(Value::as_u64) {
                sleep(Duration::from_secs(seconds)).await;
                self.recorder.record(format!("maintained {session}"));
            }
            let consolidated = Consolidated { added: 1, ..Consolidated::default() };
            MaintenanceOutcome { consolidated, error: self.failure("maintenanceFails").err() }
        })
    }
}
