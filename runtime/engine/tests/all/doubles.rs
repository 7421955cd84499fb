//! Services that have no adapter yet, and ones that misbehave. Their properties say how. Each writes what it
//! is asked into the watch of its test.

use crate::kit::nested;
use crate::watch::Watch;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::id::RunId;
use redflow_contract::node_config::EffectClass;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use redflow_models::ScriptedModel;
use redflow_ports::{
    Adapters, BoxFuture, BuildError, ChatModel, FlowNode, Memory, ModelInfo, ModelRequest, NodeConfig,
    NodeContext, NodeOutput, Tool, ToolOutcome,
};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

thread_local! {
    /// Builders are plain functions: this is how they find the watch of the test that builds.
    static WATCH: RefCell<Option<Arc<Watch>>> = const { RefCell::new(None) };
}

/// The watch every double built from now on in this thread writes to.
pub(crate) fn watch_with(watches_runs: bool, earlier_runs: u32) -> Arc<Watch> {
    let watch = Arc::new(Watch::new(watches_runs, earlier_runs));
    WATCH.set(Some(Arc::clone(&watch)));
    watch
}

/// What was done to the world, by class and key, however many processes there are.
type Made = Arc<Mutex<HashMap<String, u32>>>;

thread_local! {
    static WORLD: RefCell<Made> = RefCell::default();
}

/// A world to which nothing has been done; every `tool.world` built from now on in this thread acts on it.
pub(crate) fn new_world() -> Made {
    let made = Made::default();
    WORLD.set(Arc::clone(&made));
    made
}

/// `tool.world`: acts on the world half-way through its `delay`; every `losesEvery`-th call never returns.
struct WorldTool {
    made: Made,
    props: Message,
}

impl WorldTool {
    fn build(config: NodeConfig<'_>) -> Self {
        Self { made: WORLD.with_borrow(Arc::clone), props: config.props.clone() }
    }
}

impl Tool for WorldTool {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let number = |name: &str| self.props[name].as_u64().unwrap();
            let half = Duration::from_millis(number("delay") / 2);
            sleep(half).await;
            let class = self.props["effect"].as_str().unwrap();
            let made = {
                let mut made = self.made.lock().unwrap();
                *made.entry(format!("{class} {}", call.idempotency_key)).or_default() += 1;
                made.values().map(|count| u64::from(*count)).sum::<u64>()
            };
            if made % number("losesEvery") == 0 {
                std::future::pending::<()>().await;
            }
            sleep(half).await;
            ToolOutcome::Returned(ToolResult::ok(json!(made)))
        })
    }
}

pub(crate) fn register(adapters: &mut Adapters) {
    adapters.models.insert("model.double", Arc::new(|config| Ok(Arc::new(ModelDouble::build(config)?))));
    adapters.models.insert("model.pieces", Arc::new(|config| Ok(Arc::new(ModelInPieces::build(config)?))));
    adapters.tools.insert("tool.double", Arc::new(|config| Ok(Arc::new(Double::build(config)))));
    adapters.tools.insert("tool.world", Arc::new(|config| Ok(Arc::new(WorldTool::build(config)))));
    adapters.nodes.insert("node.double", Arc::new(|config| Ok(Box::new(NodeDouble::build(config)))));
    adapters.memories.insert("buffer-memory", Arc::new(|config| Ok(Arc::new(Double::build(config)))));
}

/// `node.double`: an ordinary node that sends what came with another `payload`, without what it `drops`, so many
/// `times`; or `fails`.
struct NodeDouble {
    watch: Arc<Watch>,
    props: Message,
}

impl NodeDouble {
    fn build(config: NodeConfig<'_>) -> Self {
        let watch = WATCH.with_borrow(|watch| Arc::clone(watch.as_ref().unwrap()));
        Self { watch, props: config.props.clone() }
    }
}

impl FlowNode for NodeDouble {
    fn receive(&self, message: Arc<Message>, _: &NodeContext<'_>) -> NodeOutput {
        self.watch.note(format!("node {}", Value::Object((*message).clone())));
        if let Some(text) = self.props.get("fails").and_then(Value::as_str) {
            let (code, message) = (RunErrorCode::ToolError, text.to_owned());
            return NodeOutput::failed(Failure { code, message });
        }
        let mut message = (*message).clone();
        if let Some(payload) = self.props.get("payload") {
            message.insert("payload".to_owned(), payload.clone());
        }
        for name in self.props.get("drops").and_then(Value::as_array).into_iter().flatten() {
            message.remove(name.as_str().unwrap());
        }
        let times = self.props.get("times").and_then(Value::as_u64).unwrap_or(1);
        let message = Arc::new(message);
        let sends = (0..times).map(|_| (0, Arc::clone(&message))).collect();
        NodeOutput { sends, ..NodeOutput::default() }
    }
}

