//! A hub with programs as servers, and a store in memory.

use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, ToolCode};
use redflow_contract::digest::Digest;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::RunId;
use redflow_contract::mcp::{McpPins, McpServer, McpServers as Definitions};
use redflow_contract::tool::ToolEntry;
use redflow_contract::{Message, Millis};
use redflow_egress::{Egress, EgressPolicy, EgressSettings};
use redflow_mcp::{Confiner, HubSettings, McpHub, ServerTimes};
use redflow_ports::{
    Clock, FileStoreError, McpServers as _, McpStore, Measurement, Meter, ProvidedTool, ToolOutcome,
    ToolProvider as _,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const SECRET: &str = "a-long-secret";

#[derive(Default)]
pub(crate) struct MemoryStore {
    pub(crate) pins: Mutex<HashMap<String, McpPins>>,
    tokens: Mutex<HashMap<String, String>>,
    pub(crate) is_broken: AtomicBool,
    pub(crate) is_full: AtomicBool,
}

impl McpStore for MemoryStore {
    fn pins(&self, server: &str) -> Result<McpPins, FileStoreError> {
        if self.is_broken.load(Ordering::Relaxed) {
            let message = "the file is damaged".to_owned();
            return Err(FileStoreError { code: ProblemCode::Api(ApiCode::McpFailed), message });
        }
        Ok(self.pins.lock().unwrap().get(server).cloned().unwrap_or_default())
    }

    fn set_pins(&self, server: &str, pins: &McpPins) -> Result<(), FileStoreError> {
        if self.is_full.load(Ordering::Relaxed) {
            let message = "the disk is full".to_owned();
            return Err(FileStoreError { code: ProblemCode::Api(ApiCode::StorageFull), message });
        }
        self.pins.lock().unwrap().insert(server.to_owned(), pins.clone());
        Ok(())
    }

    fn tokens(&self, key: &str) -> Result<Option<String>, FileStoreError> {
        Ok(self.tokens.lock().unwrap().get(key).cloned())
    }

    fn set_tokens(&self, key: &str, tokens: Option<&str>) -> Result<(), FileStoreError> {
        let mut all = self.tokens.lock().unwrap();
        match tokens {
            Some(tokens) => all.insert(key.to_owned(), tokens.to_owned()),
            None => all.remove(key),
        };
        Ok(())
    }
}

pub(crate) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Millis {
        1_767_225_600_000
    }

    fn run_id(&self) -> RunId {
        "run".into()
    }

    fn message_id(&self) -> String {
        "0123456789abcdef".to_owned()
    }
}

#[derive(Default)]
pub(crate) struct Records(pub(crate) Mutex<Vec<String>>);

impl Meter for Records {
    fn record(&self, measure: Measurement<'_>) {
        let text = match measure {
            Measurement::McpCall { server, code } => format!("call {server} {code}"),
            Measurement::McpUp { server, up } => format!("up {server} {up}"),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

pub(crate) struct Kit {
    pub(crate) hub: Arc<McpHub>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) records: Arc<Records>,
    pub(crate) folder: TempDir,
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self::with_store(Arc::default())
    }

    pub(crate) fn with_store(store: Arc<MemoryStore>) -> Self {
        Self::build(store, Egress::new(EgressPolicy::default()), ServerTimes::default())
    }

    /// A hub with other times.
    pub(crate) fn with_times(times: ServerTimes) -> Self {
        Self::build(Arc::default(), Egress::new(EgressPolicy::default()), times)
    }

    /// A hub that may use addresses of this machine.
    pub(crate) fn with_private(addresses: &[SocketAddr]) -> Self {
        Self::with_private_in(addresses, ServerTimes::default())
    }

    pub(crate) fn with_private_in(addresses: &[SocketAddr], times: ServerTimes) -> Self {
        let private = addresses.iter().map(SocketAddr::to_string).collect();
        let settings = EgressSettings { private, ..EgressSettings::default() };
        Self::build(Arc::default(), Egress::new(EgressPolicy::new(&settings).unwrap()), times)
    }

    fn build(store: Arc<MemoryStore>, egress: Egress, times: ServerTimes) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let records: Arc<Records> = Arc::default();
        let hub = McpHub::new(HubSettings {
            egress,
            store: Arc::clone(&store) as _,
            clock: Arc::new(FixedClock),
            meter: Arc::clone(&records) as _,
            folder: Some(folder.path().join("programs")),
            confine: Confiner::none(),
            times,
        });
        Self { hub, store, records, folder }
    }

