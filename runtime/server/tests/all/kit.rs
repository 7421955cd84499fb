//! Starts a sidecar for a test, and builds flows for it.

use crate::client::{Reply, Request, Socket};
use redflow_access::Tokens;
use redflow_contract::archive::{Collection, Entry, SearchHit};
use redflow_contract::code::{ArchiveCode, DiagnosticCode, StoreCode};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::knowledge_api::{
    DocumentAnswer, EmbedderChoice, KnowledgeDocumentList, KnowledgePassageList, KnowledgeSearch,
    KnowledgeSearchResult,
};
use redflow_contract::memory::Forgotten;
use redflow_contract::memory_api::{
    Decision, ForgetAnswer, ForgetRequest, MemoryCollection, MemoryEntryDetail, MemoryEntryList,
    MemoryFilter, MemoryPut, MemorySearch,
};
use redflow_contract::node::EffectClass;
use redflow_contract::{Message, Millis};
use redflow_engine::SystemClock;
use redflow_ports::{
    Adapters, ArchiveError, BoxFuture, FlowStore as _, KnowledgeAnswer, KnowledgeBases, ManifestToolConfig,
    McpServers, Measurement, Memories, MemoriesAnswer, Meter, NewDocument, OnProgress, RunReader as _,
    StoredFlow, Tool, ToolOutcome,
};
use redflow_server::{Parts, Settings, Sidecar};
use redflow_store::{EventLogSettings, FlowFile, ManifestFiles, RunFilter, Store, UiStorageFile};
use redflow_telemetry::{RedactionLevel, Redactor};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "the-token-of-these-tests";

/// A running sidecar with its own data directory.
pub(crate) struct TestSidecar {
    pub(crate) addr: SocketAddr,
    pub(crate) dir: Arc<TempDir>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    /// A path that signs in one browser.
    pub(crate) sign_in: String,
}

pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) dir: Arc<TempDir>,
    pub(crate) log: EventLogSettings,
    pub(crate) env: fn(&str) -> Option<String>,
    pub(crate) mcp: Option<Arc<dyn McpServers>>,
}

impl Default for Setup {
    fn default() -> Self {
        let mut settings = Settings { drain_timeout: Duration::from_secs(2), ..Settings::default() };
        settings.access.request_burst = 100_000;
        settings.access.failure_burst = 100_000;
        Self {
            settings,
            dir: Arc::new(tempfile::tempdir().unwrap()),
            log: EventLogSettings::default(),
            env: |_| None,
            mcp: None,
        }
    }
}

impl Setup {
    /// Builds a sidecar that does not listen yet, with a stored flow if one is given.
    pub(crate) async fn build(self, flow: Option<Value>) -> (Sidecar, TcpListener, Arc<TempDir>) {
        let Self { mut settings, dir, log, env, mcp } = self;
        let flow_file = FlowFile::new(dir.path().join("flows.json"), dir.path().to_owned());
        if let Some(flow) = flow {
            let flows = flow.to_string().into_bytes();
            flow_file.save(&StoredFlow { flows, ..StoredFlow::default() }).unwrap();
        }
        let listener = redflow_access::listen::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let addr = listener.local_addr().unwrap();
        settings.access.listen = addr;
        // The last tasks of an earlier sidecar may still hold it.
        let store = eventually("the data directory is free", || {
            let opened = match Store::open_with_log(dir.path(), log) {
                Err(error) if error.code == StoreCode::DataLocked => None,
                opened => Some(Arc::new(opened.unwrap())),
            };
            std::future::ready(opened)
        })
        .await;
        let tokens = Tokens::open(dir.path(), Some(TOKEN.to_owned().into())).unwrap();
        let closed_sockets = Arc::new(ClosedSockets::default());
        let parts = Parts {
            clock: Arc::new(SystemClock),
            run_reader: store.clone(),
            log: store.clone(),
            chats: store.clone(),
            manifests: Arc::new(ManifestFiles::new(dir.path().to_owned())),
            store: store.clone(),
            flow_store: Arc::new(flow_file),
            ui_storage: Arc::new(UiStorageFile::new(dir.path())),
            knowledge: Arc::new(NoKnowledge),
            memories: Arc::new(NoMemories { runs: store.clone() }),
            adapters: Arc::new(adapters()),
            mcp,
            meter: closed_sockets.clone(),
            metrics: Arc::new(move || closed_sockets.text()),
            redactor: Arc::new(Redactor::new(RedactionLevel::All, &[TOKEN.to_owned().into()]).unwrap()),
            env,
            source: None,
            tokens,
        };
        (Sidecar::start(parts, settings).await.unwrap(), listener, dir)
    }