/// Notes that a call was dropped before it ended.
struct Guard {
    watch: Arc<Watch>,
    what: String,
    armed: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed {
            self.watch.note(format!("dropped {}", self.what));
        }
    }
}

/// A service that does what its properties say.
struct Double {
    watch: Arc<Watch>,
    id: String,
    props: Message,
}

impl Double {
    fn build(config: NodeConfig<'_>) -> Self {
        let watch = WATCH.with_borrow(|watch| Arc::clone(watch.as_ref().unwrap()));
        let id = config.node.id.to_string();
        let secret = config.props.get("apiKey").map(|key| format!(" with {key}")).unwrap_or_default();
        watch.note(format!("built {id}{secret}"));
        Self { watch, id, props: config.props.clone() }
    }

    /// Notes a call; never comes back if the property `hangs` names it.
    async fn called(&self, name: &str, details: String) {
        let what = format!("{name} {}", self.id);
        self.watch.note(format!("{what}{details}"));
        assert_ne!(self.props.get("panics").and_then(Value::as_str), Some(name), "as it was told to");
        if self.props.get("hangs").and_then(Value::as_str) == Some(name) && !self.watch.is_second {
            let mut guard = Guard { watch: Arc::clone(&self.watch), what, armed: true };
            std::future::pending::<()>().await;
            guard.armed = false;
        }
    }

    /// The property `result`, or as many arrays in each other as `nests` says.
    fn result(&self) -> Value {
        let levels = self.props.get("nests").and_then(Value::as_u64);
        levels.map_or_else(|| self.props["result"].clone(), |levels| nested(usize::try_from(levels).unwrap()))
    }

    /// The failure a property holds.
    fn failure(&self, property: &str) -> Result<(), Failure> {
        let failure = self.props.get(property).map(|value| serde_json::from_value(value.clone()).unwrap());
        failure.map_or(Ok(()), Err)
    }
}

/// `model.double`: the scripted model, but it may hang or fail.
struct ModelDouble {
    double: Double,
    scripted: Arc<dyn ChatModel>,
}

impl ModelDouble {
    fn build(config: NodeConfig<'_>) -> Result<Self, BuildError> {
        Ok(Self { double: Double::build(config), scripted: ScriptedModel::build(config)? })
    }
}

impl ChatModel for ModelDouble {
    fn info(&self) -> &ModelInfo {
        self.scripted.info()
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        Box::pin(async move {
            self.double.called("model", format!(" {}", request.iteration)).await;
            self.double.failure("fails")?;
            self.scripted.call(request).await
        })
    }
}

/// `model.pieces`: the scripted model, but its answer comes in `pieces`: a list of them for each try.
struct ModelInPieces {
    tries: Vec<Vec<String>>,
    scripted: Arc<dyn ChatModel>,
}

impl ModelInPieces {
    fn build(config: NodeConfig<'_>) -> Result<Self, BuildError> {
        let tries = serde_json::from_value(config.props["pieces"].clone()).unwrap();
        Ok(Self { tries, scripted: ScriptedModel::build(config)? })
    }
}

impl ChatModel for ModelInPieces {
    fn info(&self) -> &ModelInfo {
        self.scripted.info()
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        for (attempt, pieces) in (1..).zip(&self.tries) {
            pieces.iter().for_each(|piece| request.deltas.unwrap().text(attempt, piece));
        }
        self.scripted.call(ModelRequest { deltas: None, ..request })
    }
}

/// `tool.double`: its own `ownEffect`, and a `result` (or `nests`), an `error` or an `unknown` outcome.
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
            self.called("tool", format!(" {}{key}", Value::Object(call.input.clone()))).await;
            let text = |property: &str| self.props.get(property).and_then(Value::as_str).map(str::to_owned);
            match (text("unknown"), text("error")) {
                (Some(reason), _) => ToolOutcome::Unknown { reason },
                (None, Some(error)) => ToolOutcome::Returned(ToolResult::failed(error)),
                (None, None) => ToolOutcome::Returned(ToolResult::ok(self.result())),
            }
        })
    }
}

/// `buffer-memory`: recalls its `turns`, unless it has `recallFails`; keeps what it is given in the watch,
/// unless it has `appendFails`.
impl Memory for Double {
    fn recall<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<Vec<ChatMessage>, Failure>> {
        Box::pin(async move {
            self.called("recall", format!(" {session}")).await;
            self.failure("recallFails")?;
            let turns = self.props.get("turns").cloned();
            Ok(turns.map(|turns| serde_json::from_value(turns).unwrap()).unwrap_or_default())
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        run: &'a RunId,
        turn: &'a [ChatMessage],
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let said: Vec<String> =
                turn.iter().map(|said| format!("{}: {}", said.role.as_str(), said.content)).collect();
            self.called("append", format!(" {session} {run} {}", said.join(" | "))).await;
            self.failure("appendFails")
        })
    }

    fn clear<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            self.called("clear", format!(" {session}")).await;
            self.failure("clearFails")
        })
    }
}
