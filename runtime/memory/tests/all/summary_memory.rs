//! `summary-memory` over memories in the process and in Redis.

use crate::kit::{append, append_of, append_turn, assistant, build, failure, process, recall, user};
use crate::redis_server::RedisServer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pretty_assertions::assert_eq;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::id::NodeSummary;
use redflow_contract::memory::DataOwner;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::ChatMessage;
use redflow_memory::MemorySettings;
use redflow_ports::{
    BoxFuture, BuildError, ChatModel, MaintenanceReason, MaintenanceTimes, Memory, ModelInfo, ModelRequest,
    NamedServices, NodeConfig,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A model that writes down the text of every user message. It can be told to give other answers.
#[derive(Default)]
struct ListingModel {
    info: ModelInfo,
    /// What to answer instead, in this order.
    others: Mutex<Vec<Result<ModelAnswer, Failure>>>,
    /// The bytes of each request.
    requests: Mutex<Vec<usize>>,
    /// Called in the middle of a call.
    during: Option<Box<dyn Fn() + Send + Sync>>,
    /// Whether it never answers.
    hangs: bool,
}

impl ListingModel {
    fn answer_with(&self, answer: Result<ModelAnswer, Failure>) {
        self.others.lock().unwrap().push(answer);
    }

    fn calls(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn text(text: &str) -> ModelAnswer {
    let usage = Some(Usage { input_tokens: 7, output_tokens: 2, ..Usage::default() });
    ModelAnswer { text: text.to_owned(), usage, ..ModelAnswer::default() }
}

impl ChatModel for ListingModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelAnswer, Failure>> {
        let question = request.transcript.segments()[1].content.clone();
        self.requests.lock().unwrap().push(question.len());
        assert_eq!(request.time_left, Some(CALL_TIME));
        Box::pin(async move {
            if self.hangs {
                return std::future::pending().await;
            }
            tokio::task::yield_now().await;
            if let Some(during) = &self.during {
                during();
            }
            if let Some(other) = self.others.lock().unwrap().pop() {
                return other;
            }
            let mut words = Vec::new();
            for line in question.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                match (line["summary"].as_str(), line["role"].as_str(), line["text"].as_str()) {
                    (Some(summary), ..) => words.push(summary.to_owned()),
                    (_, Some("user"), Some(text)) => words.push(text.to_owned()),
                    _ => (),
                }
            }
            Ok(text(&words.join(" ")))
        })
    }
}

/// The longest time of one call.
const CALL_TIME: Duration = Duration::from_secs(120);

/// One memory and one model, for every name but `none`.
struct Services(Arc<dyn Memory>, Arc<ListingModel>);

impl NamedServices for Services {
    fn model(&self, owner: &NodeSummary, id: &str) -> Result<Arc<dyn ChatModel>, BuildError> {
        if id == "none" { Err(BuildError::new(owner, "no such model")) } else { Ok(self.1.clone()) }
    }

    fn memory(&self, _: &NodeSummary, _: &str) -> Result<Arc<dyn Memory>, BuildError> {
        Ok(self.0.clone())
    }
}

fn try_summary(
    inner: &Arc<dyn Memory>,
    model: &Arc<ListingModel>,
    props: &Value,
) -> Result<Arc<dyn Memory>, String> {
    let node = NodeSummary { id: "s".into(), type_name: "summary-memory".to_owned(), name: String::new() };
    let services = Services(inner.clone(), model.clone());
    let config = NodeConfig::new(&node, props.as_object().unwrap(), &|_| None, &|_| ());
    let config = NodeConfig { services: &services, ..config };
    process(MemorySettings::default()).memories["summary-memory"](config).map_err(|error| error.reason)
}

fn summary(inner: &Arc<dyn Memory>, model: &Arc<ListingModel>, more: Value) -> Arc<dyn Memory> {
    let mut props = json!({"shortMemory": "turns", "model": "m", "summaryTokens": 20_000});
    props.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    try_summary(inner, model, &props).unwrap()
}

/// The words of the summary, and the texts of the messages after it.
async fn recalled(memory: &Arc<dyn Memory>, session: &str) -> (Vec<String>, Vec<String>) {
    let messages: Vec<ChatMessage> = recall(memory, session).await.unwrap();
    let (mut words, mut texts) = (Vec::new(), Vec::new());
    for (index, message) in messages.iter().enumerate() {
        match message.content.split_once('\n').filter(|_| index == 0) {
            Some((_, line)) => {
                let line: Value = serde_json::from_str(line).unwrap();
                words.extend(line["summary"].as_str().unwrap().split(' ').map(str::to_owned));
            }
            None => texts.push(message.content.clone()),
        }
    }
    (words, texts)
}

/// A memory in the process, one in Redis, and an encrypted one.
fn inner_memories(server: &RedisServer) -> Vec<Arc<dyn Memory>> {
    let adapters = process(MemorySettings::default());
    let sealed = json!({"encryptionKey": STANDARD.encode([1; 32]), "keyPrefix": "sealed:"});
    vec![
        build(&adapters, "buffer-memory", "n", json!({})),
        build(&adapters, "redis-memory", "n", server.props(&json!({}))),
        build(&adapters, "redis-memory", "n", server.props(&sealed)),
    ]
}

#[tokio::test]
async fn the_summary_grows_with_the_turns_and_the_last_turns_stay() {
    let server = RedisServer::start();
    for inner in inner_memories(&server) {
        let model = Arc::new(ListingModel::default());
        let memory = summary(&inner, &model, json!({"maxTokens": 60, "keepTurns": 2}));
        assert_eq!(memory.maintenance_times(), Some(MaintenanceTimes::default()));
        for run in ["a", "b", "c", "d", "e"] {
            append_turn(&memory, "f:s", run).await.unwrap();
        }
        // Five turns have 50 tokens.
        let outcome = memory.maintain(Some("f:s"), MaintenanceReason::Turn).await;
        assert_eq!((outcome.error, model.calls()), (None, 0), "there is no need yet");
        assert_eq!(recalled(&memory, "f:s").await.0, [] as [&str; 0]);
        append_turn(&memory, "f:s", "f").await.unwrap();
        append_turn(&memory, "f:s", "g").await.unwrap();
        let outcome = memory.maintain(Some("f:s"), MaintenanceReason::Time).await;
        assert_eq!((outcome.error, model.calls()), (None, 1));
        let usage = outcome.consolidated.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (7, 2));
        let expected = (vec!["a", "b", "c", "d", "e"], vec!["f", "f", "g", "g"]);
        let (words, texts) = recalled(&memory, "f:s").await;
        assert_eq!(
            (words.iter().map(String::as_str).collect(), texts.iter().map(String::as_str).collect()),
            expected
        );
        // Nothing is left to sum up, and a request needs more than the last turns.
        memory.maintain(Some("f:s"), MaintenanceReason::Request).await;
        assert_eq!(model.calls(), 1);
        append_turn(&memory, "f:s", "h").await.unwrap();
        memory.maintain(None, MaintenanceReason::Request).await;
        let (words, texts) = recalled(&memory, "f:s").await;
        assert_eq!((words.join(" "), texts.join(" ")), ("a b c d e f".to_owned(), "g g h h".to_owned()));
        assert_eq!(recall(&inner, "f:s").await.unwrap().len(), 16, "the turns stay");
        // A forgotten user takes the summary along, and a clear leaves nothing.
        append_of(&memory, "f:s", "i", "Ada", &[]).await;
        assert_eq!(memory.forget(&DataOwner::User("Ada".to_owned())).await.unwrap().conversations, 1);
        let (words, texts) = recalled(&memory, "f:s").await;
        assert_eq!((words.len(), texts.len()), (0, 16));
        memory.maintain(Some("f:s"), MaintenanceReason::Request).await;
        assert_eq!(recalled(&memory, "f:s").await.0.len(), 6);
        memory.clear("f:s").await.unwrap();
        append_turn(&memory, "f:s", "new").await.unwrap();
        assert_eq!(recall(&memory, "f:s").await.unwrap(), [user("new"), assistant("new")]);
    }
    let mut raw = server.raw().await;
    let sealed: Vec<String> =
        redis::cmd("LRANGE").arg("sealed:f:s").arg(0).arg(-1).query_async(&mut raw).await.unwrap();
    assert!(!sealed[0].contains("content"));
}

