//! A place with an archive, a clock, an embedder that counts words, and a model that a test scripts.

use redflow_archive::SqliteArchive;
use redflow_contract::archive::{Entry, EntryState, LONG_MEMORY_PREFIX};
use redflow_contract::code::{ArchiveCode, RunErrorCode};
use redflow_contract::fact::{ModelAnswer, Usage};
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::run_error::Failure;
use redflow_contract::source::Source;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_long_memory::{LongMemorySettings, register};
use redflow_memory::MemorySettings;
use redflow_ports::{
    Adapters, Archive, ArchiveError, BoxFuture, BuildError, ChatModel, Clock, ContextSource, EmbedPurpose,
    Embedded, Embedder, EmbedderInfo, EmbedderSource, EntryFilter, Memory, MemoryAnswer, Meter, ModelInfo,
    ModelRequest, NamedServices, NoMeter, NodeConfig, Recall, Recalled, Turn,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// 2026-11-18T12:00:00Z.
pub(crate) const NOON: u64 = 1_795_003_200_000;
pub(crate) const HOUR: u64 = 3_600_000;
pub(crate) const DAY: u64 = 24 * HOUR;

/// A clock that tests set.
pub(crate) struct TestClock(pub(crate) AtomicU64);

impl TestClock {
    pub(crate) fn set(&self, at: u64) {
        self.0.store(at, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
    fn run_id(&self) -> RunId {
        "run".into()
    }
    fn message_id(&self) -> String {
        String::new()
    }
}

const DIMENSIONS: usize = 256;

/// Counts words. Texts with the same words have the same vector.
pub(crate) struct WordEmbedder {
    info: EmbedderInfo,
    fails: Arc<AtomicBool>,
}

impl Embedder for WordEmbedder {
    fn info(&self) -> &EmbedderInfo {
        &self.info
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        _: EmbedPurpose,
    ) -> BoxFuture<'a, Result<Embedded, ArchiveError>> {
        let answer = match self.fails.load(Ordering::SeqCst) {
            true => Err(ArchiveError::new(ArchiveCode::EmbeddingsFailed, "no vectors today")),
            false => Ok(Embedded {
                vectors: texts.iter().map(|text| vector(text)).collect(),
                tokens: 0,
                cost: None,
            }),
        };
        Box::pin(std::future::ready(answer))
    }
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    let lower = text.to_lowercase();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
        let hash = word.bytes().fold(5_381_usize, |hash, byte| hash.wrapping_mul(33) ^ usize::from(byte));
        vector[hash % DIMENSIONS] += 1.0;
    }
    if vector.iter().all(|x| *x == 0.0) {
        vector[0] = 1.0;
    }
    vector
}

type Script = dyn Fn(&str, &str) -> Result<String, Failure> + Send + Sync;

/// A model whose answers a test makes from the rules and the text that it is sent.
pub(crate) struct ScriptedModel {
    info: ModelInfo,
    script: Box<Script>,
    pub(crate) calls: AtomicUsize,
}

impl ChatModel for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let segments = request.transcript.segments();
        assert_eq!(segments.len(), 2);
        let (rules, text) = (&segments[0], &segments[1]);
        assert_eq!((rules.role, text.role), (ChatRole::System, ChatRole::User));
        let usage = Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() };
        let answer = (self.script)(&rules.content, &text.content).map(|text| ModelAnswer {
            text,
            usage: Some(usage),
            ..ModelAnswer::default()
        });
        Box::pin(std::future::ready(answer))
    }
}

/// A model with this script. It gets the rules and the text.
pub(crate) fn model(
    script: impl Fn(&str, &str) -> Result<String, Failure> + Send + Sync + 'static,
) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel {
        info: ModelInfo::default(),
        script: Box::new(script),
        calls: AtomicUsize::new(0),
    })
}

/// A model that gives these answers, one after the other.
pub(crate) fn answers(answers: Vec<Value>) -> Arc<ScriptedModel> {
    let left = Mutex::new(answers.into_iter());
    model(move |_, _| {
        let next = left.lock().unwrap().next();
        let failure = || Failure { code: RunErrorCode::ModelError, message: "no more answers".to_owned() };
        next.map(|answer| answer.to_string()).ok_or_else(failure)
    })
}

/// An answer with these proposals.
pub(crate) fn proposals(entries: &[Value]) -> Value {
    json!({ "entries": entries })
}

