//! Whose turns are in Redis, and that nothing is left of a user who is forgotten.

use crate::kit::{append_of, append_turn, build, process, recall, user_texts};
use crate::redis_server::RedisServer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pretty_assertions::assert_eq;
use redflow_contract::memory::{DataOwner, Forgotten};
use redflow_memory::MemorySettings;
use redflow_ports::{Memory, Summary};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use std::sync::Arc;

fn memory(server: &RedisServer, props: Value) -> Arc<dyn Memory> {
    build(&process(MemorySettings::default()), "redis-memory", "n", server.props(&props))
}

fn user(name: &str) -> DataOwner {
    DataOwner::User(name.to_owned())
}

fn conversations(conversations: u64) -> Result<Forgotten, redflow_contract::run_error::Failure> {
    Ok(Forgotten { conversations, ..Forgotten::default() })
}

async fn summarise(memory: &Arc<dyn Memory>, session: &str, text: &str) -> bool {
    let store = memory.summaries().unwrap();
    let loaded = store.load(session).await.unwrap();
    let until = loaded.turns.last().unwrap().0.clone();
    store.replace(session, &loaded, Summary { text: text.to_owned(), until }).await.unwrap()
}

/// All keys and values.
async fn everything(raw: &mut MultiplexedConnection) -> String {
    let keys: Vec<String> = raw.keys("*").await.unwrap();
    let mut all = String::new();
    for key in keys {
        let kind: String = redis::cmd("TYPE").arg(&key).query_async(raw).await.unwrap();
        let values: Vec<String> = match kind.as_str() {
            "list" => raw.lrange(&key, 0, -1).await.unwrap(),
            "set" => raw.smembers(&key).await.unwrap(),
            "hash" => redis::cmd("HGETALL").arg(&key).query_async(raw).await.unwrap(),
            _ => vec![raw.get(&key).await.unwrap()],
        };
        all += &format!("{key}\n{}\n", values.join("\n"));
    }
    all
}

#[tokio::test]
async fn a_user_is_forgotten_in_hundreds_of_conversations_without_a_trace() {
    for props in
        [json!({}), json!({"encryptionKey": STANDARD.encode([1; 32])}), json!({"keyPrefix": "a[*]?\\:"})]
    {
        let server = RedisServer::start();
        let mut raw = server.raw().await;
        let memory = memory(&server, props.clone());
        for number in 0..300 {
            append_of(
                &memory,
                &format!("f:{number}"),
                &format!("wombat {number}"),
                "Ada Lovelace",
                &["marsupial"],
            )
            .await;
        }
        for turn in 0..250 {
            let name = if turn % 2 == 0 { "Ada Lovelace" } else { "Bob" };
            let word = if turn % 2 == 0 { "wombat" } else { "kiwi" };
            append_of(&memory, "f:shared", &format!("{word} {turn}"), name, &[]).await;
        }
        assert!(summarise(&memory, "f:shared", "Ada Lovelace likes the wombat").await);
        append_of(&memory, "f:hers", "kiwi", "Bob", &[]).await;
        // A turn that was stored before users had sets.
        let sets: Vec<String> = raw.keys("*%user:*").await.unwrap();
        assert_eq!(sets.len(), 2, "{props}");
        let lists: Vec<usize> = vec![raw.scard(&sets[0]).await.unwrap(), raw.scard(&sets[1]).await.unwrap()];
        assert_eq!(lists.iter().sum::<usize>(), 301 + 2);
        let hers = sets.iter().zip(&lists).find(|(_, count)| **count == 301).unwrap().0;
        let _: usize = raw.srem(hers, format!("{}f:7", hers.split("%user:").next().unwrap())).await.unwrap();
        // Lists of other programs.
        let _: usize = raw.rpush("agent:memory:other:list", "theirs").await.unwrap();
        let _: usize = raw.rpush("other", "theirs").await.unwrap();

        let before = memory.summaries().unwrap().load("f:shared").await.unwrap();
        assert_eq!(memory.forget(&user("Bob Lovelace")).await, conversations(0));
        assert_eq!(memory.forget(&DataOwner::Source("Ada Lovelace".to_owned())).await, conversations(0));
        assert_eq!(memory.forget(&user(" Ada Lovelace ")).await, conversations(301), "{props}");
        assert_eq!(memory.forget(&user("Ada Lovelace")).await, conversations(0));
        let left = everything(&mut raw).await;
        // Long words: three letters may occur by chance in what is encrypted.
        for word in ["Ada Lovelace", "Lovelace", "wombat", "marsupial", hers.as_str()] {
            assert!(!left.contains(word), "{word} is left: {props}");
        }
        assert!(left.contains("theirs"));
        assert_eq!(user_texts(&memory, "f:shared").await.len(), 125, "the turns of Bob stay");
        assert_eq!(user_texts(&memory, "f:hers").await, ["kiwi"]);
        // A summary that was under way must not bring the words back.
        let until = memory.summaries().unwrap().load("f:shared").await.unwrap().turns[0].0.clone();
        let late = Summary { text: "wombat".to_owned(), until };
        for loaded in [before.clone(), redflow_ports::SummarisedConversation { summary: None, ..before }] {
            let stored = memory.summaries().unwrap().replace("f:shared", &loaded, late.clone()).await;
            assert_eq!(stored, Ok(false));
        }
    }
}

