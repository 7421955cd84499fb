//! The legacy format: it is read and migrated, and other values are left unchanged.

use crate::kit::{append_turn, build, failure, process, recall, user_texts};
use crate::redis_server::RedisServer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pretty_assertions::assert_eq;
use redflow_contract::transcript::ChatMessage;
use redflow_memory::MemorySettings;
use redis::AsyncCommands;
use serde_json::{Value, json};

const LIST: &str = "agent:memory:f:s";
const LEGACY: &str = "agent:memory:s";

fn legacy() -> String {
    json!([
        {"role": "system", "content": "be kind", "timestamp": 1},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "", "toolCalls": [{"id": "a", "name": "x", "arguments": {"y": 1}}]},
        {"role": "tool", "content": "z", "toolCallId": "a"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "", "toolCalls": [{"id": "b", "name": "x", "arguments": {}}]},
        {"role": "user", "content": "three"},
        {"role": "assistant", "content": "fine"},
    ])
    .to_string()
}

#[tokio::test]
async fn a_legacy_conversation_continues_in_the_new_format() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let memory = build(&adapters, "redis-memory", "n", server.props(&json!({"ttl": 3600})));
    let _: () = raw.set_ex(LEGACY, legacy(), 100).await.unwrap();

    let messages: Vec<ChatMessage> = recall(&memory, "f:s").await.unwrap();
    let first = json!([
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "",
         "toolCalls": [{"id": "a", "name": "x", "arguments": "{\"y\":1}"}]},
        {"role": "tool", "content": "z", "toolCallId": "a"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "three"},
        {"role": "assistant", "content": "fine"},
    ]);
    assert_eq!(serde_json::to_value(messages).unwrap(), first, "the incomplete turn is left out");
    assert!(!raw.exists::<_, bool>(LEGACY).await.unwrap());
    assert_eq!(raw.llen::<_, usize>(LIST).await.unwrap(), 3, "but it is stored");
    let ttl: i64 = raw.pttl(LIST).await.unwrap();
    assert!((1..=100_000).contains(&ttl), "{ttl}: it keeps its time to live");
    append_turn(&memory, "f:s", "four").await.unwrap();
    assert_eq!(user_texts(&memory, "f:s").await, ["one", "three", "four"]);

    // A value without a time to live gets that of the node.
    let _: () = raw.set("agent:memory:t", legacy()).await.unwrap();
    assert_eq!(user_texts(&memory, "f:t").await, ["one", "three"]);
    let ttl: i64 = raw.pttl("agent:memory:f:t").await.unwrap();
    assert!((3_500_000..=3_600_000).contains(&ttl), "{ttl}");

    // An append without a recall migrates it too.
    let _: () = raw.set("agent:memory:u", legacy()).await.unwrap();
    append_turn(&memory, "f:u", "four").await.unwrap();
    assert_eq!(user_texts(&memory, "f:u").await, ["one", "three", "four"]);

    // It is trimmed to the limits, and encrypted if the node has a key.
    let _: () = raw.set("agent:memory:v", legacy()).await.unwrap();
    let key = STANDARD.encode([1; 32]);
    let sealed = server.props(&json!({"encryptionKey": key, "maxMessages": 4}));
    let sealed = build(&adapters, "redis-memory", "n", sealed);
    assert_eq!(user_texts(&sealed, "f:v").await, ["three"]);
    let stored: Vec<String> = raw.lrange("agent:memory:f:v", 0, -1).await.unwrap();
    assert!(stored.len() == 2 && stored.iter().all(|turn| !turn.contains("three")), "{stored:?}");

    // A clear removes it, and an empty array is an empty conversation.
    let _: () = raw.set("agent:memory:w", legacy()).await.unwrap();
    memory.clear("f:w").await.unwrap();
    assert_eq!(user_texts(&memory, "f:w").await, [] as [&str; 0]);
    let _: () = raw.set("agent:memory:w", "[]").await.unwrap();
    assert_eq!(user_texts(&memory, "f:w").await, [] as [&str; 0]);
}

