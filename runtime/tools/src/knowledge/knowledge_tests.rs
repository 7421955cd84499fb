use super::{KnowledgeBaseTool, KnowledgeSettings};
use crate::knowledge::DEFAULT_TOP_K;
use pretty_assertions::assert_eq;
use redflow_archive::SqliteArchive;
use redflow_contract::archive::{EntryKind, PassageMetadata};
use redflow_contract::digest::Digest;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::node::EffectClass;
use redflow_knowledge::KnowledgeBase;
use redflow_ports::{
    Archive, ArchiveError, BoxFuture, Clock, EmbedPurpose, Embedded, Embedder, EmbedderInfo, EmbedderSource,
    NewCollection, NewEntry, NodeConfig, Tool, ToolOutcome,
};
use serde_json::{Value, json};
use std::sync::Arc;

struct TestClock;

impl Clock for TestClock {
    fn now(&self) -> u64 {
        1_000_000
    }
    fn run_id(&self) -> RunId {
        "run".into()
    }
    fn message_id(&self) -> String {
        String::new()
    }
}

/// One dimension for each of two words.
struct TwoWords(EmbedderInfo);

impl Embedder for TwoWords {
    fn info(&self) -> &EmbedderInfo {
        &self.0
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        _: EmbedPurpose,
    ) -> BoxFuture<'a, Result<Embedded, ArchiveError>> {
        let vector =
            |text: &String| ["refund", "pump"].map(|word| f32::from(u8::from(text.contains(word)))).to_vec();
        let vectors = texts.iter().map(vector).collect();
        Box::pin(std::future::ready(Ok(Embedded { vectors, tokens: 0, cost: None })))
    }
}

fn source(_: NodeConfig<'_>) -> Result<EmbedderSource, redflow_ports::BuildError> {
    Ok(Arc::new(|settings| {
        let id = settings.get("id").and_then(Value::as_str).unwrap_or("two").to_owned();
        let info = EmbedderInfo { id, dimensions: 2, max_bytes: 100, finds_meaning: true, is_cached: false };
        Ok(Arc::new(TwoWords(info)))
    }))
}

struct Place {
    archive: Arc<SqliteArchive>,
    _data: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        Self { archive: Arc::new(SqliteArchive::new(data.path(), Arc::new(TestClock))), _data: data }
    }

    fn tool(&self, props: &Value) -> Result<Arc<dyn Tool>, String> {
        let settings =
            KnowledgeSettings { base: KnowledgeBase::new(self.archive.clone()), embedder: Arc::new(source) };
        let node =
            NodeSummary { id: "t".into(), type_name: "knowledge-base-tool".to_owned(), name: String::new() };
        let config = NodeConfig::new(&node, props.as_object().unwrap(), &|_| None, &|_| ());
        KnowledgeBaseTool::build(config, &settings).map_err(|error| error.to_string())
    }

    async fn fill(&self) {
        let new = NewCollection {
            name: "kb/shop".to_owned(),
            embedder: "two".to_owned(),
            dimensions: 2,
            settings: serde_json::Map::new(),
        };
        self.archive.create_collection(new).await.unwrap();
        let entry = |number: u32, text: &str, vector: [f32; 2], tag: &str| {
            let metadata = PassageMetadata {
                document: "shop.md".to_owned(),
                title: "Shop".to_owned(),
                chunk: number,
                ..PassageMetadata::default()
            };
            NewEntry {
                vector: Some(vector.to_vec()),
                meta: serde_json::to_value(metadata).unwrap().as_object().unwrap().clone(),
                tags: vec![tag.to_owned()],
                ..NewEntry::new(format!("shop.md#{number}"), EntryKind::Chunk, text)
            }
        };
        let mut entries = vec![entry(1, "A refund takes five days.", [1.0, 0.0], "money")];
        entries.extend((2..40).map(|n| entry(n, &format!("The pump has part {n}."), [0.0, 1.0], "pump")));
        self.archive.put("kb/shop", entries).await.unwrap();
    }
}

async fn call(tool: &Arc<dyn Tool>, input: Value) -> Result<Value, String> {
    let result = call_result(tool, input).await;
    result.output.ok_or_else(|| result.error.unwrap_or_default())
}

async fn call_result(tool: &Arc<dyn Tool>, input: Value) -> ToolResult {
    let call = ToolCall {
        run_id: "run".into(),
        iteration: 1,
        call_id: "run:1".into(),
        tool: "knowledge_base_search".to_owned(),
        node: "t".into(),
        agent: "a".into(),
        input: input.as_object().unwrap().clone(),
        idempotency_key: Digest::ZERO,
        timeout_ms: 1_000,
        declared: None,
        operation: None,
        conversation: Default::default(),
    };
    match tool.call(&call).await {
        ToolOutcome::Returned(result) => result,
        ToolOutcome::Unknown { reason } => panic!("{reason}"),
    }
}

#[tokio::test]
async fn a_model_gets_the_right_passage() {
    let place = Place::new();
    place.fill().await;
    let tool = place.tool(&json!({"collection": "shop"})).unwrap();
    assert_eq!(tool.effect(&serde_json::Map::new()), EffectClass::Read);
    let found = call(&tool, json!({"query": "What is the refund policy?"})).await.unwrap();
    let metadata = json!({"document": "shop.md", "title": "Shop", "chunk": 1, "addedAt": 1_000_000});
    let passage = json!({"content": "A refund takes five days.", "score": 1.0, "metadata": metadata});
    assert_eq!(found, json!({"results": [passage]}));
}