#[tokio::test]
async fn a_conversation_that_cannot_be_read_does_not_stop_the_others() {
    let server = RedisServer::start();
    let sealed = memory(&server, json!({"encryptionKey": STANDARD.encode([1; 32])}));
    let plain = memory(&server, json!({}));
    append_of(&sealed, "f:a", "1", "Ada", &[]).await;
    for session in ["f:a", "f:b", "f:c"] {
        append_of(&plain, session, &format!("plain {session}"), "Ada", &[]).await;
    }
    let failure = plain.forget(&user("Ada")).await.unwrap_err();
    assert_eq!(failure.message, "the key `agent:memory:f:a` is encrypted, and the node has no encryptionKey");
    for session in ["f:b", "f:c"] {
        assert_eq!(recall(&plain, session).await.unwrap(), []);
    }
    assert_eq!(user_texts(&sealed, "f:a").await, ["1"], "what can be read is gone there too");
    assert_eq!(sealed.forget(&user("Ada")).await, conversations(1));
    assert_eq!(everything(&mut server.raw().await).await, "");
}

#[tokio::test]
async fn a_clear_or_a_forgotten_session_leaves_nothing() {
    let server = RedisServer::start();
    let mut raw = server.raw().await;
    let memory = memory(&server, json!({}));
    for session in ["f:a", "f:b"] {
        append_of(&memory, session, "1", "Ada", &[]).await;
        append_turn(&memory, session, "2").await.unwrap();
        assert!(summarise(&memory, session, "Ada greets").await);
    }
    memory.clear("f:a").await.unwrap();
    let left = everything(&mut raw).await;
    assert!(!left.contains("f:a") && left.contains("f:b"), "{left}");
    assert_eq!(memory.forget(&DataOwner::Session("f:b".to_owned())).await, conversations(1));
    assert_eq!(memory.forget(&DataOwner::Session("f:b".to_owned())).await, conversations(0));
    assert_eq!(everything(&mut raw).await, "");
    // A first summary that was under way is not stored for what comes after the clear.
    append_turn(&memory, "f:c", "1").await.unwrap();
    let store = memory.summaries().unwrap();
    let loaded = store.load("f:c").await.unwrap();
    let summary = Summary { text: "x".to_owned(), until: "1".into() };
    memory.clear("f:c").await.unwrap();
    assert_eq!(store.replace("f:c", &loaded, summary.clone()).await, Ok(false));
    append_turn(&memory, "f:c", "2").await.unwrap();
    assert_eq!(store.replace("f:c", &loaded, summary.clone()).await, Ok(false));
    assert_eq!(store.load("f:c").await.unwrap().summary, None);
    // The same call again, as after a lost answer, is no lost race.
    let loaded = store.load("f:c").await.unwrap();
    let summary = Summary { until: "2".into(), ..summary };
    for _ in 0..2 {
        assert_eq!(store.replace("f:c", &loaded, summary.clone()).await, Ok(true));
    }
    assert_eq!(memory.stats().await.unwrap().conversations, None);
}