#[tokio::test]
async fn an_encrypted_summary_is_not_readable() {
    let server = RedisServer::start();
    let inner = inner_memories(&server).remove(2);
    let model = Arc::new(ListingModel::default());
    let memory = summary(&inner, &model, json!({"keepTurns": 1}));
    append_turn(&memory, "f:s", "one").await.unwrap();
    append_turn(&memory, "f:s", "two").await.unwrap();
    model.answer_with(Ok(text("my cat is Tom")));
    memory.maintain(Some("f:s"), MaintenanceReason::Request).await;
    assert_eq!(recalled(&memory, "f:s").await.0.join(" "), "my cat is Tom");
    let mut raw = server.raw().await;
    let about: Vec<String> =
        redis::cmd("HGETALL").arg("sealed:%about:f:s").query_async(&mut raw).await.unwrap();
    assert!(!about.is_empty() && !about.concat().contains("cat"), "{about:?}");
}

#[tokio::test]
async fn a_failed_empty_or_refused_summary_changes_nothing() {
    let server = RedisServer::start();
    for inner in inner_memories(&server) {
        let model = Arc::new(ListingModel::default());
        let memory = summary(&inner, &model, json!({"keepTurns": 1, "maxTokens": 1}));
        append_turn(&memory, "f:s", "1").await.unwrap();
        append_turn(&memory, "f:s", "2").await.unwrap();
        let before = recall(&memory, "f:s").await.unwrap();
        let rows = [
            (Err(failure("the model is offline")), "the model is offline"),
            (Ok(text(" \u{0}\n ")), "the model wrote an empty summary; the turns stay as they are"),
            (
                Ok(ModelAnswer { finish: ModelFinish::Refused, ..text("no") }),
                "the model refused to write a summary; the turns stay as they are",
            ),
        ];
        for (answer, expected) in rows {
            model.answer_with(answer);
            let outcome = memory.maintain(Some("f:s"), MaintenanceReason::Turn).await;
            assert_eq!(outcome.error, Some(failure(expected)));
            assert_eq!(recall(&memory, "f:s").await.unwrap(), before);
        }
        assert_eq!(memory.maintain(Some("f:s"), MaintenanceReason::Turn).await.error, None);
        assert_eq!(recalled(&memory, "f:s").await.0, ["1"]);
    }
}