    /// A hub with one server `test` that behaves like this.
    pub(crate) fn with(behaviour: &str, more: Value) -> Self {
        let kit = Self::new();
        kit.define(behaviour, more);
        kit
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    pub(crate) fn define(&self, behaviour: &str, more: Value) {
        let mut server = json!({"command": program(), "args": [behaviour, self.file()]});
        server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let server: McpServer = serde_json::from_value(server).unwrap();
        let servers: Definitions = [("test".to_owned(), server)].into();
        self.hub.define(&servers, &[], &|name| (name == "TEST_SECRET").then(|| SECRET.to_owned()));
    }

    /// Defines servers by their names.
    pub(crate) fn define_all(&self, servers: Value) {
        let servers: Definitions = serde_json::from_value(servers).unwrap();
        self.hub.define(&servers, &[], &|name| (name == "TEST_SECRET").then(|| SECRET.to_owned()));
    }

    /// Connects, and gives the tools.
    pub(crate) async fn tools(&self) -> Vec<ProvidedTool> {
        self.hub.wait(&["test".to_owned()], &[]).await;
        self.hub.tools()
    }

    pub(crate) async fn entries(&self) -> Vec<Arc<ToolEntry>> {
        self.tools().await.into_iter().map(|tool| tool.entry).collect()
    }

    pub(crate) async fn tool(&self, name: &str) -> ProvidedTool {
        let id = format!("mcp.test.{name}");
        let tools = self.tools().await;
        let found = tools.into_iter().find(|tool| tool.entry.id == id);
        found.unwrap_or_else(|| panic!("{id} is not there: {:?}", self.hub.list()))
    }

    pub(crate) async fn call(&self, name: &str, input: Value) -> ToolOutcome {
        let tool = self.tool(name).await;
        tool.tool.call(&call(input, 30_000)).await
    }

    pub(crate) async fn result(&self, name: &str, input: Value) -> ToolResult {
        match self.call(name, input).await {
            ToolOutcome::Returned(result) => result,
            ToolOutcome::Unknown { reason } => panic!("{reason}"),
        }
    }

    pub(crate) async fn text(&self, name: &str, input: Value) -> String {
        let result = self.result(name, input).await;
        result.output.as_ref().and_then(Value::as_str).unwrap_or_else(|| panic!("{result:?}")).to_owned()
    }

    pub(crate) fn reason(&self) -> String {
        self.hub.list().servers.remove(0).reason.unwrap_or_default()
    }
}

pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_redflow-mcp-program")
}

pub(crate) fn call(input: Value, timeout_ms: u64) -> ToolCall {
    let input: Message = input.as_object().unwrap().clone().into_iter().collect();
    ToolCall {
        run_id: "run".into(),
        iteration: 1,
        call_id: "run:1".into(),
        tool: "tool".to_owned(),
        node: "n1".into(),
        agent: "n2".into(),
        input,
        idempotency_key: Digest::of(b"key"),
        timeout_ms,
        declared: None,
        operation: None,
        conversation: Default::default(),
    }
}

pub(crate) fn refusal(outcome: &ToolOutcome) -> (Option<ToolCode>, &str) {
    match outcome {
        ToolOutcome::Returned(result) => (result.code, result.error.as_deref().unwrap_or_default()),
        ToolOutcome::Unknown { reason } => panic!("{reason}"),
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

impl Kit {
    /// A call after the hub was stopped.
    pub(crate) async fn hub_tool_after_stop(&self) -> ToolOutcome {
        let tools = self.hub.tools();
        let tool = tools.into_iter().find(|tool| tool.entry.id == "mcp.test.echo").unwrap();
        tool.tool.call(&call(json!({}), 5_000)).await
    }
}

/// Keeps the warnings of this thread: their text and their fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// The warnings with these words.
    pub(crate) fn with(&self, words: &str) -> Vec<String> {
        self.0.lock().unwrap().iter().filter(|line| line.contains(words)).cloned().collect()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line.push_str(&format!("{field}={value:?} "));
        });
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