#[tokio::test]
async fn what_is_known_about_a_conversation_lives_as_long_as_its_turns() {
    let server = RedisServer::start();
    let mut raw = server.raw().await;
    let hour = memory(&server, json!({"ttl": 3600}));
    append_of(&hour, "f:s", "1", "Ada", &[]).await;
    assert!(summarise(&hour, "f:s", "x").await);
    let keys: Vec<String> = raw.keys("*").await.unwrap();
    assert_eq!(keys.len(), 3);
    for key in &keys {
        let ttl: i64 = raw.pttl(key).await.unwrap();
        assert!((3_500_000..=3_600_000).contains(&ttl), "{key}: {ttl}");
    }
    // A shorter time to live of another conversation does not shorten that of the set.
    let minute = memory(&server, json!({"ttl": 60}));
    append_of(&minute, "f:t", "1", "Ada", &[]).await;
    let set = keys.iter().find(|key| key.contains("%user:")).unwrap();
    assert!(raw.pttl::<_, i64>(set).await.unwrap() > 3_500_000);
    // Ended conversations leave the set when the user has new turns.
    let _: usize = raw.del("agent:memory:f:t").await.unwrap();
    for number in 0..50 {
        append_of(&hour, "f:s", &format!("more {number}"), "Ada", &[]).await;
    }
    assert_eq!(raw.smembers::<_, Vec<String>>(set).await.unwrap(), ["agent:memory:f:s"]);
    let ever = memory(&server, json!({}));
    append_of(&ever, "f:s", "2", "Ada", &[]).await;
    for key in &keys {
        assert_eq!(raw.pttl::<_, i64>(key).await.unwrap(), -1, "{key}");
    }
}

#[tokio::test]
async fn values_of_other_programs_at_the_keys_of_users_and_summaries_stay() {
    let server = RedisServer::start();
    let mut raw = server.raw().await;
    let memory = memory(&server, json!({}));
    let key = "agent:memory:%about:f:s";
    let _: () = raw.set(key, "theirs").await.unwrap();
    let odd =
        Err(crate::kit::failure(&format!("the key `{key}` holds something that is not a conversation")));
    let (run, messages) = ("1".into(), [crate::kit::user("x")]);
    let turn = redflow_ports::Turn { user: Some("Ada"), ..redflow_ports::Turn::new("f:s", &run, &messages) };
    assert_eq!(memory.append(turn).await, odd);
    assert_eq!(memory.clear("f:s").await, odd);
    assert!(memory.summaries().unwrap().load("f:s").await.is_err());
    // A session that is named like the summary of another one cannot remove it.
    append_turn(&memory, "f:t", "1").await.unwrap();
    assert!(summarise(&memory, "f:t", "theirs").await);
    assert!(memory.clear("g:%about:f:t").await.is_err());
    assert_eq!(memory.summaries().unwrap().load("f:t").await.unwrap().summary.unwrap().text, "theirs");
}

/// The hash of a conversation remembers a thousand users. Then its summary may have words of any user.
#[tokio::test]
async fn a_conversation_of_very_many_users_loses_its_summary_with_any_of_them() {
    for (users, fields, is_kept) in [(1_000, 1_000, true), (1_010, 1_001, false)] {
        let server = RedisServer::start();
        let memory = memory(&server, json!({"maxMessages": 4}));
        for number in 0..users {
            append_of(&memory, "f:s", &number.to_string(), &format!("user {number}"), &[]).await;
        }
        let mut raw = server.raw().await;
        let found: usize = raw.hlen("agent:memory:%about:f:s").await.unwrap();
        assert_eq!(found, fields, "{users}");
        assert!(summarise(&memory, "f:s", "They greet").await);
        // The turns of this user are not there any more, and the hash does not name the user.
        let forgotten = memory.forget(&user("user 1009")).await;
        let removed = if is_kept { 0 } else { 1 };
        assert_eq!(forgotten, conversations(removed), "{users}");
        let loaded = memory.summaries().unwrap().load("f:s").await.unwrap();
        assert_eq!(loaded.summary.is_some(), is_kept, "{users}");
    }
}
