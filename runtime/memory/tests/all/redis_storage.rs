//! What `redis-memory` stores, for how long, and in which format.

use crate::kit::{
    append, append_turn, assistant, build, check_parallel_calls, failure, process, recall, tool_call,
    tool_result, try_build, user, user_texts,
};
use crate::redis_server::RedisServer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pretty_assertions::assert_eq;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_memory::MemorySettings;
use redis::AsyncCommands;
use serde_json::{Value, json};

const LIST: &str = "agent:memory:f:s";

#[tokio::test]
async fn a_conversation_is_recalled_unchanged() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let memory = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    let mut raw = server.raw().await;
    assert_eq!(recall(&memory, "f:s").await.unwrap(), []);
    let turn = [user("2+2?"), tool_call("a"), tool_result("a"), assistant("4")];
    let prompt = ChatMessage::new(ChatRole::System, "never stored");
    let with_prompt: Vec<ChatMessage> = [prompt].into_iter().chain(turn.clone()).collect();
    append(&memory, "f:s", "r1", &with_prompt).await.unwrap();
    append(&memory, "f:s", "r1", &turn).await.unwrap();
    append(&memory, "f:s", "nothing", &[]).await.unwrap();
    assert_eq!(recall(&memory, "f:s").await.unwrap(), turn);

    let stored: Vec<String> = raw.lrange(LIST, 0, -1).await.unwrap();
    assert_eq!(stored.len(), 1);
    let mut element: Value = serde_json::from_str(&stored[0]).unwrap();
    assert!(element["at"].take().as_u64().unwrap() > 1_700_000_000_000);
    assert_eq!(element, json!({"v": 2, "n": 4, "t": 22, "run": "r1", "at": null, "messages": turn}));
    let ttl: i64 = raw.pttl(LIST).await.unwrap();
    assert_eq!(ttl, -1);

    // Another node of the same flow sees it; another prefix, session or database does not.
    let other = build(&adapters, "redis-memory", "other", server.props(&json!({})));
    assert_eq!(recall(&other, "f:s").await.unwrap(), turn);
    for (props, session) in [
        (json!({}), "g:s"),
        (json!({}), "f:t"),
        (json!({"options": {"keyPrefix": "p:"}}), "f:s"),
        (json!({"db": 1}), "f:s"),
    ] {
        let elsewhere = build(&adapters, "redis-memory", "n", server.props(&props.clone()));
        assert_eq!(recall(&elsewhere, session).await.unwrap(), [], "{props} {session}");
        append_turn(&elsewhere, session, "there").await.unwrap();
    }
    assert_eq!(recall(&memory, "f:s").await.unwrap(), turn);
    // An incomplete turn is stored and not recalled. A clear removes this conversation and no other.
    append(&memory, "f:s", "r2", &[user("x"), tool_call("b")]).await.unwrap();
    assert_eq!(recall(&memory, "f:s").await.unwrap(), turn);
    memory.clear("f:s").await.unwrap();
    assert_eq!(recall(&memory, "f:s").await.unwrap(), []);
    assert_eq!(user_texts(&memory, "g:s").await, ["there"]);
    let exists: bool = raw.exists("p:f:s").await.unwrap();
    assert!(exists);
}

#[tokio::test]
async fn the_oldest_turns_are_removed_first_and_none_is_split() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let few = build(&adapters, "redis-memory", "n", server.props(&json!({"maxMessages": 4})));
    for run in ["1", "2", "3"] {
        append_turn(&few, "f:s", run).await.unwrap();
    }
    assert_eq!(user_texts(&few, "f:s").await, ["2", "3"]);
    let length: usize = raw.llen(LIST).await.unwrap();
    assert_eq!(length, 2, "older turns are removed from Redis");
    // A run with a stored turn does not append again, even if its turn is the next to be removed.
    append_turn(&few, "f:s", "2").await.unwrap();
    assert_eq!(user_texts(&few, "f:s").await, ["2", "3"]);
    append(&few, "f:s", "t", &[user("t"), tool_call("a"), tool_result("a")]).await.unwrap();
    assert_eq!(user_texts(&few, "f:s").await, ["t"]);
    let long: Vec<ChatMessage> = (0..6).map(|_| assistant("x")).collect();
    append(&few, "f:s", "long", &long).await.unwrap();
    assert_eq!(recall(&few, "f:s").await.unwrap(), long);
    append_turn(&few, "f:s", "4").await.unwrap();
    assert_eq!(user_texts(&few, "f:s").await, ["4"]);

    // With smaller limits less is recalled at once, and less is stored from the next turn on.
    let many = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    for run in 0..600 {
        append_turn(&many, "f:many", &run.to_string()).await.unwrap();
    }
    let all = user_texts(&many, "f:many").await;
    assert_eq!((all.len(), all[0].as_str()), (500, "100"));
    assert_eq!(user_texts(&few, "f:many").await, ["598", "599"]);
    append_turn(&few, "f:many", "600").await.unwrap();
    assert_eq!(user_texts(&many, "f:many").await, ["599", "600"]);

    // The limit counts the stored bytes: an element of this kind has about 120.
    let small = build(&adapters, "redis-memory", "n", server.props(&json!({"maxBytes": 300})));
    for run in ["1", "2", "3"] {
        append_turn(&small, "f:small", run).await.unwrap();
    }
    assert_eq!(user_texts(&small, "f:small").await, ["2", "3"]);
    assert_eq!(raw.llen::<_, usize>("agent:memory:f:small").await.unwrap(), 2);
    let error = append(&small, "f:small", "4", &[user(&"x".repeat(300))]).await.unwrap_err();
    let (start, end) = ("the turn has 3", " bytes; the limit is 300");
    assert!(error.message.starts_with(start) && error.message.ends_with(end), "{}", error.message);
    assert_eq!(user_texts(&small, "f:small").await, ["2", "3"]);
    // A turn that is too large to read stays unchanged.
    let length: usize = raw.lindex::<_, String>("agent:memory:f:small", -1).await.unwrap().len();
    let tiny = build(&adapters, "redis-memory", "n", server.props(&json!({"maxBytes": 100})));
    let message =
        format!("the key `agent:memory:f:small` holds {length} bytes in one piece; the limit is 100");
    assert_eq!(recall(&tiny, "f:small").await, Err(failure(&message)));
    assert_eq!(user_texts(&small, "f:small").await, ["2", "3"]);
}