/// A proposal that quotes the user.
pub(crate) fn fact(text: &str, quote: &str) -> Value {
    json!({"kind": "fact", "text": text, "quote": quote, "speaker": "user", "validFrom": null, "tags": []})
}

/// What one decision says about the first new entry.
pub(crate) fn decision(action: &str, id: Option<&str>) -> Value {
    json!({"decisions": [{"new": 1, "action": action, "id": id}]})
}

pub(crate) struct Place {
    pub(crate) data: Arc<tempfile::TempDir>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) archive: Arc<SqliteArchive>,
    pub(crate) embedder_fails: Arc<AtomicBool>,
    pub(crate) finds_meaning: bool,
    pub(crate) embedder_id: &'static str,
    pub(crate) is_cached: bool,
    pub(crate) context: Option<Arc<dyn ContextSource>>,
    pub(crate) meter: Arc<dyn Meter>,
    /// The clock of the memory, if it is not that of the archive.
    pub(crate) memory_clock: Option<Arc<dyn Clock>>,
}

/// A short memory whose server is offline.
struct OfflineMemory;

impl OfflineMemory {
    fn fail<'a, T: Send + 'a>() -> MemoryAnswer<'a, T> {
        let failure =
            Failure { code: RunErrorCode::MemoryError, message: "The server is offline.".to_owned() };
        Box::pin(std::future::ready(Err(failure)))
    }
}

impl Memory for OfflineMemory {
    fn recall<'a>(&'a self, _: Recall<'a>) -> MemoryAnswer<'a, Recalled> {
        Self::fail()
    }
    fn append<'a>(&'a self, _: Turn<'a>) -> MemoryAnswer<'a, ()> {
        Self::fail()
    }
    fn clear<'a>(&'a self, _: &'a str) -> MemoryAnswer<'a, ()> {
        Self::fail()
    }
}

struct Services {
    model: Option<Arc<ScriptedModel>>,
    short: Adapters,
}

