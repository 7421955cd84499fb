//! Services that have no adapter yet, and ones that misbehave. Their properties say how. Each writes what it
//! is asked into the watch of its test.

use crate::kit::nested;
use crate::watch::{JournalFault, Watch};
use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::{ModelAnswer, ToolResult};
use redflow_contract::id::RunId;
use redflow_contract::node_config::EffectClass;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use redflow_models::ScriptedModel;
use redflow_ports::{
    Adapters, BoxFuture, BuildError, ChatModel, Memory, ModelRequest, NodeConfig, Tool, ToolOutcome,
};
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// Builders are plain functions: this is how they find the watch of the test that builds.
    static WATCH: RefCell<Option<Arc<Watch>>> = const { RefCell::new(None) };
}

/// The watch every double built from now on in this thread writes to.
pub(crate) fn watch_with(fault: JournalFault, watches_runs: bool) -> Arc<Watch> {
    let watch = Arc::new(Watch::new(fault, watches_runs));
    WATCH.set(Some(Arc::clone(&watch)));
    watch
}

pub(crate) fn register(adapters: &mut Adapters) {
    adapters.models.insert("model.double", |config| Ok(Arc::new(ModelDouble::build(config)?)));
    adapters.tools.insert("tool.double", |config| Ok(Arc::new(Double::build(config))));
    adapters.memories.insert("buffer-memory", |config| Ok(Arc::new(Double::build(config))));
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
        watch.note(format!("built {id}"));
        Self { watch, id, props: config.props.clone() }
    }

    /// Notes a call; never comes back if the property `hangs` names it.
    async fn called(&self, name: &str, details: String) {
        let what = format!("{name} {}", self.id);
        self.watch.note(format!("{what}{details}"));
        if self.props.get("hangs").and_then(Value::as_str) == Some(name) {
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
    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        Box::pin(async move {
            self.double.called("model", format!(" {}", request.iteration)).await;
            self.double.failure("fails")?;
            self.scripted.call(request).await
        })
    }
}

/// `tool.double`: its own `ownEffect`, and a `result` (or `nests`), an `error` or an `unknown` outcome.
impl Tool for Double {
    fn effect(&self, _: &Message) -> EffectClass {
        serde_json::from_value(self.props["ownEffect"].clone()).unwrap()
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            self.called("tool", format!(" {}", Value::Object(call.input.clone()))).await;
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
}
