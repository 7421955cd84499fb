//! `redflow memory forget` with a real Redis, and with words that went from agent to agent.

use crate::kit::{Output, inject, model, node, with};
use crate::memory::{PERSON, WORD, files_with};
use crate::redis_server::RedisServer;
use crate::serve::SidecarProcess;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// An agent for one person. It knows from the payload who that is, and its message does not say it.
fn person(id: &str, user: &str, answer: &str) -> [Value; 3] {
    let (agent, own_model) = (format!("agent of {id}"), format!("model of {id}"));
    let said = json!({"user": user, "text": answer}).to_string();
    let config = json!({"model": own_model, "userId": "{{json.user}}"});
    [
        with(inject(id, &said, json!([[agent]])), json!({"payloadType": "json"})),
        with(node(&agent, "ai-agent", json!([["reader"], []])), config),
        model(&own_model, json!([answer])),
    ]
}

/// Two people whose agents send their answers to one reader. The reader has a long memory over Redis, and names no user.
fn readers_flow(redis: &RedisServer) -> Value {
    let zelda = person("zelda", PERSON, &format!("Zelda likes the {WORD}."));
    let bob = person("bob", "bob", "Bob rides a red bicycle.");
    let reader = [
        json!({"id": "t", "type": "tab", "label": "Talk"}),
        with(node("reader", "ai-agent", json!([["d"], []])), json!({"model": "m", "memory": "long"})),
        model("m", json!(["Noted."])),
        with(node("long", "long-memory", json!([[]])), json!({"shortMemory": "short", "embeddings": "hash"})),
        with(node("short", "redis-memory", json!([[]])), redis.props(&json!({}))),
        node("d", "debug", json!([])),
    ];
    Value::from_iter(reader.into_iter().chain(zelda).chain(bob))
}

/// All keys and values of a Redis.
fn stored_in(redis: &RedisServer) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut raw = redis.raw().await;
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut raw).await.unwrap();
        let mut all = String::new();
        for key in keys {
            let kind: String = redis::cmd("TYPE").arg(&key).query_async(&mut raw).await.unwrap();
            let read = match kind.as_str() {
                "list" => redis::cmd("LRANGE").arg(&key).arg(0).arg(-1).to_owned(),
                "set" => redis::cmd("SMEMBERS").arg(&key).to_owned(),
                "hash" => redis::cmd("HGETALL").arg(&key).to_owned(),
                kind => panic!("{key} is a {kind}"),
            };
            let values: Vec<String> = read.query_async(&mut raw).await.unwrap();
            all += &format!("{key} {}\n", values.join(" "));
        }
        all
    })
}

/// Waits until that many runs have completed. A run that another one started goes on after the command that started both.
#[track_caller]
fn wait_for_runs(sidecar: &SidecarProcess, count: usize) {
    sidecar.until(&["runs", "--json"], |listed| {
        let runs: Vec<Value> =
            listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        runs.len() == count && runs.iter().all(|run| run["status"] == "completed")
    });
}

#[track_caller]
fn assert_forgotten(output: &Output, expected: &str) {
    assert_eq!((output.code, output.stdout.as_str()), (0, expected), "{output:?}");
}

#[test]
fn words_that_went_on_to_another_agent_are_forgotten_in_every_file_and_in_redis() {
    let redis = RedisServer::start();
    let mut sidecar = SidecarProcess::start(&readers_flow(&redis));
    // Both have one conversation with the reader. A run keeps what it recalled of others, so Bob is first.
    for (person, runs) in [("bob", 2), ("zelda", 4)] {
        let ran = sidecar.run_remote(&["run", "--node", person, "--quiet"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        wait_for_runs(&sidecar, runs);
    }
    let data = sidecar.folder.data();
    let before = files_with(&data, &[PERSON, WORD]);
    for file in ["archive.db", "redflow.db"] {
        assert!(before.iter().any(|found| found.contains(file)), "{file}: {before:?}");
    }
    assert!(stored_in(&redis).contains(WORD));
    let forget = ["memory", "forget", "--user", PERSON, "--runs"];
    assert_forgotten(&sidecar.run_remote(&forget), "1 entry, 1 conversation and 2 runs forgotten\n");
    sidecar.stop();
    assert_eq!(files_with(&data, &[PERSON, WORD]), [""; 0]);
    let left = stored_in(&redis);
    assert!(!left.contains(WORD) && !left.contains(PERSON) && left.contains("red bicycle"), "{left}");

    // The same without a sidecar.
    let folder = &sidecar.folder;
    folder.run_ok(["run", "flow.json", "--node", "zelda", "--quiet"]);
    assert!(stored_in(&redis).contains(WORD));
    let forgotten = folder.redflow(forget.into_iter().chain(["--flow", "flow.json"])).run();
    assert_forgotten(&forgotten, "1 entry, 1 conversation and 2 runs forgotten\n");
    assert_eq!(files_with(&data, &[PERSON, WORD]), [""; 0]);
    assert!(!stored_in(&redis).contains(WORD));
}

#[test]
fn a_forget_without_redis_says_so_and_the_next_one_goes_on() {
    let mut redis = RedisServer::start();
    let sidecar = SidecarProcess::start(&readers_flow(&redis));
    let ran = sidecar.run_remote(&["run", "--node", "zelda", "--quiet"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    wait_for_runs(&sidecar, 2);
    redis.kill();
    let forget = ["memory", "forget", "--user", PERSON, "--runs"];
    let partly = sidecar.run_remote(&forget);
    assert_eq!(
        (partly.code, partly.stdout.as_str()),
        (1, "1 entry, 0 conversations and 2 runs forgotten\n"),
        "{partly:?}"
    );
    assert!(partly.stderr.contains("The memory `long`: ") && partly.stderr.contains("Redis"), "{partly:?}");
    redis.restart();
    assert!(stored_in(&redis).contains(WORD));
    let rest = sidecar.run_remote(&forget);
    assert_forgotten(&rest, "0 entries, 1 conversation and 0 runs forgotten\n");
    let left = stored_in(&redis);
    assert!(!left.contains(WORD) && !left.contains(PERSON), "{left}");
}
