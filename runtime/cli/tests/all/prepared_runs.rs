//! Creates runs in states that the binary alone does not reach on purpose. It uses the same engine and
//! store, but tools that lose their calls.

use crate::kit::{Folder, flow_with};
use redflow_contract::Message;
use redflow_contract::code::StoreCode;
use redflow_contract::effect::{Ending, ToolCall};
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_contract::node::EffectClass;
use redflow_contract::plan::EncodedPlan;
use redflow_contract::run::RunState;
use redflow_contract::tally::RunTally;
use redflow_engine::{Engine, EngineLimits, Ports, RunEnd, Start, SystemClock, build_flow};
use redflow_flow::{CheckOptions, check_bytes};
use redflow_ports::{
    Adapters, Batch, BoxFuture, Durability, EventSink, NewRun, RunStore as _, Tool, ToolBuilder, ToolOutcome,
};
use redflow_store::Store;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The agent calls the calculator once. The call must not be made twice.
pub(crate) fn at_most_once_flow() -> Value {
    let call =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 0.5});
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    flow_with(json!([call, end]), "c", json!({"effect": "at_most_once"}))
}

/// The agent calls the calculator once, which can be repeated, and answers. The debug node has the name
/// `debug`.
pub(crate) fn repeatable_flow(message: &str, debug: &str) -> Value {
    let mut nodes = repeatable_flow_with_end(json!({"action": "final", "message": message, "confidence": 1}));
    nodes[4]["name"] = json!(debug);
    nodes
}

/// The same flow with another last answer.
pub(crate) fn repeatable_flow_with_end(end: Value) -> Value {
    let call =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 0.5});
    flow_with(json!([call, end]), "c", json!({"effect": "read"}))
}

/// A tool that never gives the outcome of a call.
struct LossyTool {
    /// It answers that the outcome is unknown, instead of not answering.
    answers_unknown: bool,
}

impl Tool for LossyTool {
    fn effect(&self, _: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        let unknown = ToolOutcome::Unknown { reason: "the connection was lost".to_owned() };
        if self.answers_unknown {
            Box::pin(std::future::ready(unknown))
        } else {
            Box::pin(std::future::pending())
        }
    }
}

/// Notifies the test of every tool call.
struct CallObserver(mpsc::Sender<()>);

impl EventSink for CallObserver {
    fn watches_runs(&self) -> bool {
        true
    }

    fn run_event(&self, event: &RunEvent) {
        if matches!(event.event, RunEventKind::ToolCalled { .. }) {
            let _ = self.0.send(());
        }
    }

    fn flow_event(&self, _: &FlowEvent) {}
}

fn adapters(tool: ToolBuilder) -> Adapters {
    let mut adapters = Adapters::default();
    redflow_models::register(&mut adapters, redflow_models::ModelSettings::default());
    redflow_nodes::register(&mut adapters);
    adapters.tools.insert("calculator-tool", tool);
    adapters
}

/// An engine for a flow of a folder, on its data directory.
fn engine(folder: &Folder, file: &str, tool: ToolBuilder, events: Arc<dyn EventSink>) -> (Engine, Start) {
    engine_of_instance(&InstanceId::local(), folder, file, tool, events)
}

/// The same for a Node-RED with this instance id.
fn engine_of_instance(
    instance: &InstanceId,
    folder: &Folder,
    file: &str,
    tool: ToolBuilder,
    events: Arc<dyn EventSink>,
) -> (Engine, Start) {
    let source = folder.path(file).canonicalize().unwrap().to_str().map(Arc::from);
    engine_for(instance, &folder.read(file), source, &folder.data(), tool, events)
}

