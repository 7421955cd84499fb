//! What `redis-memory` keeps, for how long, and how it looks there.

use crate::kit::{answers, asks, assistant, build, failure, process, said, say, try_build, user};
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
async fn a_conversation_comes_back_as_it_was() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let memory = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    let mut raw = server.raw().await;
    assert_eq!(memory.recall("f:s").await.unwrap(), []);
    let turn = [user("2+2?"), asks("a"), answers("a"), assistant("4")];
    let prompt = ChatMessage::new(ChatRole::System, "never stored");
    let with_prompt: Vec<ChatMessage> = [prompt].into_iter().chain(turn.clone()).collect();
    memory.append("f:s", &"r1".into(), &with_prompt).await.unwrap();
    memory.append("f:s", &"r1".into(), &turn).await.unwrap();
    memory.append("f:s", &"nothing".into(), &[]).await.unwrap();
    assert_eq!(memory.recall("f:s").await.unwrap(), turn);

    let stored: Vec<String> = raw.lrange(LIST, 0, -1).await.unwrap();
    assert_eq!(stored.len(), 1);
    let mut element: Value = serde_json::from_str(&stored[0]).unwrap();
    assert!(element["at"].take().as_u64().unwrap() > 1_700_000_000_000);
    assert_eq!(element, json!({"v": 1, "n": 4, "run": "r1", "at": null, "messages": turn}));
    let lives: i64 = raw.pttl(LIST).await.unwrap();
    assert_eq!(lives, -1);

    // Another node of the same flow sees it; another prefix, session or database does not.
    let other = build(&adapters, "redis-memory", "other", server.props(&json!({})));
    assert_eq!(other.recall("f:s").await.unwrap(), turn);
    for (props, session) in [
        (json!({}), "g:s"),
        (json!({}), "f:t"),
        (json!({"options": {"keyPrefix": "p:"}}), "f:s"),
        (json!({"db": 1}), "f:s"),
    ] {
        let elsewhere = build(&adapters, "redis-memory", "n", server.props(&props.clone()));
        assert_eq!(elsewhere.recall(session).await.unwrap(), [], "{props} {session}");
        say(&elsewhere, session, "there").await.unwrap();
    }
    assert_eq!(memory.recall("f:s").await.unwrap(), turn);
    // A broken turn is stored and not recalled; a clear takes everything of this conversation and no other.
    memory.append("f:s", &"r2".into(), &[user("x"), asks("b")]).await.unwrap();
    assert_eq!(memory.recall("f:s").await.unwrap(), turn);
    memory.clear("f:s").await.unwrap();
    assert_eq!(memory.recall("f:s").await.unwrap(), []);
    assert_eq!(said(&memory, "g:s").await, ["there"]);
    let exists: bool = raw.exists("p:f:s").await.unwrap();
    assert!(exists);
}

#[tokio::test]
async fn the_oldest_turns_go_first_and_none_is_split() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let few = build(&adapters, "redis-memory", "n", server.props(&json!({"maxMessages": 4})));
    for run in ["1", "2", "3"] {
        say(&few, "f:s", run).await.unwrap();
    }
    assert_eq!(said(&few, "f:s").await, ["2", "3"]);
    let kept: usize = raw.llen(LIST).await.unwrap();
    assert_eq!(kept, 2, "what is not kept is not stored either");
    // A run whose turn would have to go for itself is not added again, and not moved.
    say(&few, "f:s", "2").await.unwrap();
    assert_eq!(said(&few, "f:s").await, ["2", "3"]);
    few.append("f:s", &"t".into(), &[user("t"), asks("a"), answers("a")]).await.unwrap();
    assert_eq!(said(&few, "f:s").await, ["t"]);
    let long: Vec<ChatMessage> = (0..6).map(|_| assistant("x")).collect();
    few.append("f:s", &"long".into(), &long).await.unwrap();
    assert_eq!(few.recall("f:s").await.unwrap(), long);
    say(&few, "f:s", "4").await.unwrap();
    assert_eq!(said(&few, "f:s").await, ["4"]);

    // Limits that became smaller remind of less at once, and store less from the next turn on.
    let many = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    for run in 0..600 {
        say(&many, "f:many", &run.to_string()).await.unwrap();
    }
    let all = said(&many, "f:many").await;
    assert_eq!((all.len(), all[0].as_str()), (500, "100"));
    assert_eq!(said(&few, "f:many").await, ["598", "599"]);
    say(&few, "f:many", "600").await.unwrap();
    assert_eq!(said(&many, "f:many").await, ["599", "600"]);

    // Bytes are those that are stored: an element of this kind has about 120.
    let small = build(&adapters, "redis-memory", "n", server.props(&json!({"maxBytes": 300})));
    for run in ["1", "2", "3"] {
        say(&small, "f:small", run).await.unwrap();
    }
    assert_eq!(said(&small, "f:small").await, ["2", "3"]);
    assert_eq!(raw.llen::<_, usize>("agent:memory:f:small").await.unwrap(), 2);
    let error = small.append("f:small", &"4".into(), &[user(&"x".repeat(300))]).await.unwrap_err();
    let (start, end) = ("the turn has 3", " bytes; the limit is 300");
    assert!(error.message.starts_with(start) && error.message.ends_with(end), "{}", error.message);
    assert_eq!(said(&small, "f:small").await, ["2", "3"]);
    // More in one piece than is read stays where it is.
    let length: usize = raw.lindex::<_, String>("agent:memory:f:small", -1).await.unwrap().len();
    let tiny = build(&adapters, "redis-memory", "n", server.props(&json!({"maxBytes": 100})));
    let message =
        format!("the key `agent:memory:f:small` holds {length} bytes in one piece; the limit is 100");
    assert_eq!(tiny.recall("f:small").await, Err(failure(&message)));
    assert_eq!(said(&small, "f:small").await, ["2", "3"]);
}