    /// Starts a sidecar, with a stored flow if one is given.
    pub(crate) async fn start(self, flow: Option<Value>) -> TestSidecar {
        let (sidecar, listener, dir) = self.build(flow).await;
        let addr = listener.local_addr().unwrap();
        let sign_in = sidecar.sign_in_path().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(sidecar.serve(listener, stop.clone()));
        TestSidecar { addr, dir, stop, serving, sign_in }
    }
}

impl TestSidecar {
    /// Starts a sidecar with default settings and this flow.
    pub(crate) async fn start(flow: Value) -> Self {
        Setup::default().start(Some(flow)).await
    }

    /// Stops it and gives its data directory, for the next sidecar.
    pub(crate) async fn stop(self) -> Arc<TempDir> {
        self.stop.cancel();
        self.serving.await.unwrap();
        self.dir
    }

    /// Begins to stop it and does not wait for the end.
    pub(crate) fn begin_to_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request::new(self.addr, method, path)
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.request("GET", path).token(TOKEN).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.request("POST", path).token(TOKEN).json(body).send().await
    }

    pub(crate) async fn socket(&self) -> Socket {
        Socket::open(self.addr, TOKEN).await
    }

    /// Starts runs and waits for their end.
    pub(crate) async fn run(&self, body: Value) -> Value {
        let mut body = body;
        body["wait"] = json!(true);
        self.post("/api/runs", body).await.ok(200)
    }

    pub(crate) async fn revision(&self) -> String {
        self.get("/api/flows").await.ok(200)["revision"].as_str().unwrap().to_owned()
    }
}

/// A meter that records why sockets were closed.
#[derive(Default)]
struct ClosedSockets(Mutex<String>);

impl ClosedSockets {
    fn text(&self) -> String {
        format!("{}# EOF\n", self.0.lock().unwrap())
    }
}

impl Meter for ClosedSockets {
    fn record(&self, measurement: Measurement<'_>) {
        if let Measurement::SocketClosed { code } = measurement {
            self.0.lock().unwrap().push_str(&format!("closed {code}\n"));
        }
    }
}

/// All adapters of this release, and test tools.
fn adapters() -> Adapters {
    let mut adapters = Adapters::default();
    let price =
        redflow_models::price::Price { input: 1.0, output: 8.0, cached: Some(0.5), ..Default::default() };
    let prices = redflow_models::price::Prices::from([("priced-*".to_owned(), price)]);
    let settings = redflow_models::ModelSettings { prices, ..redflow_models::ModelSettings::default() };
    redflow_models::register(&mut adapters, settings);
    redflow_tools::register(&mut adapters, redflow_tools::ToolSettings::default());
    redflow_memory::register(&mut adapters, redflow_memory::MemorySettings::default());
    redflow_nodes::register(&mut adapters);
    adapters.tools.insert("tool.lost", Arc::new(|_| Ok(Arc::new(UnknownOutcomeTool))));
    adapters.tools.insert("tool.slow", Arc::new(|_| Ok(Arc::new(SlowTool))));
    adapters.tools.insert("tool.noticed", Arc::new(|_| Ok(Arc::new(NoticedTool { is_silent: false }))));
    adapters.tools.insert("tool.silent", Arc::new(|_| Ok(Arc::new(NoticedTool { is_silent: true }))));
    let build = |config: ManifestToolConfig<'_>| -> Result<Arc<dyn Tool>, String> {
        if config.tool.url.contains("unusable") {
            Err("no such host".to_owned())
        } else {
            Ok(Arc::new(EchoTool))
        }
    };
    adapters.manifest_tool = Some(Arc::new(build));
    adapters
}

/// A tool of the manifest that returns its input, and fails if its body says so. With `hold` it makes this file, and
/// waits until somebody removes it.
struct EchoTool;