#[tokio::test]
async fn concurrent_migrations_store_the_conversation_once() {
    let server = RedisServer::start();
    let mut raw = server.raw().await;
    let _: () = raw.set(LEGACY, legacy()).await.unwrap();
    let processes: Vec<_> = (0..4).map(|_| process(MemorySettings::default())).collect();
    let memories: Vec<_> =
        processes.iter().map(|one| build(one, "redis-memory", "n", server.props(&json!({})))).collect();
    let tasks = (0..20).map(|number| {
        let memory = memories[number % 4].clone();
        tokio::spawn(async move {
            if number % 2 == 0 {
                append_turn(&memory, "f:s", &format!("new {number:02}")).await.unwrap();
            }
            user_texts(&memory, "f:s").await
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        let seen = task.await.unwrap();
        assert_eq!(seen[..2], ["one", "three"]);
    }
    let mut all = user_texts(&memories[0], "f:s").await;
    all[2..].sort();
    let new: Vec<String> = (0..20).step_by(2).map(|number| format!("new {number:02}")).collect();
    assert_eq!(all, [vec!["one".to_owned(), "three".to_owned()], new].concat());
}

#[tokio::test]
async fn other_values_are_reported_and_left_unchanged() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let memory = build(&adapters, "redis-memory", "n", server.props(&json!({"maxBytes": 1000})));
    let not_a_conversation =
        |key: &str| failure(&format!("the key `{key}` holds something that is not a conversation"));

    for odd in ["hello", "{}", r#"[{"role":"robot","content":"x"}]"#] {
        let _: () = raw.set(LEGACY, odd).await.unwrap();
        assert_eq!(recall(&memory, "f:s").await, Err(not_a_conversation(LEGACY)), "{odd}");
        assert_eq!(append_turn(&memory, "f:s", "x").await, Err(not_a_conversation(LEGACY)), "{odd}");
        assert_eq!(raw.get::<_, String>(LEGACY).await.unwrap(), odd);
    }
    // Too large to read.
    let large = |bytes: usize, limit: usize| {
        failure(&format!("the key `{LEGACY}` holds {bytes} bytes in one piece; the limit is {limit}"))
    };
    let _: () = raw.set(LEGACY, "x".repeat(2001)).await.unwrap();
    assert_eq!(recall(&memory, "f:s").await, Err(large(2001, 2000)));
    let turn: Value = json!([{"role": "user", "content": "x".repeat(1000)}]);
    let _: () = raw.set(LEGACY, turn.to_string()).await.unwrap();
    let error = recall(&memory, "f:s").await.unwrap_err();
    assert!(error.message.ends_with(" bytes in one piece; the limit is 1000"), "{}", error.message);
    assert_eq!(raw.get::<_, String>(LEGACY).await.unwrap(), turn.to_string());
    // Another type of value.
    let _: usize = raw.del(LEGACY).await.unwrap();
    let _: usize = raw.hset(LEGACY, "a", "b").await.unwrap();
    assert_eq!(recall(&memory, "f:s").await, Err(not_a_conversation(LEGACY)));
    assert_eq!(append_turn(&memory, "f:s", "x").await, Err(not_a_conversation(LEGACY)));
    assert_eq!(raw.hget::<_, _, String>(LEGACY, "a").await.unwrap(), "b");
    // A clear that cannot remove everything removes nothing.
    let turn = r#"{"v":1,"n":1,"run":"r","at":1,"messages":[{"role":"user","content":"x"}]}"#;
    let _: usize = raw.rpush(LIST, turn).await.unwrap();
    assert_eq!(memory.clear("f:s").await, Err(not_a_conversation(LEGACY)));
    assert_eq!(raw.hget::<_, _, String>(LEGACY, "a").await.unwrap(), "b");
    assert_eq!(user_texts(&memory, "f:s").await, ["x"]);
    let _: usize = raw.del(&[LIST, LEGACY]).await.unwrap();

    // The same at the list's own key.
    let _: () = raw.set(LIST, "hello").await.unwrap();
    assert_eq!(recall(&memory, "f:s").await, Err(not_a_conversation(LIST)));
    assert_eq!(append_turn(&memory, "f:s", "x").await, Err(not_a_conversation(LIST)));
    let _: () = raw.set(LEGACY, "[]").await.unwrap();
    assert_eq!(memory.clear("f:s").await, Err(not_a_conversation(LIST)));
    assert_eq!(raw.get::<_, String>(LIST).await.unwrap(), "hello");
    assert_eq!(raw.get::<_, String>(LEGACY).await.unwrap(), "[]");
    let _: usize = raw.del(&[LIST, LEGACY]).await.unwrap();
    let readable = r#"{"v":1,"n":1,"run":"r","at":1,"messages":[{"role":"robot","content":"x"}]}"#;
    for (odd, appends) in [("hello", false), (r#"{"v":2,"n":1,"run":"r","at":1}"#, false), (readable, true)] {
        let _: usize = raw.rpush(LIST, odd).await.unwrap();
        assert_eq!(recall(&memory, "f:s").await, Err(not_a_conversation(LIST)), "{odd}");
        // The script accepts any element that begins like a turn, and removes it like others.
        assert_eq!(
            append_turn(&memory, "f:s", "x").await,
            if appends { Ok(()) } else { Err(not_a_conversation(LIST)) },
            "{odd}"
        );
        assert_eq!(raw.lindex::<_, String>(LIST, 0).await.unwrap(), odd);
        memory.clear("f:s").await.unwrap();
    }
}

#[tokio::test]
async fn an_empty_key_prefix_is_replaced_by_the_default() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let _: () = raw.set("s", "theirs").await.unwrap();
    let _: usize = raw.rpush("f:s", "theirs").await.unwrap();
    for props in [json!({"keyPrefix": ""}), json!({"options": {"keyPrefix": ""}}), json!({"keyPrefix": " "})]
    {
        let memory = build(&adapters, "redis-memory", "n", server.props(&props));
        append_turn(&memory, "f:s", "mine").await.unwrap();
        assert_eq!(raw.llen::<_, usize>(LIST).await.unwrap(), 1, "{props}");
        memory.clear("f:s").await.unwrap();
    }
    assert_eq!(raw.get::<_, String>("s").await.unwrap(), "theirs");
    assert_eq!(raw.lrange::<_, Vec<String>>("f:s", 0, -1).await.unwrap(), ["theirs"]);
}

#[tokio::test]
async fn a_session_named_like_the_list_of_another_flow_cannot_reach_it() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let memory = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    append_turn(&memory, "f:s", "mine").await.unwrap();
    // The old key of `f:s` in the flow g is the list of `s` in the flow f.
    assert_eq!(user_texts(&memory, "g:f:s").await, [] as [&str; 0]);
    append_turn(&memory, "g:f:s", "theirs").await.unwrap();
    memory.clear("g:f:s").await.unwrap();
    assert_eq!(user_texts(&memory, "f:s").await, ["mine"]);
}