#[tokio::test]
async fn a_result_says_where_each_passage_comes_from() {
    let place = Place::new();
    place.fill().await;
    let tool = place.tool(&json!({"collection": "shop"})).unwrap();
    let found = call_result(&tool, json!({"query": "pump", "limit": 2})).await;
    let contents: Vec<&str> =
        [0, 1].map(|n| found.output.as_ref().unwrap()["results"][n]["content"].as_str().unwrap()).into();
    let source = |content: &str| {
        let part = content.trim_start_matches("The pump has part ").trim_end_matches('.');
        json!({"kind": "knowledge", "ref": format!("shop/shop.md#{part}"), "score": 1.0,
            "digest": Digest::of(content.as_bytes()).to_hex(), "trust": "external"})
    };
    let expected: Vec<Value> = contents.into_iter().map(source).collect();
    assert_eq!(serde_json::to_value(found.sources).unwrap(), json!(expected));
    let none = call_result(&tool, json!({"query": ""})).await;
    assert!(!none.success && none.sources.is_empty());
}

#[tokio::test]
async fn the_node_bounds_what_a_model_asks_for() {
    let place = Place::new();
    place.fill().await;
    let count = async |props: Value, input: Value| {
        let found = call(&place.tool(&props).unwrap(), input).await.unwrap();
        found["results"].as_array().unwrap().len()
    };
    let pump = json!({"query": "pump"});
    assert_eq!(count(json!({"collection": "shop"}), pump.clone()).await, DEFAULT_TOP_K as usize);
    assert_eq!(count(json!({"collection": "shop"}), json!({"query": "pump", "limit": 1000})).await, 20);
    assert_eq!(
        count(json!({"collection": "shop", "topK": 2}), json!({"query": "pump", "limit": 7})).await,
        7
    );
    assert_eq!(
        count(json!({"collection": "shop", "topK": 2}), json!({"query": "pump", "limit": 0})).await,
        1
    );
    assert_eq!(count(json!({"collection": "shop", "options": {"topK": 3}}), pump.clone()).await, 3);
    assert_eq!(count(json!({"collection": "shop", "tags": "money"}), pump.clone()).await, 0);
    assert_eq!(count(json!({"collection": "shop", "tags": "money", "minScore": 0}), pump.clone()).await, 1);
    assert_eq!(count(json!({"collection": "shop", "mode": "lexical"}), json!({"query": "takes"})).await, 1);
}

#[tokio::test]
async fn a_search_that_cannot_be_made_says_why() {
    let place = Place::new();
    let tool = place.tool(&json!({"collection": " shop "})).unwrap();
    let problem = call(&tool, json!({"query": "x"})).await.unwrap_err();
    assert!(problem.starts_with("Knowledge base search failed: COLLECTION_UNKNOWN: "), "{problem}");
    let problem = call(&tool, json!({"query": "  "})).await.unwrap_err();
    assert_eq!(problem, "Knowledge base search failed: `query` must be a text");
    place.fill().await;
    assert!(call(&tool, json!({"query": "refund"})).await.is_ok(), "the knowledge base may come later");
    let other = NewCollection {
        name: "kb/other".to_owned(),
        embedder: "three".to_owned(),
        dimensions: 2,
        settings: serde_json::Map::new(),
    };
    place.archive.create_collection(other).await.unwrap();
    let tool = place.tool(&json!({"collection": "other"})).unwrap();
    let problem = call(&tool, json!({"query": "x"})).await.unwrap_err();
    assert!(problem.contains("EMBEDDER_MISMATCH"), "{problem}");
    for props in [json!({}), json!({"collection": " "})] {
        let problem = place.tool(&props).map(drop).unwrap_err();
        assert_eq!(problem, "`t` cannot be built: `collection` names no knowledge base");
    }
}

#[tokio::test]
async fn a_large_result_keeps_the_best_passages() {
    let place = Place::new();
    place.fill().await;
    let long = |n: usize| NewEntry {
        vector: Some(vec![1.0, 0.0]),
        ..NewEntry::new(format!("long{n:02}"), EntryKind::Chunk, "long ".repeat(6_000))
    };
    place.archive.put("kb/shop", (0..20).map(long).collect()).await.unwrap();
    let tool = place.tool(&json!({"collection": "shop", "topK": 20})).unwrap();
    let result = call_result(&tool, json!({"query": "refund"})).await;
    assert_eq!(result.sources.len(), 7, "only passages that are returned");
    let found = result.output.unwrap();
    assert_eq!(found["results"].as_array().unwrap().len(), 7, "one short passage, and six of 30 kB");
    assert!(found.to_string().len() < 200 * 1024);
}

#[tokio::test]
async fn a_deploy_learns_what_is_missing() {
    let place = Place::new();
    let notices = async |props: Value| {
        let notices = place.tool(&props).unwrap().notices().await;
        notices.iter().map(|notice| format!("{} {}", notice.code, notice.message)).collect::<Vec<_>>()
    };
    let unknown = "COLLECTION_UNKNOWN there is no knowledge base `shop` yet: a search in it fails";
    assert_eq!(notices(json!({"collection": "shop"})).await, [unknown]);
    place.fill().await;
    assert_eq!(notices(json!({"collection": "shop"})).await, [] as [&str; 0]);
    let words = NewCollection {
        name: "kb/words".to_owned(),
        embedder: "hash".to_owned(),
        dimensions: 2,
        settings: json!({"embeddings": "hash"}).as_object().unwrap().clone(),
    };
    place.archive.create_collection(words).await.unwrap();
    let lexical = "EMBEDDINGS_LEXICAL the knowledge base `words` has no embedding model: a search in it finds words, not \
                   meaning";
    assert_eq!(notices(json!({"collection": "words"})).await, [lexical]);
    assert_eq!(
        notices(json!({"collection": "words", "mode": "lexical"})).await,
        [] as [&str; 0],
        "as it was asked for"
    );
}