#[tokio::test]
async fn a_conversation_lives_as_long_as_its_node_says() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let hour = build(&adapters, "redis-memory", "n", server.props(&json!({"options": {"ttl": 3600}})));
    say(&hour, "f:s", "1").await.unwrap();
    let lives: i64 = raw.pttl(LIST).await.unwrap();
    assert!((3_500_000..=3_600_000).contains(&lives), "{lives}");
    // Each turn lets it live anew.
    let _: bool = raw.expire(LIST, 100).await.unwrap();
    say(&hour, "f:s", "2").await.unwrap();
    let lives: i64 = raw.pttl(LIST).await.unwrap();
    assert!((3_500_000..=3_600_000).contains(&lives), "{lives}");
    // Without a time to live it stays, also what had one.
    let ever = build(&adapters, "redis-memory", "n", server.props(&json!({"ttl": 0})));
    say(&ever, "f:s", "3").await.unwrap();
    let lives: i64 = raw.pttl(LIST).await.unwrap();
    assert_eq!(lives, -1);
    // What has run out is as if it had never been.
    let _: bool = raw.pexpire_at(LIST, 1).await.unwrap();
    assert_eq!(said(&ever, "f:s").await, [] as [&str; 0]);
}

#[tokio::test]
async fn encrypted_turns_show_nothing_and_open_with_their_key_alone() {
    let server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let [key, wrong] = [[1; 32], [2; 32]].map(|bytes: [u8; 32]| STANDARD.encode(bytes));
    let plain = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    let sealed = server.props(&json!({"credentials": {"encryptionKey": key}}));
    let sealed = build(&adapters, "redis-memory", "n", sealed);
    let other = server.props(&json!({"encryptionKey": wrong}));
    let other = build(&adapters, "redis-memory", "n", other);

    say(&plain, "f:s", "in the open").await.unwrap();
    say(&sealed, "f:s", "my cat is Tom").await.unwrap();
    say(&sealed, "f:s", "my cat is Tom").await.unwrap();
    assert_eq!(said(&sealed, "f:s").await, ["in the open", "my cat is Tom"], "both may be mixed");
    let stored: Vec<String> = raw.lrange(LIST, 0, -1).await.unwrap();
    let messages = stored[1].replace(r#""run":"my cat is Tom""#, "");
    for word in ["cat is Tom", "assistant", "content"] {
        assert!(!messages.contains(word), "{word} in {messages}");
    }
    let closed = format!("the key `{LIST}` holds a turn that cannot be decrypted with this encryptionKey");
    assert_eq!(other.recall("f:s").await, Err(failure(&closed)));
    let no_key = format!("the key `{LIST}` is encrypted, and the node has no encryptionKey");
    assert_eq!(plain.recall("f:s").await, Err(failure(&no_key)));
    assert_eq!(raw.lrange::<_, Vec<String>>(LIST, 0, -1).await.unwrap(), stored, "nothing is lost by it");
    // Moved to another conversation, it does not open.
    let _: usize = raw.rpush("agent:memory:f:t", &stored[1]).await.unwrap();
    let moved = closed.replace("f:s", "f:t");
    assert_eq!(sealed.recall("f:t").await, Err(failure(&moved)));

    let env = [("REDFLOW_MEMORY_KEY", key.as_str())];
    let by_env = try_build(&adapters, "redis-memory", "n", &server.props(&json!({})), &env).unwrap();
    assert_eq!(said(&by_env, "f:s").await.len(), 2);
}

#[test]
fn what_cannot_be_meant_is_refused_when_it_is_built() {
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
