//! Starts by the id of a node, answered when their runs are stored; and keys, which begin at most one run.

use crate::kit::{
    Buffered, EngineTest, Setup, agent, agent_with_tool, build, calculator, debug, ends, final_answer,
    inject, model, model_double, node, order, tool_call, tool_double, with,
};
use crate::test_store::{Fault, TestStore};
use pretty_assertions::assert_eq;
use redflow_contract::code::{RunErrorCode, StoreCode};
use redflow_contract::digest::Digest;
use redflow_contract::id::{InstanceId, NodeSummary, RunId};
use redflow_contract::run::RunStatus;
use redflow_engine::{Engine, EngineLimits, RunEnd, StartError, StartKey, StartOrder, StartOutcome};
use redflow_store::{MemoryStore, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The runs of a start, one line each.
fn runs(started: &StartOutcome) -> Vec<String> {
    started
        .runs
        .iter()
        .map(|(run, NodeSummary { id, type_name, .. })| format!("{run} {id} {type_name}"))
        .collect()
}

fn refused(started: &StartOutcome) -> Vec<String> {
    ends(&started.refused)
}

/// `a`, which takes a minute, feeds `b`.
fn slow_cascade() -> Value {
    json!([
        inject(&["a"]),
        agent("a", "m", &["b", "d"]),
        agent("b", "m", &["d"]),
        with(model("m", json!([final_answer("hi")])), json!({"delayMs": 60_000})),
        calculator(),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn answers_a_start_when_its_run_is_stored() {
    let test = EngineTest::new(&slow_cascade());
    let began = tokio::time::Instant::now();
    let started = test.start(order(Some("a"), Some(json!("go")), None)).await.unwrap();
    assert_eq!((runs(&started), refused(&started)), (vec!["run-1 a agent-core".to_owned()], vec![]));
    assert_eq!(began.elapsed(), Duration::ZERO, "the answer does not wait for the model");
    // The run is stored, so it survives a crash now.
    assert_eq!(test.store.runs()[0].0.run_id, RunId::from("run-1"));
    let reports = started.reports.await.unwrap();
    assert_eq!(ends(&reports), ["run-1 a completed", "run-2 b completed"]);
    assert_eq!(test.recorder.flow_lines(), ["d: \"hi\"", "d: \"hi\""]);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledged_run_survives_a_crash() {
    let test = EngineTest::new(&slow_cascade());
    let started = test.start(order(None, None, None)).await.unwrap();
    let store = Arc::clone(&test.store);
    test.kill().await;
    store.crash(|| 0.0);
    let test = EngineTest::restart(&slow_cascade(), &store);
    assert_eq!(ends(&test.recover().await), ["run-1 a completed", "run-2 b completed"]);
    drop(started);
}

#[tokio::test(start_paused = true)]
async fn answers_a_start_only_after_the_disk() {
    let test = Setup { fault: Fault::Slow, ..Setup::default() }.start_engine(&slow_cascade());
    let start = test.start(order(Some("a"), Some(json!(1)), None));
    tokio::pin!(start);
    assert!(timeout(Duration::from_millis(4_900), &mut start).await.is_err(), "it is not on the disk yet");
    assert_eq!(runs(&start.await.unwrap()), ["run-1 a agent-core"]);
}

#[tokio::test(start_paused = true)]
async fn lists_all_runs_of_a_start_in_order() {
    let flow = json!([
        inject(&["j", "refused", "b", "d"]),
        node("j", "junction", json!([["a"]])),
        agent("a", "m", &["b"]),
        agent("b", "m", &[]),
        with(agent("refused", "m", &["c"]), json!({"strategy": "cot"})),
        agent("c", "m", &[]),
        with(model("m", json!([final_answer("hi")])), json!({"delayMs": 1_000})),
        calculator(),
        debug("d", "payload"),
    ]);
    let test = EngineTest::new(&flow);
    let started = test.start(order(Some("i"), None, None)).await.unwrap();
    // The error of the refused agent reaches `c` at once. The result of `a` comes a second later and is not
    // listed.
    let direct = ["run-2 b agent-core", "run-3 a agent-core", "run-4 c agent-core"];
    assert_eq!(runs(&started), direct);
    assert_eq!(refused(&started), ["run-1 refused refused CONFIG_INVALID"]);
    let all = [
        "run-1 refused refused CONFIG_INVALID",
        "run-2 b completed",
        "run-3 a completed",
        "run-4 c completed",
        "run-5 b completed",
    ];
    assert_eq!(ends(&started.reports.await.unwrap()), all);
}

#[tokio::test(start_paused = true)]
async fn an_inject_that_reaches_no_agent_begins_no_run() {
    let flow = json!([
        inject(&["d"]),
        debug("d", "payload"),
        agent("a", "m", &[]),
        model("m", json!([final_answer("hi")])),
        calculator(),
    ]);
    let test = EngineTest::new(&flow);
    let started = test.start(order(Some("i"), Some(json!({"n": 1})), None)).await.unwrap();
    assert_eq!((runs(&started), refused(&started)), (vec![], vec![]));
    assert_eq!(test.recorder.flow_lines(), ["d: {\"n\":1}"], "the message has arrived");
    assert_eq!(ends(&started.reports.await.unwrap()), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn refuses_runs_that_cannot_be_stored() {
    let test = Setup { fault: Fault::Batch(1), ..Setup::default() }.start_engine(&slow_cascade());
    for key in [None, Some("k")] {
        let started = test.start(order(Some("a"), Some(json!(1)), key)).await.unwrap();
        let [report] = started.refused.as_slice() else { panic!("{started:?}") };
        assert!(started.runs.is_empty());
        let RunEnd::Refused { error, .. } = &report.end else { panic!("{report:?}") };
        assert_eq!(error.code, RunErrorCode::JournalFailed);
        // The error goes on to `b`, whose run cannot be stored either.
        assert_eq!(started.reports.await.unwrap().len(), 2);
    }
    let limits = EngineLimits { max_active: 0, max_queued: 0, ..EngineLimits::default() };
    let test = Setup { limits, ..Setup::default() }.start_engine(&slow_cascade());
    let started = test.start(order(Some("a"), Some(json!(1)), Some("k"))).await.unwrap();
    assert_eq!(refused(&started), ["run-1 a refused QUEUE_FULL", "run-2 b refused QUEUE_FULL"]);
}

/// `a` has one inject node, `b` has two, `c` has none.
fn several_agents() -> Value {
    let inject = |id: &str, to: &str| with(inject(&[to]), json!({"id": id}));
    json!([
        inject("i1", "a"),
        inject("i2", "b"),
        inject("i3", "b"),
        agent("a", "m", &[]),
        agent("b", "m", &[]),
        with(agent("c", "m", &["d"]), json!({"name": "C\u{1b}[1m"})),
        model("m", json!([final_answer("hi")])),
        calculator(),
        debug("d", "payload"),
    ])
}

#[tokio::test(start_paused = true)]
async fn finds_the_node_of_an_order() {
    let test = EngineTest::new(&several_agents());
    let go = || Some(json!("go"));
    for (node, payload, expected) in [
        (Some("a"), None, "run-1 a agent-core"),
        (Some("a"), go(), "run-2 a agent-core"),
        (Some("i2"), None, "run-3 b agent-core"),
        (Some("i3"), go(), "run-4 b agent-core"),
        (Some("c"), Some(Value::Null), "run-5 c agent-core"),
    ] {
        assert_eq!(runs(&test.start(order(node, payload, None)).await.unwrap()), [expected]);
    }
    let list = "\nthe agents of the flow, by id:\n  a  agent-core a\n  b  agent-core b\n  c  agent-core C\u{fffd}[1m";
    let injects = "\nthe inject nodes, by id:\n  i2  inject i\n  i3  inject i";
    let not = |text: String| StartError::NotStartable(text);
    let rows = [
        (
            Some("x\u{7}"),
            None,
            StartError::NodeUnknown(format!("there is no node `x\u{fffd}` in the flow{list}")),
        ),
        (
            Some("d"),
            None,
            not(format!("`d` is a debug node: only an agent or an inject node can be started{list}")),
        ),
        (
            Some("m"),
            go(),
            not(format!(
                "`m` is a scripted-model node: only an agent or an inject node can be started{list}"
            )),
        ),
        (Some("c"), None, not("no inject node is wired to the agent: give it a payload".to_owned())),
        (
            Some("b"),
            None,
            not(format!(
                "several inject nodes are wired to the agent: start one of them, or give the agent a payload{injects}"
            )),
        ),
        (None, go(), not(format!("the flow has several agents: name one of them{list}"))),
    ];
    for (node, payload, expected) in rows {
        assert_eq!(test.start(order(node, payload, None)).await.unwrap_err(), expected);
    }
    // Without a node id: the only agent, or the only one with an inject node.
    for (flow, expected) in [
        (
            json!([agent("a", "m", &[]), model("m", json!([final_answer("hi")])), calculator()]),
            "run-1 a agent-core",
        ),
        (slow_cascade(), "run-1 a agent-core"),
    ] {
        let test = EngineTest::new(&flow);
        assert_eq!(runs(&test.start(order(None, go(), None)).await.unwrap()), [expected]);
    }
    let none = EngineTest::new(&json!([inject(&[])])).start(order(None, go(), None)).await.unwrap_err();
    assert_eq!(none, not("there is no agent in the flow".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn starts_use_the_current_flow() {
    let test = EngineTest::new(&slow_cascade());
    let engine = Engine::new(None, test.ports(), EngineLimits::default());
    let go = |node: &str| engine.start(order(Some(node), Some(json!(1)), None), &test.cancel);
    assert_eq!(go("a").await.unwrap_err(), StartError::NoFlow);
    engine.deploy(build(&slow_cascade())).await;
    let first = go("a").await.unwrap();
    engine.deploy(build(&several_agents())).await;
    // The node is looked up in the current flow.
    assert_eq!(runs(&go("c").await.unwrap()), ["run-2 c agent-core"]);
    engine.deploy(build(&slow_cascade())).await;
    assert!(matches!(go("c").await.unwrap_err(), StartError::NodeUnknown(_)));
    assert_eq!(ends(&first.reports.await.unwrap())[0], "run-1 a completed");
}

#[tokio::test(start_paused = true)]
async fn a_stopping_engine_starts_nothing() {
    let test = EngineTest::new(&slow_cascade());
    let stop = test.engine.shutdown(Duration::from_secs(1));
    let start = async {
        sleep(Duration::from_millis(1)).await;
        test.start(order(Some("a"), Some(json!(1)), None)).await.unwrap_err()
    };
    assert_eq!(tokio::join!(stop, start).1, StartError::Stopping);
    assert_eq!(test.store.runs().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn starts_work_during_a_recovery() {
    let store = EngineTest::new(&slow_cascade()).crash_after(1, Buffered::Survives).await;
    let test = EngineTest::restart(&slow_cascade(), &store);
    let (back, started) = tokio::join!(test.recover(), test.start(order(Some("a"), Some(json!(1)), None)));
    assert_eq!(ends(&back)[0], "run-1 a completed");
    assert_eq!(ends(&started.unwrap().reports.await.unwrap())[0], "run-2 a completed");
}

#[tokio::test(start_paused = true)]
async fn a_key_begins_one_run() {
    let test = EngineTest::new(&slow_cascade());
    let keyed =
        |node: &'static str, key: &'static str| test.start(order(Some(node), Some(json!(1)), Some(key)));
    assert_eq!(runs(&keyed("a", "k:1").await.unwrap()), ["run-1 a agent-core"]);
    // The same key again while the run works.
    let again = keyed("a", "k:1").await.unwrap();
    assert_eq!((runs(&again), refused(&again)), (vec!["run-1 a agent-core".to_owned()], vec![]));
    assert_eq!(again.reports.await.unwrap().len(), 0);
    assert_eq!(runs(&keyed("a", "k:2").await.unwrap()), ["run-2 a agent-core"]);
    assert_eq!(test.store.runs()[0].2.as_deref(), Some("api:k:1"));
    // The same after the run is over, after a crash, and when the queue is full.
    sleep(Duration::from_secs(3_600)).await;
    let store = Arc::clone(&test.store);
    test.kill().await;
    store.crash(|| 0.0);
    let limits = EngineLimits { max_active: 0, max_queued: 0, ..EngineLimits::default() };
    let test = Setup { limits, ..Setup::default() }.restart(&slow_cascade(), &store);
    let again = test.start(order(Some("a"), Some(json!(1)), Some("k:1"))).await.unwrap();
    assert_eq!(runs(&again), ["run-1 a agent-core"]);
    assert_eq!(store.runs()[0].0.status, RunStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn two_starts_with_one_key_at_once_begin_one_run() {
    for fault in [Fault::None, Fault::Slow] {
        let test = Setup { fault, ..Setup::default() }.start_engine(&slow_cascade());
        let keyed = || test.start(order(Some("a"), Some(json!(1)), Some("k")));
        let (first, second, third) = tokio::join!(keyed(), keyed(), keyed());
        let all: Vec<String> =
            [first, second, third].iter().flat_map(|one| runs(one.as_ref().unwrap())).collect();
        assert_eq!(all, ["run-1 a agent-core"; 3]);
        assert_eq!(test.store.runs().len(), 1);
        assert_eq!(test.recorder.flow_lines(), [] as [&str; 0], "nothing is refused");
    }
}

// SECURITY: idempotency-key
#[tokio::test(start_paused = true)]
async fn a_key_with_another_request_is_refused() {
    let test = EngineTest::new(&slow_cascade());
    let keyed = |node: Option<&'static str>, payload| test.start(order(node, Some(payload), Some("k")));
    let payload = json!({"a": 1, "s3cret": [2.5]});
    assert_eq!(runs(&keyed(Some("a"), payload.clone()).await.unwrap()), ["run-1 a agent-core"]);
    let same = keyed(None, json!({"s3cret": [2.5], "a": 1})).await.unwrap();
    assert_eq!(runs(&same), ["run-1 a agent-core"]);
    for (node, payload, different) in [
        (Some("b"), payload, "`node`"),
        (Some("a"), json!({"a": 1}), "`payload`"),
        (None, json!(null), "`payload`"),
        (Some("b"), json!("s3cret"), "`node` and `payload`"),
    ] {
        let error = keyed(node, payload).await.unwrap_err();
        assert_eq!(error, StartError::KeyReused(different.to_owned()));
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
    let absent = test.start(order(Some("a"), None, Some("k"))).await.unwrap_err();
    assert_eq!(absent, StartError::KeyReused("`payload`".to_owned()));
    assert_eq!(test.store.runs().len(), 1);

    // Both come before one of them is stored.
    let test = Setup { fault: Fault::Slow, ..Setup::default() }.start_engine(&slow_cascade());
    let keyed = |payload| test.start(order(Some("a"), Some(payload), Some("k")));
    let (first, second) = tokio::join!(keyed(json!(1)), keyed(json!(2)));
    assert_eq!(runs(&first.unwrap()), ["run-1 a agent-core"]);
    assert_eq!(second.unwrap_err(), StartError::KeyReused("`payload`".to_owned()));
    assert_eq!(test.store.runs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_finds_a_damaged_run() {
    let test = EngineTest::new(&slow_cascade());
    let keyed = |node: &'static str| test.start(order(Some(node), Some(json!(1)), Some("k")));
    assert_eq!(runs(&keyed("a").await.unwrap()), ["run-1 a agent-core"]);
    test.store.damage_first_fact("run-1");
    // Its payload is not readable, so only the node is compared.
    assert_eq!(runs(&keyed("a").await.unwrap()), ["run-1 a agent-core"]);
    assert_eq!(keyed("b").await.unwrap_err(), StartError::KeyReused("`node`".to_owned()));
}

// SECURITY: idempotency-key
#[test]
fn keys_of_different_kinds_are_separate() {
    let digest = Digest::of(b"chat");
    let (instance, start) = (InstanceId::from("home"), "s".to_owned());
    let others = [StartKey::Chat(digest), StartKey::Mcp(digest), StartKey::Bridge { instance, start }];
    // Stored runs keep these causes.
    let causes = others.map(|key| key.cause());
    let hex = digest.to_hex();
    assert_eq!(
        causes,
        [format!("api:chat:{hex}"), format!("api:mcp:{hex}"), "api:bridge\nhome\ns".to_owned()]
    );
    for key in ["order 7", "chat:7", "chat:", "mcp:7", &format!("chat:{hex}x"), &"f".repeat(64)] {
        assert_eq!(StartKey::Caller(key.to_owned()).cause(), format!("api:{key}"));
    }
    for cause in &causes {
        // The caller chooses exactly what another kind would use.
        for key in [cause.as_str(), &cause["api:".len()..], &cause["api:chat:".len()..]] {
            assert!(!causes.contains(&StartKey::Caller(key.to_owned()).cause()), "{key}");
        }
    }
    let chat = format!("chat:{}", digest.to_hex());
    let twice = StartKey::Caller(format!("caller\n{chat}")).cause();
    assert_ne!(StartKey::Caller(chat).cause(), twice);
}

#[tokio::test(start_paused = true)]
async fn a_key_belongs_to_the_first_agent_only() {
    // The run of `a` is refused because the queue is full, and the error goes to `b`. The key does not belong
    // to that run.
    let limits = EngineLimits { max_active_per_agent: 1, max_queued_per_agent: 0, ..EngineLimits::default() };
    let test = Setup { limits, ..Setup::default() }.start_engine(&slow_cascade());
    test.start(order(Some("a"), Some(json!(1)), None)).await.unwrap();
    let started = test.start(order(Some("a"), Some(json!(1)), Some("k"))).await.unwrap();
    assert_eq!((refused(&started).len(), runs(&started)), (1, vec!["run-3 b agent-core".to_owned()]));
    assert!(test.store.runs().iter().all(|(.., cause)| cause.is_none()), "{:?}", test.store.runs());
}

#[tokio::test(start_paused = true)]
async fn a_key_needs_an_agent_with_a_payload() {
    let test = EngineTest::new(&slow_cascade());
    for (node, payload) in [(Some("i"), None), (Some("i"), Some(json!(1))), (Some("a"), None), (None, None)] {
        let refused = test.start(order(node, payload, Some("k"))).await.unwrap_err();
        assert!(matches!(&refused, StartError::NotStartable(text) if text.contains("key")), "{refused}");
    }
    assert_eq!(test.store.runs().len(), 0);
    let test = Setup { fault: Fault::CauseLookup, ..Setup::default() }.start_engine(&slow_cascade());
    let unknown = test.start(order(Some("a"), Some(json!(1)), Some("k"))).await.unwrap_err();
    assert!(matches!(unknown, StartError::Store(error) if error.code == StoreCode::DataUnusable));
}

/// An engine with a real store.
fn engine_with_store(store: Arc<dyn redflow_ports::RunStore>) -> (EngineTest, Engine) {
    let flow = json!([
        agent_with_tool("a", "m", &[]),
        model_double("m", json!([tool_call("t", json!({})), final_answer("done")]), json!({})),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "lost"})),
    ]);
    let test = EngineTest::restart(&flow, &TestStore::new(Fault::None));
    let ports = redflow_engine::Ports { store, clock: Arc::new(redflow_engine::SystemClock), ..test.ports() };
    let engine = Engine::new(Some(build(&flow)), ports, EngineLimits::default());
    (test, engine)
}

async fn start_twenty_times(engine: &Engine, test: &EngineTest) -> RunId {
    let keyed = || engine.start(order(Some("a"), Some(json!(1)), Some("k")), &test.cancel);
    let started = futures::future::join_all((0..20).map(|_| keyed())).await;
    let mut runs: Vec<RunId> =
        started.into_iter().flat_map(|one| one.unwrap().runs).map(|(run, _)| run).collect();
    assert_eq!(runs.len(), 20);
    runs.dedup();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

#[tokio::test]
async fn the_real_stores_take_one_run_per_key() {
    let (test, engine) = engine_with_store(Arc::new(MemoryStore::with_max_finished(10)));
    let first = start_twenty_times(&engine, &test).await;
    assert_eq!(start_twenty_times(&engine, &test).await, first);
    let folder = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for _ in 0..2 {
        let store = Arc::new(Store::open(folder.path()).unwrap());
        let (test, engine) = engine_with_store(Arc::clone(&store) as _);
        found.push(start_twenty_times(&engine, &test).await);
        drop(engine);
        while Arc::strong_count(&store) > 1 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(found[0], found[1]);
}

const GIF: &str = "data:image/gif;base64,R0lGODlhAQABAIAAAA==";
const OTHER_GIF: &str = "data:image/gif;base64,R0lGODlhAQABAH8AAA==";

/// An agent that reads images as its properties say.
fn image_flow(type_name: &str, props: Value) -> Value {
    let agent = with(node("a", type_name, json!([["d"], []])), json!({"model": "m"}));
    json!([with(agent, props), model("m", json!(["A pixel."])), debug("d", "payload")])
}

fn image_order(images: &[&str], key: Option<&str>) -> StartOrder {
    let images = images.iter().map(|image| (*image).to_owned()).collect();
    StartOrder { images, ..order(Some("a"), Some(json!("What is it?")), key) }
}

#[tokio::test(start_paused = true)]
async fn a_key_with_other_images_is_refused() {
    let test = EngineTest::new(&image_flow("ai-agent", json!({})));
    let first = test.start(image_order(&[GIF], Some("k"))).await.unwrap();
    assert_eq!(runs(&first), ["run-1 a ai-agent"]);
    assert_eq!(ends(&first.reports.await.unwrap()), ["run-1 a completed"]);
    let again = test.start(image_order(&[GIF], Some("k"))).await.unwrap();
    assert_eq!(runs(&again), ["run-1 a ai-agent"]);
    for images in [&[OTHER_GIF][..], &[GIF, OTHER_GIF], &[]] {
        let error = test.start(image_order(images, Some("k"))).await.unwrap_err();
        assert_eq!(error, StartError::KeyReused("`images`".to_owned()));
    }
    // A run without images, as every run of an older version is.
    let plain = test.start(image_order(&[], Some("old"))).await.unwrap();
    assert_eq!(runs(&plain), ["run-2 a ai-agent"]);
    let same = test.start(image_order(&[], Some("old"))).await.unwrap();
    assert_eq!(runs(&same), ["run-2 a ai-agent"]);
    let error = test.start(image_order(&[GIF], Some("old"))).await.unwrap_err();
    assert_eq!(error, StartError::KeyReused("`images`".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn images_need_an_agent_that_reads_them() {
    for images in ["{{msg.images}}", " {{ msg.images.0 }} ", "{{json.x}}{{msg.images}}"] {
        let test = EngineTest::new(&image_flow("ai-agent", json!({ "images": images })));
        let started = test.start(image_order(&[GIF], None)).await.unwrap();
        assert_eq!(runs(&started), ["run-1 a ai-agent"], "{images}");
    }
    let reads_others = "the agent `a` does not read `msg.images`: set its property `images` to `{{msg.images}}`, or \
                        leave the images out";
    let no_property = "the agent `a` takes no images, because a ai-summarizer has no property `images`: leave them \
                       out, or use another agent";
    for (type_name, props, text) in [
        ("ai-agent", json!({"images": "{{json.photos}}"}), reads_others),
        ("ai-agent", json!({"images": "{{msg.imagesOld}} {{msg.images"}), reads_others),
        ("ai-classifier", json!({"images": "", "categories": ["a"]}), reads_others),
        ("ai-summarizer", json!({}), no_property),
    ] {
        let test = EngineTest::new(&image_flow(type_name, props.clone()));
        let refused = test.start(image_order(&[GIF], None)).await.unwrap_err();
        assert_eq!(refused, StartError::NotStartable(text.to_owned()), "{type_name} {props}");
        assert_eq!(test.store.runs().len(), 0);
        // Without images it can be started.
        test.start(image_order(&[], None)).await.unwrap();
    }
    // A refused agent still says why it is refused.
    let test = EngineTest::new(&image_flow("ai-summarizer", json!({"length": "tiny"})));
    let started = test.start(image_order(&[GIF], None)).await.unwrap();
    assert_eq!(refused(&started), ["run-1 a refused CONFIG_INVALID"]);
}