impl Tool for EchoTool {
    fn effect(&self, _input: &Message) -> EffectClass {
        EffectClass::Read
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        let result = match call.input.get("fail") {
            Some(_) => ToolResult::failed("it was told to fail"),
            None => ToolResult::ok(Value::Object(call.input.clone())),
        };
        let hold = call.input.get("hold").and_then(Value::as_str).map(std::path::PathBuf::from);
        Box::pin(async move {
            if let Some(hold) = hold {
                std::fs::write(&hold, "").unwrap();
                while hold.exists() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            ToolOutcome::Returned(result)
        })
    }
}

/// A tool whose outcome is always unknown.
struct UnknownOutcomeTool;

impl Tool for UnknownOutcomeTool {
    fn effect(&self, _input: &Message) -> EffectClass {
        EffectClass::AtMostOnce
    }

    fn call<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async { ToolOutcome::Unknown { reason: "the connection was lost".to_owned() } })
    }
}

/// A tool that takes an hour.
struct SlowTool;

impl Tool for SlowTool {
    fn effect(&self, _input: &Message) -> EffectClass {
        EffectClass::Read
    }

    fn call<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            ToolOutcome::Returned(ToolResult::ok(Value::Null))
        })
    }
}

/// A tool that misses something, or never says what it misses.
struct NoticedTool {
    is_silent: bool,
}

impl Tool for NoticedTool {
    fn effect(&self, _input: &Message) -> EffectClass {
        EffectClass::Read
    }

    fn call<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async { ToolOutcome::Returned(ToolResult::ok(Value::Null)) })
    }

    fn notices(&self) -> BoxFuture<'_, Vec<Diagnostic>> {
        if self.is_silent {
            return Box::pin(std::future::pending());
        }
        let code = DiagnosticCode::CollectionUnknown;
        Box::pin(async move { vec![Diagnostic::new(code, "nothing is there", "Add it.")] })
    }
}

/// A tab with an agent, its scripted model and tools, an inject node before it and a debug node after it.
pub(crate) fn flow(replies: Value, tools: &[(&str, &str)]) -> Value {
    // An agent must have a tool.
    let tools = if tools.is_empty() { &[("calculator", "calculator-tool")] } else { tools };
    let names: Vec<&str> = tools.iter().map(|(name, _)| *name).collect();
    let mut nodes = vec![
        json!({"id": "tab", "type": "tab", "label": "Home"}),
        json!({"id": "ask", "type": "inject", "z": "tab", "props": [{"p": "payload"}], "payload": "What is 6 * 7?",
               "payloadType": "str", "wires": [["agent"]]}),
        json!({"id": "agent", "type": "agent-core", "z": "tab", "name": "Counting", "strategy": "react",
               "maxIterations": 5, "allowedTools": names, "stopConditions": [], "debug": false,
               "wires": [["model"], names, [], ["result"], []]}),
        json!({"id": "model", "type": "scripted-model", "z": "tab", "replies": replies, "wires": [["agent"]]}),
        json!({"id": "result", "type": "debug", "z": "tab", "active": true, "complete": "payload",
               "targetType": "msg", "wires": []}),
    ];
    for (name, type_name) in tools {
        nodes
            .push(json!({"id": name, "type": type_name, "z": "tab", "toolName": name, "wires": [["agent"]]}));
    }
    Value::Array(nodes)
}

/// A flow whose agent answers 42 at once.
pub(crate) fn plain_flow() -> Value {
    flow(json!([{"action": "final", "message": "42"}]), &[])
}

/// A flow whose agent calls a tool once, then answers 42.
pub(crate) fn tool_flow(type_name: &str) -> Value {
    let call = json!({"action": "tool", "tool": "act", "input": {"expression": "6 * 7"}, "confidence": 1});
    flow(json!([call, {"action": "final", "message": "42"}]), &[("act", type_name)])
}

