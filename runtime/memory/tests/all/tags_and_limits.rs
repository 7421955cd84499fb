//! Limits on turns and tokens, and tags: the same in the process and in Redis.

use crate::kit::{append, append_of, append_turn, assistant, build, process, user, user_texts};
use crate::redis_server::RedisServer;
use pretty_assertions::assert_eq;
use redflow_memory::MemorySettings;
use redflow_ports::{Memory, Turn};
use redis::AsyncCommands;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIST: &str = "agent:memory:f:s";

/// A memory in the process and one in Redis, with the same properties.
fn both(server: &RedisServer, props: &Value) -> [Arc<dyn Memory>; 2] {
    let adapters = process(MemorySettings::default());
    let redis = build(&adapters, "redis-memory", "n", server.props(props));
    [build(&adapters, "buffer-memory", "n", props.clone()), redis]
}

#[tokio::test]
async fn tags_select_turns_before_the_limits_count() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    for type_name in ["window-memory", "redis-memory"] {
        let memory = |props: Value| {
            let props = if type_name == "redis-memory" { server.props(&props) } else { props };
            build(&adapters, type_name, "n", props)
        };
        // It has the largest limits, and stores what the others recall.
        let any = memory(json!({"recallTags": ["bug", " urgent "], "maxMessages": 4}));
        for (run, tags) in [
            ("1", &["bug"][..]),
            ("2", &["bug", "urgent"]),
            ("3", &["urgent"]),
            ("4", &["idea"]),
            ("5", &[]),
            ("6", &["Bug"]),
        ] {
            append_of(&any, "f:s", run, "Ada", tags).await;
        }
        assert_eq!(user_texts(&any, "f:s").await, ["2", "3"], "{type_name}: two turns have four messages");
        let all = memory(json!({"recallTags": "bug,urgent", "tagMatch": "all"}));
        assert_eq!(user_texts(&all, "f:s").await, ["2"]);
        let turns = memory(json!({"recallTags": ["bug"], "maxTurns": 1}));
        assert_eq!(user_texts(&turns, "f:s").await, ["2"]);
        let none = memory(json!({"recallTags": ["other"]}));
        assert_eq!(user_texts(&none, "f:s").await, [] as [&str; 0], "the newest turn is no exception");
        let every = memory(json!({}));
        assert_eq!(user_texts(&every, "f:s").await.len(), if type_name == "window-memory" { 5 } else { 6 });
    }
}

#[tokio::test]
async fn the_process_and_redis_keep_the_same_turns() {
    let server = RedisServer::start();
    // Numbers that look random and are the same in each test.
    let mut state = 7_u64;
    let mut next = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for round in 0..12 {
        let limits =
            [("maxTurns", 1 + next(8)), ("maxTokens", 20 + next(200)), ("maxMessages", 1 + next(20))];
        let own = limits.into_iter().filter(|_| next(3) > 0);
        let props: Value = own
            .map(|(name, limit)| (name.to_owned(), json!(limit)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let session = format!("f:{round}");
        let [local, redis] = both(&server, &props);
        for turn in 0..25 {
            let run = format!("{turn}-{}", "x".repeat(usize::try_from(next(60)).unwrap()));
            let mut messages = vec![user(&run)];
            messages.extend((0..next(3)).map(|_| assistant("é")));
            for memory in [&local, &redis] {
                append(memory, &session, &run, &messages).await.unwrap();
            }
            let texts = user_texts(&local, &session).await;
            assert_eq!(user_texts(&redis, &session).await, texts, "{props}");
            assert_eq!(texts.last(), Some(&run));
        }
    }
}

#[tokio::test]
async fn elements_of_version_1_are_read_counted_and_kept() {
    let server = RedisServer::start();
    let mut raw = server.raw().await;
    let old = |run: &str| {
        json!({"v": 1, "n": 2, "run": run, "at": 1, "messages": [{"role": "user", "content": run}, {"role": "assistant", "content": run}]})
            .to_string()
    };
    for run in ["1", "2", "3"] {
        let _: usize = raw.rpush(LIST, old(run)).await.unwrap();
    }
    let [_, memory] = both(&server, &json!({}));
    assert_eq!(user_texts(&memory, "f:s").await, ["1", "2", "3"]);
    append_turn(&memory, "f:s", "3").await.unwrap();
    append_of(&memory, "f:s", "4", "Ada", &["t"]).await;
    assert_eq!(
        user_texts(&memory, "f:s").await,
        ["1", "2", "3", "4"],
        "a run of version 1 appends only once"
    );
    // An old turn has about 45 tokens by its length, a new one 10.
    let [_, few] = both(&server, &json!({"maxTokens": 100}));
    append_turn(&few, "f:s", "5").await.unwrap();
    assert_eq!(user_texts(&memory, "f:s").await, ["3", "4", "5"]);
    assert_eq!(raw.llen::<_, usize>(LIST).await.unwrap(), 3);
}

#[tokio::test]
async fn an_append_to_a_hundred_thousand_turns_reads_only_what_stays() {
    let server = RedisServer::start();
    let mut raw = server.raw().await;
    let turn = |run: usize| {
        let messages = json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]);
        json!({"v": 1, "n": 2, "run": run.to_string(), "at": 1, "messages": messages}).to_string()
    };
    for start in (0..100_000).step_by(10_000) {
        let turns: Vec<String> = (start..start + 10_000).map(turn).collect();
        let _: usize = raw.rpush(LIST, turns).await.unwrap();
    }
    let [_, memory] = both(&server, &json!({"maxTurns": 100}));
    let since = Instant::now();
    append_turn(&memory, "f:s", "new").await.unwrap();
    assert_eq!(user_texts(&memory, "f:s").await.len(), 100);
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert_eq!(raw.llen::<_, usize>(LIST).await.unwrap(), 100);
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(&mut raw).await.unwrap();
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_lrange:calls=")).unwrap();
    let calls: usize = calls.split(',').next().unwrap().parse().unwrap();
    assert!(calls < 20, "{calls} pages");
}

#[tokio::test]
async fn a_clock_that_is_set_back_changes_no_order() {
    let server = RedisServer::start();
    for memory in both(&server, &json!({"maxTurns": 3})) {
        for (run, at) in [("1", 5_000), ("2", u64::MAX), ("3", 4_000), ("4", 1)] {
            let (run, messages) = (run.into(), [user(run)]);
            memory.append(Turn { at, ..Turn::new("f:s", &run, &messages) }).await.unwrap();
        }
        assert_eq!(user_texts(&memory, "f:s").await, ["2", "3", "4"]);
    }
}