#[tokio::test]
async fn turns_with_parallel_calls_stay_whole_and_lose_their_reasoning() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let props = server.props(&json!({"maxMessages": 6}));
    check_parallel_calls(&build(&adapters, "redis-memory", "n", props)).await;
    let stored: Vec<String> = server.raw().await.lrange("agent:memory:f:calls", 0, -1).await.unwrap();
    assert!(stored.iter().all(|turn| !turn.contains("thinking")), "{stored:?}");
}

#[tokio::test]
async fn a_conversation_has_the_time_to_live_of_its_node() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let hour = build(&adapters, "redis-memory", "n", server.props(&json!({"options": {"ttl": 3600}})));
    append_turn(&hour, "f:s", "1").await.unwrap();
    let ttl: i64 = raw.pttl(LIST).await.unwrap();
    assert!((3_500_000..=3_600_000).contains(&ttl), "{ttl}");
    // Each turn restarts the time to live.
    let _: bool = raw.expire(LIST, 100).await.unwrap();
    append_turn(&hour, "f:s", "2").await.unwrap();
    let ttl: i64 = raw.pttl(LIST).await.unwrap();
    assert!((3_500_000..=3_600_000).contains(&ttl), "{ttl}");
    // Without a time to live it stays, even if it had one before.
    let ever = build(&adapters, "redis-memory", "n", server.props(&json!({"ttl": 0})));
    append_turn(&ever, "f:s", "3").await.unwrap();
    let ttl: i64 = raw.pttl(LIST).await.unwrap();
    assert_eq!(ttl, -1);
    // An expired conversation is empty.
    let _: bool = raw.pexpire_at(LIST, 1).await.unwrap();
    assert_eq!(user_texts(&ever, "f:s").await, [] as [&str; 0]);
}

#[tokio::test]
async fn encrypted_turns_hide_their_text_and_open_only_with_their_key() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let [key, wrong] = [[1; 32], [2; 32]].map(|bytes: [u8; 32]| STANDARD.encode(bytes));
    let plain = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    let sealed = server.props(&json!({"credentials": {"encryptionKey": key}}));
    let sealed = build(&adapters, "redis-memory", "n", sealed);
    let other = server.props(&json!({"encryptionKey": wrong}));
    let other = build(&adapters, "redis-memory", "n", other);

    append_turn(&plain, "f:s", "plain").await.unwrap();
    append_turn(&sealed, "f:s", "my cat is Tom").await.unwrap();
    append_turn(&sealed, "f:s", "my cat is Tom").await.unwrap();
    assert_eq!(user_texts(&sealed, "f:s").await, ["plain", "my cat is Tom"], "both may be mixed");
    let stored: Vec<String> = raw.lrange(LIST, 0, -1).await.unwrap();
    let messages = stored[1].replace(r#""run":"my cat is Tom""#, "");
    for word in ["cat is Tom", "assistant", "content"] {
        assert!(!messages.contains(word), "{word} in {messages}");
    }
    let undecryptable =
        format!("the key `{LIST}` holds a turn that cannot be decrypted with this encryptionKey");
    assert_eq!(recall(&other, "f:s").await, Err(failure(&undecryptable)));
    let no_key = format!("the key `{LIST}` is encrypted, and the node has no encryptionKey");
    assert_eq!(recall(&plain, "f:s").await, Err(failure(&no_key)));
    assert_eq!(
        raw.lrange::<_, Vec<String>>(LIST, 0, -1).await.unwrap(),
        stored,
        "the failed reads change nothing"
    );
    // An element that was moved to another conversation does not open.
    let _: usize = raw.rpush("agent:memory:f:t", &stored[1]).await.unwrap();
    let moved = undecryptable.replace("f:s", "f:t");
    assert_eq!(recall(&sealed, "f:t").await, Err(failure(&moved)));

    let env = [("REDFLOW_MEMORY_KEY", key.as_str())];
    let by_env = try_build(&adapters, "redis-memory", "n", &server.props(&json!({})), &env).unwrap();
    assert_eq!(user_texts(&by_env, "f:s").await.len(), 2);
}

#[test]
fn invalid_properties_are_refused_when_the_node_is_built() {
    let adapters = process(MemorySettings::default());
    let rows = [
        (json!({"encryptionKey": "c2hvcnQ="}), "its encryptionKey is not 32 bytes in base64"),
        (json!({"ttl": 2_147_483_648_u64}), "its ttl is 2147483648; the limit is 2147483647"),
        (json!({"url": "http://h"}), "its url is not redis://HOST:PORT/DB or rediss://HOST:PORT/DB"),
    ];
    for (props, expected) in rows {
        let error = try_build(&adapters, "redis-memory", "n", &props, &[]).err();
        assert_eq!(error.as_deref(), Some(expected), "{props}");
    }
}