fn engine_for(
    instance: &InstanceId,
    flow: &str,
    source: Option<Arc<str>>,
    data: &Path,
    tool: ToolBuilder,
    events: Arc<dyn EventSink>,
) -> (Engine, Start) {
    let adapters = adapters(tool);
    let options = CheckOptions {
        profile: Profile::Strict,
        limits: FlowLimits::default(),
        run_limits: RunLimits::default(),
        run_budget: redflow_contract::node::Budget::default(),
        instance: instance.clone(),
        provides_tools: &|_| false,
        can_run: &|name| adapters.can_run(name),
        env: &|_| None,
    };
    let checked = check_bytes(flow.as_bytes(), &options).unwrap();
    let start = Start::Inject { node: checked.flow.find("i").unwrap(), payload: None };
    let built = build_flow(checked, &adapters, redflow_strategies::strategies(), &|_| None);
    let ports = Ports {
        strategies: redflow_strategies::strategies().clone(),
        clock: Arc::new(SystemClock),
        events,
        store: Arc::new(Store::open(data).unwrap()),
        adapters: Arc::new(adapters),
        source,
        host: None,
        takes_requests: true,
        registry: Arc::default(),
        principal: None,
        meter: Arc::new(redflow_ports::NoMeter),
        instance: instance.clone(),
        env: |_| None,
    };
    (Engine::new(Some(built), ports, EngineLimits::default()), start)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs the flow until it waits for a person.
pub(crate) fn waiting_run(folder: &Folder) -> String {
    runtime().block_on(async {
        let (events, _called) = mpsc::channel();
        let tool: ToolBuilder = Arc::new(|_| Ok(Arc::new(LossyTool { answers_unknown: true })));
        let (engine, start) = engine(folder, "flow.json", tool, Arc::new(CallObserver(events)));
        let reports = engine.run(start, &CancellationToken::new()).await;
        assert!(matches!(reports[0].end, RunEnd::Waiting(_)), "{reports:?}");
        reports[0].run_id.to_string()
    })
}

/// Runs the flow and drops the engine in the middle of its tool call.
pub(crate) fn interrupted_run(folder: &Folder) -> String {
    interrupted_run_of_file(folder, "flow.json")
}

/// The same for another flow file.
pub(crate) fn interrupted_run_of_file(folder: &Folder, file: &str) -> String {
    interrupted_run_of_instance(&InstanceId::local(), folder, file)
}

/// The same for a run of a Node-RED.
pub(crate) fn interrupted_run_of_instance(instance: &InstanceId, folder: &Folder, file: &str) -> String {
    let runtime = runtime();
    let (events, called) = mpsc::channel();
    runtime.block_on(async {
        let tool: ToolBuilder = Arc::new(|_| Ok(Arc::new(LossyTool { answers_unknown: false })));
        let (engine, start) =
            engine_of_instance(instance, folder, file, tool, Arc::new(CallObserver(events)));
        let cancel = CancellationToken::new();
        let mut run = Box::pin(engine.run(start, &cancel));
        while called.try_recv().is_err() {
            tokio::select! {
                reports = &mut run => panic!("{reports:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    });
    drop(runtime);
    folder.runs()[0]["runId"].as_str().unwrap().to_owned()
}

/// Replaces the only run by an ended run with this journal.
pub(crate) fn forge(folder: &Folder, journal: &str) {
    let read =
        redflow_strategies::read_journal(folder.run_ok(["runs", "export", &folder.only_run()]).as_bytes())
            .unwrap();
    folder.run_ok(["runs", "prune", "--keep", "0"]);
    let new = NewRun {
        run_id: read.run_id,
        agent: read.agent,
        name: "forged".to_owned(),
        started_at: 0,
        cause: None,
        source: None,
        by: None,
        user: None,
        session: None,
        plan: EncodedPlan::new(&read.plan).unwrap(),
    };
    let batch = Batch {
        lines: journal.lines().map(str::to_owned).collect(),
        state: RunState::Finished { at: 1, ending: Ending::Completed, usage: Box::default() },
        active_ms: 0,
        tally: RunTally::default(),
        durability: Durability::Synced,
        events: [].into(),
    };
    let store = Store::open(&folder.data()).unwrap();
    runtime().block_on(store.create(new).append(batch)).unwrap();
}

/// Adds an ended run of a user, whose journal is one line with this text.
pub(crate) fn add_run_of_user(folder: &Folder, id: &str, user: &str, text: &str) {
    let read =
        redflow_strategies::read_journal(folder.run_ok(["runs", "export", &folder.only_run()]).as_bytes())
            .unwrap();
    let store = Store::open(&folder.data()).unwrap();
    let new = NewRun {
        run_id: id.into(),
        agent: read.agent.clone(),
        name: String::new(),
        started_at: 0,
        cause: None,
        source: None,
        by: None,
        user: Some(user.to_owned()),
        session: None,
        plan: EncodedPlan::new(&read.plan).unwrap(),
    };
    let batch = Batch {
        lines: vec![json!({"run": id, "text": text}).to_string()],
        state: RunState::Finished { at: 1, ending: Ending::Completed, usage: Box::default() },
        active_ms: 0,
        tally: RunTally::default(),
        durability: Durability::Synced,
        events: [].into(),
    };
    runtime().block_on(store.create(new).append(batch)).unwrap();
}

/// Adds ended runs whose journals are one line that no machine has written.
pub(crate) fn add_invalid_runs(folder: &Folder, ids: &[String]) {
    let read =
        redflow_strategies::read_journal(folder.run_ok(["runs", "export", &folder.only_run()]).as_bytes())
            .unwrap();
    let store = Store::open(&folder.data()).unwrap();
    for (number, id) in ids.iter().enumerate() {
        let new = NewRun {
            run_id: id.as_str().into(),
            agent: read.agent.clone(),
            name: String::new(),
            started_at: number as u64,
            cause: None,
            source: None,
            by: None,
            user: None,
            session: None,
            plan: EncodedPlan::new(&read.plan).unwrap(),
        };
        let batch = Batch {
            lines: vec![format!(r#"{{"run":"{id}"}}"#)],
            state: RunState::Finished { at: 1, ending: Ending::Completed, usage: Box::default() },
            active_ms: 0,
            tally: RunTally::default(),
            durability: Durability::Buffered,
            events: [].into(),
        };
        runtime().block_on(store.create(new).append(batch)).unwrap();
    }
}

/// Changes one byte of the database, at the last place of these bytes.
pub(crate) fn damage(folder: &Folder, bytes: &str) {
    let file = folder.data().join("redflow.db");
    let mut stored = std::fs::read(&file).unwrap();
    let place = stored.windows(bytes.len()).rposition(|found| found == bytes.as_bytes()).unwrap();
    stored[place] ^= 1;
    std::fs::write(&file, stored).unwrap();
}

/// Waits for a request of another process, and closes the store without doing it.
pub(crate) fn ignore_request(store: Store) {
    let requests = runtime().block_on(store.requests());
    assert_eq!(requests.len(), 1, "{requests:?}");
}

/// Waits for a request of another process, and refuses it.
pub(crate) fn refuse_request(store: &Store, code: StoreCode) {
    let requests = runtime().block_on(store.requests());
    store.answer_request(requests[0].id, Some(code));
}

/// Drives the runs of a folder in this process, until it is dropped.
pub(crate) struct Driver {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts no run itself; it carries out requests.
    pub(crate) fn start(folder: &Folder) -> Self {
        let (ready, is_ready) = mpsc::channel();
        let stop = CancellationToken::new();
        let (stopped, data) = (stop.clone(), folder.data());
        let (flow, source) = (folder.read("flow.json"), folder.path("flow.json").canonicalize().unwrap());
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let (events, _called) = mpsc::channel();
                let tool: ToolBuilder = Arc::new(redflow_tools::calculator::Calculator::build);
                let source = source.to_str().map(Arc::from);
                let (engine, _) = engine_for(
                    &InstanceId::local(),
                    &flow,
                    source,
                    &data,
                    tool,
                    Arc::new(CallObserver(events)),
                );
                ready.send(()).unwrap();
                stopped.cancelled().await;
                engine.shutdown(std::time::Duration::ZERO).await;
            });
        });
        is_ready.recv().unwrap();
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