#[tokio::test]
async fn what_the_model_reads_and_writes_is_bounded() {
    let inner = build(&process(MemorySettings::default()), "buffer-memory", "n", json!({}));
    let info = ModelInfo { context_window: Some(2_000), ..ModelInfo::default() };
    let model = Arc::new(ListingModel { info, ..ListingModel::default() });
    let memory = summary(&inner, &model, json!({"keepTurns": 1, "summaryTokens": 50}));
    append(&memory, "f:s", "huge", &[user(&"é".repeat(500_000))]).await.unwrap();
    for run in 0..40 {
        append(&memory, "f:s", &run.to_string(), &[user(&format!("{run:0500}"))]).await.unwrap();
    }
    memory.maintain(Some("f:s"), MaintenanceReason::Turn).await;
    assert_eq!(model.calls(), 8, "the rest waits for the next time");
    assert!(model.requests.lock().unwrap().iter().all(|bytes| *bytes < 3_500), "{:?}", model.requests);
    let first = recall(&memory, "f:s").await.unwrap().remove(0);
    assert!(first.tokens() < 50 + 60, "{}", first.tokens());
    for _ in 0..5 {
        memory.maintain(Some("f:s"), MaintenanceReason::Request).await;
    }
    assert_eq!(recalled(&memory, "f:s").await.1.len(), 1, "all but the last turn are covered in the end");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_answer_is_given_up() {
    let inner = build(&process(MemorySettings::default()), "buffer-memory", "n", json!({}));
    let model = Arc::new(ListingModel { hangs: true, ..ListingModel::default() });
    let memory = summary(&inner, &model, json!({"keepTurns": 1}));
    for run in ["1", "2"] {
        append_turn(&memory, "f:s", run).await.unwrap();
    }
    let before = tokio::time::Instant::now();
    let outcome = memory.maintain(Some("f:s"), MaintenanceReason::Request).await;
    assert_eq!(outcome.error, Some(failure("the model wrote no summary within 120 s")));
    assert_eq!((before.elapsed(), model.calls()), (CALL_TIME, 1));
    assert_eq!(recall(&memory, "f:s").await.unwrap().len(), 4, "the turns stay");
}

#[tokio::test]
async fn a_request_for_all_sums_up_a_thousand_conversations() {
    let inner = build(&process(MemorySettings::default()), "buffer-memory", "n", json!({}));
    let model = Arc::new(ListingModel::default());
    let memory = summary(&inner, &model, json!({"keepTurns": 1}));
    for session in 0..1_020 {
        for run in ["1", "2"] {
            append_turn(&memory, &format!("f:{session}"), run).await.unwrap();
        }
    }
    assert_eq!(memory.maintain(None, MaintenanceReason::Request).await.error, None);
    assert_eq!(model.calls(), 1_000);
    memory.maintain(None, MaintenanceReason::Request).await;
    assert_eq!(model.calls(), 1_000, "none is left");
    // The turns of the others are there, and wait for their next turn.
    append_turn(&memory, "f:0", "3").await.unwrap();
    memory.maintain(None, MaintenanceReason::Request).await;
    assert_eq!(model.calls(), 1_001);
}

#[tokio::test]
async fn a_summary_memory_needs_a_fitting_memory_and_a_model() {
    let inner = build(&process(MemorySettings::default()), "buffer-memory", "n", json!({}));
    let model = Arc::new(ListingModel::default());
    let nested = summary(&inner, &model, json!({}));
    let fitting = "name a buffer-memory, a window-memory or a redis-memory";
    let rows = [
        (&inner, json!({"model": "m"}), format!("its shortMemory is missing; {fitting}")),
        (
            &nested,
            json!({"model": "m", "shortMemory": "x"}),
            format!("its shortMemory cannot keep summaries; {fitting}"),
        ),
        (&inner, json!({"shortMemory": "x"}), "its model is missing; name a model of the flow".to_owned()),
        (&inner, json!({"shortMemory": "x", "model": "none"}), "no such model".to_owned()),
    ];
    for (inner, props, expected) in rows {
        assert_eq!(try_summary(inner, &model, &props).err(), Some(expected), "{props}");
    }
    append_turn(&nested, "f:s", "1").await.unwrap();
    assert_eq!(nested.stats().await.unwrap().conversations, Some(1));
    assert_eq!(nested.check().await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_lose_no_turn_and_no_summary() {
    let server = RedisServer::start();
    let tasks = (0..2).map(|number| {
        let props = server.props(&json!({"maxMessages": 10_000}));
        let inner = build(&process(MemorySettings::default()), "redis-memory", "n", props);
        let memory =
            summary(&inner, &Arc::new(ListingModel::default()), json!({"maxTokens": 100, "keepTurns": 3}));
        tokio::spawn(async move {
            for turn in 0..100 {
                append_turn(&memory, "f:s", &format!("{number}-{turn}")).await.unwrap();
                let outcome = memory.maintain(Some("f:s"), MaintenanceReason::Turn).await;
                assert_eq!(outcome.error, None);
            }
            memory
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut memory = None;
    for task in tasks {
        memory = Some(task.await.unwrap());
    }
    let (mut words, texts) = recalled(&memory.unwrap(), "f:s").await;
    assert!(words.len() > 100, "most turns are summed up: {}", words.len());
    words.extend(texts.into_iter().step_by(2));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let expected: BTreeMap<String, usize> =
        (0..2).flat_map(|number| (0..100).map(move |turn| (format!("{number}-{turn}"), 1))).collect();
    assert_eq!(counts, expected, "each turn once: in the summary, or after it");
}

#[tokio::test]
async fn a_redis_that_is_killed_during_a_summary_loses_nothing() {
    let server = Arc::new(Mutex::new(RedisServer::start()));
    let props = server.lock().unwrap().props(&json!({}));
    let inner = build(&process(MemorySettings::default()), "redis-memory", "n", props);
    let killed = Arc::clone(&server);
    let during: Box<dyn Fn() + Send + Sync> = Box::new(move || killed.lock().unwrap().kill());
    let killer = Arc::new(ListingModel { during: Some(during), ..ListingModel::default() });
    let memory = summary(&inner, &killer, json!({"keepTurns": 1}));
    for run in ["1", "2", "3"] {
        append_turn(&memory, "f:s", run).await.unwrap();
    }
    let outcome = memory.maintain(Some("f:s"), MaintenanceReason::Request).await;
    assert_eq!(outcome.error, Some(failure("Redis cannot be reached")));
    assert_eq!(append_turn(&memory, "f:s", "4").await, Err(failure("Redis cannot be reached")));
    server.lock().unwrap().restart();
    let calm = summary(&inner, &Arc::new(ListingModel::default()), json!({"keepTurns": 1}));
    assert_eq!(
        recalled(&calm, "f:s").await,
        (vec![], ["1", "1", "2", "2", "3", "3"].map(str::to_owned).to_vec())
    );
    append_turn(&calm, "f:s", "4").await.unwrap();
    assert_eq!(calm.maintain(Some("f:s"), MaintenanceReason::Request).await.error, None);
    assert_eq!(recalled(&calm, "f:s").await.0, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_lost_race_is_no_error_and_loses_nothing() {
    let server = RedisServer::start();
    for inner in inner_memories(&server) {
        let other = summary(&inner, &Arc::new(ListingModel::default()), json!({"keepTurns": 1}));
        let cleared = Arc::clone(&inner);
        let memory = summary(&inner, &Arc::new(ListingModel::default()), json!({"keepTurns": 1}));
        for run in ["1", "2", "3"] {
            append_turn(&memory, "f:s", run).await.unwrap();
        }
        let (one, two) = futures::future::join(
            memory.maintain(Some("f:s"), MaintenanceReason::Request),
            other.maintain(Some("f:s"), MaintenanceReason::Request),
        )
        .await;
        assert_eq!((one.error, two.error), (None, None));
        let (words, texts) = recalled(&memory, "f:s").await;
        assert_eq!((words.join(" "), texts.join(" ")), ("1 2".to_owned(), "3 3".to_owned()));
        // A conversation that is cleared during the call stays cleared.
        append_turn(&memory, "f:t", "1").await.unwrap();
        append_turn(&memory, "f:t", "2").await.unwrap();
        let (outcome, _) =
            futures::future::join(memory.maintain(Some("f:t"), MaintenanceReason::Request), async {
                tokio::task::yield_now().await;
                cleared.clear("f:t").await
            })
            .await;
        assert_eq!(outcome.error, None);
        assert_eq!(recall(&memory, "f:t").await.unwrap(), []);
    }
}

/// The words of the summary and the texts after it, each in one line.
async fn lines(memory: &Arc<dyn Memory>) -> (String, String) {
    let (words, texts) = recalled(memory, "f:s").await;
    (words.join(" "), texts.join(" "))
}

fn pair(summary: &str, turns: &str) -> (String, String) {
    (summary.to_owned(), turns.to_owned())
}

#[tokio::test]
async fn each_tag_filter_has_its_own_summary() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let sealed = json!({"encryptionKey": STANDARD.encode([1; 32]), "keyPrefix": "sealed:"});
    for (type_name, base) in [
        ("buffer-memory", json!({})),
        ("redis-memory", server.props(&json!({}))),
        ("redis-memory", server.props(&sealed)),
    ] {
        let with = |filter: Value| {
            let mut props = base.clone();
            props.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
            let inner = build(&adapters, type_name, "n", props);
            summary(&inner, &Arc::new(ListingModel::default()), json!({"keepTurns": 1}))
        };
        let (bugs, ideas, every) =
            (with(json!({"recallTags": ["bug"]})), with(json!({"recallTags": ["idea"]})), with(json!({})));
        for (run, tags) in [
            ("b1", &["bug"][..]),
            ("i1", &["idea"]),
            ("x1", &["bug", "idea"]),
            ("i2", &["idea"]),
            ("b2", &["bug"]),
        ] {
            append_of(&bugs, "f:s", run, "Ada", tags).await;
        }
        bugs.maintain(Some("f:s"), MaintenanceReason::Request).await;
        assert_eq!(lines(&bugs).await, pair("b1 x1", "b2 b2"), "{type_name}");
        // No word of a bug reaches another filter, and none of its turns disappears.
        assert_eq!(lines(&ideas).await, pair("", "i1 i1 x1 x1 i2 i2"), "{type_name}");
        assert_eq!(lines(&every).await, pair("", "b1 b1 i1 i1 x1 x1 i2 i2 b2 b2"), "{type_name}");
        for memory in [&ideas, &every] {
            assert_eq!(memory.maintain(Some("f:s"), MaintenanceReason::Request).await.error, None);
        }
        let all = [
            (&bugs, pair("b1 x1", "b2 b2")),
            (&ideas, pair("i1 x1", "i2 i2")),
            (&every, pair("b1 i1 x1 i2", "b2 b2")),
        ];
        for (memory, expected) in &all {
            assert_eq!(lines(memory).await, *expected, "{type_name}");
        }
        // Filters that pass the same turns share a summary; others do not.
        let both = with(json!({"recallTags": ["idea", "bug"], "tagMatch": "all"}));
        assert_eq!(lines(&both).await, pair("", "x1 x1"));
        let any = with(json!({"recallTags": ["idea", "bug"]}));
        any.maintain(Some("f:s"), MaintenanceReason::Request).await;
        assert_eq!(lines(&any).await, pair("b1 i1 x1 i2", "b2 b2"));
        assert_eq!(lines(&with(json!({"recallTags": ["bug", "idea"]}))).await, lines(&any).await);
        assert_eq!(lines(&both).await, pair("", "x1 x1"));
        let one = with(json!({"recallTags": "bug", "tagMatch": "all"}));
        assert_eq!(lines(&one).await, lines(&bugs).await);
        // A forgotten user takes all of them along.
        append_of(&every, "f:s", "c1", "Bob", &["bug", "idea"]).await;
        every.forget(&DataOwner::User("Ada".to_owned())).await.unwrap();
        for memory in [&bugs, &ideas, &every, &any] {
            assert_eq!(lines(memory).await, pair("", "c1 c1"), "{type_name}");
        }
        // And so does a clear.
        append_of(&every, "f:s", "c2", "Bob", &["bug"]).await;
        for memory in [&bugs, &every] {
            memory.maintain(Some("f:s"), MaintenanceReason::Request).await;
            assert_eq!(lines(memory).await, pair("c1", "c2 c2"), "{type_name}");
        }
        ideas.clear("f:s").await.unwrap();
        append_of(&every, "f:s", "new", "Bob", &["bug"]).await;
        for memory in [&bugs, &every] {
            assert_eq!(lines(memory).await, pair("", "new new"), "{type_name}");
        }
    }
}

/// A summary that an earlier version stored has no name of a filter.
#[tokio::test]
async fn a_stored_summary_of_all_turns_stays_valid_and_fields_show_no_tag() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let memory = |filter: Value| {
        let inner = build(&adapters, "redis-memory", "n", server.props(&filter));
        summary(&inner, &Arc::new(ListingModel::default()), json!({"keepTurns": 1}))
    };
    let (every, bugs) = (memory(json!({})), memory(json!({"recallTags": ["bug"]})));
    for run in ["1", "2", "3"] {
        append_of(&every, "f:s", run, "Ada", &["bug"]).await;
    }
    let mut raw = server.raw().await;
    let about = "agent:memory:%about:f:s";
    let _: usize = redis::cmd("HSET")
        .arg(about)
        .arg(&["until", "2", "summary", r#"{"v":1,"text":"before"}"#])
        .query_async(&mut raw)
        .await
        .unwrap();
    assert_eq!(lines(&every).await, pair("before", "3 3"));
    assert_eq!(lines(&bugs).await, pair("", "1 1 2 2 3 3"));
    bugs.maintain(Some("f:s"), MaintenanceReason::Request).await;
    assert_eq!(lines(&every).await, pair("before", "3 3"));
    let fields: Vec<String> = redis::cmd("HKEYS").arg(about).query_async(&mut raw).await.unwrap();
    assert_eq!(fields.iter().filter(|field| field.starts_with("summary:")).count(), 1, "{fields:?}");
    assert!(!fields.concat().contains("bug"), "{fields:?}");
}