/// Waits until `poll` gives a value.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    condition: &str,
    mut poll: impl FnMut() -> F,
) -> T {
    let end = tokio::time::Instant::now() + crate::client::PATIENCE;
    loop {
        if let Some(found) = poll().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < end, "never: {condition}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Adds a token with these scopes.
pub(crate) fn token(dir: &Path, name: &str, scopes: &[redflow_contract::api::Scope], now: Millis) -> String {
    use secrecy::ExposeSecret as _;
    redflow_access::tokens::add(dir, name, scopes, now).unwrap().expose_secret().to_owned()
}

/// No knowledge bases: each request names one that does not exist. `redflow serve` has the real ones, and its tests
/// are those of the routes.
struct NoKnowledge;

impl NoKnowledge {
    fn unknown<T: Send + 'static>(name: &str) -> KnowledgeAnswer<'_, T> {
        let text = format!("There is no knowledge base `{name}`.");
        let error = ArchiveError::new(ArchiveCode::CollectionUnknown, text);
        Box::pin(std::future::ready(Err(error.into())))
    }
}

impl KnowledgeBases for NoKnowledge {
    fn list(&self) -> KnowledgeAnswer<'_, Vec<Collection>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn documents<'a>(
        &'a self,
        name: &'a str,
        _: Option<&'a str>,
        _: usize,
    ) -> KnowledgeAnswer<'a, KnowledgeDocumentList> {
        Self::unknown(name)
    }

    fn passages<'a>(
        &'a self,
        name: &'a str,
        _: &'a str,
        _: u32,
        _: usize,
    ) -> KnowledgeAnswer<'a, KnowledgePassageList> {
        Self::unknown(name)
    }

    fn search<'a>(&'a self, name: &'a str, _: KnowledgeSearch) -> KnowledgeAnswer<'a, KnowledgeSearchResult> {
        Self::unknown(name)
    }

    fn add<'a>(
        &'a self,
        name: &'a str,
        _: NewDocument,
        _: OnProgress<'a>,
    ) -> KnowledgeAnswer<'a, DocumentAnswer> {
        Self::unknown(name)
    }

    fn remove<'a>(&'a self, name: &'a str) -> KnowledgeAnswer<'a, ()> {
        Self::unknown(name)
    }

    fn remove_document<'a>(&'a self, name: &'a str, _: &'a str) -> KnowledgeAnswer<'a, ()> {
        Self::unknown(name)
    }

    fn reindex<'a>(
        &'a self,
        name: &'a str,
        _: EmbedderChoice,
        _: OnProgress<'a>,
    ) -> KnowledgeAnswer<'a, DocumentAnswer> {
        Self::unknown(name)
    }
}

/// No long memories: each request names one that does not exist. `redflow serve` has the real ones, and its tests are
/// those of the routes.
struct NoMemories {
    runs: Arc<Store>,
}

impl NoMemories {
    fn unknown<T: Send + 'static>(name: &str) -> MemoriesAnswer<'_, T> {
        let text = format!("There is no long memory `{name}`.");
        let error = ArchiveError::new(ArchiveCode::CollectionUnknown, text);
        Box::pin(std::future::ready(Err(error.into())))
    }
}

impl Memories for NoMemories {
    fn list(&self) -> MemoriesAnswer<'_, Vec<MemoryCollection>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn entries<'a>(
        &'a self,
        memory: &'a str,
        _: &'a MemoryFilter,
        _: Option<&'a str>,
        _: usize,
    ) -> MemoriesAnswer<'a, MemoryEntryList> {
        Self::unknown(memory)
    }

    fn show<'a>(&'a self, memory: &'a str, _: &'a str) -> MemoriesAnswer<'a, MemoryEntryDetail> {
        Self::unknown(memory)
    }

    fn search<'a>(&'a self, memory: &'a str, _: MemorySearch) -> MemoriesAnswer<'a, Vec<SearchHit>> {
        Self::unknown(memory)
    }

    fn put<'a>(
        &'a self,
        memory: &'a str,
        _: &'a str,
        _: MemoryPut,
        _: Option<u32>,
    ) -> MemoriesAnswer<'a, Entry> {
        Self::unknown(memory)
    }

    fn remove_entry<'a>(&'a self, memory: &'a str, _: &'a str) -> MemoriesAnswer<'a, ()> {
        Self::unknown(memory)
    }

    fn remove<'a>(&'a self, memory: &'a str) -> MemoriesAnswer<'a, ()> {
        Self::unknown(memory)
    }

    fn review<'a>(&'a self, memory: &'a str, _: Vec<String>, _: Decision) -> MemoriesAnswer<'a, u64> {
        Self::unknown(memory)
    }

    fn forget(&self, _: ForgetRequest) -> MemoriesAnswer<'_, ForgetAnswer> {
        // It says what it finds, so that tests see the order of the steps.
        Box::pin(async {
            let runs = self.runs.list(RunFilter::default()).await.unwrap().runs.len();
            let problems = vec![format!("Stored runs: {runs}")];
            Ok(ForgetAnswer { forgotten: Forgotten::default(), problems })
        })
    }
}