impl NamedServices for Services {
    fn model(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn ChatModel>, BuildError> {
        let model = self.model.clone().ok_or_else(|| BuildError::new(owner, format!("no model {id}")))?;
        Ok(model)
    }

    fn memory(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn Memory>, BuildError> {
        if id == "offline" {
            return Ok(Arc::new(OfflineMemory));
        }
        let node = NodeSummary { id: id.into(), type_name: "buffer-memory".to_owned(), name: String::new() };
        let props = serde_json::Map::new();
        let build = self.short.memories.get("buffer-memory").ok_or_else(|| BuildError::new(owner, "none"))?;
        build(NodeConfig::new(&node, &props, &|_| None, &|_| ()))
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        let (data, clock) =
            (Arc::new(tempfile::tempdir().unwrap()), Arc::new(TestClock(AtomicU64::new(NOON))));
        let archive = Arc::new(SqliteArchive::new(data.path(), clock.clone()));
        let embedder_fails = Arc::new(AtomicBool::new(false));
        Self {
            data,
            clock,
            archive,
            embedder_fails,
            finds_meaning: true,
            embedder_id: "words",
            is_cached: false,
            context: None,
            meter: Arc::new(NoMeter),
            memory_clock: None,
        }
    }

    /// Another process with the same file.
    pub(crate) fn other_process(&self) -> Self {
        Self {
            data: self.data.clone(),
            clock: self.clock.clone(),
            archive: Arc::new(SqliteArchive::new(self.data.path(), self.clock.clone())),
            embedder_fails: self.embedder_fails.clone(),
            context: self.context.clone(),
            meter: self.meter.clone(),
            memory_clock: self.memory_clock.clone(),
            ..*self
        }
    }

    /// The memory of the node `n7` on `tab1`.
    pub(crate) fn memory(&self, props: &Value) -> Arc<dyn Memory> {
        self.memory_of("n7", props, None)
    }

    /// The same with a model.
    pub(crate) fn with_model(&self, props: &Value, model: &Arc<ScriptedModel>) -> Arc<dyn Memory> {
        let mut props = props.clone();
        props["model"] = json!("m");
        self.memory_of("n7", &props, Some(Arc::clone(model)))
    }

    pub(crate) fn memory_of(
        &self,
        id: &str,
        props: &Value,
        model: Option<Arc<ScriptedModel>>,
    ) -> Arc<dyn Memory> {
        let mut adapters = Adapters::default();
        let (fails, finds_meaning, own_id, is_cached) =
            (self.embedder_fails.clone(), self.finds_meaning, self.embedder_id, self.is_cached);
        let embedder = move |_: NodeConfig<'_>| {
            let fails = fails.clone();
            let source: EmbedderSource = Arc::new(move |_| {
                let info = EmbedderInfo {
                    id: own_id.to_owned(),
                    dimensions: DIMENSIONS as u32,
                    max_bytes: 8_000,
                    finds_meaning,
                    is_cached,
                };
                Ok(Arc::new(WordEmbedder { info, fails: fails.clone() }))
            });
            Ok::<_, BuildError>(source)
        };
        let settings = LongMemorySettings {
            archive: self.archive.clone(),
            embedder: Arc::new(embedder),
            meter: self.meter.clone(),
            clock: self.memory_clock.clone().unwrap_or_else(|| self.clock.clone()),
            context: self.context.clone(),
        };
        register(&mut adapters, settings);
        let mut short = Adapters::default();
        redflow_memory::register(&mut short, MemorySettings::default());
        let services = Services { model, short };
        let node = NodeSummary { id: id.into(), type_name: "long-memory".to_owned(), name: String::new() };
        let plain = NodeConfig::new(&node, props.as_object().unwrap(), &|_| None, &|_| ());
        let config = NodeConfig { services: &services, flow: "tab1", ..plain };
        adapters.memories.get("long-memory").unwrap()(config).unwrap()
    }

    /// All entries of the memory `tab1/n7`, in every state.
    pub(crate) async fn all(&self) -> Vec<Entry> {
        let name = format!("{LONG_MEMORY_PREFIX}tab1/n7");
        let (mut all, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = self.archive.list(&name, EntryFilter::default(), after.as_deref(), 500).await.unwrap();
            after = page.last().map(|entry| entry.key.clone());
            let is_last = page.len() < 500;
            all.extend(page);
            if is_last {
                return all;
            }
        }
    }

    /// The texts of the entries that are no turns, in these states.
    pub(crate) async fn facts(&self, state: EntryState) -> Vec<String> {
        let all = self.all().await.into_iter();
        let facts = all.filter(|entry| !entry.key.starts_with("turn-") && entry.state == state);
        facts.map(|entry| entry.text).collect()
    }

    /// The states of the turns.
    pub(crate) async fn turn_states(&self) -> Vec<EntryState> {
        let all = self.all().await.into_iter();
        all.filter(|entry| entry.key.starts_with("turn-")).map(|entry| entry.state).collect()
    }
}

/// The messages of a turn.
pub(crate) fn messages(user: &str, assistant: &str) -> Vec<ChatMessage> {
    vec![ChatMessage::new(ChatRole::User, user), ChatMessage::new(ChatRole::Assistant, assistant)]
}

/// A turn of a user at a time, with what its run has recalled.
pub(crate) struct TestTurn<'a> {
    pub(crate) run: &'a str,
    pub(crate) session: &'a str,
    pub(crate) user: Option<&'a str>,
    pub(crate) at: u64,
    pub(crate) sources: Vec<Source>,
}

impl<'a> TestTurn<'a> {
    /// A turn of Ada in the session `tab1:s`.
    pub(crate) fn new(run: &'a str) -> Self {
        Self { run, session: "tab1:s", user: Some("ada"), at: NOON, sources: Vec::new() }
    }

    pub(crate) async fn append(
        &self,
        memory: &Arc<dyn Memory>,
        user: &str,
        assistant: &str,
    ) -> Result<(), Failure> {
        let (run, messages): (RunId, _) = (self.run.into(), messages(user, assistant));
        let Self { session, user, at, sources, .. } = self;
        let turn = Turn { user: *user, at: *at, sources, ..Turn::new(session, &run, &messages) };
        memory.append(turn).await
    }
}

/// Recalls for a user in the session `tab1:s`.
pub(crate) async fn recall(memory: &Arc<dyn Memory>, user: Option<&str>, input: &str) -> Recalled {
    memory.recall(Recall { user, input, at: NOON, ..Recall::new("tab1:s") }).await.unwrap()
}

/// The entries of the recalled notes, as the model reads them.
pub(crate) fn notes(recalled: &Recalled) -> Vec<Value> {
    let Some(message) =
        recalled.turns.first().filter(|message| message.content.starts_with("Notes recalled"))
    else {
        return Vec::new();
    };
    message.content.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The texts of the recalled notes.
pub(crate) fn texts(recalled: &Recalled) -> Vec<String> {
    notes(recalled).iter().map(|note| note["text"].as_str().unwrap().to_owned()).collect()
}
